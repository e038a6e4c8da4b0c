"""Beam search in NumPy, step by step as in `bahdanau_tf.search`.

score(y) = log p(y | x) / ((5 + |y|) / 6)^α + β Σ_j log(min(Σ_i α_ij, 1))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import LEAST_LIMIT

Array: TypeAlias = Any  # of NumPy
NEVER = -np.inf  # the score of a hypothesis that does not exist


class Words(NamedTuple):
    """The most probable next words of K hypotheses of each row."""

    log_probs: Array  # float32 [B, K, N], falling
    ids: Array  # int64 [B, K, N]


class Model(Protocol):
    """A model with a memory and a state for each row of a batch."""

    def step(self, ids: Array, parents: Array | None) -> Array:
        """Reads the last words [B, K]; each hypothesis continues one of `parents` [B, K].

        Without parents it starts from the first state. Returns α, float32 [B, K, T_x].
        """

    def words(self, count: int) -> Words:
        """The `count` most probable next words, or all if there are fewer."""

    def log_probs(self, ids: Array) -> Array:
        """The log-probabilities of one next word a row: int64 [B] -> float32 [B, K]."""

    def keep(self, rows: Array) -> None:
        """Keeps some rows."""


class Sentence(NamedTuple):
    """What search knows about a sentence."""

    length: int  # tokens, the end symbol included
    mask: Array  # bool [T_x], True on words and the end symbol
    prefix: Sequence[int] = ()


class Hypothesis(NamedTuple):
    """A translation."""

    ids: list[int]
    log_prob: float
    score: float
    finished: bool
    weights: Array  # float32 [T_y, T_x]


class _Step(NamedTuple):
    """What is kept of a step, to follow hypotheses back."""

    places: Array  # int [B], of the rows that were searched
    ids: Array  # int64 [B, K]
    parents: Array  # int [B, K]
    weights: Array  # float32 [B, K, T_x], of the parents


class _Ends(NamedTuple):
    """Hypotheses by their last token, [B, N]; the score of an empty place is -inf."""

    scores: Array
    log_probs: Array
    times: Array  # number of tokens
    slots: Array  # place in the beam

    def best_with(self, others: _Ends) -> _Ends:
        """The N best of both; ties keep their order."""
        both = _Ends(*(np.concatenate(pair, 1) for pair in zip(self, others, strict=True)))
        order = np.argsort(-both.scores, 1, kind="stable")[:, : self.scores.shape[1]]
        return _Ends(*(_taken(x, order) for x in both))


def search(
    model: Model,
    sentences: Sequence[Sentence],
    decoding: Decoding,
    eos_id: int,
    forbidden: Sequence[int],
) -> list[list[Hypothesis]]:
    """Searches the n best translations of each sentence, best first; a beam of 1 is greedy.

    `forbidden` are the ids of one or more words, such as padding.
    """
    k, n = decoding.beam_size, decoding.n_best
    limits, shortest = _limits(sentences, decoding)
    penalties = _penalties(limits, decoding)
    masks = np.stack([sentence.mask for sentence in sentences])
    places: Array = np.arange(len(sentences))
    log_probs: Array = np.full([len(places), k], NEVER, np.float32)
    log_probs[:, 0] = 0
    nothing = np.zeros([len(places), n], np.int64)
    done = _Ends(
        np.full([len(places), n], NEVER, np.float32),
        np.zeros([len(places), n], np.float32),
        nothing,
        nothing,
    )
    ids: Array = np.zeros([len(places), k], np.int64)
    parents: Array = None  # of the first step
    coverage: Array = np.float32(0)
    ended: Array = np.zeros(len(places), np.int64)
    steps: list[_Step] = []
    results: list[list[Hypothesis]] = [[] for _ in places]
    while len(places):
        weights = model.step(ids, parents)
        words = _candidates(model, sentences, places, len(steps), shortest, k, eos_id, forbidden)
        log_probs, parents, ids = _best(log_probs, words, k)
        steps.append(_Step(places, ids, parents, weights))
        if decoding.shrink:
            log_probs = np.where(np.arange(k) + ended[:, None] < k, log_probs, NEVER)
        scores = log_probs / _penalties(np.float32(len(steps)), decoding)
        if decoding.beta:
            coverage = _taken(coverage + weights, parents)
            scores = scores + _coverage_penalty(coverage, masks[places], decoding.beta)
        ends = (ids == eos_id) & (log_probs > NEVER)
        here = np.full_like(ids, len(steps)), np.broadcast_to(np.arange(k), ids.shape)
        if ends.any():
            done = done.best_with(_Ends(np.where(ends, scores, NEVER), log_probs, *here))
            ended += ends.sum(1)
        log_probs = np.where(ends, np.float32(NEVER), log_probs)
        hopeful = log_probs / penalties[places, None] > done.scores[:, -1:]
        if not decoding.shrink:
            log_probs = np.where(hopeful, log_probs, np.float32(NEVER))
        goes_on = hopeful.any(1) & (len(steps) < limits[places])
        for row in np.flatnonzero(~goes_on):
            exist = np.where(log_probs[row] > NEVER, scores[row], NEVER)
            live = _Ends(*(x[None] for x in (exist, log_probs[row], here[0][row], here[1][row])))
            ranked = _Ends(*(x[row : row + 1] for x in done)), live
            results[places[row]] = _ranked(steps, int(places[row]), *ranked, n)
        if not goes_on.all():
            rows = np.flatnonzero(goes_on)
            places, log_probs, ids, parents = (x[rows] for x in (places, log_probs, ids, parents))
            done, ended = _Ends(*(x[rows] for x in done)), ended[rows]
            coverage = coverage[rows] if decoding.beta else coverage
            model.keep(rows)
    return results


def _taken(x: Array, places: Array) -> Array:
    """Takes [B, M] of [B, K, ...] along its second axis."""
    return x[np.arange(len(x))[:, None], places]


def _limits(sentences: Sequence[Sentence], decoding: Decoding) -> tuple[Array, Array]:
    """The numbers of tokens of the longest translations, and of words of the shortest."""
    lengths = np.array([sentence.length for sentence in sentences], np.float64)
    longest = (decoding.max_length_ratio * lengths + 1e-6).astype(np.int64)
    longest = np.maximum(longest, LEAST_LIMIT)
    prefixes = np.array([len(sentence.prefix) for sentence in sentences])
    longest = np.where(prefixes > 0, np.maximum(longest, prefixes + 1), longest)
    longest = np.minimum(longest, decoding.max_length)
    shortest = np.ceil(decoding.min_length_ratio * lengths - 1e-6).astype(np.int64)
    return longest, np.minimum(shortest, longest) - 1


def _penalties(lengths: Array, decoding: Decoding) -> Array:
    """The length penalty, float32."""
    return ((np.float32(5) + lengths).astype(np.float32) / np.float32(6)) ** np.float32(
        decoding.alpha
    )


def _coverage_penalty(coverage: Array, masks: Array, beta: float) -> Array:
    """β Σ_j log(min(Σ_i α_ij, 1)), float32 [B, K]."""
    covered = np.log(np.clip(coverage, np.float32(1e-6), np.float32(1)))
    return np.float32(beta) * np.where(masks[:, None], covered, np.float32(0)).sum(-1)


def _candidates(
    model: Model,
    sentences: Sequence[Sentence],
    places: Array,
    time: int,
    shortest: Array,
    k: int,
    eos_id: int,
    forbidden: Sequence[int],
) -> Words:
    """The next words of each hypothesis; a forbidden one has log-probability -inf."""
    log_probs, ids = model.words(k + len(forbidden) + 1)
    barred = ids == forbidden[0]
    for word in forbidden[1:]:
        barred |= ids == word
    if (early := time < shortest[places]).any():
        barred |= (ids == eos_id) & early[:, None, None]
    log_probs = np.where(barred, np.float32(NEVER), log_probs)
    prefixes = [sentences[place].prefix for place in places]
    forced = np.array([time < len(prefix) for prefix in prefixes])
    if forced.any():
        wanted = np.array([p[time] if time < len(p) else 0 for p in prefixes])
        log_probs[forced], ids = NEVER, ids.copy()
        log_probs[forced, :, 0] = model.log_probs(wanted)[forced]
        ids[forced, :, 0] = wanted[forced, None]
    return Words(log_probs, ids)


def _best(so_far: Array, words: Words, k: int) -> tuple[Array, Array, Array]:
    """The K best continuations of each row: log-probabilities, parents and words."""
    batch, _, count = words.ids.shape
    total = so_far[..., None] + words.log_probs
    total = np.where(np.isfinite(total), total, np.float32(NEVER)).reshape(batch, -1)
    order = np.argsort(-total, 1, kind="stable")[:, :k]
    ids = _taken(words.ids.reshape(batch, -1), order)
    return _taken(total, order), order // count, ids


def _ranked(
    steps: Sequence[_Step], place: int, done: _Ends, live: _Ends, n: int
) -> list[Hypothesis]:
    """The N best hypotheses of a sentence: the finished before the unfinished."""
    hypotheses: list[Hypothesis] = []
    for ends, is_done in ((done, True), (live, False)):
        for j in np.argsort(-ends.scores[0], kind="stable"):
            score, log_prob = float(ends.scores[0, j]), float(ends.log_probs[0, j])
            if score == NEVER or len(hypotheses) == n:
                break
            ids, weights = _followed(steps, place, int(ends.times[0, j]), int(ends.slots[0, j]))
            hypotheses.append(Hypothesis(ids, log_prob, score, is_done, weights))
    return hypotheses


def _followed(steps: Sequence[_Step], place: int, time: int, slot: int) -> tuple[list[int], Array]:
    """The ids of a hypothesis, and their α."""
    ids, weights = [], []
    for step in reversed(steps[:time]):
        row = int(np.searchsorted(step.places, place))
        ids.append(int(step.ids[row, slot]))
        slot = int(step.parents[row, slot])
        weights.append(step.weights[row, slot])
    return ids[::-1], np.stack(weights[::-1])
