"""Sorts a pool of sentence pairs by length and cuts it into batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bahdanau_tf.options.recipe import Batching


class Position(NamedTuple):
    """A position between two batches, from which a stream can start.

    Attributes:
        epoch: number of complete passes over the corpus before it.
        line: where the current pool begins in the epoch's order of lines.
        batch: number of batches of the pool before it.
        pairs: number of sentence pairs of the epoch before it. An epoch
            dropped the length of the corpus minus its last `pairs`.
    """

    epoch: int = 0
    line: int = 0
    batch: int = 0
    pairs: int = 0


def cut(lengths: np.ndarray, batching: Batching, random: np.random.RandomState) -> list[np.ndarray]:
    """Sorts a pool by length and cuts it into batches.

    Args:
        lengths: int64 [P], tokens of the longer side of each pair, end symbol
            included.
        batching: how pairs become batches.
        random: draws the order of the batches if they are shuffled.

    Returns:
        For each batch int64 [B], the indices of its pairs.
    """
    order = np.argsort(lengths, kind="stable")
    size, budget = batching.batch_size, batching.token_budget
    cuts = list(range(size, len(order), size))
    if budget is not None:
        cuts = _cuts_by_tokens(lengths[order], budget)
    batches = np.split(order, cuts)
    if batching.shuffle_pool:
        return [batches[i] for i in random.permutation(len(batches))]
    return batches


def _cuts_by_tokens(lengths: np.ndarray, budget: int) -> list[int]:
    """Where to cut ascending lengths: rows times longest stay in the budget."""
    cuts, first = [], 0
    for place, length in enumerate(lengths.tolist()):
        if place > first and (place - first + 1) * length > budget:
            cuts.append(place)
            first = place
    return cuts
