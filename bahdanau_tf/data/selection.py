"""Selects those pairs of a large corpus that are similar to a small one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bahdanau_tf.data.language_model import NGramModel
from bahdanau_tf.data.language_model import WordList
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.system.terminal import ProgressLine

ORDER = 2  # longer n-grams selected worse, with 1,000 and with 10,000 pairs
CHUNK = 1000  # pairs read and scored together
SEED = 2011  # seed of the corpus sample


class CrossEntropyDifference:
    """H_in(x) − H_out(x), in bits per word: low if x is like in-domain text.

    Both models are n-gram models over the words that occur twice or more in
    the in-domain text.

    Args:
        in_domain: lines of the wanted kind, UTF-8.
        out_domain: about as many lines of the whole corpus, UTF-8.
        order: length of the longest n-grams.

    Raises:
        ValueError: `order` is below 1.

    Reference:
        Moore and Lewis, 2010: Intelligent selection of language model training
        data.
    """

    def __init__(
        self,
        in_domain: Sequence[bytes],
        out_domain: Sequence[bytes],
        order: int = ORDER,
    ) -> None:
        self._words = WordList.build(map(bytes.decode, in_domain))
        self._inside, self._outside = (
            NGramModel(self._encode(lines), self._words.size, order)
            for lines in (in_domain, out_domain)
        )

    def __call__(self, lines: Sequence[bytes]) -> np.ndarray:
        """float64 [lines]: the difference for each line."""
        ids = self._encode(lines)
        outside = self._outside.cross_entropy(ids)
        difference: np.ndarray = self._inside.cross_entropy(ids) - outside
        return difference

    def _encode(self, lines: Sequence[bytes]) -> np.ndarray:
        return self._words.encode(map(bytes.decode, lines))


def score_pairs(
    corpus: ParallelCorpus, in_domain: ParallelCorpus, order: int = ORDER
) -> np.ndarray:
    """Scores the pairs of a corpus; the lower, the more in-domain.

    The score of a pair is the sum of the differences of both sides:

        [H_in(x) − H_out(x)] + [H_in(y) − H_out(y)]

    The models of H_out are made from a random sample of the corpus, with as
    many pairs as `in_domain`. The corpus is read in parts; `in_domain` and the
    sample are kept in memory. Progress is written to standard error.

    Args:
        corpus: the pairs to score.
        in_domain: pairs of the wanted kind.
        order: length of the longest n-grams.

    Returns:
        float32 [pairs], for the pairs of `corpus.rows`.

    Raises:
        ValueError: `order` is below 1.

    Reference:
        Axelrod, He and Gao, 2011: Domain adaptation via pseudo in-domain data
        selection.
    """
    size = min(len(in_domain), len(corpus))
    generator = np.random.default_rng(SEED)
    sample = np.sort(generator.choice(corpus.rows, size, replace=False))
    texts = zip(
        in_domain.read(in_domain.rows), corpus.read(sample), strict=True
    )
    sides = [CrossEntropyDifference(*text, order) for text in texts]
    scores = np.empty(len(corpus), np.float32)
    line = ProgressLine(len(corpus))
    for start in range(0, len(corpus), CHUNK):
        part = slice(start, start + CHUNK)
        pairs = corpus.read(corpus.rows[part])
        scores[part] = sum(
            side(text) for side, text in zip(sides, pairs, strict=True)
        )
        line.update(min(part.stop, len(corpus)), "pairs scored")
    return scores


def lowest(scores: np.ndarray, count: int) -> np.ndarray:
    """The indices of the lowest scores, ascending.

    Args:
        scores: float [N].
        count: number of scores; among equal ones the first are taken.

    Returns:
        int64 [count].

    Raises:
        ValueError: `count` is below 1 or above N.
    """
    if not 1 <= count <= len(scores):
        raise ValueError(f"lowest: count is {count}, wanted 1 to {len(scores)}")
    limit = np.partition(scores, count - 1)[count - 1]
    below = np.flatnonzero(scores < limit)
    equal = np.flatnonzero(scores == limit)[: count - len(below)]
    return np.sort(np.concatenate([below, equal]))
