"""Sampling from the model's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bahdanau_tf.search.loop import Constraint
from bahdanau_tf.search.loop import Search
from bahdanau_tf.search.loop import SearchResult
from bahdanau_tf.search.loop import Step
from bahdanau_tf.search.penalties import Penalty
from bahdanau_tf.search.penalties import gnmt_length_penalty
from bahdanau_tf.search.selections import Continuations
from bahdanau_tf.search.selections import one_each
from bahdanau_tf.search.selections import truncate


def sample(
    step: Step,
    state: Any,
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
        step, state, start_id, eos_id, max_length, length_penalty, constraints:
            as in `beam_search`.
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
        logits: tf.Tensor, offset: tf.Tensor, time: tf.Tensor
    ) -> Continuations:
        scaled = truncate(logits / temperature, top_k, top_p)
        size = tf.shape(logits)[-1]
        tokens = tf.random.stateless_categorical(
            tf.reshape(scaled, [-1, size]),
            num_samples=1,
            seed=tf.stack([tf.cast(seed, tf.int32), time]),
            dtype=tf.int32,
        )
        # An all-NaN row draws the id V; it is dead, but must stay an id.
        tokens = tf.minimum(tf.reshape(tokens, tf.shape(offset)), size - 1)
        return one_each(logits, offset, tokens)

    search = Search(
        step=step,
        select=select,
        start_id=start_id,
        eos_id=eos_id,
        length_penalty=length_penalty,
        constraints=constraints,
        places=n_samples,
    )
    return search.run(state, max_length, width=n_samples, n_best=n_samples)
