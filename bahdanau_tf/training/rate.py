"""Learning rates that are not a function of the number of updates alone."""

from __future__ import annotations

import keras

from bahdanau_tf.training.run import Run
from bahdanau_tf.training.state import as_array


class LearningRate(keras.callbacks.Callback):
    """Sets the rate where it is a variable of the optimizer, not a schedule.

    It is that of the recipe, also if an earlier run had another; it follows
    the time if the recipe is paced, and is halved on a plateau.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def on_train_begin(self, logs: object = None) -> None:
        if self._run.recipe.schedule in ("constant", "plateau"):
            halvings = int(self._run.state.halvings)
            self._set(self._run.recipe.rate * 0.5**halvings)

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        run = self._run
        if run.recipe.is_paced:
            share = run.pace.share(run.step)
            self._set(run.recipe.rate_after(run.step, share))

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        recipe, stale = self._run.recipe, int(self._run.state.stale)
        is_due = stale > 0 and stale % recipe.plateau == 0
        if recipe.schedule == "plateau" and is_due:
            self._run.state.halvings.assign_add(1)
            self.on_train_begin()

    def _set(self, rate: float) -> None:
        self._run.optimizer.learning_rate = as_array(rate)
