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

    ids: Array  # int64 [S, B, C], the words appended
    parents: Array  # int64 [S, B, C], the places of the hypotheses that are continued
    log_probs: Array  # float32 [S, B, C], of the hypotheses
    weights: Array  # float32 [S, B, K, T_x], α of these
    asked: Array  # float32 [B, K, A], log p of the words that were asked for in the first step


class Rule(NamedTuple):
    """When to stop: after as many steps as there are divisors, or if a row has no hypothesis left.

    One that ends scores log p over the divisor of its length. One that cannot score more than the
    last of the N best ends of its row, since log p over the bound does not, is left.
    """

    divisors: Array  # float32 [S]
    bounds: Array  # float32 [B, 1]
    done: Array  # float32 [B, N], the scores of earlier ends, the last one the least

    @classmethod
    def steps(cls, count: int, rows: int) -> Rule:
        """So many steps, or until a hypothesis ends: its score is then positive."""
        ones, none = np.ones([max(count, rows), 1], np.float32), np.full([rows, 1], NEVER)
        return cls(-ones[:count, 0], ones[:rows], none)


class Model(Protocol):
    """A model with a memory of each row of a batch, and a state of each hypothesis."""

    def advance(
        self,
        ids: Array,
        origins: Array,
        so_far: Array,
        count: int,
        rule: Rule,
        barred: Array,
        eos_id: int = 0,
        asked: Array | None = None,
    ) -> Continuations:
        """Reads the last words, int64 [B, K], of hypotheses with log-probabilities [B, K].

        `origins`, int64 [B, K], are the places of their parents among the hypotheses of all rows in
        the step before; at first those of the rows. The `count` best continuations of each row go
        on, as many steps as the rule allows. `barred` and `asked` are ids, int64 [B, F] and
        [B, A]; those that are barred are not appended.
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
    """Hypotheses by their last token, [B, N] or [N]; the score of an empty place is -inf."""

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
    def at(cls, times: Array, scores: Array, log_probs: Array) -> _Ends:
        """Hypotheses [S, B, C] that have so many tokens [S]."""
        zeros = np.zeros(scores.shape, np.int64)
        all_ = scores, log_probs, zeros + times[:, None, None], zeros + np.arange(scores.shape[2])
        return cls(*(x.swapaxes(0, 1).reshape(len(x[0]), -1) for x in all_))

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
    beam = _Beam(sentences, decoding, eos_id)
    while True:
        beam.add(beam.advanced(model, forbidden))
        rows = beam.finish()
        if not len(rows):
            return beam.results
        if len(rows) < len(beam.places):
            model.keep(rows)
        beam.keep(rows)


class _Beam:
    """The hypotheses of the sentences that are still searched, by row."""

    def __init__(self, sentences: Sequence[Sentence], decoding: Decoding, eos_id: int) -> None:
        self.sentences, self.decoding, self.eos_id = sentences, decoding, eos_id
        count, k = len(sentences), decoding.beam_size
        self.limits, self.shortest = _limits(sentences, decoding)
        self.divisors = _penalties(np.arange(self.limits.max() + 1), decoding)
        self.places: Array = np.arange(count)
        width = k if count == 1 else 1  # a wider first step costs less than another call
        self.slots = self.ids = np.zeros([count, width], np.int64)
        self.origins = self.places[:, None] + self.ids
        self.log_probs = np.full(self.ids.shape, NEVER)
        self.log_probs[:, 0] = 0
        self.done, self.ended = _Ends.none(count, decoding.n_best), np.zeros(count, np.int64)
        self.coverage: Array = np.float32(0)
        self.steps: list[_Step] = []
        self.results: list[list[Hypothesis]] = [[] for _ in sentences]

    @property
    def bounds(self) -> Array:
        """The divisors of the longest translations, float32 [B, 1]."""
        bounds: Array = self.divisors[self.limits[self.places]][:, None]
        return bounds

    def advanced(self, model: Model, forbidden: Sequence[int]) -> Continuations:
        """The best continuations of the hypotheses, in some steps."""
        k, time, places = self.decoding.beam_size, len(self.steps), self.places
        limits, shortest = self.limits[places], self.shortest[places]
        forced = _forced(self.sentences, places, time)
        barred = _barred(forbidden, self.eos_id, time < shortest, forced)
        end = time + 1
        if self.ids.shape[1] == k and forced is None:  # until one must end, or may
            end = int(np.append(shortest[shortest > time], limits.min()).min())
        if self.decoding.shrink or self.decoding.beta:
            rule = Rule.steps(1 if self.ended.any() else end - time, len(places))
        else:
            rule = Rule(self.divisors[time + 1 : end + 1], self.bounds, self.done.scores)
        hypotheses = self.ids, self.origins, self.log_probs
        new = model.advance(*hypotheses, k, rule, barred, self.eos_id, forced)
        return new if forced is None else _with_forced(new, self.log_probs, forced)

    def add(self, new: Continuations) -> None:
        """Adds the steps, whose last one has the hypotheses; those that ended are done."""
        k, beta, first = self.decoding.beam_size, self.decoding.beta, len(self.steps) + 1
        every = np.arange(k)[None].repeat(len(self.places), 0)
        for step in zip(new.ids, new.parents, new.weights, strict=True):
            self.steps.append(_Step(self.places, *step, self.slots))
            self.slots = every
            if beta:
                read = self.coverage + self.steps[-1].weights
                self.coverage = _taken(read, self.steps[-1].parents)
        log_probs, times = new.log_probs, np.arange(first, len(self.steps) + 1)
        if self.decoding.shrink:
            log_probs = np.where(self.slots + self.ended[:, None] < k, log_probs, NEVER)
        scores = log_probs / self.divisors[times][:, None, None]
        if beta:  # a step with an end is the last one
            masks = np.stack([self.sentences[place].mask for place in self.places])
            scores = scores + _coverage_penalty(self.coverage, masks, beta)
        ends = (new.ids == self.eos_id) & (log_probs > NEVER)
        scores_of_ends = np.where(ends, scores, NEVER)
        self.done = self.done.best_with(_Ends.at(times, scores_of_ends, log_probs))
        self.ended = self.ended + ends.sum((0, 2))
        self.ids, self.scores = new.ids[-1], scores[-1]
        self.log_probs = np.where(ends[-1], NEVER, log_probs[-1])

    def finish(self) -> Array:
        """Writes the results of rows without a hypothesis that may win; returns the others."""
        time, places = len(self.steps), self.places
        hopeful = self.log_probs / self.bounds > self.done.scores[:, -1:]
        if not self.decoding.shrink:
            self.log_probs = np.where(hopeful, self.log_probs, NEVER)
        goes_on = hopeful.any(1) & (time < self.limits[places])
        for row in np.flatnonzero(~goes_on):
            done, live = self.done.of(row), self.log_probs[row]
            slots = np.arange(len(live))
            scores = np.where(live > NEVER, self.scores[row], NEVER)
            ends = done, _Ends(scores, live, np.full_like(slots, time), slots)
            place = places[row]
            self.results[place] = _ranked(self.steps, place, *ends, self.decoding.n_best)
        return np.flatnonzero(goes_on)

    def keep(self, rows: Array) -> None:
        """Keeps some rows, and of these the hypotheses that exist."""
        exist, last = self.log_probs[rows] > NEVER, self.steps[-1]
        self.slots = np.argsort(~exist, 1, kind="stable")[:, : exist.sum(1).max(initial=0)]
        every = rows[:, None], self.slots
        self.ids, self.log_probs = self.ids[every], self.log_probs[every]
        self.origins = last.parents[every] + last.weights.shape[1] * every[0]
        if self.decoding.beta:
            self.coverage = self.coverage[every]
        self.places, self.ended, self.done = self.places[rows], self.ended[rows], self.done.of(rows)


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
    ids, parents, log_probs = (x.copy() for x in new[:3])
    rows, width = forced[:, 0] > 0, so_far.shape[1]
    totals = (so_far + new.asked[..., 0])[rows]
    order = np.argsort(-totals, 1, kind="stable")
    log_probs[0, rows], ids[0, rows] = NEVER, forced[rows]
    log_probs[0, rows, :width], parents[0, rows, :width] = _taken(totals, order), order
    return new._replace(ids=ids, parents=parents, log_probs=log_probs)


def _ranked(
    steps: Sequence[_Step], place: int, done: _Ends, live: _Ends, n: int
) -> list[Hypothesis]:
    """The N best hypotheses of a sentence: the finished before the unfinished."""
    hypotheses: list[Hypothesis] = []
    for ends, is_done in ((done, True), (live, False)):
        for j in np.argsort(-ends.scores, kind="stable"):
            score, log_prob = float(ends.scores[j]), float(ends.log_probs[j])
            if score == NEVER or len(hypotheses) == n:
                break
            ids, weights = _followed(steps, place, int(ends.times[j]), int(ends.slots[j]))
            hypotheses.append(Hypothesis(ids, log_prob, score, is_done, weights))
    return hypotheses


def _followed(steps: Sequence[_Step], place: int, time: int, slot: int) -> tuple[list[int], Array]:
    """The ids of a hypothesis, and their α."""
    ids, weights = [], []
    places = None
    for step in reversed(steps[:time]):
        if step.places is not places:  # those of many steps are one array
            places, row = step.places, int(np.searchsorted(step.places, place))
        ids.append(int(step.ids[row, slot]))
        parent = step.parents[row, slot]
        weights.append(step.weights[row, parent])
        slot = step.slots[row, parent]
    return ids[::-1], np.stack(weights[::-1])
