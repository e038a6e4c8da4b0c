"""The text files of a training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingFiles:
    """Paths of parallel text, one sentence per line, plain or .gz.

    Attributes:
        train_source: The training set, source side.
        train_target: The training set, target side.
        dev_source: The dev set, by which the best model is chosen, or None.
        dev_target: Its translation, or None.
    """

    train_source: str
    train_target: str
    dev_source: str | None = None
    dev_target: str | None = None
