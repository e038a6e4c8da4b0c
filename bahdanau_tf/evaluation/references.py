"""Reference translations, and scores by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bahdanau_tf.evaluation.scores import Comparison, Score, as_scored, bleu, chrf, compare
from bahdanau_tf.evaluation.subsets import LengthBin, bleu_by_rank, length_bins, select

Mask = Sequence[bool]


@dataclass(frozen=True)
class References:
    """The reference translations of a test set.

    Translations of it are given as a string for each of its sentences; a mask
    as for `select` says which of them count.

    Attributes:
        lines: The references.
        tokenize: As in `bleu`.
        lowercase: Whether case is ignored.
        nfc: Whether text is composed before, as in `bleu`.
    """

    lines: Sequence[str]
    tokenize: str = "13a"
    lowercase: bool = False
    nfc: bool = True

    def bleu(
        self,
        texts: Sequence[str],
        where: Mask | None = None,
        n_bootstrap: int = 0,
    ) -> Score:
        """BLEU, as of the function `bleu`."""
        (texts,), lines = self._where(where, [texts])
        return bleu(
            texts,
            lines,
            **self._options,
            n_bootstrap=n_bootstrap,
        )

    def chrf(self, texts: Sequence[str]) -> Score:
        """chrF2, as of the function `chrf`."""
        return chrf(texts, self.lines, lowercase=self.lowercase, nfc=self.nfc)

    def compare(
        self,
        systems: Mapping[str, Sequence[str]],
        where: Mask | None = None,
        n_bootstrap: int = 1000,
    ) -> list[Comparison]:
        """Compares systems by BLEU, as the function `compare`."""
        columns, lines = self._where(where, [*systems.values()])
        return compare(
            dict(zip(systems, columns, strict=True)),
            lines,
            **self._options,
            n_bootstrap=n_bootstrap,
        )

    def by_length(
        self,
        texts: Sequence[str],
        lengths: Sequence[int],
        n_bootstrap: int = 0,
    ) -> list[LengthBin]:
        """BLEU by source length, as of the function `length_bins`."""
        return length_bins(
            texts,
            self.lines,
            lengths,
            **self._options,
            n_bootstrap=n_bootstrap,
        )

    def by_rank(
        self, texts: Sequence[str], ranks: Sequence[float], n_bootstrap: int = 0
    ) -> list[LengthBin]:
        """BLEU by rarity of words, as of the function `bleu_by_rank`."""
        return bleu_by_rank(
            texts,
            self.lines,
            ranks,
            **self._options,
            n_bootstrap=n_bootstrap,
        )

    def oracle(self, lists: Sequence[Sequence[str]]) -> list[str]:
        """The text of each n-best list with the best BLEU of its own."""
        from sacrebleu.metrics.bleu import BLEU

        metric = BLEU(
            effective_order=True,
            force=True,
            tokenize=self.tokenize,
            lowercase=self.lowercase,
        )

        def score(text: str, reference: str) -> float:
            text, reference = as_scored([text, reference], self.nfc)
            return metric.sentence_score(text, [reference]).score

        return [
            max(texts, key=lambda text: score(text, reference))
            for texts, reference in zip(lists, self.lines, strict=True)
        ]

    @property
    def _options(self) -> dict[str, Any]:
        """The options of `bleu` that all its scores share."""
        return {
            "tokenize": self.tokenize,
            "lowercase": self.lowercase,
            "nfc": self.nfc,
        }

    def _where(
        self, where: Mask | None, columns: Sequence[Sequence[str]]
    ) -> tuple[list[Sequence[str]], Sequence[str]]:
        if where is None:
            return [*columns], self.lines
        *chosen, lines = select(where, *columns, self.lines)
        return [*chosen], lines
