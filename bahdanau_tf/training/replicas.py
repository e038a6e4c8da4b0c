"""The replicas of a model: their rows of a batch, and their noise."""

from __future__ import annotations

import keras
import tensorflow as tf

from bahdanau_tf.data.dataset import Batch
from bahdanau_tf.options import Recipe
from bahdanau_tf.training.parts import part_of

STEP = 2654435761  # between the seeds of two replicas; prime


def rows_of_replica(batch: Batch) -> Batch:
    """The part of a batch that this replica processes.

    Args:
        batch: A batch of at least one row, the same on all replicas.
    """
    replica = tf.distribute.get_replica_context()
    return part_of(
        batch,
        replica.replica_id_in_sync_group,
        replica.num_replicas_in_sync,
    )


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


def seeds_of(model: keras.Model) -> list[tf.Variable]:
    """The seeds of dropout, which tf.train.Checkpoint does not find."""
    return [one.value for one in model.non_trainable_variables]


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
