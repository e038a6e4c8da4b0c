"""One update of the weights in one graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras.optimizers import Optimizer

from bahdanau_tf.data.dataset import Batch
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.models.scoring import of_labels
from bahdanau_tf.models.stepwise import TranslationModel
from bahdanau_tf.optimizers import Guarded
from bahdanau_tf.options import Recipe
from bahdanau_tf.options.facts import parts_of
from bahdanau_tf.system.device import has_fast_bfloat16, operations_at_once, threads
from bahdanau_tf.system.ranges import OptionError, Refusal, named
from bahdanau_tf.system.tensors import products_in
from bahdanau_tf.training.minimum_risk import Risk, minimum_risk_loss
from bahdanau_tf.translator import Translator


def cores_at_once() -> int:
    """The number of cores that could compute parts of a batch.

    It is 1 where each operation has several threads: they would be in each other's way.
    """
    return 1 if threads() > 1 else operations_at_once()


def parts_at_once(recipe: Recipe) -> int:
    """The number of parts of a batch, each with its gradients, that are computed together."""
    return min(cores_at_once(), parts_of(recipe.batch_size))


def threads_of(recipe: Recipe) -> int:
    """The number of threads, which affects the rounding of sums."""
    return threads() * parts_at_once(recipe)


def part_of(batch: Batch, number: int | tf.Tensor, count: int) -> Batch:
    """A part of a batch, of `count` parts that are equal work, from 0.

    Part p of n has rows p, p + n, p + 2 n and so on. If there are fewer rows than parts, some have
    the last row, with weights of 0: so none is without rows, and losses and gradients are sums over
    the batch's rows.
    """
    if count == 1:
        return batch
    rows = tf.shape(batch[1])[0]
    places = tf.range(number, tf.maximum(rows, number + 1), count)
    real = tf.cast(places < rows, batch[2].dtype)[:, None]
    places = tf.minimum(places, rows - 1)
    inputs, target, weights = tf.nest.map_structure(lambda part: tf.gather(part, places), batch)
    return inputs, target, weights * real


def words_loss(
    model: TranslationModel,
    loss: TokenCrossentropy,
    inputs: dict[str, tf.Tensor],
    target: tf.Tensor,
    token_weights: tf.Tensor,
) -> tf.Tensor:
    """The training loss, float32 scalar; the readout is computed for words of weight > 0 only."""
    weights = tf.reshape(token_weights, [-1])
    words = tf.where(weights != 0)[:, 0]
    features, _ = model.features(inputs, training=True, words=words)
    output = model.output_weights()
    labels = tf.gather(tf.reshape(target, [-1]), words)
    weights = tf.gather(weights, words)
    features, odds = of_labels(features, labels)
    return loss.of_words(features, output.kernel, output.bias, labels, weights, odds)


def logits_loss(
    model: TranslationModel,
    loss: TokenCrossentropy,
    inputs: dict[str, tf.Tensor],
    target: tf.Tensor,
    token_weights: tf.Tensor,
) -> tf.Tensor:
    """`words_loss` from the logits of all positions.

    XLA has no kernel for the in-place update of `TokenCrossentropy.of_words`.
    """
    features, _ = model.features(inputs, training=True)
    features, odds = of_labels(features, target)
    logits = model.output_weights().logits(features)
    return tf.reduce_sum(token_weights * loss.call(target, logits, odds))


def update_weights(
    model: keras.Model, optimizer: Optimizer, cost: Callable[[tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """Updates the weights by the gradient of a loss; returns the loss.

    `cost` gets a scale, 1 unless the optimizer has one, and returns the loss times it.
    """
    scale = optimizer.scale_loss(tf.ones([]))
    with tf.GradientTape() as tape:
        scaled = cost(scale)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(scaled, variables), variables)
    return scaled / scale


def train_step(
    model: keras.Model,
    optimizer: Optimizer,
    cost: Callable[..., tf.Tensor],
    product_dtype: str = "float32",
    parts: int = 1,
    is_compiled: bool = False,
) -> tf.types.experimental.PolymorphicFunction:
    """The update as one tf.function, from a batch (inputs, target, token weights) to its loss.

    The batch is {"source": int32 [B, T_x], "target": int32 [B, T_y]}, int32 [B, T_y] and float32
    [B, T_y], 0 on padding. Each replica of the model's strategy processes its rows of the batch, in
    `parts` that do not depend on each other, so that TensorFlow computes several of them at once.
    `cost` takes such a part and returns its loss, a sum over words that is linear in their weights.
    Operands of products are rounded to `product_dtype`; the optimizer is built here. XLA compiles
    the update if `is_compiled`, for each shape of a batch; the model is then on one device.
    """
    if product_dtype != "float32" and model.compute_dtype != "float32":
        both = f"{product_dtype}, and the model computes in {model.compute_dtype}"
        wanted = "wanted one of them to be float32"
        raise Refusal("train", f"{named('product_dtype')} is {both}, {wanted}")
    strategy = model.distribute_strategy
    with strategy.scope():
        if not optimizer.built:
            optimizer.build(model.trainable_variables)

    def step(inputs: dict[str, tf.Tensor], target: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        def of_replica() -> tf.Tensor:
            rows = rows_of_replica((inputs, target, weights))
            divided = [part_of(rows, number, parts) for number in range(parts)]

            def scaled(scale: tf.Tensor) -> tf.Tensor:
                # Scaled here, the weights of words also scale the gradients
                # that the forward pass computes.
                return tf.add_n([cost(x, y, scale * of_words) for x, y, of_words in divided])

            with products_in(product_dtype):
                return update_weights(model, optimizer, scaled)

        costs = strategy.run(of_replica)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, costs, axis=None)

    ids, floats = (tf.TensorSpec([None, None], dtype) for dtype in (tf.int32, tf.float32))
    shapes = None if is_compiled else [{"source": ids, "target": ids}, ids, floats]
    return tf.function(
        step, input_signature=shapes, autograph=False, jit_compile=is_compiled or None
    )


LENGTHS = 5  # of the batches of a compiled training


class StaticShapes(NamedTuple):
    """The shapes of all batches of a compiled training.

    XLA compiles a step for each shape of a batch, which takes 10 to 20 seconds for each on a GPU.
    """

    rows: int
    width: int  # both sides have a multiple of this length

    @staticmethod
    def of(recipe: Recipe) -> StaticShapes:
        """Batches of `batch_size` rows and of at most `LENGTHS` lengths."""
        return StaticShapes(recipe.batch_size, math.ceil((recipe.max_length + 1) / LENGTHS))

    def padded(self, batch: Batch) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """A batch of these shapes with the same loss and gradients.

        Rows that are added repeat the last one, so that none is empty; their words, and positions
        that are added, have weights of 0.
        """
        inputs, target, weights = tf.nest.map_structure(np.asarray, batch)
        longest = max(inputs["source"].shape[1], target.shape[1])
        length = math.ceil(longest / self.width) * self.width
        rows = self.rows - len(target)

        def pad(array: np.ndarray, mode: Literal["edge", "constant"]) -> np.ndarray:
            longer = np.pad(array, [(0, 0), (0, length - array.shape[1])])
            return np.pad(longer, [(0, rows), (0, 0)], mode=mode)

        inputs = {side: pad(ids, "edge") for side, ids in inputs.items()}
        return inputs, pad(target, "edge"), pad(weights, "constant")


def product_dtype(recipe: Recipe, model: keras.Model) -> str:
    """The dtype to which the operands of products are rounded."""
    if recipe.product_dtype == "auto":
        is_free = model.compute_dtype == "float32"  # else it rounds itself
        return "bfloat16" if is_free and has_fast_bfloat16() else "float32"
    return recipe.product_dtype


def make_update(
    translator: Translator, optimizer: Guarded, recipe: Recipe
) -> tuple[Callable[..., tf.Tensor], Optimizer, list[str]]:
    """The update of a recipe.

    Returns:
        The function, from a batch to its loss; the optimizer as it is to be saved, with a scale of
        the loss if there is one; and sentences about the update.
    """
    model: keras.Model = translator.model
    strategy, is_compiled = model.distribute_strategy, recipe.jit_compile == "on"
    if is_compiled and (replicas := strategy.num_replicas_in_sync) > 1:
        raise OptionError("Recipe", "jit_compile", "on", f"off with {replicas} devices")
    dtype, notes = product_dtype(recipe, model), []
    if dtype != "float32":
        notes.append(f"products are rounded to {dtype}")
    if is_compiled:
        notes.append("XLA compiles the update, once for each batch length")
    elif slow_part := getattr(getattr(model, "decoder", None), "slow_part", None):
        notes.append(f"{slow_part} has no fast gradient: updates take longer")
    with strategy.scope():
        optimizer = with_loss_scale(optimizer, model, dtype)
    cost = make_cost(translator, optimizer, recipe)
    parts = 1 if is_compiled else parts_at_once(recipe)
    step = train_step(model, optimizer, cost, dtype, parts, is_compiled)
    if is_compiled:
        shapes = StaticShapes.of(recipe)
        return lambda *batch: step(*shapes.padded(batch)), optimizer, notes
    return step, optimizer, notes


def make_cost(
    translator: Translator, optimizer: Optimizer, recipe: Recipe
) -> Callable[..., tf.Tensor]:
    """The loss of a recipe, from a batch, as `train_step` takes it."""
    model: keras.Model = translator.model
    loss = TokenCrossentropy(recipe.label_smoothing, divisor=recipe.divisor)
    if risk := Risk.of(recipe, translator.target_text):
        return lambda *batch: minimum_risk_loss(
            model, loss, risk, risk.at(optimizer.iterations), *batch
        )
    return partial(logits_loss if recipe.jit_compile == "on" else words_loss, model, loss)


def with_loss_scale(optimizer: Guarded, model: keras.Model, dtype: str) -> Optimizer:
    """The optimizer, which scales the loss if something is in float16.

    Without a scale, gradients below 6e-8 would be 0. Keras' optimizer halves it and skips the
    update if a scaled gradient is too large, and doubles it after 2,000 updates without; so these
    skips do not indicate divergence. With several replicas, or several batches for an update, some
    might be skipped, and others not.
    """
    if "float16" not in (dtype, model.compute_dtype):
        return optimizer
    replicas = model.distribute_strategy.num_replicas_in_sync
    if replicas > 1:
        what = f"float16 on {replicas} replicas"
        raise Refusal("train", f"{what}, wanted bfloat16, float32 or one replica")
    if (batches := optimizer.accumulation_steps) is not None:
        what = f"float16 with {batches} batches for an update ({named('accumulate')})"
        raise Refusal("train", f"{what}, wanted bfloat16, float32 or one batch")
    return keras.optimizers.LossScaleOptimizer(optimizer)


def rows_of_replica(batch: Batch) -> Batch:
    """The part of a batch, the same on all replicas, that this replica processes."""
    replica = tf.distribute.get_replica_context()
    return part_of(batch, replica.replica_id_in_sync_group, replica.num_replicas_in_sync)
