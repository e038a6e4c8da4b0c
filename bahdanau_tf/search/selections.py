"""Selections: which continuations of the hypotheses go on.

Each maps logits `[B, K, V]` to `Continuations` of the hypotheses, given the log
probabilities `[B, K]` of these and their `History`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.search.hypotheses import NEVER
from bahdanau_tf.search.hypotheses import finite

CHUNKS = range(32, 65)  # lengths that suit a vector unit and its cache


class History(NamedTuple):
    """What a constraint knows of the hypotheses that it is asked about.

    Attributes:
        tokens: int32 `[B, K, T]`, the tokens so far, 0 from `step` on.
        step: int32 scalar, the number of tokens so far.
        rows: int32 `[B]`, which rows of the batch these were at the start;
            rows that have stopped are gone.
    """

    tokens: tf.Tensor
    step: tf.Tensor
    rows: tf.Tensor


class Few:
    """A constraint that forbids only a few words.

    Search asks it about the most probable words instead of all.

    Args:
        count: M, how many words it forbids at most.
        forbidden: History -> int32, to be broadcast to `[B, K, M]`, the words
            that are forbidden now; -1 for none.
    """

    def __init__(
        self, count: int, forbidden: Callable[[History], tf.Tensor]
    ) -> None:
        self.count = count
        self.forbidden = forbidden

    def forbids(self, words: tf.Tensor, history: History) -> tf.Tensor:
        """Which of the words `[.., M']` are forbidden, bool `[B, K, M']`."""
        forbidden = self.forbidden(history)[..., tf.newaxis, :]
        return tf.reduce_any(words[..., tf.newaxis] == forbidden, axis=-1)

    def __call__(self, logits: tf.Tensor, history: History) -> tf.Tensor:
        words = tf.range(tf.shape(logits)[-1])
        return tf.where(self.forbids(words, history), NEVER, logits)


Constraint = Callable[[tf.Tensor, History], tf.Tensor]


class Continuations(NamedTuple):
    """Where the next hypotheses come from; those that cannot be are -inf."""

    log_probs: tf.Tensor  # float32 [B, K], of the whole hypothesis
    parents: tf.Tensor  # int32 [B, K], the place of what is continued
    tokens: tf.Tensor  # int32 [B, K], the word that continues it


def best_of_all(
    logits: tf.Tensor,
    so_far: tf.Tensor,
    history: History,
    constraints: Sequence[Constraint],
    beam_size: int,
) -> Continuations:
    """The best of all continuations, best first.

    The best K of each hypothesis hold the best K of all; only those are sorted.
    """
    values, words = _candidates(logits, history, constraints, beam_size)
    values = finite(values + so_far[..., tf.newaxis])
    batch, width, each = tf.unstack(tf.shape(values))
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


def _candidates(
    logits: tf.Tensor,
    history: History,
    constraints: Sequence[Constraint],
    count: int,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Log-probabilities and ids of `count` words or more each, best first.

    Where all constraints forbid few words, so many more are looked at, and the
    logits stay as they are: passes over them are what costs here.
    """
    few = [one for one in constraints if isinstance(one, Few)]
    if len(few) < len(constraints):
        values, words = top_words(
            constrain(logits, history, constraints), count
        )
        norm = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
        return values - norm, words
    values, words = top_words(logits, count + sum(one.count for one in few))
    log_probs = values - _log_normalizer(logits, values, words)
    if not few:
        return log_probs, words
    forbidden = tf.stack([one.forbids(words, history) for one in few])
    allowed = log_probs + tf.where(tf.reduce_any(forbidden, axis=0), NEVER, 0.0)
    possible = tf.reduce_any(allowed > NEVER, axis=-1, keepdims=True)
    return tf.where(possible, allowed, log_probs), words


def _log_normalizer(
    logits: tf.Tensor, values: tf.Tensor, words: tf.Tensor
) -> tf.Tensor:
    """log Σ exp(logits), `[B, K, 1]`: logit less log-probability of one word.

    The softmax is one pass of a fast kernel, the sum of exponentials three.
    """
    probabilities = tf.gather(
        tf.nn.softmax(logits), words[..., :1], batch_dims=2
    )
    return values[..., :1] - tf.math.log(probabilities)


def top_words(logits: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """`tf.math.top_k`, equal to it also where values are equal, but faster.

    The vocabulary is cut into chunks. The best K words lie in the K chunks with
    the largest maxima: each chunk passed over has K maxima before it.

    Args:
        logits: float `[B, K, V]`.
        count: how many; all where there are fewer.

    Returns:
        Values and int32 ids, `[B, K, count]`.
    """
    size = logits.shape[-1]
    if size is None or size < 4 * count * min(CHUNKS):
        return tf.math.top_k(logits, tf.minimum(count, tf.shape(logits)[-1]))
    length = next((c for c in CHUNKS if size % c == 0), max(CHUNKS))
    shape = tf.concat([tf.shape(logits)[:2], [count]], 0)
    if size % length:
        missing = [[0, 0], [0, 0], [0, -size % length]]
        logits = tf.pad(logits, missing, constant_values=NEVER)
    chunks = tf.reshape(logits, [-1, logits.shape[-1] // length, length])
    _, best = tf.math.top_k(tf.reduce_max(chunks, axis=-1), count)
    best = tf.sort(best, axis=-1)  # so that of equals the first is first
    among = tf.gather(chunks, best, batch_dims=1)
    among = tf.reshape(among, [-1, count * length])
    values, places = tf.math.top_k(among, count)
    words = tf.gather(best, places // length, batch_dims=1) * length
    words = tf.minimum(words + places % length, size - 1)
    return tf.reshape(values, shape), tf.reshape(words, shape)


def one_each(
    logits: tf.Tensor,
    so_far: tf.Tensor,
    constrained: tf.Tensor,
    tokens: tf.Tensor,
) -> Continuations:
    """Every hypothesis goes on with the one word given for it."""
    norm = tf.reduce_logsumexp(logits, axis=-1)
    values = tf.gather(constrained, tokens, batch_dims=2)
    parents = tf.zeros_like(tokens) + tf.range(tf.shape(tokens)[1])
    return Continuations(finite(values - norm + so_far), parents, tokens)


def constrain(
    logits: tf.Tensor, history: History, constraints: Sequence[Constraint]
) -> tf.Tensor:
    """Applies the constraints, except where they leave no word."""
    if not constraints:
        return logits
    constrained = logits
    for constraint in constraints:
        constrained = constraint(constrained, history)
    possible = tf.reduce_any(constrained > NEVER, axis=-1, keepdims=True)
    return tf.where(possible, constrained, logits)


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
