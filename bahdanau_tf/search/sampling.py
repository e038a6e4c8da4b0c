"""Sampling from the model's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bahdanau_tf.search.loop import Search
from bahdanau_tf.search.loop import SearchResult
from bahdanau_tf.search.loop import Step
from bahdanau_tf.search.penalties import Penalty
from bahdanau_tf.search.penalties import gnmt_length_penalty
from bahdanau_tf.search.selections import Constraint
from bahdanau_tf.search.selections import Continuations
from bahdanau_tf.search.selections import History
from bahdanau_tf.search.selections import constrain
from bahdanau_tf.search.selections import one_each
from bahdanau_tf.search.selections import truncate


def sample(
    step: Step,
    state: Any,
    memory: Any = (),
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
    constraints: Sequence[Constraint] = (),
) -> SearchResult:
    """Draws hypotheses word by word from the model's distribution.

    Args:
        step, state, memory, start_id, eos_id, max_length, length_penalty,
        constraints: as in `beam_search`.
        seed: int or int32 scalar. Equal seeds draw equal hypotheses for a row
            at the same index of the batch, whatever its neighbours are.
        temperature: τ > 0; words are drawn from softmax(logits / τ).
        top_k: draw among the k most probable words only.
        top_p: then among the fewest whose probability reaches p, 0 < p <= 1.
        n_samples: N, independent draws for each row.

    Returns:
        A `SearchResult`, the draws ordered as there; `log_probs` and `scores`
        are the model's own, at temperature 1 and unfiltered.

    Raises:
        ValueError: an option out of range.
    """
    for name, value, wanted, good in (
        ("temperature", temperature, "> 0", temperature > 0),
        ("top_k", top_k, "None or >= 1", top_k is None or top_k >= 1),
        ("top_p", top_p, "in (0, 1]", 0 < top_p <= 1),
        ("n_samples", n_samples, ">= 1", n_samples >= 1),
    ):
        if not good:
            raise ValueError(f"sample: {name} is {value}, wanted {wanted}.")

    def select(
        logits: tf.Tensor, so_far: tf.Tensor, history: History
    ) -> Continuations:
        constrained = constrain(logits, history, constraints)
        scaled = truncate(constrained / temperature, top_k, top_p)
        tokens = _draw(scaled, history, seed)
        return one_each(logits, so_far, constrained, tokens)

    search = Search(
        step=step,
        select=select,
        start_id=start_id,
        eos_id=eos_id,
        length_penalty=length_penalty,
        places=n_samples,
    )
    return search.run(
        state, memory, max_length, starts=n_samples, n_best=n_samples
    )


def _draw(
    logits: tf.Tensor, history: History, seed: int | tf.Tensor
) -> tf.Tensor:
    """Draws a word for each hypothesis: int32 `[B, N]`.

    One uniform number for each decides where it falls in the cumulated
    probabilities. It belongs to the row's place in the batch, so that rows do
    not change each other's draws when they leave.
    """
    shape = tf.shape(logits)
    sums = tf.cumsum(tf.nn.softmax(logits), axis=-1)
    rows = tf.reduce_max(tf.concat([[0], history.rows + 1], 0))
    numbers = tf.random.stateless_uniform(
        [rows, shape[1]],
        seed=tf.stack([tf.cast(seed, tf.int32), history.step]),
    )
    total = sums[..., -1]
    below = tf.gather(numbers, history.rows) * total
    below = tf.minimum(below, tf.math.nextafter(total, tf.zeros_like(total)))
    words = tf.searchsorted(
        tf.reshape(sums, [-1, shape[2]]),
        tf.reshape(below, [-1, 1]),
        side="right",
    )
    # NaN falls nowhere; such a row is dead, but must have an id.
    return tf.reshape(tf.minimum(words, shape[2] - 1), shape[:2])
