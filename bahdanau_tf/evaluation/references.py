"""Reference translations, and scores by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bahdanau_tf.evaluation.scores import (
    Comparison,
    Score,
    ScoreOptions,
    as_scored,
    bleu_metric,
    compare,
    score_corpus,
)
from bahdanau_tf.evaluation.subsets import LengthBin, bleu_by_rank, length_bins, select

Mask = Sequence[bool]


@dataclass(frozen=True)
class References:
    """The reference translations of a test set.

    Translations of it are given as a string for each of its sentences; a mask
    as for `select` says which of them count.

    Attributes:
        lines: The references.
        tokenize: sacreBLEU's tokenizer, as in `ScoreOptions`.
        lowercase: Whether case is ignored.
        nfc: Whether text is composed before, as in `ScoreOptions`.
    """

    lines: Sequence[str]
    tokenize: str = "13a"
    lowercase: bool = False
    nfc: bool = True

    def score(
        self, metric: str, texts: Sequence[str], where: Mask | None = None, n_bootstrap: int = 0
    ) -> Score:
        """The score of a metric, by its name in `METRICS`."""
        (texts,), lines = self._where(where, [texts])
        options = ScoreOptions(n_bootstrap=n_bootstrap, **self._options)
        return score_corpus(metric, texts, lines, options)

    def bleu(self, texts: Sequence[str], where: Mask | None = None, n_bootstrap: int = 0) -> Score:
        """BLEU, as of the function `bleu`."""
        return self.score("bleu", texts, where, n_bootstrap)

    def chrf(self, texts: Sequence[str]) -> Score:
        """chrF2, as of the function `chrf`."""
        return self.score("chrf", texts)

    def compare(
        self,
        systems: Mapping[str, Sequence[str]],
        where: Mask | None = None,
        n_bootstrap: int = 1000,
        metric: str = "bleu",
    ) -> list[Comparison]:
        """Compares systems, as the function `compare`."""
        columns, lines = self._where(where, [*systems.values()])
        texts = dict(zip(systems, columns, strict=True))
        return compare(texts, lines, metric=metric, n_bootstrap=n_bootstrap, **self._options)

    def by_length(
        self,
        texts: Sequence[str],
        lengths: Sequence[int],
        n_bootstrap: int = 0,
        metric: str = "bleu",
    ) -> list[LengthBin]:
        """Scores by source length, as of the function `length_bins`."""
        options = {"metric": metric, **self._options}
        return length_bins(texts, self.lines, lengths, n_bootstrap=n_bootstrap, **options)

    def by_rank(
        self, texts: Sequence[str], ranks: Sequence[float], n_bootstrap: int = 0
    ) -> list[LengthBin]:
        """BLEU by rarity of words, as of the function `bleu_by_rank`."""
        return bleu_by_rank(texts, self.lines, ranks, n_bootstrap=n_bootstrap, **self._options)

    def oracle(self, lists: Sequence[Sequence[str]]) -> list[str]:
        """The text of each n-best list with the best BLEU of its own."""
        options = ScoreOptions(**self._options)
        metric = bleu_metric(options, effective_order=True, force=True)

        def score(text: str, reference: str) -> float:
            text, reference = as_scored([text, reference], self.nfc)
            return metric.sentence_score(text, [reference]).score

        return [
            max(texts, key=lambda text: score(text, reference))
            for texts, reference in zip(lists, self.lines, strict=True)
        ]

    @property
    def _options(self) -> dict[str, Any]:
        """The fields of `ScoreOptions` that all its scores share."""
        return {"tokenize": self.tokenize, "lowercase": self.lowercase, "nfc": self.nfc}

    def _where(
        self, where: Mask | None, columns: Sequence[Sequence[str]]
    ) -> tuple[list[Sequence[str]], Sequence[str]]:
        if where is None:
            return [*columns], self.lines
        *chosen, lines = select(where, *columns, self.lines)
        return [*chosen], lines
