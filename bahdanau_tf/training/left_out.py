"""Tells how many sentence pairs were too long."""

from __future__ import annotations

from collections.abc import Mapping

import keras

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
        self._before = self._run.state.read_position()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        before, self._before = self._before, self._run.state.read_position()
        is_second = (before.epoch, self._before.epoch) == (0, 1)
        longest = self._run.recipe.max_length
        if is_second and longest and before.pairs < self._pairs:
            self._run.line.note(
                f"{self._pairs - before.pairs} too long (over {longest} "
                "tokens), left out"
            )
