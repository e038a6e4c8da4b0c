"""The models of the papers: RNNsearch, RNNencdec, and the LSTM of Sutskever et al."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras.initializers import RandomUniform

from bahdanau_tf import layers
from bahdanau_tf.layers.attention import Attention, FixedContext
from bahdanau_tf.layers.bridge import BackwardBridge, CopyBridge, ForwardBridge
from bahdanau_tf.layers.cells import LSTMCell, StackedCells
from bahdanau_tf.layers.readout import LinearReadout
from bahdanau_tf.layers.recurrent import BidirectionalEncoder, UnidirectionalEncoder
from bahdanau_tf.layers.weights import KerasOptions, accepted, serialized
from bahdanau_tf.models import groundhog
from bahdanau_tf.models.architecture import SIZES, divided, with_options_shown
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.system.ranges import OptionError, size

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from bahdanau_tf.options.keywords import PartOptions


class _OriginalModel(EncoderDecoder):
    """A model that the original code also has."""

    @classmethod
    def from_groundhog(cls, parameters: str | os.PathLike[str] | Mapping[str, np.ndarray]) -> Self:
        """Reads the weights of a model trained with the original code.

        Args:
            parameters: Path of GroundHog's .npz file, or its arrays by name.

        Returns:
            A model that keeps the file's word ids: 0 unused, 1 unknown word, the end symbol last.

        Raises:
            ValueError: The file does not have the parameters of this model.
        """
        arrays = groundhog.read_parameters(parameters)
        original = "RNNSearch" if issubclass(cls, RNNSearch) else "RNNEncDec"
        sizes: dict[str, Any] = groundhog.sizes_of(arrays, original)
        model = cls(**sizes)
        groundhog.assign_weights(model, arrays)
        return model


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class RNNSearch(_OriginalModel):
    """Translation by jointly learning to align and translate.

        h_j  = [h→_j ; h←_j]                              annotations (eq. 7)
        e_ij = v_a · tanh(W_a s_{i-1} + U_a h_j)                     (A.1.2)
        c_i  = Σ_j α_ij h_j,  α_i = softmax(e_i)                 (eq. 5, 6)
        t~_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c_i                 (A.2.2)
        p(y_i | y_1 .. y_{i-1}, x) = softmax(W_o maxout(t~_i))
        s_i  = GRU(s_{i-1}, E y_i, c_i)  order of the code; see `step_order`

    The defaults are the authors' RNNsearch-50 with all its weights. Where the paper and its code
    differ, they follow the code:

    * s_i depends on y_i, so the state that attends depends on y_{i-1} (`step_order="original"`;
      the paper has two other orders);
    * the first readout has no term for a previous word;
    * W_o is factored through `embedding_dim` (`factored_output`);
    * embeddings, candidate states, W_s, U_o and the output have biases.

    Initial kernels are the paper's, N(0, 0.01²) and smaller. `kernel_initializer="glorot_uniform"`,
    which `train` chooses, learned faster with two optimizers: on 2,000 pairs, after 6 epochs, the
    perplexity was 1.5 instead of 12 with Adam (0.005, mean loss), 15 instead of 38 with Adadelta.

    The textbooks' simpler forms are presets with other parts: s_0 = 0, a learned start vector in
    place of y_0, ŷ_t = softmax(W_y s_t + b_y), and

        s_t = tanh(W y_{t-1} + U s_{t-1} + C c_t + b)    "rnn-attention"
        s_t = z_t ∘ s_{t-1} + (1 - z_t) ∘ s~_t           "gru-attention"

    The z of our `GRUCell` is one minus the latter's z, which is the same function with W_z, U_z,
    C_z and b_z negated.

    Args:
        source_vocabulary_size: K_x, ids 0 (padding) to K_x - 1.
        target_vocabulary_size: K_y.
        units: n, hidden units of the encoder (each direction) and decoder.
        embedding_dim: m.
        attention_units: n'.
        maxout_units: l.
        attention: An attention instead of the additive one: a layer, or the name of one of this
            package, such as "GeneralAttention", which gets n' units.
        **options: Other parts, dropout and initializers; see `Architecture`.

    Call arguments, returns: see `StepwiseModel`.

    Raises:
        ValueError: Parts do not fit together. The message names both arguments.

    Example:

    ```python
    model = RNNSearch(10_000, 10_000, units=256, embedding_dim=256)
    memory, state = model.encode(source)
    ```

    Reference:
        Bahdanau, Cho and Bengio 2015, arXiv 1409.0473.
    """

    encoder_class = BidirectionalEncoder
    bridge_class = BackwardBridge

    @with_options_shown
    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        units: int = 1000,
        embedding_dim: int = 620,
        attention_units: int = 1000,
        maxout_units: int = 500,
        *,
        attention: Attention | FixedContext | str | None = None,
        **options: Unpack[PartOptions],
    ) -> None:
        arguments = {"attention_units": attention_units, "attention": serialized(attention)}
        if attention is None or isinstance(attention, str):
            own = {name: options.get(name) for name in ("kernel_initializer", "dtype")}
            kind = _attention_class(attention or "BahdanauAttention")
            attention = kind(**accepted(kind, {"units": attention_units, **own}))
        sizes = source_vocabulary_size, target_vocabulary_size, units, embedding_dim, maxout_units
        super().__init__(*sizes, attention=attention, **options)
        self._remember({**self._arguments, **arguments})


def _attention_class(name: str) -> type[Attention]:
    kind = getattr(layers, name, None)
    kinds = Attention, FixedContext
    if not (isinstance(kind, type) and issubclass(kind, kinds)) or kind is Attention:
        wanted = "a layer or the name of a class of this package, such as 'GeneralAttention'"
        raise OptionError("RNNSearch", "attention", name, wanted)
    return kind


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class RNNEncDec(_OriginalModel):
    """The RNN encoder-decoder: the same context c = h_Tx at every step.

        c    = h→_Tx,  s_0 = tanh(W_s c + b_s)
        t~_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c
        p(y_i | y_1 .. y_{i-1}, x) = softmax(W_o maxout(t~_i))
        s_i  = GRU(s_{i-1}, E y_i, c)    order of the code; see `step_order`

    The defaults are the authors' RNNencdec-50. Step order, first word, factored output and
    biases are as in `RNNSearch`. Cho et al. (2014) describe a tanh layer between h_Tx and c;
    their code has none.

    The textbook's form is the preset "rnn-encdec": s_0 = y_0 = h_Tx, then s_t = tanh(W y_{t-1} +
    U s_{t-1} + b) without any context, and ŷ_t = softmax(W_y s_t + b_y).

    Args:
        source_vocabulary_size: K_x, ids 0 (padding) to K_x - 1.
        target_vocabulary_size: K_y.
        units: n, hidden units of encoder and decoder.
        embedding_dim: m.
        maxout_units: l.
        use_context: Whether every step sees the context c; if not, the decoder depends on the
            source only through its first state.
        **options: Other parts, dropout and initializers; see `Architecture`.

    Call arguments, returns: see `StepwiseModel`; there is no alignment.

    Reference:
        Cho et al. 2014, arXiv 1406.1078; Bahdanau et al. 2015, section 2.1.
    """

    encoder_class = UnidirectionalEncoder
    bridge_class = ForwardBridge

    @with_options_shown
    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        units: int = 1000,
        embedding_dim: int = 620,
        maxout_units: int = 500,
        *,
        use_context: bool = True,
        **options: Unpack[PartOptions],
    ) -> None:
        context = FixedContext(dtype=options.get("dtype")) if use_context else None
        sizes = source_vocabulary_size, target_vocabulary_size, units, embedding_dim, maxout_units
        super().__init__(*sizes, attention=context, **options)
        arguments = {**self._arguments, "use_context": use_context}
        del arguments["attention"]  # it follows from use_context
        self._remember(arguments)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Seq2SeqLSTM(EncoderDecoder):
    """Sequence to sequence learning: two deep LSTMs and no attention.

        h^k_j = LSTM(h^{k-1}_j, h^k_{j-1}),  h^0_j = E x_j,   k = 1 .. L
        s^k_0 = h^k_Tx      outputs and memory cells of all layers
        s^k_i = LSTM(s^{k-1}_i, s^k_{i-1}),  s^0_i = E y_{i-1}
        p(y_i | y_1 .. y_{i-1}, x) = softmax(W_o s^L_i + b_y)

    The paper *reverses* the words of the source, but not the end symbol. That is done by a
    tokenizer with `reverse=True`, so that serving and scoring do it as well.

    The paper initializes "all of the LSTM's parameters" from U(-0.08, 0.08). It calls "the LSTM"
    the network of 384M parameters, so here embeddings, biases and output are included. 64M of
    them are recurrent, 4 · 2n · n in each of 2L layers.

    Two choices that the paper leaves open: the encoder reads the end symbol, and a learned vector
    is used in place of E y_0 (in the paper's figure 1 the decoder's first input is the end symbol).

    Args:
        source_vocabulary_size: K_x, ids 0 (padding) to K_x - 1.
        target_vocabulary_size: K_y.
        units: n, cells of a layer.
        embedding_dim: m.
        layers: L.
        initial_range: r; all weights are initialized from U(-r, r).
        embedding_dropout: Dropout rate of the embeddings.
        state_dropout: Dropout rate of the outputs in the recurrent products, with one mask for
            all steps of a sentence.
        readout_dropout: Dropout rate of s^L_i.

    Call arguments, returns: see `StepwiseModel`; there is no alignment.

    Raises:
        ValueError: `layers` is less than 1, or another argument of `EncoderDecoder` is given.

    Example:

    ```python
    model = Seq2SeqLSTM(10_000, 10_000, units=256, embedding_dim=256, layers=2)
    ```

    Reference:
        Sutskever, Vinyals and Le 2014, arXiv 1409.3215.
    """

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        units: int = 1000,
        embedding_dim: int = 1000,
        layers: int = 4,
        *,
        initial_range: float = 0.08,
        embedding_dropout: float = 0.0,
        state_dropout: float = 0.0,
        readout_dropout: float = 0.0,
        **kwargs: Unpack[KerasOptions],
    ) -> None:
        layers = size("Seq2SeqLSTM", "layers", layers)
        if unknown := sorted(divided(kwargs)[0]):
            raise ValueError(
                f"Seq2SeqLSTM: got {', '.join(unknown)}, which it does not have; "
                "wanted its own arguments or those of Keras"
            )
        dropout = {
            "embedding_dropout": embedding_dropout,
            "state_dropout": state_dropout,
            "readout_dropout": readout_dropout,
        }
        uniform = RandomUniform(-initial_range, initial_range)
        start = {"kernel_initializer": uniform, "dtype": kwargs.get("dtype")}
        biased = {**start, "bias_initializer": uniform}
        cells = [LSTMCell(units, recurrent_initializer=uniform, **biased) for _ in range(layers)]
        stack = StackedCells(cells, dtype=start["dtype"])
        sizes = source_vocabulary_size, target_vocabulary_size, units, embedding_dim
        super().__init__(
            *sizes,
            units,
            attention=None,
            encoder=UnidirectionalEncoder(cells[0], layers, state_dropout, dtype=start["dtype"]),
            cell=stack,
            readout=LinearReadout(target_vocabulary_size, terms=("state",), **biased),
            bridge=CopyBridge(stack.state_size, embedding_dim, **start),
            step_order="main-text",
            embedding_bias=False,
            embeddings_initializer=uniform,
            **dropout,
            **kwargs,
        )
        own = {name: self._arguments[name] for name in SIZES[:4]}
        self._remember({**own, "layers": layers, "initial_range": initial_range, **dropout})
