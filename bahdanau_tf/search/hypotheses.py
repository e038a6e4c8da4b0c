"""Records of hypotheses, and operations on them."""

from __future__ import annotations

import math
from typing import NamedTuple
from typing import TypeVar

import tensorflow as tf

NEVER = -math.inf  # the score of a hypothesis that does not exist,
ABSENT = -1e9  # and the finite one that is returned for it

Given = TypeVar("Given")  # a record of tensors, a tuple or a tensor


class Hypotheses(NamedTuple):
    """M hypotheses of each row; the score of an empty place is -inf."""

    log_probs: tf.Tensor  # float32 [B, M]
    scores: tf.Tensor  # float32 [B, M]
    # int32 [B, M, 2, T]: the tokens, 0 after the last; the beam place that each
    # came from, -1 after the last. One tensor, since it is moved at every step.
    path: tf.Tensor

    @property
    def tokens(self) -> tf.Tensor:
        """int32 [B, M, T]."""
        return self.path[:, :, 0]

    @property
    def slots(self) -> tf.Tensor:
        """int32 [B, M, T]."""
        return self.path[:, :, 1]


def blank(
    batch: tf.Tensor,
    count: int | tf.Tensor,
    longest: int | tf.Tensor,
    log_prob: float,
) -> Hypotheses:
    """Makes hypotheses without tokens, `[B, count]`."""
    value = tf.fill([batch, count], log_prob)
    path = tf.broadcast_to([[0], [-1]], [batch, count, 2, longest])
    return Hypotheses(value, value, path)


def finite(scores: tf.Tensor) -> tf.Tensor:
    """Replaces NaN and infinite scores by -inf, so that they are not chosen."""
    return tf.where(tf.math.is_finite(scores), scores, NEVER)


def take(nest: Given, indices: tf.Tensor) -> Given:
    """Reorders `[B, K, ...]` by `[B, M]` to `[B, M, ...]`."""
    taken: Given = tf.nest.map_structure(
        lambda x: tf.gather(x, indices, batch_dims=1), nest
    )
    return taken


def concat(first: Hypotheses, second: Hypotheses) -> Hypotheses:
    """Appends the hypotheses of `second` to those of `first` in every row."""
    both: Hypotheses = tf.nest.map_structure(
        lambda x, y: tf.concat([x, y], axis=1), first, second
    )
    return both


def best(hypotheses: Hypotheses, count: int | tf.Tensor) -> Hypotheses:
    """Takes the `count` best scores, best first; ties keep their order."""
    scores, order = tf.math.top_k(hypotheses.scores, count)
    log_probs, path = take((hypotheses.log_probs, hypotheses.path), order)
    return Hypotheses(log_probs, scores, path)
