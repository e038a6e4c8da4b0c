"""Decides which model is the best so far, and keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from bahdanau_tf.training.dev import DevSet, Evaluation, is_best
from bahdanau_tf.training.folder import ModelFolder
from bahdanau_tf.training.run import Run
from bahdanau_tf.translator import Translator


@contextmanager
def averaged(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> Iterator[None]:
    """Gives a model the average of its weights while the block runs.

    It is the exponential moving average of the optimizer, w̄ ← a w̄ + (1 - a) w
    after each update, which begins as the weights after the first. Before that,
    or if the optimizer does not `use_ema`, the model stays as it is.

    Args:
        model: The model.
        optimizer: Its optimizer.
    """
    # A variable of several replicas can be read in this way only.
    updates = int(keras.ops.convert_to_numpy(optimizer.iterations))
    if not optimizer.use_ema or not updates:
        yield
        return
    weights = model.trainable_variables
    raw = [tf.identity(weight.value) for weight in weights]
    optimizer.finalize_variable_values(weights)
    try:
        yield
    finally:
        for weight, value in zip(weights, raw, strict=True):
            weight.assign(value)


class Selection(keras.callbacks.Callback):
    """Evaluates the model on the dev set, and saves it if it is the best.

    If the recipe has an `average`, the model has the averaged weights then.
    Later callbacks find `val_loss` and `val_bleu` in their logs. Without a dev
    set every model is the best, also the one at which a signal ends training.
    With one the model at a signal is saved if there was no evaluation yet.
    Of several workers the chief evaluates and saves; the others wait for it.

    Args:
        run: The run.
        translator: The translator of the model.
        dev: The dev set, or None.
        folder: Where the best model is saved.

    Attributes:
        found: The last evaluation of this run, or None.
    """

    def __init__(
        self,
        run: Run,
        translator: Translator,
        dev: DevSet | None,
        folder: ModelFolder,
    ) -> None:
        super().__init__()
        self.found: Evaluation | None = None
        self._run = run
        self._translator = translator
        self._dev = dev
        self._folder = folder

    def on_train_begin(self, logs: object = None) -> None:
        self._last = self._run.step

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        with self._run.pace.evaluating():
            self._select()
        if self.found is not None:
            logs["val_loss"] = self.found.loss
            logs["val_bleu"] = self.found.bleu

    def on_train_end(self, logs: object = None) -> None:
        if self._dev is None and self._last != self._run.step:
            self._select()
        run, best = self._run, self._folder.best
        (has_none,) = run.cluster.from_chief([not best.exists()])
        if has_none and run.step:
            self._save()
            if run.cluster.is_chief:
                run.line.note(
                    f"there was no evaluation yet: {best} is the model after "
                    f"update {run.step}, until an evaluation finds the best one"
                )

    def _save(self) -> None:
        with averaged(self.model, self._run.optimizer):
            if self._run.cluster.is_chief:
                self._folder.save_best(self._translator)

    def _select(self) -> None:
        self._last = self._run.step
        with averaged(self.model, self._run.optimizer):
            if self._dev is not None:
                self.found = self._evaluated(self._dev)
            run = self._run
            is_new_best = is_best(self.found, run.state, run.recipe.monitor)
            # An update that was lost after its evaluation is made again: the
            # best model is of it already, and no better is found.
            was_best = run.step in self._folder.improved
            if run.cluster.from_chief([was_best])[0]:
                run.state.stale.assign(0)
            if is_new_best and run.cluster.is_chief:
                self._folder.save_best(self._translator)

    def _evaluated(self, dev: DevSet) -> Evaluation:
        found = Evaluation(0.0, 0.0, [])
        if self._run.cluster.is_chief:
            found = dev.evaluate(self._translator)
        bleu, loss = self._run.cluster.from_chief([found.bleu, found.loss])
        return Evaluation(float(bleu), float(loss), found.translations)
