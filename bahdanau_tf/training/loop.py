"""Training that can be stopped at any time and resumed exactly."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.data.dataset import fitting, longer_sides, stream_batches
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.models.named import check_tracked
from bahdanau_tf.options import Recipe
from bahdanau_tf.options.fields import as_flag
from bahdanau_tf.training import callbacks as own, step as steps
from bahdanau_tf.training.checkpoints import Checkpoints, State, explain_tensorflow_errors
from bahdanau_tf.training.cluster import Cluster
from bahdanau_tf.training.dev import DevSet
from bahdanau_tf.training.folder import ModelFolder, check_alike, locked, of_training
from bahdanau_tf.training.minimum_risk import Risk
from bahdanau_tf.training.run import (
    ENDINGS,
    Rate,
    Run,
    TrainingResult,
    make_optimizer,
    signals_caught,
)
from bahdanau_tf.training.step import train_step
from bahdanau_tf.training.texts import TrainingFiles
from bahdanau_tf.translator import Translator


def train(
    translator: Translator,
    files: TrainingFiles,
    recipe: Recipe,
    model_dir: str | os.PathLike[str],
    tensorboard: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> TrainingResult:
    """Trains a translator's model, or resumes its training.

    `model_dir` gets checkpoints of weights, optimizer and data position, `log.jsonl` with a line
    for each evaluation, and `best`, the translator with the best BLEU of greedy search on the dev
    set, or the lowest loss, by `recipe.monitor`. Without a dev set it is the last one. On SIGINT or
    SIGTERM a checkpoint is written before training ends, and `best`, if there is none yet; a second
    SIGINT ends it at once. If the newest checkpoint is damaged, the previous one is used. Only one
    process at a time trains in a folder.

    A model created in the scope of a `tf.distribute` strategy is trained with it, as in Keras'
    `fit`: each replica processes some rows of a batch. On several machines, the chief reads the
    text, evaluates, and writes to `model_dir`.

    Args:
        translator: Model and tokenizers; the model's weights change.
        files: The training and dev sets.
        recipe: The options of training.
        model_dir: A folder; created if it does not exist.
        tensorboard: Whether to write curves and pictures for TensorBoard to the folder
            `tensorboard` in it.
        callbacks: Your own; called at start and end of training, epochs and batches. For them an
            epoch ends with each evaluation, as in Keras' `fit` with `steps_per_epoch`; its logs
            have the losses per word, `loss` and `val_loss`, and `val_bleu`. They are called after
            the evaluation and before the checkpoint, which does not contain their state. The model
            is not compiled, so it has no `optimizer` for them. On several machines, each calls its
            own, with the same logs.

    Returns:
        `TrainingResult`.

    Raises:
        ValueError: `files`, `recipe` or a callback is of another class, the files do not match,
            `model_dir` holds another model, another process trains in it, or its best model would
            be lost. Nothing is written then. Or too many updates in a row were skipped, since their
            loss or gradient was not finite. Or it was called in the scope of a strategy, or another
            machine has different settings.
        OSError: A file cannot be read, `model_dir` cannot be written to, or another machine has
            ended; what was written before is kept.
    """
    check_callbacks("train", callbacks)
    for name, value, kind in (("files", files, TrainingFiles), ("recipe", recipe, Recipe)):
        if not isinstance(value, kind):
            raise ValueError(f"train: {name} is {value!r}, wanted a {kind.__name__}")
    if recipe.deterministic:
        tf.config.experimental.enable_op_determinism()
    training = _Training(translator, files, recipe, Path(model_dir))
    run = training.run
    with contextlib.ExitStack() as until_over:
        if run.cluster.is_chief:
            until_over.enter_context(locked(run.folder.path))
        training.restore()
        signals = until_over.enter_context(signals_caught(run.line.note))
        board = []
        if tensorboard and run.cluster.is_chief:
            board = [own.TensorBoard(run, run.folder.path / "tensorboard")]
            until_over.enter_context(contextlib.closing(board[0]))
        training.callbacks = build_callbacks(run, signals, board, callbacks)
        until_over.enter_context(explain_tensorflow_errors())
        return training.train()


def check_callbacks(owner: str, callbacks: object) -> None:
    """Raises a ValueError, which begins with the function, unless it has a list of callbacks."""
    kinds = list | tuple, keras.callbacks.Callback
    if not (isinstance(callbacks, kinds[0]) and all(isinstance(x, kinds[1]) for x in callbacks)):
        raise ValueError(
            f"{owner}: callbacks is {callbacks!r}, wanted a list of objects of "
            "keras.callbacks.Callback"
        )


def build_callbacks(
    run: Run,
    signals: Sequence[int],
    board: Sequence[own.TensorBoard],
    of_user: Sequence[keras.callbacks.Callback],
) -> keras.callbacks.CallbackList:
    """All callbacks of a training, in the order in which they are called at each point of it.

    1. `DroppedPairs` and `Status` report.
    2. `Divergence` records what was skipped.
    3. `Selection` evaluates and keeps the best model; later ones find its results in their logs.
    4. `TensorBoard` and `Logger` write them, `Doubts` warns.
    5. `LearningRate` sets the rate of the next update.
    6. Those of the user may change weights, or stop the training.
    7. `Ends` decides whether it is over.
    8. `CheckpointSaver` saves what all of them have changed.

    Workers other than the chief report and write nothing.
    """

    def of_chief(*kinds: type[own.RunCallback]) -> list[own.RunCallback]:
        return [kind(run) for kind in kinds if run.cluster.is_chief]

    return keras.callbacks.CallbackList(
        [
            *of_chief(own.DroppedPairs, own.Status, own.Divergence),
            own.Selection(run),
            *board,
            *of_chief(own.Logger, own.Doubts),
            own.LearningRate(run),
            *of_user,
            own.Ends(run, signals),
            *of_chief(own.CheckpointSaver),
        ],
        model=run.translator.model,
        epochs=math.ceil(run.total_steps / run.evaluate_every),
        steps=run.evaluate_every,
    )


class _Training:
    """The updates of one run of `train`."""

    callbacks: keras.callbacks.CallbackList
    batches: Iterator[tuple[object, ...]]
    update: Callable[..., tf.Tensor]

    def __init__(
        self, translator: Translator, files: TrainingFiles, recipe: Recipe, model_dir: Path
    ) -> None:
        model: keras.Model = translator.model
        check_tracked(model)
        strategy = steps.strategy_of(model)
        cluster = Cluster(strategy)
        steps.check_accumulates(recipe, strategy)
        corpus = ParallelCorpus(files.train_source, files.train_target)
        dev = None
        if files.dev_source is not None and files.dev_target is not None:
            language = getattr(translator.target_text, "language", "")
            dev = DevSet(files.dev_source, files.dev_target, language, recipe.tokenize)
        elif recipe.schedule == "plateau":
            raise ValueError("Recipe: schedule is 'plateau' without a dev set, wanted one")
        texts = translator.source_text, translator.target_text
        steps_per_epoch = steps.updates_per_epoch(corpus, *texts, recipe)
        self.threads = steps.threads_of(recipe) if recipe.deterministic else None
        self.product_dtype = steps.product_dtype(recipe, model)
        with strategy.scope():
            rate = Rate(recipe, steps_per_epoch)
            optimizer = make_optimizer(recipe, steps_per_epoch, rate)
            scaled = steps.with_loss_scale(optimizer, model, self.product_dtype)
        loss = TokenCrossentropy(recipe.label_smoothing, divisor=recipe.divisor)
        self.update = plain = train_step(
            model,
            scaled,
            loss,
            self.product_dtype,
            steps.parts_at_once(recipe),
            Risk.of(recipe, translator.target_text),
        )
        self.shapes = shapes = steps.static_shapes(recipe, model)
        if shapes:
            compiled = steps.compiled_step(model, scaled, loss, self.product_dtype)
            self.update = padded = lambda *batch: compiled(*shapes.padded(batch))
            if recipe.jit_compile == "auto":
                self.update = steps.FasterStep(plain, padded, shapes, lambda x: self.run.note(x))
        state = State()
        checkpoints = Checkpoints(
            model_dir / "checkpoints",
            keep=recipe.keep,
            model=model,
            optimizer=scaled,
            state=state,
            # Those of dropout, which it does not find in the model.
            seeds=[seed.value for seed in model.non_trainable_variables],
        )
        self.settings = of_training(translator, recipe, self.threads, corpus, dev)
        folder = ModelFolder(model_dir, checkpoints, state, self.settings, recipe)
        parts = translator, recipe, corpus, dev, cluster, optimizer, rate, state, folder
        self.run = Run(*parts, steps_per_epoch)

    def restore(self) -> None:
        """Restores the state of the folder, on all workers and replicas; the chief reports."""
        run = self.run
        model: keras.Model = run.translator.model
        check_alike(run.cluster, self.settings)
        notes = run.folder.restore() if run.cluster.is_chief else []
        weights = [*model.variables, *run.optimizer.variables]
        run.cluster.share([weight.value for weight in weights])
        run.cluster.share(run.state.variables)
        steps.vary_noise(model)
        batching, position = run.recipe.make_batching(), run.state.read_position()
        batches = stream_batches(run.corpus, *run.texts, batching, position)
        self.batches = run.cluster.shared(batches)
        run.start_clock()
        if run.cluster.is_chief:
            self._begin(notes)

    def _begin(self, notes: list[str]) -> None:
        """Writes what must exist, and reports how the training continues."""
        run = self.run
        run.folder.begin()
        if self.product_dtype != "float32":
            notes.append(f"products are rounded to {self.product_dtype}")
        if self.shapes:
            notes.append(
                "XLA compiles some of the first updates, to see whether it makes them faster"
                if run.recipe.jit_compile == "auto"
                else "XLA compiles the update, once for each batch length"
            )
        decoder = getattr(run.translator.model, "decoder", None)
        if slow_part := getattr(decoder, "slow_part", None):
            notes.append(f"{slow_part} has no fast gradient: updates take longer")
        if run.recipe.deterministic:
            notes.append(f"deterministic, with --threads={self.threads}")
        if not run.step and run.recipe.max_length:
            lengths = longer_sides(run.corpus, *run.texts)
            notes.append(fitting(lengths, len(run.corpus), run.recipe.max_length))
        for note in notes:
            run.line.note(note)

    def train(self) -> TrainingResult:
        """Trains until one of the ends of `Ends`."""
        run = self.run
        before = run.pace.seconds
        model: keras.Model = run.translator.model
        model.stop_training = False
        self.callbacks.on_train_begin()
        over = f"nothing left to do: {ENDINGS.get(run.ending)}"
        if (used := run.used.get(run.ending)) is not None:
            limit = as_flag(run.ending, getattr(run.recipe, run.ending))
            over += f", {used} of {limit}; a larger number resumes the training"
        run.note(over if run.ending else "building the graph of an update")
        (is_due,) = run.cluster.from_chief([run.folder.needs_evaluation])
        if run.ending and is_due:
            if run.cluster.is_chief:
                run.folder.log.forget_after(run.step - 1)
            self._end_epoch()
        while not run.ending:
            self._train_until_evaluation()
        self.callbacks.on_train_end()
        run.cluster.wait()  # until the chief has written all
        if run.ending == "signal":
            advice = "" if run.step >= run.total_steps else "; the training can be resumed"
            run.note(f"stopped at update {run.step}, saved{advice}")
        total = run.pace.seconds
        return TrainingResult(
            best_bleu=float(run.state.best_bleu),
            steps=run.step,
            stopped_by=run.ending,
            seconds=total - before,
            words_per_second=run.words_per_second,
            tokenize=run.dev.tokenize if run.dev else "",
            monitor=run.recipe.monitor,
            best_loss=float(run.state.best_loss),
            signal=run.signal,
            total_seconds=total,
        )

    def _train_until_evaluation(self) -> None:
        """Updates the weights, batch after batch, then evaluates.

        A signal ends it between two updates, without an evaluation.
        """
        run = self.run
        epoch, first = divmod(run.step, run.evaluate_every)
        self.callbacks.on_epoch_begin(epoch)
        lap = time.monotonic()
        together = zip(*[self.batches] * run.recipe.accumulate, strict=False)
        for number, read in enumerate(together, first):
            self.callbacks.on_train_batch_begin(number)
            logs = self._update(read)
            logs["seconds"] = time.monotonic() - lap
            run.words += logs["words"]
            run.seconds += logs["seconds"]
            self.callbacks.on_train_batch_end(number, logs)
            if run.is_due or run.ending:
                break
            lap = time.monotonic()
        else:
            raise RuntimeError("the stream of batches ended")
        if run.is_due or run.ending != "signal":
            self._end_epoch()

    def _update(self, read: Sequence[tuple[Any, ...]]) -> dict[str, float]:
        """Updates the weights by the batches that were read; returns the logs of the update."""
        run, cost, words = self.run, 0.0, 0.0
        for batch, *_ in read:
            cost += float(self.update(*batch)) * run.recipe.divisor
            words += float(tf.reduce_sum(batch[2]))
        _, run.positions, lines = zip(*read, strict=True)
        run.lines = tf.concat(lines, 0).numpy()
        run.state.advance(run.positions[-1], cost, words)
        return {"loss": cost / words, "words": words}

    def _end_epoch(self) -> None:
        epoch = (self.run.step - 1) // self.run.evaluate_every
        self.callbacks.on_epoch_end(epoch, self.run.state.take_loss())
