"""Tells how many sentence pairs were too long."""

from __future__ import annotations

from collections.abc import Mapping

import keras

from bahdanau_tf.data.batching import Position
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.training.run import Run


class LeftOut(keras.callbacks.Callback):
    """Tells it once, when the first epoch is over.

    Args:
        run: The run.
        pairs: Number of sentence pairs of the corpus.
    """

    def __init__(self, run: Run, pairs: int) -> None:
        super().__init__()
        self._run = run
        self._pairs = pairs

    def on_train_begin(self, logs: object = None) -> None:
        self._last = self._run.state.read_position()
        self._was_over = self._is_over()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        for position in self._run.positions:
            before, self._last = self._last, Position(*map(int, position))
            if (before.epoch, self._last.epoch) == (0, 1):
                self._tell(self._pairs - before.pairs)

    def on_train_end(self, logs: object = None) -> None:
        # No batch of another epoch was read.
        if self._is_over() and not self._was_over and not self._last.epoch:
            self._tell(self._pairs - self._last.pairs)

    def _is_over(self) -> bool:
        return self._run.step >= self._run.steps_per_epoch

    def _tell(self, count: int) -> None:
        recipe = self._run.recipe
        limits = [
            f"{longest} {of}"
            for longest, of in (
                (recipe.max_length, "tokens"),
                (recipe.max_words, "source words"),
            )
            if longest
        ]
        if limits and count:
            self._run.line.note(
                f"{amount(count, 'sentence pair')} left out, with more than "
                f"{' or '.join(limits)}"
            )
