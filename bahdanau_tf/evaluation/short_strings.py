"""Measures of short strings, such as words and their pronunciation, as metrics of sacreBLEU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric, Score, Signature


class _Signature(Signature):
    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self._abbr["case"] = "c"
        self.info["case"] = "lc" if args["lowercase"] else "mixed"


class _ByLine(Metric):
    """A share in percent: the sum of a count of each line by that of another."""

    _SIGNATURE_TYPE = _Signature

    def __init__(self, title: str, lowercase: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.title, self.lowercase = title, lowercase

    def _preprocess_segment(self, sent: str) -> str:
        return sent.strip().lower() if self.lowercase else sent.strip()

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _aggregate_and_compute(self, stats: list[list[float]]) -> Score:
        return self._compute_score_from_stats(np.sum(stats, axis=0).tolist())

    def _compute_score_from_stats(self, stats: list[float]) -> Score:
        part, whole = stats
        return Score(self.title, 100 * part / max(whole, 1))


class ExactMatch(_ByLine):
    """The share of lines that are equal to one of their references, in percent."""

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[float]:
        return [float(hypothesis in ref_kwargs["references"]), 1.0]


class ErrorRate(_ByLine):
    """Edits per unit of the references, characters or words, in percent; 0 is best.

        100 Σ_s min_r d(y_s, r) / Σ_s |r_s|

    d is the Levenshtein distance, see `edits`, and r_s the reference with the fewest edits.

    Args:
        title: The name of its scores.
        units: Splits a line.
        lowercase: Whether to ignore case.
    """

    def __init__(
        self, title: str, units: Callable[[str], Sequence[str]], lowercase: bool = False
    ) -> None:
        super().__init__(title, lowercase)
        self.units = units

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[float]:
        ours = self.units(hypothesis)
        references = map(self.units, ref_kwargs["references"])
        return min([float(edits(ours, other)), float(len(other))] for other in references)


def edits(first: Sequence[str], second: Sequence[str]) -> int:
    """The least number of insertions, deletions and replacements that make one of the other."""
    codes = {unit: code for code, unit in enumerate({*first, *second})}
    columns = np.array([codes[unit] for unit in second], int)
    places = row = np.arange(len(second) + 1)
    for code in map(codes.__getitem__, first):
        # By a deletion or a replacement; then, from left to right, by insertions.
        row = np.minimum(row + 1, np.append(row[0] + 1, row[:-1] + (columns != code)))
        row = np.minimum.accumulate(row - places) + places
    return int(row[-1])
