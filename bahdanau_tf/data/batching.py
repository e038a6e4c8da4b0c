"""How sentence pairs become batches, and positions in a stream of batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from bahdanau_tf.system.ranges import Range, check_values

_COUNT = Range(1, 10**6)


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


@dataclass(frozen=True)
class Batching:
    """How sentence pairs become batches; the defaults are the paper's.

    Attributes:
        batch_size: number of sentence pairs in a batch.
        max_length: largest number of tokens on either side, without the end
            symbol and as without `sample_subwords`; longer pairs are dropped.
            None keeps all.
        pool_batches: number of batches whose pairs are sorted by length
            together (a pool).
        shuffle_pool: whether the batches of a pool come in random order, not
            with the shortest sentences first.
        token_budget: largest number of tokens on the longer side of a batch,
            padding included, as without `sample_subwords`; `batch_size` then
            only sets the pool's size.
        shuffle: the order of the lines: "none" (that of the files), "once"
            (random, the same in all epochs) or "each_epoch".
        seed: seed of all random orders.
        sample_subwords: whether tokenizers split words in a randomly drawn way
            each time; the batches then do not depend on the seed alone.
        sampled_epochs: number of first epochs in which they do; None: all.
        max_words: largest number of source words between spaces, as the paper
            counts; longer pairs are dropped. None keeps all.

    Raises:
        ValueError: a value is out of range.
    """

    batch_size: int = 80
    max_length: int | None = 50
    pool_batches: int = 20
    shuffle_pool: bool = False
    token_budget: int | None = None
    shuffle: Literal["none", "once", "each_epoch"] = "once"
    seed: int = 0
    sample_subwords: bool = False
    sampled_epochs: int | None = None
    max_words: int | None = None

    def __post_init__(self) -> None:
        check_values(
            self,
            batch_size=_COUNT,
            max_length=_COUNT,
            pool_batches=_COUNT,
            token_budget=Range(1, 10**9),
            seed=Range(0, 2**32, below_high=True),
            sampled_epochs=Range(0, 10**9),
            max_words=_COUNT,
        )

    @property
    def pool_size(self) -> int:
        """Sentence pairs in a pool."""
        return self.batch_size * self.pool_batches


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
