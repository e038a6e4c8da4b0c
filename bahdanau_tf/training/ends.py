"""Decides when a training is over."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence

import keras

from bahdanau_tf.training.run import Run


class Ends(keras.callbacks.Callback):
    """Decides after each update and each evaluation whether all is over.

    A signal to one worker ends the training of all, and so does a callback.

    Args:
        run: The run.
        signals: The signals that were caught so far.

    Attributes:
        reason: Why it is over: "patience", "updates", "epochs", "minutes",
            "callback" (a callback set `model.stop_training`) or "signal"; ""
            while it is not. After a signal only a due evaluation is made.
    """

    def __init__(self, run: Run, signals: Sequence[int]) -> None:
        super().__init__()
        self.reason = ""
        self._run = run
        self._signals = signals

    def on_train_begin(self, logs: object = None) -> None:
        self._listen()
        self._be_patient()  # with a new end the rate may have risen again
        self.reason = self._limit()

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        self._listen()
        self._run.pace.begin()  # after the chief's clock was heard
        self.reason = self._limit() or self._signal()

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        self._listen()
        self._be_patient()
        self.reason = self._signal() or self._limit() or self.reason

    def _listen(self) -> None:
        """Learns whether a callback or a signal of some worker ends it."""
        own = self.model.stop_training, bool(self._signals)
        self._is_stopped, self._is_signalled = self._run.cluster.any(*own)

    def _limit(self) -> str:
        run = self._run
        updates = run.recipe.updates
        if int(run.state.stale) >= run.recipe.patience:
            return "patience"
        if run.step >= run.total_steps:
            return "updates" if run.step >= updates > 0 else "epochs"
        if run.pace.is_out_of_time:
            return "minutes"
        return "callback" if self._is_stopped else ""

    def _signal(self) -> str:
        return "signal" if self._is_signalled else ""

    def _be_patient(self) -> None:
        """Does not count evaluations before the rate of "linear" falls."""
        run, recipe = self._run, self._run.recipe
        falls = recipe.schedule == "linear" and recipe.constant_share < 1
        if falls and run.pace.share(run.step) <= recipe.constant_share:
            run.state.stale.assign(0)
