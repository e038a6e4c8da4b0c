"""Beam search by the rules of the original code."""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

WIDEST = 500


class OriginalResult(NamedTuple):
    """The result of `original_beam_search`."""

    tokens: list[list[int]]  # of the finished hypotheses with their end symbol, best first
    costs: np.ndarray  # float64 [N], -log p of each
    beam_size: int  # of the search that found them
    searches: int  # how many were run


def original_beam_search(
    step: Callable[[tf.Tensor, Any], tuple[tf.Tensor, Any, object]],
    state: Any,
    *,
    start_id: int,
    eos_id: int,
    max_length: int,
    beam_size: int,
    min_length: int = 1,
    ignored_id: int | None = None,
) -> OriginalResult:
    """Beam search by the rules of the original code, one sentence at a time.

    Each step keeps the most probable of all continuations. Every hypothesis that ends makes the
    beam narrower by one, and the search is over when its width is 0. Hypotheses not finished
    after `max_length` steps are dropped. If none is finished, the search starts again: without
    `ignored_id` if that is given, otherwise with twice the beam size (while it is below 500).
    Scores have no length term. Unlike in the original, the beam size may exceed the number of
    continuations, and forbidden words never enter the beam.

    `step` takes ids int32 [1, K] and a state [1, K, ...], and returns logits [1, K, V], the next
    state and a third value that is not used; `state` [1, ...] comes before the first word.
    `max_length` counts the end symbol, `min_length` the words before it. Originally they are 3 T_x
    and 1, in its programs T_x // 2. `ignored_id` is a word to forbid (the unknown word), or None.

    Reference: github.com/lisa-groundhog/GroundHog, experiments/nmt/sample.py.
    """
    first = tf.nest.map_structure(lambda x: x[:, tf.newaxis], state)

    def search(width: int, forbidden: list[int]) -> list[tuple[float, list[int]]]:
        """Without restart: costs and tokens, not sorted."""
        state, words, costs = first, np.array([start_id]), np.zeros(1)
        histories: list[list[int]] = [[]]
        finished = []
        for time in range(max_length):
            ids = tf.constant(words[np.newaxis], tf.int32)
            logits, state, _ = step(ids, state)
            scores = np.asarray(logits[0], np.float64)
            log_probs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
            candidates = costs[:, np.newaxis] - log_probs
            candidates[:, forbidden + [eos_id] * (time < min_length)] = np.inf
            costs, parents, words = cheapest(candidates, width)
            ends = words == eos_id
            for cost, parent, word in zip(costs[ends], parents[ends], words[ends], strict=True):
                finished.append((cost, [*histories[parent], int(word)]))
            width -= int(ends.sum())
            costs, parents, words = costs[~ends], parents[~ends], words[~ends]
            if not len(words):
                break
            pairs = zip(parents, words, strict=True)
            histories = [[*histories[parent], int(word)] for parent, word in pairs]
            gather = functools.partial(tf.gather, indices=parents, axis=1)
            state = tf.nest.map_structure(gather, state)
        return finished

    searches = 1
    while True:
        finished = search(beam_size, [] if ignored_id is None else [ignored_id])
        if finished or (ignored_id is None and beam_size >= WIDEST):
            break
        beam_size *= 2 if ignored_id is None else 1
        ignored_id = None
        searches += 1
    finished.sort(key=operator.itemgetter(0))
    costs = np.array([cost for cost, _ in finished])
    return OriginalResult([tokens for _, tokens in finished], costs, beam_size, searches)


def cheapest(costs: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cheapest finite entries of [K, V]: costs, rows and columns."""
    flat = costs.ravel()
    best = np.argpartition(flat, min(count, flat.size) - 1)[:count]
    best = best[np.isfinite(flat[best])]
    return flat[best], *np.divmod(best, costs.shape[1])
