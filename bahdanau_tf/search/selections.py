"""Selections: which continuations of the hypotheses go on.

Each maps logits `[B, K, V]`, already constrained, and the offsets `[B, K]` that
make log-probabilities of them, to `Continuations` of the hypotheses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.search.hypotheses import NEVER
from bahdanau_tf.search.hypotheses import finite


class Continuations(NamedTuple):
    """Where the next hypotheses come from; those that cannot be are -inf."""

    log_probs: tf.Tensor  # float32 [B, K], of the whole hypothesis
    parents: tf.Tensor  # int32 [B, K], the place of what is continued
    tokens: tf.Tensor  # int32 [B, K], the word that continues it


def best_of_all(
    logits: tf.Tensor, offset: tf.Tensor, beam_size: int
) -> Continuations:
    """The best of all continuations, best first.

    The best K of each hypothesis hold the best K of all; only those are sorted.
    """
    each = tf.minimum(beam_size, tf.shape(logits)[-1])
    values, words = tf.math.top_k(logits, each)  # [B, K, each]
    values = finite(values + offset[..., tf.newaxis])
    batch, width = tf.shape(values)[0], logits.shape[1]
    # Fewer continuations than places: the places left over stay empty.
    missing = [[0, 0], [0, tf.maximum(beam_size - width * each, 0)]]
    values = tf.pad(
        tf.reshape(values, [batch, width * each]),
        missing,
        constant_values=NEVER,
    )
    words = tf.pad(tf.reshape(words, [batch, width * each]), missing)
    log_probs, indices = tf.math.top_k(values, beam_size)
    parents = tf.minimum(indices // each, width - 1)
    tokens = tf.gather(words, indices, batch_dims=1)
    return Continuations(log_probs, parents, tokens)


def one_each(
    logits: tf.Tensor, offset: tf.Tensor, tokens: tf.Tensor
) -> Continuations:
    """Every hypothesis goes on with the one word given for it."""
    log_probs = finite(tf.gather(logits, tokens, batch_dims=2) + offset)
    parents = tf.zeros_like(tokens) + tf.range(tf.shape(tokens)[1])
    return Continuations(log_probs, parents, tokens)


def truncate(logits: tf.Tensor, top_k: int | None, top_p: float) -> tf.Tensor:
    """Forbids all but the top k words, then all but the nucleus of mass p."""
    if top_k is None and top_p == 1.0:
        return logits
    ordered = tf.sort(logits, axis=-1, direction="DESCENDING")
    if top_k is not None:
        rank = tf.range(tf.shape(logits)[-1])
        ordered = tf.where(rank < top_k, ordered, NEVER)
    before = tf.cumsum(tf.nn.softmax(ordered), axis=-1, exclusive=True)
    kept = (before < top_p) & (ordered > NEVER)
    least = tf.reduce_min(
        tf.where(kept, ordered, math.inf), axis=-1, keepdims=True
    )
    return tf.where(logits >= least, logits, NEVER)
