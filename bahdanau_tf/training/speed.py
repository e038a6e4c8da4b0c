"""How fast a run trains."""

from __future__ import annotations

from collections.abc import Mapping

import keras


class Speed(keras.callbacks.Callback):
    """Counts the words of a run, and the time of its updates alone.

    Attributes:
        words: Number of target words, end symbols included.
        seconds: The time that reading and updates took; evaluations and
            checkpoints do not count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = self.seconds = 0.0

    @property
    def words_per_second(self) -> float:
        """Target words per second."""
        return self.words / max(self.seconds, 1e-9)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        self.words += logs["words"]
        self.seconds += logs["seconds"]
