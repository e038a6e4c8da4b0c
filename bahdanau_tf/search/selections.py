"""Selections: which continuations of the hypotheses are kept.

Each maps logits `[B, K, V]` to `Continuations`, given the log-probabilities `[B, K]` of the
hypotheses and their `History`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import tensorflow as tf

from bahdanau_tf.system.tensors import Nest

NEVER = -math.inf  # the score of a hypothesis that does not exist,
ABSENT = -1e9  # and the finite one that is returned for it

Tensors = TypeVar("Tensors")  # a record of tensors, a tuple or a tensor


class Hypotheses(NamedTuple):
    """M hypotheses of each row; the score of an empty place is -inf."""

    log_probs: tf.Tensor  # float32 [B, M]
    scores: tf.Tensor  # float32 [B, M]
    # int64 [B, M, 2, T]: the tokens, 0 after the last; the beam place that each came from, -1 after
    # the last. One tensor, since it is moved at every step. int64, because TensorFlow computes
    # int32 on the host if there is a GPU.
    path: tf.Tensor


def blank(
    batch: tf.Tensor, count: int | tf.Tensor, longest: int | tf.Tensor, log_prob: float
) -> Hypotheses:
    """Makes hypotheses without tokens, `[B, count]`."""
    value = tf.fill([batch, count], log_prob)
    before_first = tf.constant([[0], [-1]], tf.int64)
    path = tf.broadcast_to(before_first, [batch, count, 2, longest])
    return Hypotheses(value, value, path)


def finite(scores: tf.Tensor) -> tf.Tensor:
    """Replaces NaN and infinite scores by -inf, so that they are not chosen."""
    return tf.where(tf.math.is_finite(scores), scores, NEVER)


def take(nest: Tensors, indices: tf.Tensor) -> Tensors:
    """Reorders `[B, K, ...]` by `[B, M]` to `[B, M, ...]`."""
    taken: Tensors = tf.nest.map_structure(lambda x: tf.gather(x, indices, batch_dims=1), nest)
    return taken


def concat(first: Hypotheses, second: Hypotheses) -> Hypotheses:
    """Appends the hypotheses of `second` to those of `first` in every row."""
    both: Hypotheses = tf.nest.map_structure(lambda x, y: tf.concat([x, y], axis=1), first, second)
    return both


def best(hypotheses: Hypotheses, count: int | tf.Tensor) -> Hypotheses:
    """Takes the `count` best scores, best first; ties keep their order."""
    scores, order = tf.math.top_k(hypotheses.scores, count)
    log_probs, path = take((hypotheses.log_probs, hypotheses.path), order)
    return Hypotheses(log_probs, scores, path)


CHUNKS = range(32, 65)  # chunk lengths that suit vector units and caches
SMALL = 500  # smaller vocabularies are not divided into chunks


class History(NamedTuple):
    """What a constraint knows about the hypotheses.

    Attributes:
        tokens: int32 `[B, K, T]`, the tokens so far, 0 from `step` on.
        step: int32 scalar, the number of tokens so far.
        rows: int32 `[B]`, the index of each row in the original batch; rows that have stopped are
            no longer among them.
    """

    tokens: tf.Tensor
    step: tf.Tensor
    rows: tf.Tensor


class Few:
    """A constraint that forbids only a few words.

    Search applies it to the most probable words instead of all logits.

    Args:
        count: M, the largest number of words that it forbids.
        forbidden: function of `History`, -> int32, broadcastable to `[B, K, M]`: the words
            forbidden now; -1 stands for none.
    """

    def __init__(self, count: int, forbidden: Callable[[History], tf.Tensor]) -> None:
        self.count = count
        self.forbidden = forbidden

    def __call__(self, logits: tf.Tensor, history: History) -> tf.Tensor:
        words = tf.range(tf.shape(logits)[-1])
        forbidden = self.words(history, logits.shape[-1])[..., tf.newaxis, :]
        is_forbidden = tf.reduce_any(words[:, tf.newaxis] == forbidden, axis=-1)
        return tf.where(is_forbidden, NEVER, logits)

    def words(self, history: History, size: int | None) -> tf.Tensor:
        """The words forbidden now, int32, broadcastable to `[B, K, M]`.

        Raises ValueError if they are always the same, and one is not in the vocabulary of `size`
        words.
        """
        words = self.forbidden(history)
        always = tf.get_static_value(words)
        if size is not None and always is not None and np.any(always >= size):
            raise ValueError(
                f"search: word {np.max(always)} is forbidden, wanted ids below "
                f"{size}, the size of the vocabulary."
            )
        return words


Constraint = Callable[[tf.Tensor, History], tf.Tensor]


class Continuations(NamedTuple):
    """The next hypotheses; the log-probability of an empty place is -inf."""

    log_probs: tf.Tensor  # float32 [B, K], of the whole hypothesis
    parents: tf.Tensor  # int32 or int64 [B, K], place of the hypothesis it continues
    tokens: tf.Tensor  # int32 or int64 [B, K], the word appended to it


def best_of_all(
    output: Output,
    so_far: tf.Tensor,
    history: History,
    constraints: Sequence[Constraint],
    beam_size: int,
) -> Continuations:
    """The best of all continuations, best first.

    If every constraint is a `Few`, the logits are not changed, since passes over them are slow: as
    many more candidates are taken as words may be forbidden, and the forbidden ones are dropped.
    Then those of the live hypotheses are enough, which a step that gives `Features` allows.
    """
    few = [constraint for constraint in constraints if isinstance(constraint, Few)]
    spare = sum(constraint.count for constraint in few)
    is_few = len(few) == len(constraints)
    if is_few:
        logits, normalizer, live = live_logits(output, so_far)
        size = logits.shape[-1]
    if not is_few or (size is not None and size <= spare):
        logits = all_logits(output)
        offset = tf.expand_dims(so_far - log_normalizer(_chunks(logits)), -1)
        logits = constrain(logits, history, constraints)
        return top_continuations(_chunks(logits), offset, beam_size)
    chunks = _chunks(logits)
    if normalizer is None:
        normalizer = log_normalizer(chunks)
    if live is None:
        offset = tf.expand_dims(so_far - normalizer, -1)
    else:
        normalizer = tf.gather(normalizer, live.numbers)
        offset = tf.expand_dims(so_far, -1) - normalizer
    if not few:
        return top_continuations(chunks, offset, beam_size, live)
    count = beam_size + so_far.shape[1] * spare
    continuations = top_continuations(chunks, offset, count, live)
    forbidden = [_is_forbidden(constraint, continuations, history, size) for constraint in few]
    left = tf.where(reduce(tf.logical_or, forbidden), NEVER, continuations.log_probs)
    left, order = tf.math.top_k(left, beam_size)
    return Continuations(left, *take(continuations[1:], order))


def _is_forbidden(
    few: Few, continuations: Continuations, history: History, size: int | None
) -> tf.Tensor:
    """Whether each continuation appends a forbidden word: bool `[B, M']`."""
    words = few.words(history, size)
    tokens = continuations.tokens
    always = tf.get_static_value(words)
    if always is not None and always.shape[:2] == (1, 1) and always.size:
        return reduce(tf.logical_or, [tokens == int(word) for word in always.ravel()])
    if words.shape[:2] != [1, 1]:  # those of each continuation's parent, [B, M', M]
        shape = tf.concat([tf.shape(history.tokens)[:2], [few.count]], 0)
        words = take(tf.broadcast_to(words, shape), continuations.parents)
    return tf.reduce_any(tf.cast(tokens, words.dtype)[..., tf.newaxis] == words, axis=-1)


class Chunks(NamedTuple):
    """Logits of a vocabulary that is divided into C chunks of c words."""

    logits: tf.Tensor  # float [B, K, C c]
    chunks: tf.Tensor  # float [B, K C, c]
    maxima: tf.Tensor  # float [B, K, C], the largest logit of each chunk
    padded: bool  # whether there may be padding, -inf, in the last chunk


def _chunks(logits: tf.Tensor) -> Chunks:
    """Divides the vocabulary of logits `[B, K, V]`, if it is large."""
    _, width, size = _sizes(logits)
    if isinstance(size, int) and size < SMALL:
        each = tf.reshape(logits, [-1, width * size, 1])
        return Chunks(logits, each, logits, padded=False)
    length = max(CHUNKS)
    if isinstance(size, int):
        length = next((c for c in CHUNKS if size % c == 0), length)
    padded = not isinstance(size, int) or size % length != 0
    if padded:
        missing = [[0, 0], [0, 0], [0, -size % length]]
        logits = tf.pad(logits, missing, constant_values=NEVER)
    number = -(-size // length)
    chunks = tf.reshape(logits, [-1, width * number, length])
    maxima = tf.reduce_max(chunks, axis=-1)
    maxima = tf.reshape(maxima, [-1, width, number])
    return Chunks(logits, chunks, maxima, padded)


def log_normalizer(chunks: Chunks) -> tf.Tensor:
    """log Σ exp(logits), `[B, K]`: the largest logit minus its log-probability.

    `tf.nn.softmax` is one fast pass; `tf.reduce_logsumexp` makes three.
    """
    _, width, number = _sizes(chunks.maxima)
    length = _sizes(chunks.chunks)[-1]
    shares = tf.nn.softmax(chunks.logits)
    shares = tf.reshape(shares, [-1, width, number, length])
    best = tf.argmax(chunks.maxima, axis=-1, output_type=tf.int32)
    share = tf.reduce_max(tf.gather(shares, best, batch_dims=2), axis=-1)
    return tf.reduce_max(chunks.maxima, axis=-1) - tf.math.log(share)


def _sizes(x: tf.Tensor) -> list[Any]:
    """The sizes of all axes; those that are known as numbers.

    TensorFlow computes with numbers once, with tensors at every step.
    """
    sizes: list[Any] = x.shape.as_list()
    if sizes.count(None) <= 1 and sizes[0] is None:
        return sizes  # nobody asks for B
    return [tf.shape(x)[axis] if size is None else size for axis, size in enumerate(sizes)]


def top_continuations(
    chunks: Chunks, offset: tf.Tensor, count: int, live: Live | None = None
) -> Continuations:
    """The best of all continuations of a row's hypotheses, best first.

    The result is that of `tf.math.top_k` over all K V continuations, also in the order of ties, but
    faster. The best N words lie in the N chunks with the largest maxima, since no word of another
    chunk exceeds those N maxima.

    `offset` [B, K, 1] is added to logits to get the log-probability of the whole hypothesis. If
    there are fewer than N = `count` continuations, the last places are empty. If not all
    hypotheses have logits, `live` are those that have, each of them a row of `chunks`.
    """
    _, width, number = _sizes(chunks.maxima)
    length = among_each = _sizes(chunks.chunks)[-1]
    maxima = chunks.maxima
    if live is not None:
        width = live.numbers.shape[1]
        maxima = tf.gather(tf.reshape(maxima, [-1, number]), live.numbers)
    taken = _smaller(count, width * number)
    maxima = tf.reshape(finite(maxima + offset), [-1, width * number])
    # In int64: TensorFlow computes int32 on the host if there is a GPU.
    number, length = (tf.cast(size, tf.int64) for size in (number, length))
    best = tf.cast(tf.math.top_k(maxima, taken).indices, tf.int64)
    # Ascending, so that ties keep their order.
    best = tf.math.top_k(best, taken).values[:, ::-1]
    parents, chunk = best // number, best % number
    if width != 1:
        offset = take(offset, parents)
    if live is None:
        among = take(chunks.chunks, best)
    else:
        rows = take(live.numbers, parents)
        among = tf.gather_nd(chunks.chunks, tf.stack([rows, chunk], -1))
    among = tf.reshape(finite(among + offset), [-1, taken * among_each])
    missing = count - _smaller(count, taken * among_each)
    has_missing = not isinstance(missing, int) or missing > 0
    if has_missing:
        more = [[0, 0], [0, missing]]
        among = tf.pad(among, more, constant_values=NEVER)
        parents, chunk = tf.pad(parents, more), tf.pad(chunk, more)
    log_probs, places = tf.math.top_k(among, count)
    places = tf.cast(places, tf.int64)
    parents, chunk = take((parents, chunk), places // length)
    words = chunk * length + places % length
    if chunks.padded or has_missing:
        # An empty place may point beyond the last word.
        words = tf.where(log_probs > NEVER, words, tf.constant(0, tf.int64))
    return Continuations(log_probs, parents, words)


def _smaller(count: int, size: Any) -> Any:
    """The smaller of a number and a size of `_sizes`."""
    return min(count, size) if isinstance(size, int) else tf.minimum(count, size)


def constrain(logits: tf.Tensor, history: History, constraints: Sequence[Constraint]) -> tf.Tensor:
    """Applies each constraint, except where it would leave no word."""
    for constraint in constraints:
        constrained = constraint(logits, history)
        possible = tf.reduce_any(constrained > NEVER, axis=-1, keepdims=True)
        logits = tf.where(possible, constrained, logits)
    return logits


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
    least = tf.reduce_min(tf.where(kept, ordered, math.inf), axis=-1, keepdims=True)
    return tf.where(logits >= least, logits, NEVER)


class Features(NamedTuple):
    """Features of hypotheses, from which search computes logits it needs.

    The last product of a step is the largest. A hypothesis that has ended, or that cannot win any
    more, is left out of it. `to_logits` treats each hypothesis alone, and is called with values
    `[M, 1, ...]`.
    """

    values: Nest  # of float [B, K, ...]
    # Of such a nest: logits, float [B, K, V]; log Σ exp of them, float [B, K], None if not known.
    to_logits: Callable[[Nest], tuple[tf.Tensor, tf.Tensor | None]]


Output: TypeAlias = "tf.Tensor | Features"  # of a step


class Live(NamedTuple):
    """The M live hypotheses of all rows, numbered."""

    places: tf.Tensor  # int64 [M, 1], of each among the B K hypotheses
    numbers: tf.Tensor  # int64 [B, K]; 0 for a place without a hypothesis


def all_logits(output: Output) -> tf.Tensor:
    """The logits of all hypotheses: float32 `[B, K, V]`."""
    if isinstance(output, Features):
        output, _ = output.to_logits(output.values)
    return tf.cast(output, tf.float32)


def live_logits(
    output: Output, log_probs: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor | None, Live | None]:
    """The logits of the live hypotheses, float32 `[M, 1, V]`, and which these are.

    Between them log Σ exp of each, `[M, 1]`, None if it is not known. If all logits are computed,
    they are `[B, K, V]`, and the last is None. A log-probability of -inf is that of an empty
    place.
    """
    if not isinstance(output, Features):
        return tf.cast(output, tf.float32), None, None
    if log_probs.shape[1] == 1:  # always live
        logits, normalizer = output.to_logits(output.values)
        return tf.cast(logits, tf.float32), normalizer, None
    exist = tf.cast(tf.reshape(log_probs, [-1]) > NEVER, tf.int64)
    numbers = exist * tf.cumsum(exist, exclusive=True)
    live = Live(tf.where(exist), tf.reshape(numbers, [-1, log_probs.shape[1]]))

    def live_rows(x: tf.Tensor) -> tf.Tensor:
        last = [size or tf.shape(x)[2 + axis] for axis, size in enumerate(x.shape[2:])]
        return tf.gather(tf.reshape(x, [-1, *last]), live.places)

    logits, normalizer = output.to_logits(tf.nest.map_structure(live_rows, output.values))
    return tf.cast(logits, tf.float32), normalizer, live
