"""The replicas of a model: their rows of a batch, and their noise."""

from __future__ import annotations

import keras
import tensorflow as tf

from bahdanau_tf.data.dataset import Batch
from bahdanau_tf.options import Recipe

STEP = 2654435761  # between the seeds of two replicas; prime


def rows_of_replica(batch: Batch) -> Batch:
    """The rows of a batch that this replica processes.

    Replica r of n has rows r, r + n, r + 2 n and so on. If there are fewer rows
    than replicas, some have the last row, with weights of 0: so none is
    without rows, and losses and gradients are sums over the batch's rows.

    Args:
        batch: A batch of at least one row, the same on all replicas.
    """
    replica = tf.distribute.get_replica_context()
    count = replica.num_replicas_in_sync
    if count == 1:
        return batch
    inputs, target, weights = batch
    rows = tf.shape(target)[0]
    first = replica.replica_id_in_sync_group
    places = tf.range(first, tf.maximum(rows, first + 1), count)
    real = tf.cast(places < rows, weights.dtype)[:, None]
    places = tf.minimum(places, rows - 1)
    inputs, target, weights = tf.nest.map_structure(
        lambda part: tf.gather(part, places), (inputs, target, weights)
    )
    return inputs, target, weights * real


def strategy_of(model: keras.Model) -> tf.distribute.Strategy:
    """The strategy in whose scope a model was made.

    Raises:
        ValueError: It was called in a scope.
    """
    if tf.distribute.has_strategy():
        raise ValueError(
            "train: it was called in a strategy.scope(), wanted the model to "
            "be made in it, and train to be called outside, as fit"
        )
    return model.distribute_strategy


def check_accumulates(recipe: Recipe, strategy: tf.distribute.Strategy) -> None:
    """Raises if an update is to have several batches of several replicas."""
    replicas = strategy.num_replicas_in_sync
    if recipe.accumulate > 1 and replicas > 1:
        raise ValueError(
            f"Recipe: accumulate is {recipe.accumulate} with {replicas} "
            "devices, wanted 1 with a larger batch_size, of which each device "
            "has a share in memory"
        )


def vary_noise(model: keras.Model) -> None:
    """Gives each replica dropout of its own, drawn from the common seeds.

    Replica 0, whose seeds are in the checkpoints, keeps them.
    """
    strategy = model.distribute_strategy
    if strategy.num_replicas_in_sync == 1:
        return
    seeds = [
        one.value
        for one in model.non_trainable_variables
        if one.aggregation == "none"  # each replica has its own
    ]
    common = [tf.identity(seed) for seed in seeds]

    def set_own() -> None:
        replica = tf.distribute.get_replica_context()
        number = tf.cast(replica.replica_id_in_sync_group, tf.int64)
        for seed, value in zip(seeds, common, strict=True):
            seed.assign(value + tf.stack([STEP * number, 0]))

    tf.function(lambda: strategy.run(set_own), autograph=False)()
