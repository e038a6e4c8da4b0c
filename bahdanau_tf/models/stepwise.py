"""Base class of translation models that are defined by their steps.

Search, scoring, training, shortlists, ensembles, learned lexicons and exports use nothing else
of a model.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import keras
import tensorflow as tf

from bahdanau_tf.layers.recurrent import unroll
from bahdanau_tf.layers.weights import KerasOptions, rows_at
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

# `OutputWeights` or what has the same method `logits`; of an ensemble a tuple of those of its
# members.
Output: TypeAlias = Any
Alignment: TypeAlias = "tf.Tensor | None"  # None without attention


@runtime_checkable
class TranslationModel(Protocol):
    """A model that returns features of each next word, and output weights.

    *Features* are the input of the last product, the paper's t_i: logits are features times
    `OutputWeights`. An ensemble has a tuple of each, with one element for each member, and its
    `logits` combines them.

    Attributes:
        start_id: Used as the previous word of the first one; 0, as padding.
        source_vocabulary_size: K_x; a tuple for a model of several sources.
        target_vocabulary_size: K_y.
        has_alignment: Whether `step` and `features` return attention weights.
    """

    @property
    def start_id(self) -> int: ...

    @property
    def source_vocabulary_size(self) -> int | tuple[int, ...]: ...

    @property
    def target_vocabulary_size(self) -> int: ...

    @property
    def has_alignment(self) -> bool: ...

    def encode(self, source: Nest) -> tuple[Nest, Nest]:
        """Reads source sentences.

        Args:
            source: int32 [B, T_x], padded with 0; a tuple of them for several sources.

        Returns:
            The memory, a nest of [B, ...] that no step changes, and the state before the first
            step, a nest of [B, ...].
        """
        ...

    def step(self, ids: tf.Tensor, state: Nest, memory: Nest) -> tuple[Nest, Nest, Alignment]:
        """The features of the next word, for K hypotheses of each sentence.

        Args:
            ids: int32 [B, K], the previous words; `start_id` at the start.
            state: Nest of [B, K, ...].
            memory: From `encode`, nest of [B, ...].

        Returns:
            The features, float [B, K, f]; the new state; the alignment, float32 [B, K, T_x], or
            None without one.
        """
        ...

    def features(
        self, inputs: dict[str, Nest], training: bool = False, words: tf.Tensor | None = None
    ) -> tuple[Nest, Alignment]:
        """The features of given translations, each word given those before.

        Args:
            inputs: {"source": as for `encode`, "target": int32 [B, T_y]}, padded with 0; the
                target has its end symbol and is not shifted.
            training: Whether to apply dropout.
            words: int [N], indices into the B x T_y positions, to get the features of these
                alone; or None.

        Returns:
            float [B, T_y, f], or [N, f] of `words`; the alignment, float [B, T_y, T_x], or None
            without one.
        """
        ...

    def output_weights(self) -> Output:
        """`OutputWeights`, or a tuple of them if the features are a tuple."""
        ...

    def logits(self, features: Nest, output: Output) -> tf.Tensor:
        """Logits of the words that `output` has rows for, float32 [..., K].

        Args:
            features: float [..., f].
            output: From `output_weights`, or another object with a method `logits`, such as a
                shortlist's.
        """
        ...

    def normalized(self, features: Nest, output: Output) -> tuple[tf.Tensor, tf.Tensor | None]:
        """These logits, and the logarithm of the sum of their exponentials, float32 [...].

        In its place is None if it is not known: search computes it.
        """
        ...


PAD_ID = 0
INPUTS = {"source", "target"}


class StepwiseModel(keras.Model):
    """A Keras model defined by `encode`, `step` and `output_weights`.

    A subclass defines these three and the sizes of the vocabularies, as `TranslationModel`
    describes them; `has_alignment` if its steps return attention weights; `features` if it has
    dropout, or can process a whole sentence faster than step by step. Its constructor makes the
    weights, whose shapes do not depend on the input, or layers, and then calls `build`.

    Id 0 is padding on both sides and, as a previous target word, stands for "no word yet".

    Call arguments:
        inputs: {"source": int32 [B, T_x], "target": int32 [B, T_y]}, padded with 0; the target
            is y_1 .. y_Ty with the end symbol, unshifted.
        training: Whether to apply dropout.

    Returns:
        Logits, float32 [B, T_y, K_y]; `logits[:, i]` scores `target[:, i]`.

    Raises:
        ValueError: The inputs are something else.
    """

    start_id = PAD_ID

    def __init__(self, **kwargs: Unpack[KerasOptions]) -> None:
        super().__init__(**kwargs)
        # Otherwise `compile` would use XLA on a GPU, which compiles again for each of the many
        # shapes of batches of sentences.
        self.supports_jit = False
        self.supports_masking = True

    @property
    def has_alignment(self) -> bool:
        """Whether `step` returns attention weights."""
        return False

    def build(self, input_shape: Shape | None = None) -> None:
        """Makes the weights of layers that are built by their first call."""
        parts = tf.train.TrackableView(self).descendants()
        layers = [x for x in parts if isinstance(x, keras.Layer)]
        if not all(layer.built for layer in layers if layer is not self):
            ids = keras.KerasTensor([None, None], "int32")
            self.compute_output_spec({"source": ids, "target": ids})
        self.built = True

    def compute_mask(self, inputs: dict[str, Nest], mask: tf.Tensor | None = None) -> tf.Tensor:
        """True at target words, for losses and metrics of Keras."""
        return keras.ops.not_equal(inputs["target"], PAD_ID)

    def compute_loss(self, *args: Any, **kwargs: Any) -> tf.Tensor:
        """Keras' loss of a batch; raises ValueError if it is one of probabilities, not logits."""
        for loss in tf.nest.flatten(self.loss):
            name = loss if isinstance(loss, str) else getattr(loss, "__name__", "")
            is_keras = isinstance(loss, str) or getattr(loss, "__module__", "").startswith("keras.")
            is_named = is_keras and name.lower().endswith(("crossentropy", "ce"))
            if is_named or not getattr(loss, "from_logits", True):
                raise ValueError(
                    f"{type(self).__name__}: the loss of compile is {name or loss!r}, of "
                    "probabilities, wanted that of logits: TokenCrossentropy() or, of Keras, one "
                    "with from_logits=True"
                )
        return super().compute_loss(*args, **kwargs)

    def encode(self, source: Nest) -> tuple[Nest, Nest]:
        """See `TranslationModel`."""
        raise NotImplementedError

    def step(self, ids: tf.Tensor, state: Nest, memory: Nest) -> tuple[Nest, Nest, Alignment]:
        """See `TranslationModel`."""
        raise NotImplementedError

    def output_weights(self) -> Output:
        """See `TranslationModel`."""
        raise NotImplementedError

    def logits(self, features: Nest, output: Output) -> tf.Tensor:
        """See `TranslationModel`."""
        return output.logits(features)

    def normalized(self, features: Nest, output: Output) -> tuple[tf.Tensor, tf.Tensor | None]:
        """See `TranslationModel`."""
        return self.logits(features, output), None

    def features(
        self, inputs: dict[str, Nest], training: bool = False, words: tf.Tensor | None = None
    ) -> tuple[Nest, Alignment]:
        """See `TranslationModel`; here step by step and without dropout."""
        target = inputs["target"]
        memory, state = self.encode(inputs["source"])
        previous = tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=self.start_id)
        state = tf.nest.map_structure(lambda x: x[:, tf.newaxis], state)
        example, _, aligned = self.step(previous[:, :1], state, memory)
        outputs = [*tf.nest.flatten(example), *([] if aligned is None else [aligned])]

        def step(now: tuple[tf.Tensor, ...], state: Nest) -> tuple[list[tf.Tensor], Nest]:
            features, state, weights = self.step(now[0][:, tf.newaxis], state, memory)
            return [x[:, 0] for x in (*tf.nest.flatten(features), weights)[: len(outputs)]], state

        shapes, dtypes = [x.shape[2:] for x in outputs], [x.dtype for x in outputs]
        parts, _ = unroll(step, [previous], state, shapes, dtypes)
        features = tf.nest.pack_sequence_as(example, parts[: len(tf.nest.flatten(example))])
        if words is not None:
            features = tf.nest.map_structure(lambda x: rows_at(x, words), features)
        return features, None if aligned is None else parts[-1]

    def call(self, inputs: dict[str, Nest], training: bool = False) -> tf.Tensor:
        _check_inputs(type(self).__name__, inputs)
        features, _ = self.features(inputs, training=training)
        return self.logits(features, self.output_weights())

    def decode_step(
        self, ids: tf.Tensor, state: Nest, memory: Nest
    ) -> tuple[tf.Tensor, Nest, Alignment]:
        """`step` with the logits of all words, float32 [B, K, K_y], in place of features."""
        features, state, weights = self.step(ids, state, memory)
        return self.logits(features, self.output_weights()), state, weights

    def export(
        self,
        filepath: str | os.PathLike[str],
        *args: Any,
        input_signature: Sequence[Nest] | None = None,
        **kw: Any,
    ) -> None:
        """`keras.Model.export` of `call`, which is teacher-forced: it scores a given target.

        To translate, export a `Translator`, which has search and takes strings. The inputs of the
        default signature are named source and target; several sources source, source_1, and so on.
        """
        source, target = (
            tf.TensorSpec([None, None], tf.int32, name) for name in ("source", "target")
        )
        many = getattr(self, "source_vocabulary_size", None)
        sources = (source,) * len(many) if isinstance(many, tuple) else source
        signature = input_signature or [{"source": sources, "target": target}]
        super().export(filepath, *args, input_signature=signature, **kw)

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """`keras.Model.fit` without `class_weight`: Keras would weight whole sentences."""
        _check_class_weight(self, super().fit, args, kwargs)
        return super().fit(*args, **kwargs)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        """`keras.Model.train_on_batch` without `class_weight`, as `fit`."""
        _check_class_weight(self, super().train_on_batch, args, kwargs)
        return super().train_on_batch(*args, **kwargs)

    def quantize(self, *args: object, **kwargs: object) -> None:
        """Raises ValueError: not supported, since loss and search read the weights as they are."""
        raise ValueError(
            f"{type(self).__name__}: quantize is not supported; half precision (dtype) makes a "
            "model smaller"
        )


def check_ids(owner: str, side: str, ids: tf.Tensor, vocabulary_size: int) -> None:
    """Raises ValueError unless the "source" or "target" ids of a model are int32 [B, T].

    Outside of graphs it also checks that they are those of a vocabulary of this size.
    """
    wanted = "wanted int32 [B, T] padded with 0, T at least 1"
    if isinstance(ids, tf.RaggedTensor):
        raise ValueError(f"{owner}: {side} is ragged, {wanted}")
    ids = tf.convert_to_tensor(ids)
    if ids.dtype in (tf.string, tf.bool):
        raise ValueError(f"{owner}: {side} is {ids.dtype.name}, {wanted}")
    if ids.shape.rank not in (None, 2) or ids.shape[-1:] == [0]:
        raise ValueError(f"{owner}: {side} has the shape {ids.shape}, {wanted}")
    if tf.executing_eagerly() and tf.size(ids):
        low, high = int(tf.reduce_min(ids)), int(tf.reduce_max(ids))
        if low < 0 or high >= vocabulary_size:
            raise ValueError(
                f"{owner}: {side} has ids from {low} to {high}, wanted 0 to {vocabulary_size - 1}"
            )


def _check_class_weight(
    model: keras.Model, method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    arguments = inspect.signature(method).bind(*args, **kwargs).arguments
    if arguments.get("class_weight") is not None:
        raise ValueError(
            f"{type(model).__name__}: class_weight is given, which Keras applies to sentences, not "
            "to words; wanted sample_weight, float [B, T_y], with 0 on padding"
        )


def _check_inputs(owner: str, inputs: object) -> None:
    kind = type(inputs).__name__
    if isinstance(inputs, Mapping):
        if inputs.keys() == INPUTS:
            return
        kind = f"a dict with {[*inputs]}"
    raise ValueError(
        f"{owner}: inputs is {kind}, wanted a dict with {sorted(INPUTS)}, the ids of both sides; "
        "the model itself shifts the target"
    )
