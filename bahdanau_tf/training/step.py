"""One update of the weights in one graph."""

from __future__ import annotations

from collections.abc import Callable

import keras
import tensorflow as tf

from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.models.stepwise import TranslationModel
from bahdanau_tf.system.tensors import products_in
from bahdanau_tf.training.minimum_risk import Risk
from bahdanau_tf.training.minimum_risk import minimum_risk_loss
from bahdanau_tf.training.parts import part_of
from bahdanau_tf.training.replicas import rows_of_replica


def words_loss(
    model: TranslationModel,
    loss: TokenCrossentropy,
    inputs: dict[str, tf.Tensor],
    target: tf.Tensor,
    token_weights: tf.Tensor,
) -> tf.Tensor:
    """The training loss; the readout is computed for real words only.

    Args:
        model: A single model.
        loss: The loss.
        inputs: {"source": int32 [B, T_x], "target": int32 [B, T_y]}.
        target: int32 [B, T_y], the words to predict.
        token_weights: float [B, T_y], 0 on padding.

    Returns:
        float32 scalar.
    """
    weights = tf.reshape(token_weights, [-1])
    words = tf.where(weights != 0)[:, 0]
    features, _ = model.features(inputs, training=True, words=words)
    output = model.output_weights()
    labels = tf.gather(tf.reshape(target, [-1]), words)
    weights = tf.gather(weights, words)
    return loss.of_words(features, output.kernel, output.bias, labels, weights)


def update(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    loss: Callable[[tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """Updates the weights by the gradient of a loss; returns the loss.

    Args:
        model: The model.
        optimizer: The optimizer.
        loss: From a scale, 1 unless the optimizer has one, the loss times it.
    """
    scale = optimizer.scale_loss(tf.ones([]))
    with tf.GradientTape() as tape:
        cost = loss(scale)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(cost, variables), variables)
    return cost / scale


def train_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    loss: TokenCrossentropy,
    product_dtype: str = "float32",
    parts: int = 1,
    risk: Risk | None = None,
) -> tf.types.experimental.PolymorphicFunction:
    """The update as one tf.function, for batches of any shape.

    Each replica of the model's strategy processes its rows of the batch.

    Args:
        model: The model; its weights change.
        optimizer: The optimizer, built here.
        loss: The loss, a sum over words.
        product_dtype: dtype to which the operands of products are rounded.
        parts: Number of parts of a replica's rows that do not depend on each
            other, so that TensorFlow computes several of them at once.
        risk: How translations are drawn for `minimum_risk_loss`; None for
            other losses.

    Returns:
        A function of a batch (inputs, target, token weights) that updates the
        weights and returns the batch's loss.

    Raises:
        ValueError: Operands are to be rounded in a model that does not compute
            in float32.
    """
    if product_dtype != "float32" and model.compute_dtype != "float32":
        raise ValueError(
            f"train: product_dtype is {product_dtype}, and the model computes "
            f"in {model.compute_dtype}, wanted one of them to be float32"
        )
    strategy = model.distribute_strategy
    with strategy.scope():
        if not optimizer.built:
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
        def of_replica() -> tf.Tensor:
            rows = rows_of_replica((inputs, target, token_weights))
            divided = [part_of(rows, number, parts) for number in range(parts)]
            with products_in(product_dtype):
                return update(
                    model,
                    optimizer,
                    lambda scale: tf.add_n([cost(scale, *x) for x in divided]),
                )

        costs = strategy.run(of_replica)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, costs, axis=None)

    def cost(
        scale: tf.Tensor,
        inputs: dict[str, tf.Tensor],
        target: tf.Tensor,
        token_weights: tf.Tensor,
    ) -> tf.Tensor:
        # The loss is linear in the weights of words. Scaled here, they also
        # scale the gradients that the forward pass computes.
        batch = inputs, target, scale * token_weights
        if risk:
            seed = risk.at(optimizer.iterations)
            return minimum_risk_loss(model, loss, risk, seed, *batch)
        return words_loss(model, loss, *batch)

    return step
