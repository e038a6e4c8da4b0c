"""Selects the best model so far, and keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

from bahdanau_tf.training.dev import DevSet, Evaluation, record_evaluation
from bahdanau_tf.training.run import RunCallback


@contextmanager
def averaged(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> Iterator[None]:
    """Gives a model the average of its weights while the block runs.

    It is the exponential moving average of the optimizer, w̄ ← a w̄ + (1 - a) w
    after each update, which starts as the weights after the first. Before that,
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


class Selection(RunCallback):
    """Evaluates the model on the dev set, and saves it if it is the best.

    If the recipe has an `average`, the model has the averaged weights then.
    Later callbacks find `val_loss` and `val_bleu` in their logs. Without a dev
    set each model is the best, even the one at which a signal ends training.
    With a dev set the model at a signal is saved if there was no evaluation
    yet. Of several workers the chief evaluates and saves; the others wait.
    """

    def on_train_begin(self, logs: object = None) -> None:
        self._last = self._run.step

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        with self._run.pace.evaluating():
            self._select()
        if (evaluation := self._run.evaluation) is not None:
            logs["val_loss"] = evaluation.loss
            logs["val_bleu"] = evaluation.bleu

    def on_train_end(self, logs: object = None) -> None:
        run, best = self._run, self._run.folder.best
        if run.dev is None and self._last != run.step:
            self._select()
        (has_none,) = run.cluster.from_chief([not best.exists()])
        if has_none and run.step:
            with averaged(self.model, run.optimizer):
                if run.cluster.is_chief:
                    run.folder.save_best(run.translator)
            if run.cluster.is_chief:
                run.line.note(
                    f"there was no evaluation yet: {best} is the model after "
                    f"update {run.step}, until an evaluation selects the best one"
                )

    def _select(self) -> None:
        run = self._run
        self._last = run.step
        with averaged(self.model, run.optimizer):
            if run.dev is not None:
                run.evaluation = self._evaluate(run.dev)
            is_best = record_evaluation(run.evaluation, run.state, run.recipe.monitor)
            # An update that was lost after its evaluation is repeated: the best
            # model may be of it, and then no later one is better.
            was_best = run.step in run.folder.improved
            if run.cluster.from_chief([was_best])[0]:
                run.state.stale.assign(0)
            if is_best and run.cluster.is_chief:
                run.folder.save_best(run.translator)

    def _evaluate(self, dev: DevSet) -> Evaluation:
        evaluation = Evaluation(0.0, 0.0, [])
        if self._run.cluster.is_chief:
            evaluation = dev.evaluate(self._run.translator)
        bleu, loss = self._run.cluster.from_chief([evaluation.bleu, evaluation.loss])
        return Evaluation(float(bleu), float(loss), evaluation.translations)
