"""The average of the weights in the place of the weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf


@contextmanager
def averaged(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> Iterator[None]:
    """Gives a model the average of its weights while the block runs.

    It is the exponential moving average of the optimizer, w̄ ← a w̄ + (1 - a) w
    after each update, which begins as the weights after the first. Before that,
    or if the optimizer does not `use_ema`, the model stays as it is.

    Args:
        model: The model.
        optimizer: Its optimizer.
    """
    # A variable of several replicas can be read in this way only.
    updates = int(keras.ops.convert_to_numpy(optimizer.iterations))
    if not optimizer.use_ema or not updates:
        yield
        return
    weights = model.trainable_variables
    raw = [tf.identity(weight.value) for weight in weights]
    optimizer.finalize_variable_values(weights)
    try:
        yield
    finally:
        for weight, value in zip(weights, raw, strict=True):
            weight.assign(value)
