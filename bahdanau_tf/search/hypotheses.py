"""Records of hypotheses, and the few things that search does with them."""

from __future__ import annotations

import math
from typing import NamedTuple
from typing import TypeVar

import tensorflow as tf

NEVER = -math.inf  # the score of a hypothesis that does not exist,
ABSENT = -1e9  # and the finite one that is returned for it

Nest = TypeVar("Nest")  # of tensors


class Hypotheses(NamedTuple):
    """M hypotheses of each row; one that does not exist scores -inf."""

    log_probs: tf.Tensor  # float32 [B, M]
    scores: tf.Tensor  # float32 [B, M]
    lengths: tf.Tensor  # int32 [B, M]
    tokens: tf.Tensor  # int32 [B, M, T]
    slots: tf.Tensor  # int32 [B, M, T], the beam place each token came from


def blank(
    batch: tf.Tensor, count: int, longest: tf.Tensor, log_prob: float
) -> Hypotheses:
    """Makes hypotheses without a token, `[B, count]`."""
    empty = tf.zeros([batch, count, longest], tf.int32)
    value = tf.fill([batch, count], log_prob)
    return Hypotheses(value, value, empty[..., 0], empty, empty)


def finite(scores: tf.Tensor) -> tf.Tensor:
    """A hypothesis that met NaN or infinity is no hypothesis."""
    return tf.where(tf.math.is_finite(scores), scores, NEVER)


def take(nest: Nest, indices: tf.Tensor) -> Nest:
    """Reorders `[B, K, ...]` by `[B, M]` to `[B, M, ...]`."""
    taken: Nest = tf.nest.map_structure(
        lambda x: tf.gather(x, indices, batch_dims=1), nest
    )
    return taken


def concat(first: Hypotheses, second: Hypotheses) -> Hypotheses:
    """Puts those of `second` behind those of `first` in every row."""
    both: Hypotheses = tf.nest.map_structure(
        lambda x, y: tf.concat([x, y], axis=1), first, second
    )
    return both


def only(mask: tf.Tensor, hypotheses: Hypotheses) -> Hypotheses:
    """Keeps the hypotheses under the mask `[B, K]`; the others cease."""
    return hypotheses._replace(
        log_probs=tf.where(mask, hypotheses.log_probs, NEVER),
        scores=tf.where(mask, hypotheses.scores, NEVER),
    )


def best(hypotheses: Hypotheses, count: int) -> Hypotheses:
    """Takes the `count` that score best, best first; ties keep their order."""
    return take(hypotheses, tf.math.top_k(hypotheses.scores, count).indices)
