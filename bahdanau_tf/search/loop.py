"""The loop that beam, greedy and sampled search share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.search.hypotheses import ABSENT
from bahdanau_tf.search.hypotheses import NEVER
from bahdanau_tf.search.hypotheses import Given
from bahdanau_tf.search.hypotheses import Hypotheses
from bahdanau_tf.search.hypotheses import best
from bahdanau_tf.search.hypotheses import blank
from bahdanau_tf.search.hypotheses import concat
from bahdanau_tf.search.hypotheses import finite
from bahdanau_tf.search.hypotheses import take
from bahdanau_tf.search.penalties import CoveragePenalty
from bahdanau_tf.search.penalties import Penalty
from bahdanau_tf.search.penalties import no_coverage_penalty
from bahdanau_tf.search.selections import Continuations
from bahdanau_tf.search.selections import History
from bahdanau_tf.tensors import Nest
from bahdanau_tf.tensors import Shape


class SearchResult(NamedTuple):
    """The N best hypotheses of each row: the finished, then the unfinished.

    T is the largest `max_length`. If a row has fewer than N hypotheses (with a
    tiny vocabulary), the remaining places have length 0 and score -1e9.

    Attributes:
        tokens: int32 `[B, N, T]`, the end symbol included, 0 after it.
        log_probs: float32 `[B, N]`, sum of the model's log-probabilities.
        scores: float32 `[B, N]`, by which hypotheses are ranked: `log_probs`
            with length and coverage penalties. Always finite.
        lengths: int32 `[B, N]`, number of tokens, the end symbol included.
        weights: float32 `[B, N, T, T_x]`, the soft alignment of each token, 0
            after the end; None if the step returns none.
        finished: bool `[B, N]`, whether the end symbol was reached.
    """

    tokens: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor
    lengths: tf.Tensor
    weights: tf.Tensor | None
    finished: tf.Tensor


Step = Callable[
    [tf.Tensor, Nest, Nest], tuple[tf.Tensor, Nest, "tf.Tensor | None"]
]
Select = Callable[[tf.Tensor, tf.Tensor, History], Continuations]


class _Rows(NamedTuple):
    """The state of the rows still searched; rows that stop are removed."""

    row: tf.Tensor  # int32 [B], index of the row in the whole batch
    limit: tf.Tensor  # int32 [B]
    penalty: tf.Tensor  # float32 [B], the length penalty of the limit
    ids: tf.Tensor  # int32 [B, K]
    state: Nest  # of [B, K, ...]
    memory: Nest  # of [B, ...]
    coverage: tf.Tensor | tuple[()]  # float32 [B, K, T_x]
    log_probs: tf.Tensor  # float32 [B, K], of the live hypotheses
    path: tf.Tensor  # int32 [B, K, 2, T], see `Hypotheses`
    finished: Hypotheses  # [B, N]
    ended: tf.Tensor | tuple[()]  # int32 [B], how many hypotheses have finished
    running: tf.Tensor  # bool [B]


class _Found(NamedTuple):
    """The hypotheses of all rows; valid for the rows that have stopped."""

    live: Hypotheses  # [B, K]
    finished: Hypotheses  # [B, N]


class _Record(NamedTuple):
    """The weights of all steps, of the rows that were searched in each."""

    weights: tf.TensorArray  # of float32 [B, K, T_x]
    rows: tf.TensorArray  # of int32 [B], ascending

    def write(
        self, time: tf.Tensor, weights: tf.Tensor, rows: tf.Tensor
    ) -> _Record:
        """Adds those of a step."""
        return _Record(
            self.weights.write(time, weights), self.rows.write(time, rows)
        )

    def whole(self, batch: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
        """float32 [B, steps, K, T_x] of all rows; 0 where there are none."""
        weights, rows = self.weights.concat(), self.rows.concat()
        # A step begins where the rows no longer ascend.
        before = tf.concat([[batch], rows], 0)[:-1]
        step = tf.cumsum(tf.cast(rows <= before, tf.int32)) - 1
        shape = tf.concat([[batch, steps], tf.shape(weights)[1:]], 0)
        return tf.scatter_nd(tf.stack([rows, step], 1), weights, shape)


class _Beam(NamedTuple):
    """The loop variables."""

    time: tf.Tensor  # int32 scalar
    rows: _Rows
    found: _Found
    record: _Record


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

    def run(
        self,
        state: Nest,
        memory: Nest,
        max_length: int | tf.Tensor,
        starts: int,
    ) -> SearchResult:
        """Searches, beginning with `starts` empty hypotheses for each row."""
        batch = tf.shape(tf.nest.flatten(state)[0])[0]
        limits = tf.cast(tf.broadcast_to(max_length, [batch]), tf.int32)
        longest: int | tf.Tensor = tf.maximum(tf.reduce_max(limits), 1)
        if isinstance(max_length, int):
            if max_length < 1:
                raise ValueError(
                    f"search: max_length is {max_length}, wanted 1 or more."
                )
            longest = max_length  # static
        live = blank(batch, self.places, longest, log_prob=0.0)
        exists = tf.fill([batch, 1], True) & (tf.range(self.places) < starts)
        rows = _Rows(
            row=tf.range(batch),
            limit=limits,
            penalty=self.length_penalty(tf.cast(limits, tf.float32)),
            ids=tf.fill([batch, self.places], self.start_id),
            state=tf.nest.map_structure(
                lambda x: tf.repeat(x[:, tf.newaxis], self.places, axis=1),
                state,
            ),
            memory=memory,
            coverage=self._no_coverage(batch),
            log_probs=tf.where(exists, live.log_probs, NEVER),
            path=live.path,
            finished=blank(batch, self.n_best, longest, log_prob=NEVER),
            ended=tf.zeros([batch], tf.int32) if self.shrink else (),
            running=tf.ones([batch], tf.bool),
        )
        beam = _Beam(
            time=tf.constant(0),
            rows=tf.nest.map_structure(lambda x: _of_any_size(x, 0), rows),
            found=_Found(live, rows.finished),
            record=_Record(
                _steps(tf.float32, (None, self.places, None)),
                _steps(tf.int32, (None,)),
            ),
        )
        times = tf.range(longest)
        divisors = self.length_penalty(tf.cast(times + 1, tf.float32))
        (beam,) = tf.while_loop(
            # At least one step, even for an empty batch.
            lambda beam: (beam.time == 0) | (tf.size(beam.rows.row) > 0),
            lambda beam: (self._advance(beam, times, divisors),),
            [beam],
        )
        return _result(beam, self.n_best, self.has_weights)

    def _no_coverage(self, batch: tf.Tensor) -> tf.Tensor | tuple[()]:
        """The coverage before the first step; () if no penalty reads it."""
        if not self._is_covering:
            return ()
        return _of_any_size(tf.zeros([batch, self.places, 1]), 2)

    def _advance(
        self, beam: _Beam, times: tf.Tensor, divisors: tf.Tensor
    ) -> _Beam:
        """Adds one token to every live hypothesis.

        Args:
            beam: The loop variables.
            times: int32 [T], 0 to T - 1.
            divisors: float32 [T], the length penalties of 1 to T tokens.
        """
        rows = beam.rows
        logits, state, weights = self.step(rows.ids, rows.state, rows.memory)
        logits = tf.cast(logits, tf.float32)
        if logits.shape[1] != self.places:
            logits = tf.ensure_shape(logits, [None, self.places, None])
        log_probs, parents, tokens = self.select(
            logits,
            rows.log_probs,
            History(rows.path[:, :, 0], beam.time, rows.row),
        )
        if self.shrink:
            place = tf.range(self.places) + tf.expand_dims(rows.ended, 1)
            log_probs = tf.where(place < self.places, log_probs, NEVER)
        coverage, record = self._attend(beam, weights, parents)
        time = beam.time + 1
        scores = log_probs / tf.gather(divisors, beam.time)
        if self._is_covering:
            penalty = self.coverage_penalty(coverage, rows.row)
            scores = finite(scores + penalty)
        is_now = times == beam.time
        path = self._continued(rows.path, parents)
        path = _longer(path, tokens, parents, is_now)
        ends = tokens == self.eos_id  # no matter at an empty place
        new = Hypotheses(log_probs, tf.where(ends, scores, NEVER), path)
        finished = best(concat(rows.finished, new), self.n_best)
        live = tf.where(ends, NEVER, log_probs)
        bound = tf.reduce_max(live, axis=1) / rows.penalty
        worst = finished.scores[:, -1]
        ended = rows.ended
        if self.shrink:
            exist = ends & (log_probs > NEVER)
            ended += tf.math.count_nonzero(exist, 1, dtype=tf.int32)
        rows = rows._replace(
            ids=tokens,
            state=self._continued(state, parents),
            coverage=coverage,
            log_probs=live,
            path=path,
            finished=finished,
            ended=ended,
            running=(time < rows.limit) & (worst < bound),
        )
        rows, found = _let_go(rows, scores, beam.found)
        return _Beam(time, rows, found, record)

    def _continued(self, nest: Given, parents: tf.Tensor) -> Given:
        """What belongs to the hypotheses that are continued: [B, K, ...]."""
        return nest if self.places == 1 else take(nest, parents)

    @property
    def _is_covering(self) -> bool:
        return self.coverage_penalty is not no_coverage_penalty

    def _attend(
        self, beam: _Beam, weights: tf.Tensor | None, parents: tf.Tensor
    ) -> tuple[tf.Tensor | tuple[()], _Record]:
        """Returns the coverage after this step, and the record of all weights.

        The coverage is () without a penalty.
        """
        self.has_weights = weights is not None
        coverage: tf.Tensor | tuple[()] = beam.rows.coverage
        if weights is None:
            if self._is_covering:
                raise ValueError(
                    "beam_search: a coverage_penalty was given, but the step "
                    "returns no attention weights."
                )
            return coverage, beam.record
        weights = tf.cast(weights, tf.float32)
        if self._is_covering:
            coverage = self._continued(coverage + weights, parents)
        return coverage, beam.record.write(beam.time, weights, beam.rows.row)


def _steps(dtype: tf.DType, shape: Shape) -> tf.TensorArray:
    """An empty record of steps, of tensors with unknown numbers of rows."""
    return tf.TensorArray(
        dtype, 0, dynamic_size=True, infer_shape=False, element_shape=shape
    )


def _longer(
    path: tf.Tensor, tokens: tf.Tensor, parents: tf.Tensor, is_now: tf.Tensor
) -> tf.Tensor:
    """The path of hypotheses with one token more, at the place `is_now`."""
    step = tf.stack([tokens, parents], axis=2)[..., tf.newaxis]
    return tf.where(is_now, step, path)


def _of_any_size(x: tf.Tensor, *axes: int) -> tf.Tensor:
    """Returns `x` with an unknown static size along some axes.

    The number of rows changes in the loop. If the graph knows the initial one,
    TensorFlow 2.21 takes it for that of every step when it folds constants.
    """
    shape = x.shape.as_list()
    for axis in axes:
        shape[axis] = None
    return tf.raw_ops.PlaceholderWithDefault(
        input=x, shape=tf.TensorShape(shape)
    )


def _let_go(
    rows: _Rows, scores: tf.Tensor, found: _Found
) -> tuple[_Rows, _Found]:
    """Copies the results of stopped rows to `found` and removes these rows.

    Args:
        rows: All rows that were searched.
        scores: float32 [B, K], of their live hypotheses.
        found: The results so far.
    """

    def drop() -> tuple[_Rows, _Found]:
        stopped = tf.where(~rows.running)[:, 0]
        places = tf.gather(rows.row, stopped)[:, tf.newaxis]
        exist = rows.log_probs > NEVER
        live = Hypotheses(
            rows.log_probs, tf.where(exist, scores, NEVER), rows.path
        )
        kept = tf.nest.map_structure(
            lambda all_rows, some: tf.tensor_scatter_nd_update(
                all_rows, places, tf.gather(some, stopped)
            ),
            found,
            _Found(live, rows.finished),
        )
        going = tf.where(rows.running)[:, 0]
        rest = tf.nest.map_structure(lambda x: tf.gather(x, going), rows)
        return rest, kept

    all_run = tf.reduce_all(rows.running)
    left: tuple[_Rows, _Found] = tf.cond(all_run, lambda: (rows, found), drop)
    return left


def _result(
    beam: _Beam, n_best: int | tf.Tensor, has_weights: bool
) -> SearchResult:
    """The n best: finished before unfinished ones, with their alignments."""
    both = concat(beam.found.finished, best(beam.found.live, n_best))
    exists = both.scores > NEVER
    finished = exists & (tf.range(2 * n_best) < n_best)
    rank = tf.cast(exists, tf.int32) + tf.cast(finished, tf.int32)
    order = tf.math.top_k(rank, n_best).indices  # ties keep their order
    chosen, exists, finished = take((both, exists, finished), order)
    lengths = tf.math.count_nonzero(chosen.slots >= 0, -1, dtype=tf.int32)
    lengths = tf.where(exists, lengths, 0)
    real = tf.range(tf.shape(chosen.tokens)[-1]) < lengths[..., tf.newaxis]
    slots = tf.maximum(chosen.slots, 0)
    return SearchResult(
        tokens=tf.where(real, chosen.tokens, 0),
        log_probs=tf.where(exists, chosen.log_probs, ABSENT),
        scores=tf.where(exists, chosen.scores, ABSENT),
        lengths=lengths,
        weights=_follow(beam, slots, real) if has_weights else None,
        finished=finished,
    )


def _follow(beam: _Beam, slots: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
    """The weights at the places `slots`: `[B, N, T]` -> `[B, N, T, T_x]`."""
    steps = beam.time
    weights = beam.record.whole(tf.shape(slots)[0], steps)
    places = tf.transpose(slots[..., :steps], [0, 2, 1])  # [B, steps, N]
    weights = tf.gather(weights, places, batch_dims=2)
    weights = tf.transpose(weights, [0, 2, 1, 3])  # [B, N, steps, T_x]
    after = tf.shape(slots)[-1] - steps
    weights = tf.pad(weights, [[0, 0], [0, 0], [0, after], [0, 0]])
    return tf.where(real[..., tf.newaxis], weights, 0.0)
