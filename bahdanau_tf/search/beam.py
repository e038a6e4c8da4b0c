"""Beam search and greedy search."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from bahdanau_tf.search.features import Output
from bahdanau_tf.search.loop import Search
from bahdanau_tf.search.loop import SearchResult
from bahdanau_tf.search.loop import Step
from bahdanau_tf.search.penalties import CoveragePenalty
from bahdanau_tf.search.penalties import Penalty
from bahdanau_tf.search.penalties import gnmt_length_penalty
from bahdanau_tf.search.penalties import no_coverage_penalty
from bahdanau_tf.search.selections import Constraint
from bahdanau_tf.search.selections import Continuations
from bahdanau_tf.search.selections import History
from bahdanau_tf.search.selections import best_of_all
from bahdanau_tf.system.tensors import Nest


def beam_search(
    step: Step,
    state: Nest,
    memory: Nest = (),
    *,
    start_id: int,
    eos_id: int,
    max_length: int | tf.Tensor,
    beam_size: int = 12,
    n_best: int | tf.Tensor = 1,
    length_penalty: Penalty = gnmt_length_penalty(1.0),
    coverage_penalty: CoveragePenalty = no_coverage_penalty,
    constraints: Sequence[Constraint] = (),
    shrink: bool = False,
) -> SearchResult:
    """Finds the n best hypotheses with a beam of K.

    Each step keeps the K most probable of all continuations; those that end
    with the end symbol leave the beam. Penalties rank finished hypotheses
    only: in the beam all have the same length, and log-probability decides.

    Args:
        step: the step function, see `bahdanau_tf.search`.
        state: nest of `[B, ...]`, the state before the first word.
        memory: nest of `[B, ...]`, what `step` reads beside it.
        start_id: the id given to `step` at the first word.
        eos_id: the id of the end symbol.
        max_length: the largest number of tokens, end symbol included: an int,
            or int32 `[B]`, one for each row (less than 1 counts as 1).
        beam_size: K.
        n_best: N, from 1 to K: an int, or int32 scalar, which is not checked.
        length_penalty: function of lengths, float32 -> the divisor of log p;
            positive, and not falling with the length.
        coverage_penalty: function of coverage `[B, K, T_x]` and rows `[B]` ->
            the term added to the score, `[B, K]`, at most 0.
        constraints: functions `(logits [B, K, V], history) -> logits`, applied
            one after the other; a forbidden word has logit -inf. One that
            would leave a hypothesis no word is ignored for that step; a `Few`
            counts the words to which `step` gives -inf as left.
        shrink: whether the beam gets narrower by one with each finished
            hypothesis, as in the original code's search. A row then stops at
            the latest when K hypotheses have finished.

    Returns:
        A `SearchResult`.

    Raises:
        ValueError: an option is out of range, or a coverage penalty is given
            with a step that returns no weights.

    Example:

    ```python
    memory, state = model.encode(source)
    result = beam_search(
        model.decode_step, state, memory,
        start_id=model.start_id, eos_id=text.eos_id, max_length=50,
    )
    ```
    """
    if isinstance(n_best, int) and not 1 <= n_best <= beam_size:
        raise ValueError(
            f"beam_search: n_best is {n_best} and beam_size {beam_size}, "
            "wanted 1 <= n_best <= beam_size."
        )

    def select(
        output: Output, so_far: tf.Tensor, history: History
    ) -> Continuations:
        return best_of_all(output, so_far, history, constraints, beam_size)

    search = Search(
        step=step,
        select=select,
        start_id=start_id,
        eos_id=eos_id,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        places=beam_size,
        n_best=n_best,
        shrink=shrink,
    )
    return search.run(state, memory, max_length, starts=1)


def greedy_search(
    step: Step,
    state: Nest,
    memory: Nest = (),
    *,
    start_id: int,
    eos_id: int,
    max_length: int | tf.Tensor,
    length_penalty: Penalty = gnmt_length_penalty(1.0),
    constraints: Sequence[Constraint] = (),
) -> SearchResult:
    """Takes the most probable word at each step: a beam of one.

    Args and Returns are those of `beam_search`, with N = 1.
    """
    return beam_search(
        step,
        state,
        memory,
        start_id=start_id,
        eos_id=eos_id,
        max_length=max_length,
        beam_size=1,
        length_penalty=length_penalty,
        constraints=constraints,
    )
