"""The weights that a SavedModel stores: some as float16, some transposed."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.layers.readout import OutputColumns, OutputWeights
from bahdanau_tf.models.stepwise import Output, TranslationModel
from bahdanau_tf.system.tensors import Nest


def round_to_half(model: keras.Model) -> None:
    """Rounds a model's float32 weights to float16 precision, in place.

    Raises ValueError if a weight is beyond the largest float16, 65,504.
    """
    for variable in _float32_variables(model):
        weights = variable.numpy()
        largest = np.abs(weights).max(initial=0.0)
        if largest > np.finfo(np.float16).max:
            raise ValueError(
                f"round_to_half: {variable.path} has a weight of {largest:g}, "
                "wanted none beyond 65,504"
            )
        variable.assign(_half(weights))


class StoredModel:
    """A `TranslationModel` that computes with the weights of a SavedModel.

    They are stored as float16 if that is exact, and cast to float32 at each call, outside all
    loops. Output weights are stored as `OutputColumns`, with a shortlist, which reads rows of
    them, as the model has them. All signatures share one encoder.
    """

    def __init__(self, model: TranslationModel, shortlist: bool = False) -> None:
        self._model = model
        self.start_id = model.start_id
        self.source_vocabulary_size = model.source_vocabulary_size
        self.target_vocabulary_size = model.target_vocabulary_size
        self.has_alignment = model.has_alignment
        self.step, self.features = model.step, model.features
        self.logits, self.normalized = model.logits, model.normalized
        self._columns: Nest = None
        output = model.output_weights()
        if not shortlist and all(isinstance(x, OutputWeights) for x in tf.nest.flatten(output)):
            self._columns = tf.nest.map_structure(_StoredColumns, output)
        self._halves = []
        for variable in _float32_variables(model):
            stored = _exact(variable.numpy())
            if stored.dtype == np.float16:
                self._halves.append((variable, tf.Variable(stored)))

    def loaded(self) -> keras.StatelessScope:
        """A context in which the model uses the stored weights."""
        return keras.StatelessScope([(x, tf.cast(half, x.dtype)) for x, half in self._halves])

    @tf.function(autograph=False)
    def encode(self, source: Nest) -> tuple[Nest, Nest]:
        """See `TranslationModel`."""
        with self.loaded():
            return self._model.encode(source)

    def output_weights(self) -> Output:
        """See `TranslationModel`."""
        if self._columns is None:  # of another kind
            return self._model.output_weights()
        return tf.nest.map_structure(lambda columns: columns.loaded(), self._columns)


class _StoredColumns:
    """Output weights that are stored as `OutputColumns`."""

    def __init__(self, output: OutputWeights) -> None:
        kernel = OutputColumns.of(output).kernel
        self.dtype = kernel.dtype
        self.kernel = tf.Variable(_exact(kernel.numpy()))

    def loaded(self) -> OutputColumns:
        """As the model computes with them."""
        kernel = tf.convert_to_tensor(self.kernel)
        return OutputColumns(tf.cast(kernel, self.dtype))


def _exact(weights: np.ndarray) -> np.ndarray:
    """The weights, as float16 if that is exact."""
    half = _half(weights)
    return half if np.array_equal(half, weights) else weights


def _half(weights: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return weights.astype(np.float16)


def _float32_variables(model: keras.Model) -> list[keras.Variable]:
    return [
        variable
        for variable in getattr(model, "variables", [])
        if isinstance(variable, keras.Variable) and variable.dtype == "float32"
    ]
