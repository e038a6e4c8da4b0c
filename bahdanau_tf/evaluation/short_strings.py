"""Measures of short strings, such as words and their pronunciation, as metrics of sacreBLEU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric, Score, Signature


class _Signature(Signature):
    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self._abbr["case"] = "c"
        self.info["case"] = "lc" if args["lowercase"] else "mixed"


class ExactMatch(Metric):
    """The share of lines that are equal to one of their references, in percent."""

    _SIGNATURE_TYPE = _Signature

    def __init__(self, lowercase: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lowercase = lowercase

    def _preprocess_segment(self, sent: str) -> str:
        return sent.strip().lower() if self.lowercase else sent.strip()

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": {*refs}}

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[float]:
        return [float(hypothesis in ref_kwargs["references"]), 1.0]

    def _compute_score_from_stats(self, stats: list[float]) -> Score:
        equal, lines = stats
        return Score("exact match", 100 * equal / lines)

    def _aggregate_and_compute(self, stats: list[list[float]]) -> Score:
        return self._compute_score_from_stats(np.sum(stats, axis=0).tolist())
