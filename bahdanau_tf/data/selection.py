"""Selects those pairs of a large corpus that are similar to a small one."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.system.terminal import ProgressLine
from bahdanau_tf.text.script import HAN, HIRAGANA, KATAKANA

BEGIN, END, UNKNOWN = range(3)
SPECIAL = 3  # number of special ids

# A run of letters and digits, or any other single character, also kana and Han.
_WORD = re.compile(rf"[^\W{HAN}{HIRAGANA}{KATAKANA}]+|\S")


def split_words(line: str) -> list[str]:
    """The words of a line, in lower case and NFKC."""
    return _WORD.findall(unicodedata.normalize("NFKC", line).lower())


class WordList:
    """Words and their ids, `size` of them with `BEGIN`, `END` and `UNKNOWN`."""

    def __init__(self, words: Iterable[str]) -> None:
        self._ids = {word: id_ for id_, word in enumerate(words, SPECIAL)}
        self.size = SPECIAL + len(self._ids)

    @classmethod
    def build(cls, lines: Iterable[str]) -> WordList:
        """Lists the words that occur twice or more; others count as unknown."""
        counts = Counter(itertools.chain.from_iterable(map(split_words, lines)))
        return cls(word for word, count in counts.items() if count > 1)

    def encode(self, lines: Iterable[str]) -> np.ndarray:
        """int64 [T]: for each line `BEGIN`, the ids of its words, `END`."""
        ids: list[int] = []
        for line in lines:
            words = (self._ids.get(word, UNKNOWN) for word in split_words(line))
            ids += [BEGIN, *words, END]
        return np.array(ids, np.int64)


class _Level(NamedTuple):
    """The n-grams of one length, as a level of a trie.

    The number of an n-gram is its index in `keys`; its history is the n-gram without the last word.
    Number -1 stands for an unseen n-gram, so the last entries of `share` and `rest` are for those.
    In the equation of `NGramModel`, `share` is the first term, float64 [G + 1], and `rest` the
    factor of the shorter n-gram's probability for each history, float64 [H + 1].
    """

    keys: np.ndarray  # int64 [G], sorted: the history's number times that of ids, plus the word
    share: np.ndarray
    rest: np.ndarray

    def find(self, keys: np.ndarray) -> np.ndarray:
        """int64 [T]: the numbers of n-grams, -1 for unseen ones."""
        places = np.searchsorted(self.keys, keys)
        places[places == len(self.keys)] = 0
        return np.where(self.keys[places] == keys, places, -1)


class _Grams(NamedTuple):
    """The distinct n-grams of one length in a text of T ids."""

    keys: np.ndarray  # int64 [G], as in `_Level`
    last: np.ndarray  # int64 [G], a position in the text where each ends
    counts: np.ndarray  # int64 [G], the number of times each occurs
    numbers: np.ndarray  # int64 [T], of the n-gram that ends at each position, -1 for none


class NGramModel:
    """Interpolated Kneser-Ney smoothing with one discount for each order.

        p(w | h) = (c(hw) − D) / c(h·) + D · N₁₊(h·) / c(h·) · p(w | h′)

    where h′ is h without its first word and N₁₊(h·) is the number of different words seen after h.
    For n-grams of the highest order, and those that begin a sentence, c is the number of
    occurrences; for shorter ones it is the number of different words seen before them. Unigrams
    are interpolated with 1/V. The discount is D = (n₁ + 1) / (n₁ + 2n₂ + 2), where n₁ and n₂ are
    the numbers of n-grams with counts 1 and 2: Ney's estimate, changed so that it is never 0 or 1.

    The text, `ids`, int64 [T], and the number of ids, `size`, are those of a `WordList`; the
    longest n-grams have `order` words. Memory is proportional to the length of the text.

    Reference:
        Chen and Goodman, 1998: An empirical study of smoothing techniques for language modeling,
        section 2.7.
    """

    def __init__(self, ids: np.ndarray, size: int, order: int) -> None:
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
        for length, (level, after) in enumerate(itertools.zip_longest(grams, grams[1:]), 1):
            counts = _kneser_ney(level, after, ids, length)
            self._levels.append(_level(level.keys, counts, size, histories_seen))
            histories_seen = len(level.keys)

    def probabilities(self, ids: np.ndarray) -> np.ndarray:
        """p(wᵢ | the words before it in its sentence), 1 for `BEGIN`: float64 [T]."""
        histories = np.zeros_like(ids)
        probability = np.full(len(ids), 1 / (self._size - 1))  # BEGIN never follows
        for length, level in enumerate(self._levels, 1):
            numbers = level.find(self._keys(histories, ids, length))
            probability = level.share[numbers] + level.rest[histories] * probability
            histories = _shifted(numbers)
        return np.where(ids == BEGIN, 1.0, probability)

    def cross_entropy(self, ids: np.ndarray) -> np.ndarray:
        """−1/N · Σᵢ log₂ p(wᵢ | h), `END` among the N words: float64 [sentences]."""
        begins = np.flatnonzero(ids == BEGIN)
        bits = np.add.reduceat(-np.log2(self.probabilities(ids)), begins)
        mean: np.ndarray = bits / (np.diff(begins, append=len(ids)) - 1)
        return mean

    def _keys(self, histories: np.ndarray, ids: np.ndarray, length: int) -> np.ndarray:
        """int64 [T]: keys of the n-grams that end at each position, or -1."""
        exists = histories >= 0
        if length > 1:
            exists &= ids != BEGIN  # an n-gram does not span two sentences
        return np.where(exists, histories * self._size + ids, -1)


def _shifted(numbers: np.ndarray) -> np.ndarray:
    """For each position the number of the n-gram that ends before it."""
    return np.append(-1, numbers)[:-1]


def _distinct(keys: np.ndarray) -> _Grams:
    places = np.flatnonzero(keys >= 0)
    distinct, first, inverse, counts = np.unique(
        keys[places], return_index=True, return_inverse=True, return_counts=True
    )
    numbers = np.full(len(keys), -1, np.int64)
    numbers[places] = inverse
    return _Grams(distinct, places[first], counts, numbers)


def _kneser_ney(grams: _Grams, longer: _Grams | None, ids: np.ndarray, length: int) -> np.ndarray:
    """int64 [G]: c of each n-gram, as defined in `NGramModel`."""
    begins = ids[grams.last - (length - 1)] == BEGIN
    after = counts = grams.counts
    if longer is not None:
        after = np.bincount(grams.numbers[longer.last], minlength=len(counts))
    return np.where(begins, 0 if length == 1 else counts, after)  # BEGIN is never predicted


def _level(keys: np.ndarray, counts: np.ndarray, size: int, histories: int) -> _Level:
    once, twice = np.sum(counts == 1), np.sum(counts == 2)
    discount = (once + 1) / (once + 2 * twice + 2)
    history = keys // size
    total = np.bincount(history, counts, histories)
    kinds = np.bincount(history, counts > 0, histories)
    is_seen = total > 0  # histories after which a word was seen
    total[~is_seen] = 1
    share = np.maximum(counts - discount, 0) / total[history]
    rest = np.where(is_seen, discount * kinds / total, 1.0)
    return _Level(keys, np.append(share, 0.0), np.append(rest, 1.0))


ORDER = 2  # longer n-grams selected worse, with 1,000 and with 10,000 pairs
SEED = 2011  # seed of the corpus sample


class CrossEntropyDifference:
    """H_in(x) − H_out(x), in bits per word: low if x is like in-domain text.

    Both models are n-gram models over the words that occur twice or more in the in-domain text;
    the second is of about as many lines of the whole corpus.

    Reference:
        Moore and Lewis, 2010: Intelligent selection of language model training data.
    """

    def __init__(
        self, in_domain: Sequence[bytes], out_domain: Sequence[bytes], order: int = ORDER
    ) -> None:
        self._words = WordList.build(map(bytes.decode, in_domain))
        self._inside, self._outside = (
            NGramModel(self._encode(lines), self._words.size, order)
            for lines in (in_domain, out_domain)
        )

    def __call__(self, lines: Sequence[bytes]) -> np.ndarray:
        """float64 [lines]: the difference for each line."""
        ids = self._encode(lines)
        difference: np.ndarray = self._inside.cross_entropy(ids) - self._outside.cross_entropy(ids)
        return difference

    def _encode(self, lines: Sequence[bytes]) -> np.ndarray:
        return self._words.encode(map(bytes.decode, lines))


def score_pairs(
    corpus: ParallelCorpus, in_domain: ParallelCorpus, order: int = ORDER
) -> np.ndarray:
    """Scores the pairs of a corpus; the lower, the more in-domain.

    The score of a pair is the sum of the differences of both sides:

        [H_in(x) − H_out(x)] + [H_in(y) − H_out(y)]

    The models of H_out are made from a random sample of the corpus, with as many pairs as
    `in_domain`. The corpus is read in parts; `in_domain` and the sample are kept in memory.
    Progress is written to standard error. `order` is the length of the longest n-grams. Returns
    float32 [pairs], for the pairs of `corpus.rows`.

    Reference:
        Axelrod, He and Gao, 2011: Domain adaptation via pseudo in-domain data selection.
    """
    size = min(len(in_domain), len(corpus))
    sample = np.sort(np.random.default_rng(SEED).choice(corpus.rows, size, replace=False))
    texts = zip(in_domain.read(in_domain.rows), corpus.read(sample), strict=True)
    sides = [CrossEntropyDifference(*text, order) for text in texts]
    scores, done = np.empty(len(corpus), np.float32), 0
    line = ProgressLine(len(corpus))
    for pairs in corpus.read_in_chunks(corpus.rows):
        first, done = done, done + len(pairs[0])
        scores[first:done] = sum(side(text) for side, text in zip(sides, pairs, strict=True))
        line.update(done, "pairs scored")
    return scores


def lowest(scores: np.ndarray, count: int) -> np.ndarray:
    """int64 [count]: the indices of the lowest scores, ascending; of equal ones the first."""
    return np.sort(np.argsort(scores, kind="stable")[:count])


def count_words(corpus: ParallelCorpus) -> np.ndarray:
    """int64 [pairs]: words between spaces on the target side, for the pairs of `corpus.rows`."""
    chunks = corpus.read_in_chunks(corpus.rows)
    return np.fromiter((len(line.split()) for _, lines in chunks for line in lines), np.int64)


def count_of_words(scores: np.ndarray, words: np.ndarray, wanted: int) -> int:
    """How many of the lowest scores have `wanted` words or more; of equal ones the first count."""
    totals = np.cumsum(words[np.argsort(scores, kind="stable")])
    return int(np.searchsorted(totals, wanted)) + 1
