"""The loop that beam, greedy and sampled search share.

    score(y) = log p(y | x) / length_penalty(|y|) + coverage_penalty(Σᵢ αᵢ)

`beam_search` describes the two penalties, on whose limits the stop rule relies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.search import selections
from bahdanau_tf.search.selections import NEVER, Features, History, Hypotheses, Output
from bahdanau_tf.system.tensors import Nest


class Record(NamedTuple):
    """The weights of all steps, of the rows that were searched in each."""

    weights: tf.TensorArray  # of float32 [B, K, T_x]
    rows: tf.TensorArray  # of int32 [B], ascending

    @classmethod
    def empty(cls, places: int) -> Record:
        """The record before the first step; the numbers of rows are unknown."""
        return cls(
            *(
                tf.TensorArray(dtype, 0, dynamic_size=True, infer_shape=False, element_shape=shape)
                for dtype, shape in ((tf.float32, [None, places, None]), (tf.int32, [None]))
            )
        )

    def followed(self, slots: tf.Tensor, real: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
        """The weights of chosen hypotheses after so many steps: float32 [B, N, T, T_x].

        `slots` [B, N, T] are the places in the beam of their tokens, `real` is where there is one.
        """
        batch = tf.shape(slots)[0]
        weights, rows = self.weights.concat(), self.rows.concat()
        # A step begins where the rows no longer ascend.
        before = tf.concat([[batch], rows], 0)[:-1]
        step = tf.cumsum(tf.cast(rows <= before, tf.int32)) - 1
        shape = tf.concat([[batch, steps], tf.shape(weights)[1:]], 0)
        weights = tf.scatter_nd(tf.stack([rows, step], 1), weights, shape)  # [B, steps, K, T_x]
        places = tf.transpose(slots[..., :steps], [0, 2, 1])  # [B, steps, N]
        weights = tf.gather(weights, places, batch_dims=2)
        weights = tf.transpose(weights, [0, 2, 1, 3])  # [B, N, steps, T_x]
        after = tf.shape(slots)[-1] - steps
        weights = tf.pad(weights, [[0, 0], [0, 0], [0, after], [0, 0]])
        return tf.where(real[..., tf.newaxis], weights, 0.0)


Penalty = Callable[[tf.Tensor], tf.Tensor]
CoveragePenalty = Callable[[tf.Tensor, tf.Tensor], "tf.Tensor | float"]


def gnmt_length_penalty(alpha: float = 1.0) -> Penalty:
    """Returns the length penalty of GNMT; the score is log p(y | x) / lp(y).

        lp(y) = ((5 + |y|) / 6)^α

    With α = 0 it is 1: the score is log p(y | x), as in the original code.

    Reference: Wu et al. 2016, arXiv 1609.08144, section 7.
    """
    if alpha < 0:
        raise ValueError(f"gnmt_length_penalty: alpha is {alpha}, wanted 0 or more.")
    return lambda lengths: ((5.0 + lengths) / 6.0) ** alpha


def no_coverage_penalty(coverage: tf.Tensor, rows: tf.Tensor) -> float:
    """Returns 0: no penalty."""
    del coverage, rows
    return 0.0


def gnmt_coverage_penalty(beta: float, source_mask: tf.Tensor) -> CoveragePenalty:
    """Returns the coverage penalty of GNMT, which is added to a score.

        cp(y) = β Σ_j log(min(Σ_i α_ij, 1))

    The sum of a source word's weights counts as at least 1e-6.

    Args:
        beta: β, 0 or more.
        source_mask: bool `[B, T_x]`, True where there is a source word.

    Reference: Wu et al. 2016, arXiv 1609.08144, section 7.
    """
    if beta < 0:
        raise ValueError(f"gnmt_coverage_penalty: beta is {beta}, wanted 0 or more.")

    def penalty(coverage: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        covered = tf.math.log(tf.clip_by_value(coverage, 1e-6, 1.0))
        mask = tf.gather(source_mask, rows)[:, tf.newaxis]
        return beta * tf.reduce_sum(tf.where(mask, covered, 0.0), axis=-1)

    return penalty


class SearchResult(NamedTuple):
    """The N best hypotheses of each row: finished ones, then unfinished ones.

    T is the largest `max_length`. If a row has fewer than N hypotheses (with a tiny vocabulary),
    the remaining places have length 0 and score -1e9.

    Attributes:
        tokens: int32 `[B, N, T]`, the end symbol included, 0 after it.
        log_probs: float32 `[B, N]`, sum of the model's log-probabilities.
        scores: float32 `[B, N]`, what hypotheses are ranked by: `log_probs` with length and
            coverage penalties. Always finite.
        lengths: int32 `[B, N]`, number of tokens, the end symbol included.
        weights: float32 `[B, N, T, T_x]`, the soft alignment of each token, 0 after the end; None
            if the step returns none.
        finished: bool `[B, N]`, whether the end symbol was reached.
    """

    tokens: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor
    lengths: tf.Tensor
    weights: tf.Tensor | None
    finished: tf.Tensor


Step = Callable[[tf.Tensor, Nest, Nest], tuple[Output, Nest, "tf.Tensor | None"]]
Select = Callable[[Output, tf.Tensor, History], selections.Continuations]


class _Rows(NamedTuple):
    """The rows still searched; the steps do not change them."""

    row: tf.Tensor  # int32 [B], index of the row in the whole batch
    limit: tf.Tensor  # int32 [B]
    penalty: tf.Tensor  # float32 [B], the length penalty of the limit
    memory: Nest  # of [B, ...]


class _Live(NamedTuple):
    """The hypotheses of these rows between two steps."""

    ids: tf.Tensor  # int64 [B, K], see `Hypotheses`
    state: Nest  # of [B, K, ...]
    coverage: tf.Tensor | tuple[()]  # float32 [B, K, T_x]
    log_probs: tf.Tensor  # float32 [B, K], -inf if finished or hopeless
    path: tf.Tensor  # int64 [B, K, 2, T], see `Hypotheses`
    finished: Hypotheses  # [B, N]
    ended: tf.Tensor | tuple[()]  # int32 [B], how many hypotheses have finished
    hopeful: tf.Tensor  # bool [B], whether a better one may still finish


class _Results(NamedTuple):
    """The hypotheses of all rows; valid for the rows that have stopped."""

    live: Hypotheses  # [B, K]
    finished: Hypotheses  # [B, N]


class _Beam(NamedTuple):
    """The variables of the loop over steps."""

    time: tf.Tensor  # int32 scalar
    live: _Live
    record: Record


class _Lengths(NamedTuple):
    """What search knows about lengths before it begins."""

    times: tf.Tensor  # int32 [T], 0 to T - 1
    divisors: tf.Tensor  # float32 [T], the length penalties of 1 to T tokens


@dataclass
class Search:
    """The constants of a search, and the code of one step."""

    step: Step
    select: Select
    start_id: int
    eos_id: int
    length_penalty: Penalty
    coverage_penalty: CoveragePenalty = no_coverage_penalty
    places: int = 1  # K
    n_best: int | tf.Tensor = 1  # N
    shrink: bool = False
    # Whether the step returns weights; set when it is first called.
    has_weights: bool = field(default=False, init=False)

    def _penalty(self, lengths: tf.Tensor) -> tf.Tensor:
        """The length penalties, of which the function may return one number for all."""
        lengths = tf.cast(lengths, tf.float32)
        return tf.zeros_like(lengths) + self.length_penalty(lengths)

    def run(
        self, state: Nest, memory: Nest, max_length: int | tf.Tensor, starts: int
    ) -> SearchResult:
        """Searches, beginning with `starts` empty hypotheses for each row."""
        batch = tf.shape(tf.nest.flatten(state)[0])[0]
        limits = tf.maximum(tf.cast(max_length, tf.int32), 1)
        limits = tf.broadcast_to(limits, [batch])
        longest: int | tf.Tensor = tf.maximum(tf.reduce_max(limits), 1)
        if isinstance(max_length, int):
            if max_length < 1:
                raise ValueError(f"search: max_length is {max_length}, wanted 1 or more.")
            longest = max_length  # static
        live = selections.blank(batch, self.places, longest, log_prob=0.0)
        finished = selections.blank(batch, self.n_best, longest, log_prob=NEVER)
        exists = tf.fill([batch, 1], True) & (tf.range(self.places) < starts)
        rows = _Rows(
            row=tf.range(batch), limit=limits, penalty=self._penalty(limits), memory=memory
        )
        start = _Live(
            ids=tf.fill([batch, self.places], tf.constant(self.start_id, tf.int64)),
            state=tf.nest.map_structure(
                lambda x: tf.repeat(x[:, tf.newaxis], self.places, axis=1), state
            ),
            coverage=(
                _of_any_size(tf.zeros([batch, self.places, 1]), 2) if self._is_covering else ()
            ),
            log_probs=tf.where(exists, live.log_probs, NEVER),
            path=live.path,
            finished=finished,
            ended=tf.zeros([batch], tf.int32) if self.shrink else (),
            hopeful=tf.ones([batch], tf.bool),
        )
        rows, start = tf.nest.map_structure(lambda x: _of_any_size(x, 0), (rows, start))
        record = Record.empty(self.places)
        times = tf.range(longest)
        lengths = _Lengths(times, self._penalty(times + 1))
        _, beam, results = tf.while_loop(
            # At least one step, even for an empty batch.
            lambda rows, beam, _: (beam.time == 0) | (tf.size(rows.row) > 0),
            partial(self._until_a_row_stops, lengths),
            [rows, _Beam(tf.constant(0), start, record), _Results(live, finished)],
        )
        return _result(beam, results, self.n_best, self.has_weights)

    def _until_a_row_stops(
        self, lengths: _Lengths, rows: _Rows, beam: _Beam, results: _Results
    ) -> tuple[_Rows, _Beam, _Results]:
        """Adds tokens until a row stops, then removes the rows that do."""
        longest = tf.size(lengths.times)
        # The first limit, or after 1 step if there is no row.
        until = tf.minimum(tf.reduce_min(rows.limit), 1 + longest * tf.size(rows.row))
        (beam,) = tf.while_loop(
            lambda beam: (beam.time < until) & tf.reduce_all(beam.live.hopeful),
            lambda beam: (self._advance(lengths, rows, beam),),
            [beam],
        )
        live = beam.live
        scores = self._scores(live.log_probs, live.coverage, rows, lengths.divisors[beam.time - 1])
        goes_on = live.hopeful & (beam.time < rows.limit)
        rows, live, results = _let_go(goes_on, scores, rows, live, results)
        return rows, beam._replace(live=live), results

    def _advance(self, lengths: _Lengths, rows: _Rows, beam: _Beam) -> _Beam:
        """Adds one token to every live hypothesis."""
        before = beam.live
        ids = tf.cast(before.ids, tf.int32)
        output, state, weights = self.step(ids, before.state, rows.memory)
        if not isinstance(output, Features) and output.shape[1] != self.places:
            output = tf.ensure_shape(output, [None, self.places, None])
        log_probs, parents, tokens = self.select(
            output,
            before.log_probs,
            History(tf.cast(before.path[:, :, 0], tf.int32), beam.time, rows.row),
        )
        parents, tokens = (tf.cast(x, tf.int64) for x in (parents, tokens))
        if self.shrink:
            place = tf.range(self.places) + tf.expand_dims(before.ended, 1)
            log_probs = tf.where(place < self.places, log_probs, NEVER)
        coverage, record = self._attend(beam, rows, weights, parents)
        divisor = tf.gather(lengths.divisors, beam.time)
        scores = self._scores(log_probs, coverage, rows, divisor)
        step = tf.stack([tokens, parents], axis=2)[..., tf.newaxis]
        path = self._continued(before.path, parents)
        path = tf.where(lengths.times == beam.time, step, path)
        ends = tokens == self.eos_id  # irrelevant at an empty place
        new = Hypotheses(log_probs, tf.where(ends, scores, NEVER), path)
        finished = selections.best(selections.concat(before.finished, new), self.n_best)
        remaining = tf.where(ends, NEVER, log_probs)
        bounds = remaining / rows.penalty[:, tf.newaxis]
        hopeful = bounds > finished.scores[:, -1:]
        ended = before.ended
        if self.shrink:
            exist = ends & (log_probs > NEVER)
            ended += tf.math.count_nonzero(exist, 1, dtype=tf.int32)
        else:  # `shrink` also counts hopeless hypotheses that end
            remaining = tf.where(hopeful, remaining, NEVER)
        live = _Live(
            ids=tokens,
            state=self._continued(state, parents),
            coverage=coverage,
            log_probs=remaining,
            path=path,
            finished=finished,
            ended=ended,
            hopeful=tf.reduce_any(hopeful, axis=1),
        )
        return _Beam(beam.time + 1, live, record)

    def _scores(
        self, log_probs: tf.Tensor, coverage: tf.Tensor | tuple[()], rows: _Rows, divisor: tf.Tensor
    ) -> tf.Tensor:
        """The scores of hypotheses of one length: float32 [B, K]."""
        scores = log_probs / divisor
        if not self._is_covering:
            return scores
        return selections.finite(scores + self.coverage_penalty(coverage, rows.row))

    def _continued(self, nest: selections.Tensors, parents: tf.Tensor) -> selections.Tensors:
        """Selects the values of the hypotheses that are continued: [B, K, ...]."""
        return nest if self.places == 1 else selections.take(nest, parents)

    @property
    def _is_covering(self) -> bool:
        return self.coverage_penalty is not no_coverage_penalty

    def _attend(
        self, beam: _Beam, rows: _Rows, weights: tf.Tensor | None, parents: tf.Tensor
    ) -> tuple[tf.Tensor | tuple[()], Record]:
        """Returns the coverage after this step, () without a penalty, and all weights."""
        self.has_weights = weights is not None
        coverage: tf.Tensor | tuple[()] = beam.live.coverage
        if weights is None:
            if self._is_covering:
                raise ValueError(
                    "beam_search: coverage_penalty is set, but the step "
                    "returns no attention weights."
                )
            return coverage, beam.record
        weights = tf.cast(weights, tf.float32)
        if self._is_covering:
            coverage = self._continued(coverage + weights, parents)
        record, time = beam.record, beam.time
        record = Record(record.weights.write(time, weights), record.rows.write(time, rows.row))
        return coverage, record


def _of_any_size(x: tf.Tensor, *axes: int) -> tf.Tensor:
    """Returns `x` with an unknown static size along some axes.

    The number of rows changes in the loop. If the graph knows the initial one, TensorFlow 2.21
    takes it for that of every step when it folds constants.
    """
    shape = x.shape.as_list()
    if all(shape[axis] is None for axis in axes):
        return x
    for axis in axes:
        shape[axis] = None
    return tf.raw_ops.PlaceholderWithDefault(input=x, shape=tf.TensorShape(shape))


def _let_go(
    goes_on: tf.Tensor, scores: tf.Tensor, rows: _Rows, live: _Live, results: _Results
) -> tuple[_Rows, _Live, _Results]:
    """Copies the results of the rows that stop, and removes these rows.

    `goes_on` bool [B] is False for them; `scores` [B, K] are those of the live hypotheses.
    """
    stopped = tf.where(~goes_on)[:, 0]
    places = tf.gather(rows.row, stopped)[:, tf.newaxis]
    exist = live.log_probs > NEVER
    unfinished = Hypotheses(live.log_probs, tf.where(exist, scores, NEVER), live.path)
    results = tf.nest.map_structure(
        lambda all_rows, some: tf.tensor_scatter_nd_update(
            all_rows, places, tf.gather(some, stopped)
        ),
        results,
        _Results(unfinished, live.finished),
    )
    going = tf.where(goes_on)[:, 0]
    rows, live = tf.nest.map_structure(lambda x: tf.gather(x, going), (rows, live))
    return rows, live, results


def _result(
    beam: _Beam, results: _Results, n_best: int | tf.Tensor, has_weights: bool
) -> SearchResult:
    """The n best: finished before unfinished ones, with their alignments."""
    both = selections.concat(results.finished, selections.best(results.live, n_best))
    exists = both.scores > NEVER
    finished = exists & (tf.range(2 * n_best) < n_best)
    rank = tf.cast(exists, tf.int32) + tf.cast(finished, tf.int32)
    order = tf.math.top_k(rank, n_best).indices  # ties keep their order
    chosen, exists, finished = selections.take((both, exists, finished), order)
    tokens, slots = tf.unstack(tf.cast(chosen.path, tf.int32), num=2, axis=2)
    lengths = tf.math.count_nonzero(slots >= 0, -1, dtype=tf.int32)
    lengths = tf.where(exists, lengths, 0)
    real = tf.range(tf.shape(tokens)[-1]) < lengths[..., tf.newaxis]
    slots = tf.maximum(slots, 0)
    return SearchResult(
        tokens=tf.where(real, tokens, 0),
        log_probs=tf.where(exists, chosen.log_probs, selections.ABSENT),
        scores=tf.where(exists, chosen.scores, selections.ABSENT),
        lengths=lengths,
        weights=beam.record.followed(slots, real, beam.time) if has_weights else None,
        finished=finished,
    )
