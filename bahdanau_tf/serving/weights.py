"""Stores weights as float16 in a SavedModel, which halves its size."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf


def round_to_half(model: keras.Model) -> None:
    """Rounds a model's float32 weights to float16 precision, in place.

    Raises:
        ValueError: A weight is beyond the largest float16, 65,504.
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


class StoredWeights:
    """The weights of a SavedModel, as float16 if that is exact.

    These are cast to float32 at each call, outside all loops.

    Args:
        model: The model that the signatures use.
    """

    def __init__(self, model: keras.Model) -> None:
        self._halves = []
        for variable in _float32_variables(model):
            weights = variable.numpy()
            half = _half(weights)
            if np.array_equal(half, weights):
                self._halves.append((variable, tf.Variable(half)))

    def loaded(self) -> keras.StatelessScope:
        """A context in which the model uses the stored weights."""
        return keras.StatelessScope(
            [(one, tf.cast(half, one.dtype)) for one, half in self._halves]
        )


def _half(weights: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return weights.astype(np.float16)


def _float32_variables(model: keras.Model) -> list[keras.Variable]:
    return [
        one
        for one in getattr(model, "variables", [])
        if isinstance(one, keras.Variable) and one.dtype == "float32"
    ]
