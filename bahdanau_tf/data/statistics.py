"""What batches contain, and how much of it is padding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from bahdanau_tf.data.dataset import Batch


@dataclass
class Statistics:
    """The contents of batches.

    Attributes:
        batches: number of batches.
        pairs: number of sentence pairs.
        tokens: number of tokens of both sides, end symbols included.
        cells: number of ids of both sides, padding included.
    """

    batches: int = 0
    pairs: int = 0
    tokens: int = 0
    cells: int = 0

    def add(self, batch: Batch) -> None:
        """Counts a batch of `make_dataset`."""
        sides = [np.asarray(ids) for ids in batch[0].values()]
        self.batches += 1
        self.pairs += len(sides[0])
        self.tokens += sum(int(np.count_nonzero(ids)) for ids in sides)
        self.cells += sum(ids.size for ids in sides)

    @property
    def padding_share(self) -> float:
        """The share of all ids that is padding."""
        return 1 - self.tokens / self.cells if self.cells else 0.0


def measure(dataset: tf.data.Dataset) -> Statistics:
    """Iterates over a dataset once and counts its contents.

    Args:
        dataset: a finite dataset as from `make_dataset`.

    Returns:
        `Statistics`; the length of the corpus minus its `pairs` is the number
        of pairs that were dropped for their length.
    """
    statistics = Statistics()
    for batch in dataset:
        statistics.add(batch)
    return statistics
