"""When checkpoints are written."""

from __future__ import annotations

import time
from collections.abc import Mapping

import keras

from bahdanau_tf.training.checkpoints import Checkpoints
from bahdanau_tf.training.ends import Ends
from bahdanau_tf.training.run import Run

SECONDS = 300  # between two checkpoints, if nothing is evaluated


class CheckpointSaver(keras.callbacks.Callback):
    """Saves after each evaluation, every five minutes and at the end.

    Args:
        run: The run.
        checkpoints: The checkpoints of the training.
        ends: Tells whether the training is over.
    """

    def __init__(self, run: Run, checkpoints: Checkpoints, ends: Ends) -> None:
        super().__init__()
        self._run = run
        self._checkpoints = checkpoints
        self._ends = ends

    def on_train_begin(self, logs: object = None) -> None:
        self._saved, self._time = self._run.step, time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        follows_later = self._run.is_due or self._ends.reason
        if time.monotonic() - self._time > SECONDS and not follows_later:
            self._save()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self._save()

    def on_train_end(self, logs: object = None) -> None:
        if self._saved != self._run.step:
            self._save()

    def _save(self) -> None:
        pace, state = self._run.pace, self._run.state
        state.seconds.assign(pace.seconds)
        state.longest_seconds.assign(pace.longest)
        self._checkpoints.save()
        self._saved, self._time = self._run.step, time.monotonic()
