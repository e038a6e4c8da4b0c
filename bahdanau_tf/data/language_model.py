"""An n-gram language model from counts, in NumPy, of any order."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

BEGIN, END, UNKNOWN = range(3)
SPECIAL = 3  # ids below are the three above

# A run of letters and digits; anything else, kana and Han too, by itself.
_WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff]+|\S")


def split_words(line: str) -> list[str]:
    """The words of a line, in lower case and NFKC."""
    return _WORD.findall(unicodedata.normalize("NFKC", line).lower())


class WordList:
    """Words and their ids; a word that is not in it is `UNKNOWN`.

    Args:
        words: the words, each once.

    Attributes:
        size: number of ids, those of `BEGIN`, `END` and `UNKNOWN` among them.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._ids = {word: id_ for id_, word in enumerate(words, SPECIAL)}
        self.size = SPECIAL + len(self._ids)

    @classmethod
    def build(cls, lines: Iterable[str]) -> WordList:
        """The words that come twice or more; the rest show what is unknown."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_words(line))
        return cls(word for word, count in counts.items() if count > 1)

    def encode(self, lines: Iterable[str]) -> np.ndarray:
        """The ids of lines, one after another.

        Returns:
            int64 [T], for each line `BEGIN`, its words, `END`.
        """
        ids: list[int] = []
        find = self._ids.get
        for line in lines:
            ids.append(BEGIN)
            ids.extend([find(word, UNKNOWN) for word in split_words(line)])
            ids.append(END)
        return np.array(ids, np.int64)


class _Level(NamedTuple):
    """The n-grams of one length, as a level of a trie.

    The number of an n-gram is its place in `keys`. Number -1 stands for one
    that was not seen, so the last entries of `share` and `rest` are for that.

    Attributes:
        keys: int64 [G], sorted: number of the history · ids + last word.
        share: float64 [G + 1], what the n-gram itself has of the probability.
        rest: float64 [H + 1], by history, what is left to shorter n-grams.
    """

    keys: np.ndarray
    share: np.ndarray
    rest: np.ndarray

    def find(self, keys: np.ndarray) -> np.ndarray:
        """int64 [T]: the numbers of n-grams."""
        places = np.searchsorted(self.keys, keys)
        places[places == len(self.keys)] = 0
        return np.where(self.keys[places] == keys, places, -1)


class _Grams(NamedTuple):
    """The distinct n-grams of one length in a text of T ids.

    Attributes:
        keys: int64 [G], as in `_Level`.
        last: int64 [G], where in the text one of each ends.
        counts: int64 [G], how often each comes.
        numbers: int64 [T], the one that ends there, -1 for none.
    """

    keys: np.ndarray
    last: np.ndarray
    counts: np.ndarray
    numbers: np.ndarray


class NGramModel:
    """Interpolated Kneser-Ney smoothing with one discount for each order.

        p(w | h) = (c(hw) − D) / c(h·) + D · N₁₊(h·) / c(h·) · p(w | h′)

    where h′ is h without its first word, N₁₊(h·) is how many words were seen
    after h, and c counts n-grams of the highest order and those that begin a
    sentence; of a shorter one it counts the words seen before it. The shortest
    ones are interpolated with 1/V. From n₁ and n₂, how many n-grams have
    counts 1 and 2, comes D = (n₁ + 1) / (n₁ + 2n₂ + 2), Ney's estimate kept
    off 0 and 1.

    The memory needed is in proportion to the text it is made from.

    Args:
        ids: int64 [T], the text, as `WordList.encode` gives it.
        size: number of ids, `WordList.size`.
        order: length of the longest n-grams.

    Raises:
        ValueError: `order` is below 1.

    Reference:
        Chen and Goodman, 1998: An empirical study of smoothing techniques for
        language modeling, section 2.7.
    """

    def __init__(self, ids: np.ndarray, size: int, order: int) -> None:
        if order < 1:
            raise ValueError(f"NGramModel: order is {order}, wanted at least 1")
        self._size = size
        grams: list[_Grams] = []
        histories = np.zeros_like(ids)
        for length in range(1, order + 1):
            longer = _distinct(self._keys(histories, ids, length))
            if not len(longer.keys):  # no sentence is that long
                break
            grams.append(longer)
            histories = _shifted(longer.numbers)
        self._levels: list[_Level] = []
        histories_seen = 1
        for level, longer in itertools.zip_longest(grams, grams[1:]):
            length = len(self._levels) + 1
            counts = _kneser_ney_counts(level, longer, ids, length)
            self._levels.append(
                _level(level.keys, counts, size, histories_seen)
            )
            histories_seen = len(level.keys)

    def probabilities(self, ids: np.ndarray) -> np.ndarray:
        """p(wᵢ | the words before it in its sentence).

        Args:
            ids: int64 [T], sentences that begin with `BEGIN`.

        Returns:
            float64 [T], 1 for `BEGIN`.
        """
        histories = np.zeros_like(ids)
        found = np.full(len(ids), 1 / (self._size - 1))  # BEGIN never follows
        for length, level in enumerate(self._levels, 1):
            numbers = level.find(self._keys(histories, ids, length))
            found = level.share[numbers] + level.rest[histories] * found
            histories = _shifted(numbers)
        return np.where(ids == BEGIN, 1.0, found)

    def cross_entropy(self, ids: np.ndarray) -> np.ndarray:
        """−1/N · Σᵢ log₂ p(wᵢ | h) of each sentence, `END` among its N words.

        Args:
            ids: int64 [T], as `WordList.encode` gives them.

        Returns:
            float64 [sentences], bits a word.
        """
        begins = np.flatnonzero(ids == BEGIN)
        bits = np.add.reduceat(-np.log2(self.probabilities(ids)), begins)
        mean: np.ndarray = bits / (np.diff(begins, append=len(ids)) - 1)
        return mean

    def _keys(
        self, histories: np.ndarray, ids: np.ndarray, length: int
    ) -> np.ndarray:
        """int64 [T]: the n-grams that end at each place, -1 for none."""
        exists = histories >= 0
        if length > 1:
            exists &= ids != BEGIN  # no n-gram is of two sentences
        return np.where(exists, histories * self._size + ids, -1)


def _shifted(numbers: np.ndarray) -> np.ndarray:
    """What ends before each place."""
    return np.concatenate([np.full(1, -1, np.int64), numbers])[:-1]


def _distinct(keys: np.ndarray) -> _Grams:
    places = np.flatnonzero(keys >= 0)
    distinct, first, inverse, counts = np.unique(
        keys[places], return_index=True, return_inverse=True, return_counts=True
    )
    numbers = np.full(len(keys), -1, np.int64)
    numbers[places] = inverse
    return _Grams(distinct, places[first], counts, numbers)


def _kneser_ney_counts(
    grams: _Grams, longer: _Grams | None, ids: np.ndarray, length: int
) -> np.ndarray:
    """int64 [G]: how often each n-gram comes, or after how many words."""
    counts = grams.counts
    begins = ids[grams.last - (length - 1)] == BEGIN
    if longer is not None:
        endings = grams.numbers[longer.last]
        after = np.bincount(endings, minlength=len(counts))
        counts = np.where(begins, counts, after)
    if length == 1:
        counts = np.where(begins, 0, counts)  # BEGIN is never predicted
    return counts


def _level(
    keys: np.ndarray, counts: np.ndarray, size: int, histories: int
) -> _Level:
    once, twice = np.sum(counts == 1), np.sum(counts == 2)
    discount = (once + 1) / (once + 2 * twice + 2)
    history = keys // size
    total = np.bincount(history, counts, histories)
    kinds = np.bincount(history, counts > 0, histories)
    known = total > 0  # something was seen after it
    total[~known] = 1
    share = np.maximum(counts - discount, 0) / total[history]
    rest = np.where(known, discount * kinds / total, 1.0)
    return _Level(keys, np.append(share, 0.0), np.append(rest, 1.0))
