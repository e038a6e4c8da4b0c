"""Training that can be stopped at any time and resumed exactly."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

import keras
import tensorflow as tf

from bahdanau_tf.data.batching import Position
from bahdanau_tf.data.dataset import Batch, fitting, longer_sides, stream_numbered_batches
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.layers.weights import check_tracked
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.options import Recipe
from bahdanau_tf.system.terminal import ProgressLine
from bahdanau_tf.training.callbacks import (
    CheckpointSaver,
    Divergence,
    Doubts,
    Ends,
    LearningRate,
    LeftOut,
    Status,
)
from bahdanau_tf.training.checkpoints import Checkpoints, told_in_a_sentence
from bahdanau_tf.training.cluster import Cluster
from bahdanau_tf.training.dev import DevSet
from bahdanau_tf.training.folder import ModelFolder, check_alike, locked, of_training
from bahdanau_tf.training.log import Logger, Speed
from bahdanau_tf.training.minimum_risk import Risk
from bahdanau_tf.training.run import ENDINGS, Pace, Run, State, TrainingFiles, TrainingResult
from bahdanau_tf.training.selection import Selection
from bahdanau_tf.training.signals import signals_caught
from bahdanau_tf.training.step import (
    check_accumulates,
    parts_at_once,
    product_dtype,
    seeds_of,
    strategy_of,
    threads_of,
    train_step,
    updates_per_epoch,
    vary_noise,
    with_loss_scale,
)
from bahdanau_tf.training.tensorboard import TensorBoard
from bahdanau_tf.translator import Translator

# What tells or writes something; of several workers only the chief does.
OF_CHIEF = (
    *(LeftOut, Status, Divergence, TensorBoard, Logger, Doubts),
    CheckpointSaver,
)


def train(
    translator: Translator,
    files: TrainingFiles,
    recipe: Recipe,
    model_dir: str | os.PathLike[str],
    tensorboard: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> TrainingResult:
    """Trains a translator's model, or resumes its training.

    `model_dir` gets checkpoints of weights, optimizer and data position,
    `log.jsonl` with a line for each evaluation, and `best`, the translator
    with the best BLEU of greedy search on the dev set, or the lowest loss, by
    `recipe.monitor`. Without a dev set it is the last one. After SIGINT or
    SIGTERM a checkpoint is written before the training ends, and `best`, if
    there is none yet; a second SIGINT ends it at once. If the newest
    checkpoint is damaged, the one before it is used. One process at a time
    trains in a folder.

    A model that was made in the scope of a `tf.distribute` strategy is trained
    by it, as in `fit`: each replica processes some rows of a batch. Of several
    machines the chief reads the text, evaluates, and writes to `model_dir`.

    Args:
        translator: Model and tokenizers; the model's weights change.
        files: The training and dev sets.
        recipe: The options of training.
        model_dir: A folder; made if it does not exist.
        tensorboard: Whether to write curves and pictures for TensorBoard to
            the folder `tensorboard` in it; see
            `bahdanau_tf.training.tensorboard`.
        callbacks: Your own, of the begin and the end of training, epochs and
            batches. For them an epoch ends with each evaluation, as in `fit`
            with `steps_per_epoch`; its logs have the losses of a word, `loss`
            and `val_loss`, and `val_bleu`. They come after the evaluation and
            before the checkpoint, which does not contain their own state. The
            model is not compiled, so it has no `optimizer` for them. On
            several machines each calls its own, with the same logs.

    Returns:
        `TrainingResult`.

    Raises:
        ValueError: `files` or `recipe` is of another class, the files do not
            match, `model_dir` holds another model, another process trains in
            it, or its best model would be lost. Nothing is written then. Or
            too many updates in a row were skipped, since their loss or
            gradient was not finite. Or it was called in the scope of a
            strategy, or another machine has other settings.
        OSError: A file cannot be read, or `model_dir` not written to, or
            another machine has ended; what was written before is kept.
    """
    for name, value, kind in (
        ("files", files, TrainingFiles),
        ("recipe", recipe, Recipe),
    ):
        if not isinstance(value, kind):
            raise ValueError(f"train: {name} is {value!r}, wanted a {kind.__name__}")
    if recipe.deterministic:
        tf.config.experimental.enable_op_determinism()
    training = _Training(translator, files, recipe, Path(model_dir))
    with contextlib.ExitStack() as until_over:
        if training.cluster.is_chief:
            until_over.enter_context(locked(training.model_dir))
        training.begin()
        training.surround(callbacks, tensorboard, until_over)
        until_over.enter_context(told_in_a_sentence())
        return training.run()


class _Training:
    """One run of `train`."""

    def __init__(
        self,
        translator: Translator,
        files: TrainingFiles,
        recipe: Recipe,
        model_dir: Path,
    ) -> None:
        self.translator = translator
        self.model: keras.Model = translator.model
        check_tracked(self.model)
        self.strategy = strategy_of(self.model)
        self.cluster = Cluster(self.strategy)
        check_accumulates(recipe, self.strategy)
        self.recipe = recipe
        self.model_dir = model_dir
        self.corpus = ParallelCorpus(files.train_source, files.train_target)
        self.dev = DevSet.of_training(translator, files, recipe)
        if recipe.schedule == "plateau" and self.dev is None:
            raise ValueError("Recipe: schedule is 'plateau' without a dev set, wanted one")
        self.steps_per_epoch = updates_per_epoch(
            self.corpus,
            translator.source_text,
            translator.target_text,
            recipe,
        )
        self.threads = threads_of(recipe) if recipe.deterministic else None
        self.product_dtype = product_dtype(recipe, self.model)
        with self.strategy.scope():
            self.optimizer = recipe.make_optimizer(self.steps_per_epoch)
            scaled = with_loss_scale(self.optimizer, self.model, self.product_dtype)
        self.step = train_step(
            self.model,
            scaled,
            TokenCrossentropy(recipe.label_smoothing, divisor=recipe.divisor),
            self.product_dtype,
            parts_at_once(recipe),
            Risk.of(recipe, translator.target_text),
        )
        self.state = State()
        seeds = seeds_of(self.model)
        self.checkpoints = Checkpoints(
            model_dir / "checkpoints",
            added=seeds,  # a layer may have dropout now
            keep=recipe.keep,
            model=self.model,
            optimizer=scaled,
            state=self.state,
            seeds=seeds,
        )
        self.settings = of_training(translator, recipe, self.threads, self.corpus, self.dev)
        self.folder = ModelFolder(
            model_dir,
            self.checkpoints,
            self.state,
            self.settings,
            recipe,
        )

    def begin(self) -> None:
        """Restores the state of the folder, then writes what must exist."""
        check_alike(self.cluster, self.settings)
        notes = self.folder.restore() if self.cluster.is_chief else []
        self._share()
        self.batches = self.cluster.shared(
            stream_numbered_batches(
                self.corpus,
                self.translator.source_text,
                self.translator.target_text,
                self.recipe.make_batching(),
                self.state.read_position(),
            )
        )
        if self.cluster.is_chief:
            self.folder.begin()
        total_steps = self.recipe.total_updates(self.steps_per_epoch)
        used = float(self.state.seconds)
        pace = Pace(
            total_steps,
            self.recipe.minutes,
            used,
            self.cluster.clock,
            float(self.state.longest_seconds),
        )
        line = ProgressLine(total_steps, int(self.state.step), seconds=pace.seconds_left)
        self.now = Run(
            self.cluster,
            self.recipe,
            self.optimizer,
            self.state,
            pace,
            line,
            self.steps_per_epoch,
            total_steps,
            self.recipe.evaluate_every or math.ceil(self.steps_per_epoch),
        )
        if self.product_dtype != "float32":
            notes = [*notes, f"products are rounded to {self.product_dtype}"]
        if self.recipe.deterministic:
            notes = [*notes, f"deterministic, with --threads={self.threads}"]
        if not self.cluster.is_chief:
            return
        if not self.now.step and self.recipe.max_length:
            notes = [*notes, self._fitting()]
        for note in notes:
            line.note(note)

    def _fitting(self) -> str:
        """How many pairs are short enough."""
        texts = self.translator.source_text, self.translator.target_text
        lengths = longer_sides(self.corpus, *texts)
        return fitting(lengths, len(self.corpus), self.recipe.max_length)

    def _share(self) -> None:
        """Gives all workers and replicas the state that the chief restored."""
        weights = [*self.model.variables, *self.optimizer.variables]
        self.cluster.share([one.value for one in weights])
        self.cluster.share(self.state.variables)
        vary_noise(self.model)

    def surround(
        self,
        given: Sequence[keras.callbacks.Callback],
        tensorboard: bool,
        until_over: contextlib.ExitStack,
    ) -> None:
        """Makes what surrounds the updates, in the order in which it acts.

        At each point of the training (its begin and end, those of an epoch and
        of a batch) all callbacks are called in this order:

        1. `Speed` counts, `LeftOut` and `Status` tell.
        2. `Divergence` writes down what was skipped.
        3. `Selection` evaluates and keeps the best model; later ones find its
           results in their logs.
        4. `TensorBoard` and `Logger` write them, `Doubts` judges them.
        5. `LearningRate` sets the rate of the next update.
        6. Those of the user may change weights, or stop the training.
        7. `Ends` decides whether it is over.
        8. `CheckpointSaver` saves what all of them have changed.

        Args:
            given: Those of the user.
            tensorboard: Whether to write curves.
            until_over: Ends what must not outlive the training.
        """
        now, dev = self.now, self.dev
        signals = until_over.enter_context(signals_caught(now.line.note))
        self.speed = Speed()
        self.ends = Ends(now, signals)
        selection = Selection(now, self.translator, dev, self.folder)
        board = []
        if tensorboard and self.cluster.is_chief:
            path = self.model_dir / "tensorboard"
            board = [TensorBoard(now, path, selection)]
            until_over.enter_context(contextlib.closing(board[0]))
        ordered = [
            self.speed,
            LeftOut(now, len(self.corpus)),
            Status(now, self.speed, self.corpus, dev),
            Divergence(now, self.corpus, self.model_dir / "skipped.jsonl"),
            selection,
            *board,
            Logger(now, self.speed, self.folder.log, dev),
            Doubts(now, self.folder.log, self.translator),
            LearningRate(now),
            *given,
            self.ends,
            CheckpointSaver(now, self.checkpoints, self.ends),
        ]
        if not self.cluster.is_chief:
            ordered = [x for x in ordered if not isinstance(x, OF_CHIEF)]
        self.callbacks = keras.callbacks.CallbackList(
            ordered,
            model=self.model,
            epochs=math.ceil(now.total_steps / now.evaluate_every),
            steps=now.evaluate_every,
        )

    def run(self) -> TrainingResult:
        """Trains until one of the ends of `Ends`."""
        used = self.now.pace.seconds
        self.model.stop_training = False
        self.callbacks.on_train_begin()
        if self.cluster.is_chief:
            what = "making the graph of an update"
            if self.ends.reason:
                what = f"nothing is left to do: {ENDINGS[self.ends.reason]}"
            self.now.line.note(what)
        (is_due,) = self.cluster.from_chief([self.folder.needs_evaluation])
        if self.ends.reason and is_due:
            if self.cluster.is_chief:
                self.folder.log.forget_after(self.now.step - 1)
            self._end_epoch()
        while not self.ends.reason:
            self._train_until_evaluation()
        self.callbacks.on_train_end()
        self.cluster.wait()  # until the chief has written all
        if self.ends.reason == "signal" and self.cluster.is_chief:
            is_over = self.now.step >= self.now.total_steps
            goes_on = "" if is_over else "; the same command goes on"
            self.now.line.note(f"stopped at update {self.now.step}, saved{goes_on}")
        return TrainingResult(
            best_bleu=float(self.state.best_bleu),
            steps=self.now.step,
            stopped_by=self.ends.reason,
            seconds=self.now.pace.seconds - used,
            words_per_second=self.speed.words_per_second,
            tokenize=self.dev.tokenize if self.dev else "",
            monitor=self.recipe.monitor,
            best_loss=float(self.state.best_loss),
        )

    def _train_until_evaluation(self) -> None:
        """Updates the weights, batch after batch, then evaluates.

        A signal ends it between two updates, without an evaluation.
        """
        epoch, first = divmod(self.now.step, self.now.evaluate_every)
        self.callbacks.on_epoch_begin(epoch)
        lap = time.monotonic()
        together = zip(*[self.batches] * self.recipe.accumulate, strict=False)
        for number, read in enumerate(together, first):
            self.callbacks.on_train_batch_begin(number)
            logs = self._update(read)
            logs["seconds"] = time.monotonic() - lap
            self.callbacks.on_train_batch_end(number, logs)
            if self.now.is_due or self.ends.reason:
                break
            lap = time.monotonic()
        else:
            raise RuntimeError("the stream of batches ended")
        if self.now.is_due or self.ends.reason != "signal":
            self._end_epoch()

    def _update(self, read: Sequence[tuple[Batch, Position, tf.Tensor]]) -> dict[str, float]:
        """Updates the weights by the batches that were read for an update.

        Returns:
            The loss of a word, and the number of words.
        """
        cost = words = 0.0
        for batch, *_ in read:
            cost += float(self.step(*batch)) * self.recipe.divisor
            words += float(tf.reduce_sum(batch[2]))
        _, self.now.positions, lines = zip(*read, strict=True)
        self.now.lines = tf.concat(lines, 0).numpy()
        self.state.advance(self.now.positions[-1], cost, words)
        return {"loss": cost / words, "words": words}

    def _end_epoch(self) -> None:
        epoch = (self.now.step - 1) // self.now.evaluate_every
        self.callbacks.on_epoch_end(epoch, self.state.take_loss())
