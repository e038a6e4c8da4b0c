"""The search of the original code, one sentence at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.system.tensors import Nest

_WIDEST = 500


class OriginalResult(NamedTuple):
    """The result of `original_beam_search`.

    Attributes:
        tokens: Finished hypotheses with their end symbol, best first.
        costs: float64 [N], -log p of each.
        beam_size: Beam size of the search that found them.
        searches: Number of searches that were run.
    """

    tokens: list[list[int]]
    costs: np.ndarray
    beam_size: int
    searches: int


def original_beam_search(
    step: Callable[[tf.Tensor, Nest], tuple[tf.Tensor, Nest, object]],
    state: Nest,
    *,
    start_id: int,
    eos_id: int,
    max_length: int,
    beam_size: int,
    min_length: int = 1,
    ignored_id: int | None = None,
) -> OriginalResult:
    """Beam search by the rules of the original code, one sentence at a time.

    Each step keeps the most probable of all continuations. Every hypothesis
    that ends makes the beam narrower by one, and the search is over when its
    width is 0. Hypotheses not finished after `max_length` steps are dropped. If
    none is finished, the search starts again: without `ignored_id` if that is
    given, otherwise with twice the beam size (while it is below 500). Scores
    have no length term. Unlike in the original, the beam size may exceed the
    number of continuations, and forbidden words never enter the beam.

    Args:
        step: (ids int32 [1, K], state [1, K, ...]) -> logits [1, K, V], state,
            and a third value that is not used.
        state: Nest of [1, ...], before the first word.
        start_id: The id given to `step` at the first word.
        eos_id: Id of the end symbol.
        max_length: Largest number of tokens, end symbol included; originally
            3 T_x.
        beam_size: Width of the beam at the start.
        min_length: Smallest number of words before the end symbol; originally 1
            in the search itself and T_x // 2 in its programs.
        ignored_id: A word to forbid (the unknown word), or None.

    Returns:
        `OriginalResult`, without hypotheses if none ever finished.

    Reference:
        github.com/lisa-groundhog/GroundHog, experiments/nmt/sample.py.
    """
    searches = 1
    while True:
        forbidden = [] if ignored_id is None else [ignored_id]
        found = _search(
            step, state, start_id, eos_id, max_length, beam_size, min_length,
            forbidden,
        )  # fmt: skip
        if found or (ignored_id is None and beam_size >= _WIDEST):
            break
        beam_size *= 2 if ignored_id is None else 1
        ignored_id = None
        searches += 1
    found.sort(key=lambda hypothesis: hypothesis[0])
    costs = np.array([cost for cost, _ in found])
    return OriginalResult([t for _, t in found], costs, beam_size, searches)


def _search(
    step: Callable[[tf.Tensor, Nest], tuple[tf.Tensor, Nest, object]],
    state: Nest,
    start_id: int,
    eos_id: int,
    max_length: int,
    width: int,
    min_length: int,
    forbidden: list[int],
) -> list[tuple[float, list[int]]]:
    """One search without restart: costs and tokens, not sorted."""
    state = tf.nest.map_structure(lambda x: x[:, tf.newaxis], state)
    words, costs = np.array([start_id]), np.zeros(1)
    histories: list[list[int]] = [[]]
    finished = []
    for time in range(max_length):
        ids = tf.constant(words[np.newaxis], tf.int32)
        logits, state, _ = step(ids, state)
        candidates = costs[:, np.newaxis] - _log_softmax(logits[0])
        candidates[:, forbidden + [eos_id] * (time < min_length)] = np.inf
        costs, parents, words = _cheapest(candidates, width)
        histories = [
            [*histories[parent], int(word)]
            for parent, word in zip(parents, words, strict=True)
        ]
        ends = words == eos_id
        finished += [(costs[i], histories[i]) for i in np.flatnonzero(ends)]
        width -= int(ends.sum())
        costs, parents, words = costs[~ends], parents[~ends], words[~ends]
        histories = [histories[i] for i in np.flatnonzero(~ends)]
        if not histories:
            break
        state = tf.nest.map_structure(
            functools.partial(tf.gather, indices=parents, axis=1), state
        )
    return finished


def _log_softmax(logits: tf.Tensor) -> np.ndarray:
    shifted = np.asarray(logits, np.float64)
    shifted = shifted - shifted.max(axis=-1, keepdims=True)
    total = np.exp(shifted).sum(axis=-1, keepdims=True)
    log_probs: np.ndarray = shifted - np.log(total)
    return log_probs


def _cheapest(
    costs: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cheapest finite entries of [K, V]: costs, rows and columns."""
    flat = costs.ravel()
    best = np.argpartition(flat, min(count, flat.size) - 1)[:count]
    best = best[np.isfinite(flat[best])]
    return flat[best], *np.divmod(best, costs.shape[1])
