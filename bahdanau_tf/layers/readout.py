"""Readouts: from state, previous word and context to logits of all words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from bahdanau_tf.layers import weights
from bahdanau_tf.system.ranges import OptionError, size
from bahdanau_tf.system.tensors import Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


class OutputWords:
    """The words whose logits are computed from features."""

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Logits of these words: float [..., f] -> float32 [..., K]."""
        raise NotImplementedError

    def places(self, words: tf.Tensor) -> tf.Tensor:
        """Where words are among the logits, int32 [...]: their ids."""
        return words


@dataclass(eq=False)
class OutputWeights(OutputWords):
    """The last matrix, with a row for each word, and its bias.

    Variables are converted to tensors once, not at every step of a loop.

    Attributes:
        kernel: float [K, f].
        bias: float [K].
    """

    kernel: tf.Tensor
    bias: tf.Tensor

    def __post_init__(self) -> None:
        self.kernel = tf.convert_to_tensor(self.kernel)
        self.bias = tf.convert_to_tensor(self.bias)

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Logits of all words: float [..., f] -> float32 [..., K]."""
        kernel = tf.cast(self.kernel, features.dtype)
        logits = tf.matmul(weights.as_rows(features), kernel, transpose_b=True)
        # Not `+`: inside a loop TensorFlow fuses only bias_add with matmul.
        logits = tf.nn.bias_add(logits, tf.cast(self.bias, logits.dtype))
        return weights.reshaped(tf.cast(logits, tf.float32), features, self.bias.shape[0])

    def first(self, count: int) -> OutputWeights:
        """The output weights of the first `count` words."""
        return OutputWeights(self.kernel[:count], self.bias[:count])


@dataclass(eq=False)
class OutputColumns(OutputWords):
    """`OutputWeights` with a column for each word, its bias at the end.

    With few rows of features, products are two to three times as fast, with hundreds of rows a
    tenth faster; training is slower. The bias is part of the product: adding it afterwards would
    take a tenth as long again.
    """

    kernel: tf.Tensor  # float [f + 1, K]

    @classmethod
    def of(cls, output: OutputWeights) -> OutputColumns:
        """The same weights in columns."""
        bias = tf.cast(output.bias, output.kernel.dtype)
        rows = tf.concat([output.kernel, bias[:, tf.newaxis]], 1)
        return cls(tf.transpose(rows))

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Logits of all words: float [..., f] -> float32 [..., K]."""
        rows = tf.pad(weights.as_rows(features), [[0, 0], [0, 1]], constant_values=1)
        logits = tf.matmul(rows, tf.cast(self.kernel, rows.dtype))
        logits = tf.cast(logits, tf.float32)
        return weights.reshaped(logits, features, self.kernel.shape[1])


TERMS = ("state", "previous", "context")


class Readout(weights.ConfiguredLayer):
    """Base class of the readouts: a hidden layer t_i, then the vocabulary.

        t~_i = U_o s + V_o E y_{i-1} + C_o c_i + b_o
        t_i  = φ(t~_i)    `activation`, which a subclass defines
        p(y_i) = softmax(t_i W_o + b_y)

    W_o is full, [l, K], or the product W_1 W_2 of two factors. `output_kernel` is W_o (or W_2)
    transposed, [K, .].

    Args:
        vocabulary_size: K.
        units: l.
        factor_units: Inner size f of a factored output W_1 [l, f] W_2 [f, K]; None for a full W_o.
        terms: Which of the terms "state", "previous", "context" are used.
        tied: Whether the target embedding is used as `output_kernel`; it is then an argument of
            `logits`.
        kernel_initializer: Initializer of all matrices.
        bias_initializer: Initializer of the biases.

    Call arguments:
        state: float [..., n].
        previous: float [..., m], E y_{i-1}.
        context: float [..., c], or None for a decoder without a context.

    Returns:
        Logits, float32 [..., K].

    Raises:
        ValueError: A size is less than 1, `terms` is empty, has an unknown name or none that the
            decoder has, or with `tied` the widths differ.
    """

    pieces = 1  # pre-activations of a unit; a subclass may need more, as maxout does

    def __init__(
        self,
        vocabulary_size: int,
        units: int | None,
        factor_units: int | None = None,
        terms: Sequence[str] = TERMS,
        tied: bool = False,
        kernel_initializer: weights.Initializer = None,
        bias_initializer: weights.Initializer = "zeros",
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        owner = type(self).__name__
        if units is not None:
            units = size(owner, "units", units)
        if factor_units is not None:
            factor_units = size(owner, "factor_units", factor_units)
        unknown = set(terms) - set(TERMS)
        if unknown or not terms:
            raise OptionError(owner, "terms", list(terms), f"some of {list(TERMS)}")
        self.vocabulary_size = size(owner, "vocabulary_size", vocabulary_size)
        self.units = units  # None where the width follows from the terms
        self.factor_units = factor_units
        self.terms = tuple(terms)
        self.tied = tied
        self.kernel_initializer = weights.for_kernel(kernel_initializer)
        self.bias_initializer = weights.fresh(bias_initializer)
        self.supports_masking = True

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """Shape of the logits of a batch, for `summary`."""
        return None, None, self.vocabulary_size

    def _kernel(self, name: str, rows: int, columns: int) -> keras.Variable:
        return self.new_weight(name, (rows, columns), weights.fresh(self.kernel_initializer))

    def _bias(self, name: str, width: int) -> keras.Variable:
        return self.new_weight(name, (width,), weights.fresh(self.bias_initializer))

    def build(
        self, state_shape: Shape, previous_shape: Shape, context_shape: Shape | None = None
    ) -> None:
        widths = {
            "state": state_shape[-1],
            "previous": previous_shape[-1],
            "context": context_shape[-1] if context_shape else 0,
        }
        used = {x: width for x in self.terms if (width := widths[x])}
        if not used:
            raise ValueError(
                f"{type(self).__name__}: terms is {list(self.terms)}, wanted "
                "one that the decoder has"
            )
        hidden = self.hidden_size = self._build_hidden(used)
        self.factor_kernel = None
        if self.factor_units is not None:
            self.factor_kernel = self._kernel("factor_kernel", hidden, self.factor_units)
        width = self.factor_units or hidden
        self.output_kernel = None
        if not self.tied:
            # One row for each word, as in an embedding: products over the vocabulary are a fifth
            # faster so, forward and backward.
            self.output_kernel = self._kernel("output_kernel", self.vocabulary_size, width)
        elif width != previous_shape[-1]:
            named = "units" if self.units else "terms"
            named = "factor_units" if self.factor_units else named
            raise ValueError(
                f"{type(self).__name__}: with tied embeddings {named} ({width})"
                f" and embedding_dim ({previous_shape[-1]}) must be equal"
            )
        self.output_bias = self._bias("output_bias", self.vocabulary_size)

    def _build_hidden(self, widths: dict[str, int]) -> int:
        """Makes U_o, V_o, C_o and b_o; returns l."""
        units = self.units or sum(widths.values())
        wide = self.pieces * units
        for term in TERMS:
            name, width = f"{term}_kernel", widths.get(term)
            setattr(self, name, self._kernel(name, width, wide) if width else None)
        self.bias = self._bias("bias", wide)
        return units

    def activation(self, preactivation: tf.Tensor) -> tf.Tensor:
        """φ, which a subclass defines: float [..., `pieces` · l] -> [..., l]."""
        raise NotImplementedError(
            f"{type(self).__name__}: there is no activation(preactivation), wanted a method that "
            "returns the hidden layer, φ of its pre-activations"
        )

    def context_term(self, context: tf.Tensor) -> tf.Tensor:
        """C_o c_i, the context's term: float [..., c] -> [..., t]."""
        is_used = self.context_kernel is not None
        return weights.linear(context, self.context_kernel) if is_used else context[..., :0]

    def hidden(
        self, state: tf.Tensor, previous: tf.Tensor, context_term: tf.Tensor | None
    ) -> tf.Tensor:
        """t_i, float [..., l]; `context_term` is C_o c_i, or None."""
        total = tf.cast(self.bias, state.dtype)
        if self.state_kernel is not None:
            total += weights.linear(state, self.state_kernel)
        if self.previous_kernel is not None:
            total += weights.linear(previous, self.previous_kernel)
        if self.context_kernel is not None:
            total += context_term
        return self.activation(total)

    def features(self, hidden: tf.Tensor) -> tf.Tensor:
        """The input of the last product: t_i W_1, or t_i; float [..., f]."""
        return hidden if self.factor_kernel is None else weights.linear(hidden, self.factor_kernel)

    def output_weights(self, embeddings: weights.Weight | None = None) -> OutputWeights:
        """The weights of the last product, one row for each word.

        The target embeddings, float [K, m], are used only if `tied`.
        """
        kernel = embeddings if self.tied else self.output_kernel
        return OutputWeights(tf.cast(kernel, self.compute_dtype), self.output_bias)

    def logits(self, hidden: tf.Tensor, embeddings: weights.Weight | None = None) -> tf.Tensor:
        """Logits of all words, float32 [..., K], from `hidden`, float [..., l]."""
        return self.output_weights(embeddings).logits(self.features(hidden))

    def compute_output_spec(self, *args: object, **kwargs: object) -> keras.KerasTensor:
        """The spec of a call in a functional model; raises ValueError if the readout is `tied`.

        Keras would save the embeddings passed to it as a constant.
        """
        if self.tied:
            raise ValueError(
                f"{type(self).__name__}: tied is True in a functional model, "
                "wanted False; EncoderDecoder has tie_embeddings"
            )
        return super().compute_output_spec(*args, **kwargs)

    def call(
        self,
        state: tf.Tensor,
        previous: tf.Tensor,
        context: tf.Tensor | None = None,
        embeddings: weights.Weight | None = None,
    ) -> tf.Tensor:
        term = None if context is None else self.context_term(context)
        return self.logits(self.hidden(state, previous, term), embeddings)


@tf.custom_gradient
def pair_maximum(pairs: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    """max(x_1, x_2), max(x_3, x_4), ..; of equal ones the first has gradient.

    Strided slices, or `tf.reduce_max` over an axis of size 2, are several times slower, forward
    and backward.
    """
    apart = weights.reshaped(pairs, pairs, pairs.shape[-1] // 2, 2)
    first, second = tf.unstack(apart, num=2, axis=-1)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        to_first = tf.where(first >= second, upstream, 0)
        both = tf.stack([to_first, upstream - to_first])
        # Not `tf.stack(.., -1)`, which takes three times as long.
        both = tf.transpose(both, [*range(1, both.shape.rank), 0])
        return tf.reshape(both, tf.shape(pairs))

    return tf.maximum(first, second), gradient


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class MaxoutReadout(Readout):
    """The paper's readout.

        t_ij = max(t~_{i,2j-1}, t~_{i,2j})    (A.2.2)

    The maximum of each pair of neighbours, from 2l pre-activations to l. The paper's W_o is
    full; the original code factors it (500 x 620 x 30,001, see `factor_units`). The only biases
    are b_o and b_y, as in the original code.

    Args, call arguments, returns: see `Readout`.

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, appendix A.2.2; Goodfellow et al. 2013, arXiv
        1302.4389.
    """

    pieces = 2

    def activation(self, preactivation: tf.Tensor) -> tf.Tensor:
        return pair_maximum(preactivation)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class TanhReadout(Readout):
    """The readout of most later systems.

        t_i = tanh(t~_i)

    Args, call arguments, returns: see `Readout`.
    """

    def activation(self, preactivation: tf.Tensor) -> tf.Tensor:
        return tf.tanh(preactivation)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class LinearReadout(Readout):
    """A readout without a hidden layer.

        p(y_i) = softmax([s ; E y_{i-1} ; c_i] W_o + b_y)

    With `terms=("state",)` this is the textbook's softmax(W s_t + b).

    Args:
        vocabulary_size: K.
        factor_units: As the other arguments, see `Readout`.

    Call arguments, returns: see `Readout`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        *,
        factor_units: int | None = None,
        terms: Sequence[str] = TERMS,
        tied: bool = False,
        kernel_initializer: weights.Initializer = None,
        bias_initializer: weights.Initializer = "zeros",
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        # The width follows from the terms, once they are known.
        initializers = kernel_initializer, bias_initializer
        super().__init__(vocabulary_size, None, factor_units, terms, tied, *initializers, **kwargs)

    def _build_hidden(self, widths: dict[str, int]) -> int:
        self.used_terms = tuple(widths)
        return sum(widths.values())

    def context_term(self, context: tf.Tensor) -> tf.Tensor:
        """c_i itself."""
        return context

    def hidden(
        self, state: tf.Tensor, previous: tf.Tensor, context_term: tf.Tensor | None
    ) -> tf.Tensor:
        """[s ; E y_{i-1} ; c_i], the terms side by side."""
        terms = {"state": state, "previous": previous, "context": context_term}
        return tf.concat([terms[term] for term in self.used_terms], -1)

    def get_config(self) -> dict[str, object]:
        config = super().get_config()
        del config["units"]
        return config
