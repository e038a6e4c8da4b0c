"""One translated sentence and all that is known about it."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field

import numpy as np


@dataclass(frozen=True)
class Translation:
    """A translation, as `Translator.translate` returns it.

    The defaults are those of a sentence without words.

    Attributes:
        source: The sentence that was given.
        text: Its translation, detokenised.
        tokens: Target tokens, without the end symbol.
        score: What search ranked by: log p(y | x) with its penalties.
        log_prob: log p(y | x), in nats, the end symbol included.
        finished: Whether the end symbol was reached within the length limit.
        source_tokens: Source tokens in the order of the columns of `weights`,
            without the end symbol.
        source_offsets: For each source token (start, end), bytes into
            `source` encoded as UTF-8.
        weights: Soft alignment α, float32 [T_y, T_x]; the last row and the
            last column belong to the end symbols. None for a model without
            attention.
        alternatives: The other translations of an n-best list, best first.
    """

    source: str
    text: str = ""
    tokens: list[str] = field(default_factory=list)
    score: float = 0.0
    log_prob: float = 0.0
    finished: bool = True
    source_tokens: list[str] = field(default_factory=list)
    source_offsets: list[tuple[int, int]] = field(default_factory=list)
    weights: np.ndarray | None = None
    alternatives: list[Translation] = field(default_factory=list)

    def __str__(self) -> str:
        return self.text
