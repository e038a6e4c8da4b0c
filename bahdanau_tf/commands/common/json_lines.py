"""Translations as JSON, one object per line."""

from __future__ import annotations

import json

from bahdanau_tf.translation import Translation


def json_line(translation: Translation, alignments: bool) -> str:
    """A translation with its alternatives and, if wanted, its alignment."""
    known: dict[str, object] = {
        "source": translation.source,
        **_hypothesis(translation, alignments),
    }
    if alignments:
        known["source_tokens"] = translation.source_tokens
        known["source_offsets"] = translation.source_offsets
    if translation.alternatives:
        known["alternatives"] = [
            _hypothesis(other, alignments) for other in translation.alternatives
        ]
    return json.dumps(known, ensure_ascii=False) + "\n"


def _hypothesis(translation: Translation, alignments: bool) -> dict[str, object]:
    known = {name: getattr(translation, name) for name in ("text", "score", "log_prob", "finished")}
    if not alignments:
        return known
    weights = translation.weights
    return {
        **known,
        "tokens": translation.tokens,
        "target_offsets": translation.target_offsets,
        "alignment": sorted(translation.hard_alignment),
        "weights": [] if weights is None else weights.astype(float).round(4).tolist(),
    }
