"""Training that can be stopped at any time and resumed exactly."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from bahdanau_tf.data.dataset import coverage, longer_sides, stream_batches
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation.scores import (
    ScoreOptions,
    bleu_metric,
    check_monitor,
    default_tokenizer,
)
from bahdanau_tf.models.named import check_tracked
from bahdanau_tf.options import Recipe, training as options
from bahdanau_tf.system.device import use_threads
from bahdanau_tf.system.notebook import progress_line
from bahdanau_tf.system.ranges import OptionError, named
from bahdanau_tf.training.ask import Training
from bahdanau_tf.training.callbacks import build_callbacks
from bahdanau_tf.training.checkpoints import Checkpoints, State, explain_tensorflow_errors
from bahdanau_tf.training.cluster import Cluster, strategy_of, strategy_of_environment, vary_noise
from bahdanau_tf.training.folder import ModelFolder, check_alike, locked, of_training
from bahdanau_tf.training.prepare import load, prepare, prepared, remember
from bahdanau_tf.training.reporting import TensorBoard
from bahdanau_tf.training.run import ENDINGS, Run, TrainingResult, signals_caught
from bahdanau_tf.training.schedule import Schedule, make_optimizer, updates_per_epoch
from bahdanau_tf.training.update import make_update, threads_of
from bahdanau_tf.translator import Translator

Batches: TypeAlias = "Iterator[tuple[Any, ...]]"


def run(training: Training, callbacks: Sequence[keras.callbacks.Callback] = ()) -> TrainingResult:
    """Trains as a user asked, alone or with the other workers of a cluster.

    This is what `fit` and the command `train` do.
    """
    use_threads(training.threads)  # before any operation of TensorFlow
    strategy = strategy_of_environment()
    if (replicas := strategy.num_replicas_in_sync) > 1:
        options.refuse(training.user_options, ["accumulate"], f"with {replicas} devices")
    cluster = Cluster(strategy)
    with contextlib.ExitStack() as until_over:
        if cluster.is_chief:
            until_over.enter_context(locked(training.model_dir))
            training, corpus, dev = prepare(training)
        cluster.wait()
        if not cluster.is_chief:
            training, corpus, dev = prepared(training)
        with strategy.scope():
            translator = load(training)
        if cluster.is_chief:
            begun = keras.callbacks.LambdaCallback(on_train_begin=lambda _: remember(training))
            callbacks = [begun, *callbacks]
        return train(
            translator,
            corpus,
            training.recipe,
            training.model_dir,
            dev=dev,
            tensorboard=training.tensorboard,
            callbacks=callbacks,
        )


def train(
    translator: Translator,
    corpus: ParallelCorpus,
    recipe: Recipe,
    model_dir: str | os.PathLike[str],
    *,
    dev: ParallelCorpus | None = None,
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
        corpus: The training set.
        recipe: The options of training.
        model_dir: A folder; created if it does not exist.
        dev: The dev set, by which the best model is chosen.
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
        ValueError: `corpus`, `dev`, `recipe` or a callback is of another class, `model_dir` holds
            another model, another process trains in it, or its best model would be lost. Nothing is
            written then. Or too many updates in a row were skipped, since their loss or gradient
            was not finite. Or it was called in the scope of a strategy, or another machine has
            different settings.
        OSError: A file cannot be read, `model_dir` cannot be written to, or another machine has
            ended; what was written before is kept.
    """
    check_callbacks("train", callbacks)
    kinds = {"corpus": ParallelCorpus, "dev": ParallelCorpus, "recipe": Recipe}
    for (name, kind), value in zip(kinds.items(), (corpus, dev, recipe), strict=True):
        if not (isinstance(value, kind) or (name == "dev" and value is None)):
            raise OptionError("train", name, value, f"a {kind.__name__}")
    if recipe.deterministic:
        tf.config.experimental.enable_op_determinism()
    run = make_run(translator, corpus, dev, recipe, Path(model_dir))
    with contextlib.ExitStack() as until_over:
        if run.cluster.is_chief:
            until_over.enter_context(locked(run.folder.path))
        batches = restore(run)
        run.caught = until_over.enter_context(signals_caught(run.line.note))
        if tensorboard and run.cluster.is_chief:
            board = TensorBoard(run, run.folder.path / "tensorboard")
            callbacks = [until_over.enter_context(contextlib.closing(board)), *callbacks]
        every = build_callbacks(run, callbacks)
        until_over.enter_context(explain_tensorflow_errors())
        return train_to_the_end(run, batches, every)


def check_callbacks(owner: str, callbacks: object) -> None:
    """Raises a ValueError, which begins with the function, unless it has a list of callbacks."""
    kinds = list | tuple, keras.callbacks.Callback
    if not (isinstance(callbacks, kinds[0]) and all(isinstance(x, kinds[1]) for x in callbacks)):
        wanted = "a list of objects of keras.callbacks.Callback"
        raise OptionError(owner, "callbacks", callbacks, wanted)


def make_run(
    translator: Translator,
    corpus: ParallelCorpus,
    dev: ParallelCorpus | None,
    recipe: Recipe,
    model_dir: Path,
) -> Run:
    """The parts of a run, before its state is restored."""
    model: keras.Model = translator.model
    check_tracked(model)
    strategy = strategy_of(model)
    cluster = Cluster(strategy)
    check_monitor(recipe.monitor)
    tokenize = ""
    if dev is not None:
        references = [line.decode() for line in dev.read(dev.rows)[1]]
        tokenize = recipe.tokenize or default_tokenizer(translator.target_text, references)
        bleu_metric(ScoreOptions(tokenize))  # raises if there is none
    elif recipe.schedule == "plateau":
        raise OptionError("Recipe", "schedule", "plateau", "a dev set")
    texts = translator.source_text, translator.target_text
    with strategy.scope():
        epoch = updates_per_epoch(corpus, *texts, recipe)
        schedule = Schedule(recipe, epoch, cluster.clock)
        optimizer = make_optimizer(recipe, schedule)
    update, saved_optimizer, notes = make_update(translator, optimizer, recipe)
    threads = threads_of(recipe) if recipe.deterministic else None
    if threads is not None:
        notes.append(f"deterministic, with {named('threads', threads)}")
    state = State()
    checkpoints = Checkpoints(
        model_dir / "checkpoints",
        keep=recipe.keep,
        model=model,
        optimizer=saved_optimizer,
        state=state,
        # Those of dropout, which it does not find in the model.
        seeds=[seed.value for seed in model.non_trainable_variables],
    )
    settings = of_training(translator, recipe, threads, corpus, dev, tokenize)
    return Run(
        translator=translator,
        recipe=recipe,
        corpus=corpus,
        dev=dev,
        tokenize=tokenize,
        cluster=cluster,
        schedule=schedule,
        optimizer=optimizer,
        update=update,
        folder=ModelFolder(model_dir, checkpoints, state, settings),
        notes=notes,
    )


def restore(run: Run) -> Batches:
    """Restores the state of the folder, on all workers and replicas; the chief reports.

    Returns the batches after those of earlier runs.
    """
    model: keras.Model = run.translator.model
    check_alike(run.cluster, run.folder.settings)
    notes = run.folder.restore(run.recipe.monitor) if run.cluster.is_chief else []
    weights = [*model.variables, *run.optimizer.variables]
    run.cluster.share([weight.value for weight in weights])
    run.cluster.share(run.state.variables)
    vary_noise(model)
    batching, position = run.recipe.make_batching(), run.state.read_position()
    batches = run.cluster.shared(stream_batches(run.corpus, *run.texts, batching, position))
    if run.cluster.is_chief and not run.step and run.recipe.max_length:
        lengths = longer_sides(run.corpus, *run.texts)
        run.notes.append(coverage(lengths, len(run.corpus), run.recipe.max_length))
    run.schedule.resume(float(run.state.seconds), float(run.state.longest_seconds))
    curves = [("dev loss", "train loss"), *((f"dev {x}",) for x in run.titles.values())]
    steps, seconds = run.schedule.total_steps, run.schedule.seconds_left
    run.line = progress_line(steps, run.step, seconds, curves)
    if run.cluster.is_chief:
        run.folder.begin()
        for note in (*notes, *run.notes):
            run.line.note(note)
    return batches


def train_to_the_end(
    run: Run, batches: Batches, callbacks: keras.callbacks.CallbackList
) -> TrainingResult:
    """Trains until one of the ends of `Ends`."""
    before = run.schedule.seconds
    model: keras.Model = run.translator.model
    model.stop_training = False
    callbacks.on_train_begin()
    over = f"nothing left to do: {ENDINGS.get(run.ending)}"
    if (used := run.used.get(run.ending)) is not None:
        limit = named(run.ending, getattr(run.recipe, run.ending))
        over += f", {used} of {limit}; a larger number resumes the training"
    run.note(over if run.ending else "building the graph of an update")
    (is_due,) = run.cluster.from_chief([run.folder.needs_evaluation])
    if run.ending and is_due:
        if run.cluster.is_chief:
            run.folder.log.forget_after(run.step - 1)
        callbacks.on_epoch_end((run.step - 1) // run.evaluate_every, run.state.take_loss())
    while not run.ending:
        _train_until_evaluation(run, batches, callbacks)
    callbacks.on_train_end()
    run.cluster.wait()  # until the chief has written all
    if run.ending == "signal":
        advice = "" if run.step >= run.schedule.total_steps else "; the training can be resumed"
        run.note(f"stopped at update {run.step}, saved{advice}")
    total = run.schedule.seconds
    return TrainingResult(
        best=run.state.best if run.dev else {},
        steps=run.step,
        stopped_by=run.ending,
        seconds=total - before,
        words_per_second=run.words_per_second,
        tokenize=run.tokenize,
        monitor=run.recipe.monitor,
        signal=run.signal,
        total_seconds=total,
    )


def _train_until_evaluation(
    run: Run, batches: Batches, callbacks: keras.callbacks.CallbackList
) -> None:
    """Updates the weights, batch after batch, then evaluates.

    A signal ends it between two updates, without an evaluation.
    """
    epoch, first = divmod(run.step, run.evaluate_every)
    callbacks.on_epoch_begin(epoch)
    for number in itertools.count(first):
        start = time.monotonic()
        read = [next(batches) for _ in range(run.recipe.accumulate)]
        callbacks.on_train_batch_begin(number)
        cost = sum(float(run.update(*batch)) * run.recipe.divisor for batch, _, _ in read)
        words = sum(float(tf.reduce_sum(weights)) for (_, _, weights), _, _ in read)
        _, run.positions, lines = zip(*read, strict=True)
        run.lines = tf.concat(lines, 0).numpy()
        run.state.advance(run.positions[-1], cost, words)
        seconds = time.monotonic() - start
        run.words += words
        run.seconds += seconds
        logs = {"loss": cost / words, "words": words, "seconds": seconds}
        callbacks.on_train_batch_end(number, logs)
        if run.is_due or run.ending:
            break
    if run.is_due or run.ending != "signal":
        callbacks.on_epoch_end(epoch, run.state.take_loss())
