"""Beam search, greedy search and sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from bahdanau_tf.search import selections
from bahdanau_tf.search.loop import (
    CoveragePenalty,
    Penalty,
    Search,
    SearchResult,
    Step,
    gnmt_length_penalty,
    no_coverage_penalty,
)
from bahdanau_tf.search.selections import Constraint, Continuations, History, Output
from bahdanau_tf.system.tensors import Nest

Watch = Callable[[tf.Tensor, Continuations], None]
SPARE = 3  # continuations that `watch` sees beyond the K best


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
    watch: Watch | None = None,
) -> SearchResult:
    """Finds the n best hypotheses with a beam of K.

    Each step keeps the K most probable of all continuations; those that end with the end symbol
    leave the beam. Penalties rank finished hypotheses only: in the beam all have the same length,
    and log-probability decides.

    Args:
        step: the step function, see `bahdanau_tf.search`.
        state: nest of `[B, ...]`, the state before the first word.
        memory: nest of `[B, ...]`, what else `step` reads.
        start_id: the id passed to `step` for the first word.
        eos_id: the id of the end symbol.
        max_length: the largest number of tokens, end symbol included: an int, or int32 `[B]`, one
            for each row (less than 1 counts as 1).
        beam_size: K.
        n_best: N, from 1 to K: an int, or int32 scalar, which is not checked.
        length_penalty: function of lengths, float32 -> the divisor of log p; positive, and not
            falling with the length.
        coverage_penalty: function of coverage `[B, K, T_x]` and rows `[B]` -> the term added to the
            score, `[B, K]`, at most 0.
        constraints: functions `(logits [B, K, V], history) -> logits`, applied in order; a
            forbidden word has logit -inf. One that would leave a hypothesis no word is ignored for
            that step; a `Few` counts the words to which `step` gives -inf as left.
        shrink: whether the beam shrinks by one with each finished hypothesis, as in the original
            code's search. A row then stops at the latest when K hypotheses have finished.
        watch: function of the log-probabilities of the hypotheses, float32 `[B, K]`, -inf for those
            that are not continued, and of their best K + `SPARE` `Continuations`, of which search
            keeps the first K; called at each step. It is meant for eager execution.

    Returns:
        A `SearchResult`.

    Raises:
        ValueError: an option is out of range, or a coverage penalty is given with a step that
            returns no weights.

    Example:

    ```python
    memory, state = model.encode(source)
    result = beam_search(
        model.decode_step, state, memory,
        start_id=model.start_id, eos_id=text.eos_id, max_length=50,
    )
    ```
    """
    if not tf.is_tensor(n_best) and not 1 <= n_best <= beam_size:
        raise ValueError(
            f"beam_search: n_best is {n_best} and beam_size {beam_size}, "
            "wanted 1 <= n_best <= beam_size"
        )

    def select(output: Output, so_far: tf.Tensor, history: History) -> Continuations:
        count = beam_size if watch is None else beam_size + SPARE
        best = selections.best_of_all(output, so_far, history, constraints, count)
        if watch is None:
            return best
        watch(so_far, best)
        return Continuations(*(x[:, :beam_size] for x in best))

    search = Search(
        step, select, start_id, eos_id, length_penalty, coverage_penalty, beam_size, n_best, shrink
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
    """Takes the most probable word at each step: `beam_search` with K = N = 1."""
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


TINY = 1e-37  # a smaller float32 may be taken for 0


def sample(
    step: Step,
    state: Nest,
    memory: Nest = (),
    *,
    start_id: int,
    eos_id: int,
    max_length: int | tf.Tensor,
    seed: int | tf.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    n_samples: int = 1,
    length_penalty: Penalty = gnmt_length_penalty(1.0),
    coverage_penalty: CoveragePenalty = no_coverage_penalty,
    constraints: Sequence[Constraint] = (),
) -> SearchResult:
    """Draws hypotheses word by word from the model's distribution.

    Arguments that are not listed are those of `beam_search`.

    Args:
        seed: an integer: the draws of a row depend on the seed and on the row's index in the batch,
            not on the other rows. Or integers `[B, 2]`, a seed for each row: then the index does
            not matter either.
        temperature: τ > 0; words are drawn from softmax(logits / τ).
        top_k: draw among the k most probable words only; None for all.
        top_p: then among the smallest set of most probable words whose probabilities sum to p or
            more, 0 < p <= 1.
        n_samples: N, the number of independent draws for each row.

    Returns:
        A `SearchResult`, ordered as described there; `log_probs` and `scores` are those of the
        model, at temperature 1, without top k and top p.

    Raises:
        ValueError: an option is out of range.
    """
    for name, value, wanted, good in (
        ("temperature", temperature, "> 0", temperature > 0),
        ("top_k", top_k, "None or >= 1", top_k is None or top_k >= 1),
        ("top_p", top_p, "in (0, 1]", 0 < top_p <= 1),
        ("n_samples", n_samples, ">= 1", n_samples >= 1),
    ):
        if not good:
            raise ValueError(f"sample: {name} is {value}, wanted {wanted}")

    numbers = _numbers(seed, state, max_length, n_samples)

    def select(output: Output, so_far: tf.Tensor, history: History) -> Continuations:
        logits = selections.all_logits(output)
        constrained = selections.constrain(logits, history, constraints)
        best = tf.reduce_max(constrained, -1, keepdims=True)
        best = tf.where(tf.math.is_finite(best), best, 0.0)
        # From the best: a large one would overflow by a small temperature.
        scaled = (constrained - best) / max(temperature, TINY)
        scaled = selections.truncate(scaled, top_k, max(top_p, TINY))
        tokens = _draw(scaled, history, numbers)
        log_probs = tf.gather(constrained, tokens, batch_dims=2)
        log_probs = selections.finite(log_probs - tf.reduce_logsumexp(logits, axis=-1) + so_far)
        parents = tf.zeros_like(tokens) + tf.range(tf.shape(tokens)[1])
        return Continuations(log_probs, parents, tokens)

    search = Search(
        step, select, start_id, eos_id, length_penalty, coverage_penalty, n_samples, n_samples
    )
    return search.run(state, memory, max_length, starts=n_samples)


def sentence_seeds(source: tf.Tensor, seed: int | tf.Tensor) -> tf.Tensor:
    """A seed for `sample` of each row of ids, which the others do not change: int64 `[B, 2]`."""
    ids = tf.where(source != 0, tf.strings.as_string(source) + " ", "")
    own = tf.strings.to_hash_bucket_fast(tf.strings.reduce_join(ids, axis=1), 2**62)
    return tf.stack([tf.zeros_like(own) + seed, own], axis=1)


def _numbers(seed: int | tf.Tensor, state: Nest, limit: int | tf.Tensor, count: int) -> tf.Tensor:
    """Uniform numbers in [0, 1) for every draw: float32 `[B, T, N]`.

    Each row has its own sequence, of which the first T numbers are taken, so that neither the other
    rows nor their lengths change its draws.
    """
    batch = tf.shape(tf.nest.flatten(state)[0], tf.int64)[0]
    seeds = tf.cast(seed, tf.int64)
    if not seeds.shape.rank:
        seeds = tf.stack([tf.fill([batch], seeds), tf.range(batch)], axis=1)
    longest = tf.maximum(tf.reduce_max(limit), 1)
    numbers = tf.map_fn(
        lambda seed: tf.random.stateless_uniform([longest, count], seed),
        tf.pad(seeds, [[0, 1], [0, 0]]),  # `map_fn` fails on an empty batch
        fn_output_signature=tf.TensorSpec([None, count]),
    )
    return numbers[:-1]


def _draw(logits: tf.Tensor, history: History, numbers: tf.Tensor) -> tf.Tensor:
    """Draws the first word whose cumulative probability exceeds the number: int32 `[B, N]`."""
    shape = tf.shape(logits)
    sums = tf.cumsum(tf.nn.softmax(logits), axis=-1)
    total = sums[..., -1]
    below = tf.gather(numbers[:, history.step], history.rows) * total
    # The next smaller float32, by an op that exports may have.
    below = tf.minimum(below, total * (1 - 2**-24))
    sums, below = tf.reshape(sums, [-1, shape[2]]), tf.reshape(below, [-1, 1])
    words = tf.searchsorted(sums, below, side="right")
    # Where logits are NaN the hypothesis is dropped, but it needs a valid id.
    return tf.reshape(tf.minimum(words, shape[2] - 1), shape[:2])
