"""Selections: which continuations of the hypotheses are kept.

Each maps logits `[B, K, V]` to `Continuations`, given the log-probabilities
`[B, K]` of the hypotheses and their `History`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.search.hypotheses import NEVER
from bahdanau_tf.search.hypotheses import finite
from bahdanau_tf.search.hypotheses import take

CHUNKS = range(32, 65)  # chunk lengths that suit vector units and caches
SMALL = 500  # smaller vocabularies are not divided into chunks


class History(NamedTuple):
    """What a constraint is told about the hypotheses.

    Attributes:
        tokens: int32 `[B, K, T]`, the tokens so far, 0 from `step` on.
        step: int32 scalar, the number of tokens so far.
        rows: int32 `[B]`, the index of each row in the original batch; rows
            that have stopped are no longer among them.
    """

    tokens: tf.Tensor
    step: tf.Tensor
    rows: tf.Tensor


class Few:
    """A constraint that forbids only a few words.

    Search applies it to the most probable words instead of all logits.

    Args:
        count: M, the largest number of words that it forbids.
        forbidden: function of `History`, -> int32, broadcastable to
            `[B, K, M]`: the words forbidden now; -1 stands for none.
    """

    def __init__(
        self, count: int, forbidden: Callable[[History], tf.Tensor]
    ) -> None:
        self.count = count
        self.forbidden = forbidden

    def __call__(self, logits: tf.Tensor, history: History) -> tf.Tensor:
        words = tf.range(tf.shape(logits)[-1])
        forbidden = self.words(history, logits.shape[-1])[..., tf.newaxis, :]
        is_forbidden = tf.reduce_any(words[:, tf.newaxis] == forbidden, axis=-1)
        return tf.where(is_forbidden, NEVER, logits)

    def words(self, history: History, size: int | None) -> tf.Tensor:
        """The words forbidden now, int32, broadcastable to `[B, K, M]`.

        Args:
            history: the hypotheses.
            size: V; None if it is unknown.

        Raises:
            ValueError: the words are always the same, and one of them is not
                in the vocabulary.
        """
        words = self.forbidden(history)
        known = tf.get_static_value(words)
        if size is not None and known is not None and np.any(known >= size):
            raise ValueError(
                f"search: word {np.max(known)} is forbidden, wanted ids below "
                f"{size}, the size of the vocabulary."
            )
        return words


Constraint = Callable[[tf.Tensor, History], tf.Tensor]


class Continuations(NamedTuple):
    """The next hypotheses; the log-probability of an empty place is -inf."""

    log_probs: tf.Tensor  # float32 [B, K], of the whole hypothesis
    parents: tf.Tensor  # int32 [B, K], place of the hypothesis it continues
    tokens: tf.Tensor  # int32 [B, K], the word appended to it


def best_of_all(
    logits: tf.Tensor,
    so_far: tf.Tensor,
    history: History,
    constraints: Sequence[Constraint],
    beam_size: int,
) -> Continuations:
    """The best of all continuations, best first.

    If every constraint is a `Few`, the logits are not changed, since passes
    over them are slow: as many more candidates are taken as words may be
    forbidden, and the forbidden ones are dropped.
    """
    few = [one for one in constraints if isinstance(one, Few)]
    spare = sum(one.count for one in few)
    size = logits.shape[-1]
    is_tiny = size is not None and size <= spare
    if is_tiny or len(few) < len(constraints):
        offset = so_far - tf.reduce_logsumexp(logits, axis=-1)
        logits = constrain(logits, history, constraints)
        return top_continuations(_chunks(logits), offset, beam_size)
    chunks = _chunks(logits)
    offset = so_far - log_normalizer(chunks)
    if not few:
        return top_continuations(chunks, offset, beam_size)
    count = beam_size + logits.shape[1] * spare
    found = top_continuations(chunks, offset, count)
    forbidden = [_of_parents(f, found, history, size) for f in few]
    is_forbidden = tf.reduce_any(
        found.tokens[..., tf.newaxis] == tf.concat(forbidden, -1), axis=-1
    )
    left, order = tf.math.top_k(
        tf.where(is_forbidden, NEVER, found.log_probs), beam_size
    )
    return Continuations(left, *take(found[1:], order))


def _of_parents(
    few: Few, found: Continuations, history: History, size: int | None
) -> tf.Tensor:
    """The words that each continuation's parent forbids, `[B, M', M]`."""
    places = tf.shape(history.tokens)[:2]
    shape = tf.concat([places, [few.count]], 0)
    return take(tf.broadcast_to(few.words(history, size), shape), found.parents)


def _chunks(logits: tf.Tensor) -> tf.Tensor:
    """Divides a large vocabulary: `[B, K, V]` -> `[B, K, C, c]`.

    The last chunk is padded with -inf.
    """
    known = logits.shape[-1]
    if known is not None and known < SMALL:
        return logits[..., tf.newaxis]
    size, length = known, max(CHUNKS)
    if known is None:
        size = tf.shape(logits)[-1]
    else:
        length = next((c for c in CHUNKS if known % c == 0), length)
    if known is None or known % length:
        missing = [[0, 0], [0, 0], [0, -size % length]]
        logits = tf.pad(logits, missing, constant_values=NEVER)
    count = -(-size // length)
    shape = tf.concat([tf.shape(logits)[:2], [count, length]], 0)
    chunks = tf.reshape(logits, shape)
    known_count = None if known is None else count
    chunks.set_shape([*logits.shape[:2], known_count, length])
    return chunks


def log_normalizer(chunks: tf.Tensor) -> tf.Tensor:
    """log Σ exp(logits), `[B, K]`: the largest logit minus its log-probability.

    `tf.nn.softmax` is one fast pass; `tf.reduce_logsumexp` makes three.
    """
    shape = tf.shape(chunks)
    flat = tf.concat([shape[:2], [shape[2] * shape[3]]], 0)
    shares = tf.reshape(tf.nn.softmax(tf.reshape(chunks, flat)), shape)
    maxima = _maxima(chunks)
    best = tf.argmax(maxima, axis=-1, output_type=tf.int32)
    share = tf.reduce_max(tf.gather(shares, best, batch_dims=2), axis=-1)
    return tf.reduce_max(maxima, axis=-1) - tf.math.log(share)


def _maxima(chunks: tf.Tensor) -> tf.Tensor:
    if chunks.shape[-1] == 1:
        return chunks[..., 0]
    return tf.reduce_max(chunks, axis=-1)


def top_continuations(
    chunks: tf.Tensor, offset: tf.Tensor, count: int
) -> Continuations:
    """The best of all continuations of a row's hypotheses, best first.

    The result is that of `tf.math.top_k` over all K V continuations, also in
    the order of ties, but faster. The best N words lie in the N chunks with
    the largest maxima, since no word of another chunk exceeds those N maxima.

    Args:
        chunks: float `[B, K, C, c]`, logits in chunks.
        offset: float `[B, K]`, added to logits to get the log-probability of
            the whole hypothesis.
        count: N; if there are fewer continuations, the last places are empty.
    """
    batch, width, number, length = tf.unstack(tf.shape(chunks))
    maxima = finite(_maxima(chunks) + offset[..., tf.newaxis])
    maxima = tf.reshape(maxima, [batch, width * number])
    _, best = tf.math.top_k(maxima, tf.minimum(count, width * number))
    best = tf.sort(best, axis=-1)  # so that ties keep their order
    flat = tf.reshape(chunks, [batch, width * number, length])
    among = take(flat, best) + take(offset, best // number)[..., tf.newaxis]
    among = tf.reshape(finite(among), [batch, tf.shape(best)[1] * length])
    missing = [[0, 0], [0, tf.maximum(count - tf.shape(among)[1], 0)]]
    among = tf.pad(among, missing, constant_values=NEVER)
    log_probs, places = tf.math.top_k(among, count)
    chunk = tf.minimum(places // length, tf.shape(best)[1] - 1)
    chunk = take(best, chunk)
    words = chunk % number * length + places % length
    # An empty place may point beyond the last word.
    words = tf.where(log_probs > NEVER, words, 0)
    return Continuations(log_probs, chunk // number, words)


def one_each(
    logits: tf.Tensor,
    so_far: tf.Tensor,
    constrained: tf.Tensor,
    tokens: tf.Tensor,
) -> Continuations:
    """Continues every hypothesis with the one word given for it."""
    norm = tf.reduce_logsumexp(logits, axis=-1)
    values = tf.gather(constrained, tokens, batch_dims=2)
    parents = tf.zeros_like(tokens) + tf.range(tf.shape(tokens)[1])
    return Continuations(finite(values - norm + so_far), parents, tokens)


def constrain(
    logits: tf.Tensor, history: History, constraints: Sequence[Constraint]
) -> tf.Tensor:
    """Applies the constraints, except where they would forbid all words."""
    if not constraints:
        return logits
    constrained = logits
    for constraint in constraints:
        constrained = constraint(constrained, history)
    possible = tf.reduce_any(constrained > NEVER, axis=-1, keepdims=True)
    return tf.where(possible, constrained, logits)


def truncate(logits: tf.Tensor, top_k: int | None, top_p: float) -> tf.Tensor:
    """Forbids words outside the top k, then outside the nucleus of mass p."""
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
