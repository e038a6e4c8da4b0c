"""How sentence pairs become batches, and where a stream of them stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from typing import NamedTuple

import numpy as np

from bahdanau_tf.ranges import Range
from bahdanau_tf.ranges import check_values

_COUNT = Range(1, 10**6)


class Position(NamedTuple):
    """A place between two batches, where a stream can start.

    Attributes:
        epoch: passes over the corpus before.
        line: where the pool begins in the epoch's order of lines.
        batch: batches of the pool before.
        pairs: sentence pairs of the epoch before. What an epoch skipped is
            the length of the corpus minus the last `pairs` of the epoch.
    """

    epoch: int = 0
    line: int = 0
    batch: int = 0
    pairs: int = 0


@dataclass(frozen=True)
class Batching:
    """How sentence pairs become batches; the defaults are the paper's.

    Attributes:
        batch_size: sentence pairs in a batch.
        max_length: most tokens on either side, the end symbol not counted;
            longer pairs are dropped. None keeps all.
        pool_batches: batches' worth of pairs sorted by length together.
        shuffle_pool: gives the batches of a pool in random order, not the
            shortest sentences first.
        token_budget: most tokens on the longer side of a batch, padding
            included; then `batch_size` only says how large the pool is.
        shuffle: the order of the lines: "none" (that of the files), "once"
            (random, the same in all epochs) or "each_epoch".
        seed: of all random order.
        sample_subwords: asks the tokenizers to draw another way to cut words
            each time; what a seed gives is then no longer fixed.

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

    def __post_init__(self) -> None:
        check_values(
            self,
            batch_size=_COUNT,
            max_length=_COUNT,
            pool_batches=_COUNT,
            token_budget=Range(1, 10**9),
            seed=Range(0, 2**32, below_high=True),
        )

    @property
    def pool_size(self) -> int:
        """Sentence pairs in a pool."""
        return self.batch_size * self.pool_batches


def cut(
    lengths: np.ndarray, batching: Batching, random: np.random.RandomState
) -> list[np.ndarray]:
    """Sorts a pool by length and cuts it into batches.

    Args:
        lengths: int64 [P], tokens of the longer side of each pair, end symbol
            included.
        batching: how.
        random: draws the order of the batches if they are shuffled.

    Returns:
        For each batch int64 [B], its pairs.
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
    """Cuts ascending lengths so that rows times longest stay in the budget."""
    cuts, first = [], 0
    for place, length in enumerate(lengths.tolist()):
        if place > first and (place - first + 1) * length > budget:
            cuts.append(place)
            first = place
    return cuts
