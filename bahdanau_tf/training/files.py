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

    Raises:
        ValueError: One of `dev_source` and `dev_target` is None.
    """

    train_source: str
    train_target: str
    dev_source: str | None = None
    dev_target: str | None = None

    def __post_init__(self) -> None:
        if (self.dev_source is None) != (self.dev_target is None):
            raise ValueError(
                f"TrainingFiles: dev_source is {self.dev_source!r} and "
                f"dev_target {self.dev_target!r}, wanted both or neither"
            )
