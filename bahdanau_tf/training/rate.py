"""The learning rate of a training of limited time."""

from __future__ import annotations

import keras

from bahdanau_tf.training.run import Run


class PacedRate(keras.callbacks.Callback):
    """Lets the rate follow the time before each update, if it is to.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        run = self._run
        if run.recipe.is_paced:
            share = run.pace.share(run.step)
            rate = run.recipe.rate_after(run.step, share)
            run.optimizer.learning_rate = rate
