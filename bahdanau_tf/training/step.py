"""One update of the weights, as one graph."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


def train_step(
    model: keras.Model, optimizer: Any, loss: keras.losses.Loss
) -> Any:
    """The update as one tf.function, for batches of any shape.

    Args:
        model: The model; its weights change.
        optimizer: The optimizer, built here.
        loss: Takes targets, logits and token weights.

    Returns:
        A function of a batch (inputs, target, token weights) that updates the
        weights and returns the batch's loss.
    """
    optimizer.build(model.trainable_variables)
    ids = tf.TensorSpec([None, None], tf.int32)
    weights = tf.TensorSpec([None, None], tf.float32)

    @tf.function(
        input_signature=[{"source": ids, "target": ids}, ids, weights],
        autograph=False,
    )
    def step(
        inputs: dict[str, tf.Tensor],
        target: tf.Tensor,
        token_weights: tf.Tensor,
    ) -> tf.Tensor:
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            cost = loss(target, logits, sample_weight=token_weights)
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(cost, variables), variables)
        return cost

    return step
