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
NEVER = np.float32(-np.inf)  # the score of a hypothesis that does not exist
LEAST = np.float32(1e-37)  # a probability below it counts as this
CHUNK = 32  # graphs compute the largest probability of so many words first


class Continuations(NamedTuple):
    """The best continuations of the hypotheses of each row, best first, in each of S steps."""

    log_probs: Array  # float32 [B, C], of the hypotheses after the last step
    ids: Array  # int64 [S, B, C], the words appended
    parents: Array  # int64 [S, B, C], the places of the hypotheses that are continued
    weights: Array  # float32 [S, B, K, T_x], α of these
    asked: Array  # float32 [B, K, A], log p of the words that were asked for in the first step


class Model(Protocol):
    """A model with a memory of each row of a batch, and a state of each hypothesis."""

    def advance(
        self,
        ids: Array,
        origins: Array,
        so_far: Array,
        count: int,
        steps: int,
        barred: Array,
        eos_id: int = 0,
        asked: Array | None = None,
    ) -> Continuations:
        """Reads the last words, int64 [B, K], of hypotheses with log-probabilities [B, K].

        `origins`, int64 [B, K], are the places of their parents among the hypotheses of all rows in
        the step before; at first those of the rows. The `count` best continuations of each row go
        on, up to a number of steps, until one has the end symbol or is impossible. `barred`
        and `asked` are ids, int64 [B, F] and [B, A]; those that are barred are not appended.
        """

    def keep(self, rows: Array) -> None:
        """Keeps some rows of the memory."""


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
    ids: Array  # int64 [B, C]
    parents: Array  # int64 [B, C], among the K hypotheses that were continued
    weights: Array  # float32 [B, K, T_x], of these
    slots: Array  # int [B, K], the places of these among the C of the step before


class _Ends(NamedTuple):
    """Hypotheses by their last token, [B, N]; the score of an empty place is -inf."""

    scores: Array
    log_probs: Array
    times: Array  # number of tokens
    slots: Array  # place in the beam

    @classmethod
    def none(cls, batch: int, n: int) -> _Ends:
        """Empty places."""
        none, nothing = np.full([batch, n], NEVER), np.zeros([batch, n], np.int64)
        return cls(none, none, nothing, nothing)

    @classmethod
    def at(cls, time: int, scores: Array, log_probs: Array) -> _Ends:
        """Hypotheses that have so many tokens."""
        slots = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        return cls(scores, log_probs, np.full_like(slots, time), slots)

    def of(self, rows: Array) -> _Ends:
        """Those of some rows."""
        return _Ends(*(x[rows] for x in self))

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
    divisors = _penalties(np.arange(limits.max() + 1), decoding)
    bounds = divisors[limits][:, None]
    masks = np.stack([sentence.mask for sentence in sentences])
    places: Array = np.arange(len(sentences))
    slots = ids = np.zeros([len(places), 1], np.int64)
    origins, log_probs = places[:, None], np.zeros(ids.shape, np.float32)
    done, ended = _Ends.none(len(places), n), np.zeros(len(places), np.int64)
    coverage: Array = np.float32(0)
    steps: list[_Step] = []
    results: list[list[Hypothesis]] = [[] for _ in places]
    while len(places):
        start = len(steps)
        forced = _forced(sentences, places, start)
        barred = _barred(forbidden, eos_id, start < shortest[places], forced)
        is_single = ids.shape[1] < k or forced is not None or ended.any()
        ahead = 1 if is_single else _until_a_limit(limits[places], shortest[places], start)
        new = model.advance(ids, origins, log_probs, k, ahead, barred, eos_id, forced)
        if forced is not None:
            new = _with_forced(new, log_probs, forced)
        log_probs = new.log_probs
        for step in zip(*new[1:4], strict=True):
            steps.append(_Step(places, *step, slots))
            slots = np.broadcast_to(np.arange(k), log_probs.shape)
            if decoding.beta:
                coverage = _taken(coverage + steps[-1].weights, steps[-1].parents)
        ids, parents, time = steps[-1].ids, steps[-1].parents, len(steps)
        if decoding.shrink:
            log_probs = np.where(slots + ended[:, None] < k, log_probs, NEVER)
        scores = log_probs / divisors[time]
        if decoding.beta:
            scores = scores + _coverage_penalty(coverage, masks[places], decoding.beta)
        ends = (ids == eos_id) & (log_probs > NEVER)
        done = done.best_with(_Ends.at(time, np.where(ends, scores, NEVER), log_probs))
        ended = ended + ends.sum(1)
        log_probs = np.where(ends, NEVER, log_probs)
        hopeful = log_probs / bounds > done.scores[:, -1:]
        if not decoding.shrink:
            log_probs = np.where(hopeful, log_probs, NEVER)
        goes_on = hopeful.any(1) & (time < limits[places])
        live = _Ends.at(time, np.where(log_probs > NEVER, scores, NEVER), log_probs)
        for row in np.flatnonzero(~goes_on):
            results[places[row]] = _ranked(steps, places[row], done.of([row]), live.of([row]), n)
        rows = np.flatnonzero(goes_on)
        exist = log_probs[rows] > NEVER
        slots = np.argsort(~exist, 1, kind="stable")[:, : exist.sum(1).max(initial=0)]
        every = rows[:, None], slots
        ids, log_probs = ids[every], log_probs[every]
        origins = parents[every] + steps[-1].weights.shape[1] * every[0]
        coverage = coverage[every] if decoding.beta else coverage
        if len(rows) < len(places):
            places, bounds, ended, done = places[rows], bounds[rows], ended[rows], done.of(rows)
            model.keep(rows)
    return results


def _until_a_limit(limits: Array, shortest: Array, time: int) -> int:
    """The number of steps until a sentence must end, or may."""
    return int(np.append(shortest[shortest > time], limits.min()).min()) - time


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


def _forced(sentences: Sequence[Sentence], places: Array, time: int) -> Array | None:
    """The next word of each prefix, int64 [B, 1], 0 after its end; None after all ends."""
    prefixes = [sentences[place].prefix for place in places]
    if max(map(len, prefixes)) <= time:
        return None
    return np.array([[prefix[time] if time < len(prefix) else 0] for prefix in prefixes])


def _barred(forbidden: Sequence[int], eos_id: int, early: Array, forced: Array | None) -> Array:
    """The words that must not be appended, int64 [B, F]; only the first where one is forced."""
    barred = np.tile(forbidden, [len(early), 1])
    if early.any():
        barred = np.concatenate([barred, np.where(early, eos_id, forbidden[0])[:, None]], 1)
    return barred if forced is None else np.where(forced > 0, forbidden[0], barred)


def _with_forced(new: Continuations, so_far: Array, forced: Array) -> Continuations:
    """The hypotheses with a forced word, where there is one, in place of the others."""
    log_probs, ids, parents = (x.copy() for x in new[:3])
    rows, width = forced[:, 0] > 0, so_far.shape[1]
    totals = (so_far + new.asked[..., 0])[rows]
    order = np.argsort(-totals, 1, kind="stable")
    log_probs[rows], ids[0, rows] = NEVER, forced[rows]
    log_probs[rows, :width], parents[0, rows, :width] = _taken(totals, order), order
    return new._replace(log_probs=log_probs, ids=ids, parents=parents)


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
        parent = step.parents[row, slot]
        weights.append(step.weights[row, parent])
        slot = step.slots[row, parent]
    return ids[::-1], np.stack(weights[::-1])
