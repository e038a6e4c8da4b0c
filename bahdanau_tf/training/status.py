"""Tells on the screen what a training does and how far it is."""

from __future__ import annotations

import math
from collections.abc import Mapping

import keras

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.training.dev import DevSet
from bahdanau_tf.training.run import Run
from bahdanau_tf.training.speed import Speed


class Status(keras.callbacks.Callback):
    """Tells at first what is trained on what, then the progress.

    Args:
        run: The run.
        speed: Its speed.
        corpus: The training text.
        dev: The dev set, or None.
    """

    def __init__(
        self, run: Run, speed: Speed, corpus: ParallelCorpus, dev: DevSet | None
    ) -> None:
        super().__init__()
        self._run = run
        self._speed = speed
        self._corpus = corpus
        self._dev = dev

    def on_train_begin(self, logs: object = None) -> None:
        tell = self._run.line.note
        weights = [weight.value for weight in self.model.weights]
        size = sum(w.dtype.size * w.shape.num_elements() for w in weights)
        tell(f"{self.model.count_params():,} weights, {size / 1e6:,.1f} MB")
        text = amount(len(self._corpus), "sentence pair")
        if blank := self._corpus.blank:
            text += f", without {amount(blank, 'pair')} with a blank line"
        tell(text)
        if self._dev is not None:
            tell(f"dev BLEU: greedy search, {self._dev.tokenize}")
        if self._run.step:
            tell(f"resuming from update {self._run.step}")

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        state = self._run.state
        name, best = "BLEU", float(state.best_bleu)
        if self._run.recipe.monitor == "loss":
            name, best = "dev loss", float(state.best_loss)
        skipped = int(self._run.of_optimizer("skipped_updates"))
        text = f"loss {logs['loss']:.3f}, "
        text += f"{self._speed.words_per_second:.0f} words/s"
        if skipped:
            text += f", {amount(skipped, 'update')} skipped (not finite)"
        if self._dev is not None and not math.isnan(best):
            text += f", best {name} {best:.2f}"
        self._run.line.update(self._run.step, text)
