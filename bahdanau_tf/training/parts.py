"""The parts of a batch, which several cores compute at the same time."""

from __future__ import annotations

import tensorflow as tf

from bahdanau_tf.data.dataset import Batch
from bahdanau_tf.options import Recipe
from bahdanau_tf.options.cost import parts_of
from bahdanau_tf.system.device import operations_at_once
from bahdanau_tf.system.device import threads


def cores_at_once() -> int:
    """The number of cores that could compute parts of a batch.

    It is 1 where each operation has several threads: they would be in each
    other's way.
    """
    return 1 if threads() > 1 else operations_at_once()


def parts_at_once(recipe: Recipe) -> int:
    """The number of parts of a batch that are computed at the same time.

    Each part has gradients of its own in memory.
    """
    return min(cores_at_once(), parts_of(recipe.batch_size))


def threads_of(recipe: Recipe) -> int:
    """The number of threads, with which the rounding of sums changes."""
    return threads() * parts_at_once(recipe)


def part_of(batch: Batch, number: int | tf.Tensor, count: int) -> Batch:
    """A part of a batch, of `count` parts that are equal work.

    Part p of n has rows p, p + n, p + 2 n and so on. If there are fewer rows
    than parts, some have the last row, with weights of 0: so none is without
    rows, and losses and gradients are sums over the batch's rows.

    Args:
        batch: A batch of at least one row.
        number: The part, from 0.
        count: The number of parts.
    """
    if count == 1:
        return batch
    inputs, target, weights = batch
    rows = tf.shape(target)[0]
    places = tf.range(number, tf.maximum(rows, number + 1), count)
    real = tf.cast(places < rows, weights.dtype)[:, None]
    places = tf.minimum(places, rows - 1)
    inputs, target, weights = tf.nest.map_structure(
        lambda part: tf.gather(part, places), (inputs, target, weights)
    )
    return inputs, target, weights * real
