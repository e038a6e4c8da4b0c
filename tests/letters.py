"""A toy task to train on: every letter is translated to its capital."""

import functools
import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import lines_of, write_lines

from bahdanau_tf import RNNSearch, Translator, Vocabulary, WordTokenizer
from bahdanau_tf.data.dataset import Position
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options.recipe import Batching
from bahdanau_tf.training import Recipe, Training, TrainingResult, callbacks, loop, update
from bahdanau_tf.training.folder import locked
from bahdanau_tf.training.prepare import load, prepare

RECIPE = Recipe(
    optimizer="adam",
    learning_rate=0.02,
    batch_size=8,
    pool_batches=2,
    shuffle="each_epoch",
    shuffle_pool=True,
    epochs=3,
)
LETTERS = "abcdefgh"
SPECIAL = ["[PAD]", "[UNK]", "[END]"]


@dataclass(frozen=True)
class TextFiles:
    """The files of a training text and of a dev text, which may be missing."""

    train_source: str
    train_target: str
    dev_source: str | None = None
    dev_target: str | None = None

    @property
    def paths(self) -> dict[str, str]:
        return {name: path for name, path in asdict(self).items() if path}

    @property
    def corpus(self) -> ParallelCorpus:
        return ParallelCorpus(self.train_source, self.train_target)

    @property
    def dev(self) -> ParallelCorpus | None:
        return ParallelCorpus(self.dev_source, self.dev_target) if self.dev_source else None


def train(
    translator: Translator, files: TextFiles, recipe: Recipe, model_dir: Path, **others: Any
) -> TrainingResult:
    """Trains on files."""
    return loop.train(translator, files.corpus, recipe, model_dir, dev=files.dev, **others)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> TextFiles:
    folder = tmp_path_factory.mktemp("text")
    chance = np.random.default_rng(3)
    lines = [" ".join(chance.choice(list(LETTERS), chance.integers(1, 7))) for _ in range(80)]
    paths = {}
    for name, part in (("train", lines), ("dev", lines[:10])):
        for side, change in (("source", str), ("target", str.upper)):
            path = folder / f"{name}.{side}"
            paths[f"{name}_{side}"] = write_lines(path, map(change, part))
    return TextFiles(**paths)


def make_translator(dropout: float = 0.0) -> Translator:
    """An untrained translator, each time with the same weights."""
    random.seed(5)  # Keras draws the seeds of weights from it
    source, target = (
        WordTokenizer(Vocabulary([*SPECIAL, *letters]), "en")
        for letters in (LETTERS, LETTERS.upper())
    )
    sizes = source.vocabulary_size, target.vocabulary_size, 12, 10, 8, 6
    initializers = {"kernel_initializer": "glorot_uniform", "embeddings_initializer": "normal"}
    dropouts = {"embedding_dropout": dropout, "state_dropout": dropout}
    model = RNNSearch(*sizes, **initializers, **dropouts)
    return Translator(model, source, target)


class Untrained(NamedTuple):
    translator: Translator
    values: list[np.ndarray]


@functools.cache
def untrained(dropout: float) -> Untrained:
    translator = make_translator(dropout)
    return Untrained(translator, [variable.numpy() for variable in translator.model.variables])


def restarted(dropout: float = 0.0) -> Translator:
    """One translator per process, set back to its initial weights.

    Like `make_translator`, but functions that were traced need no new tracing.
    """
    translator, values = untrained(dropout)
    for variable, value in zip(translator.model.variables, values, strict=True):
        variable.assign(value)
    return translator


def plain_step(model: keras.Model, optimizer: Any, loss: Any, *others: Any, **more: Any) -> Any:
    """The `train_step` of the loss of words."""
    cost = functools.partial(update.words_loss, model, loss)
    return update.train_step(model, optimizer, cost, *others, **more)


def stand_in_step(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, *_: Any
) -> Callable[..., tf.Tensor]:
    """Takes the place of `train_step` where a test is not about the update.

    It needs no tracing. All weights and the optimizer's count change; the
    weights depend on all batches and their order.
    """
    optimizer.build(model.trainable_variables)

    def step(inputs: dict[str, tf.Tensor], target: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        ids = np.concatenate([np.ravel(inputs["source"]), np.ravel(target)])
        move = 0.01 * np.sin(ids @ np.arange(len(ids)))
        for weight in model.trainable_weights:  # in NumPy: an op would take longer
            weight.value.assign(0.99 * weight.value.numpy() + float(move))
        optimizer.iterations.assign_add(1)
        return tf.constant(1.0 + move, tf.float32)

    return step


def stepping(step: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    """In place of `train_step`: calls `step(model, optimizer, inputs, target, weights)`."""

    def make_step(model: Any, optimizer: Any, *_: Any) -> Callable[..., Any]:
        optimizer.build(model.trainable_variables)
        return functools.partial(step, model, optimizer)

    return make_step


def watched(make_step: Callable[..., Any], see: Callable[..., object]) -> Callable[..., Any]:
    """`make_step` in place of `train_step`; calls `see(optimizer, loss, words)` after each step."""

    def make(model: Any, optimizer: Any, *others: Any) -> Callable[..., Any]:
        step = make_step(model, optimizer, *others)

        def watched_step(*batch: Any) -> Any:
            loss = step(*batch)
            see(optimizer, float(loss), int(np.count_nonzero(batch[1])))
            return loss

        return watched_step

    return make


def applying_step(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, *_: Any
) -> Callable[..., tf.Tensor]:
    """As `stand_in_step`, but the optimizer updates the weights, by gradients from nowhere."""
    optimizer.build(model.trainable_variables)

    def step(inputs: dict[str, tf.Tensor], target: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        cost = tf.math.sin(tf.reduce_sum(tf.cast(target, tf.float32)))
        optimizer.apply([cost + tf.sin(weight.value) for weight in model.trainable_weights])
        return 2.0 + cost

    return step


def stand_in_batches(
    corpus: ParallelCorpus,
    source_text: WordTokenizer,
    target_text: WordTokenizer,
    batching: Batching,
    start: Position,
) -> Iterator[tuple[Any, Position, np.ndarray]]:
    """Takes the place of `stream_batches` where a test is not about the text.

    It needs no graphs, which take two seconds of processor time in each training. What comes after
    a position depends on the position alone; an epoch has all lines, in an order of its own.
    """
    ids = [{x: n for n, x in enumerate(t.vocabulary.tokens)} for t in (source_text, target_text)]
    epoch, line = start.epoch, start.line
    while True:
        order = np.random.default_rng(epoch).permutation(corpus.rows).astype(np.int64)
        for first in range(line, len(order), batching.batch_size):
            lines = order[first : first + batching.batch_size]
            rows = [
                [[of_side.get(word, 1) for word in row.decode().split()] + [2] for row in side]
                for of_side, side in zip(ids, corpus.read(lines), strict=True)
            ]
            source, target = (tf.ragged.constant(side, tf.int32).to_tensor() for side in rows)
            batch = {"source": source, "target": target}, target, tf.cast(target != 0, tf.float32)
            read = first + len(lines)
            yield batch, Position(epoch, line=read, pairs=read), lines
        epoch, line = epoch + 1, 0


def scored(bleu: float, loss: float) -> tuple[dict[str, float], list[Any]]:
    """What `evaluate` of the callbacks returns, without translations."""
    return {"loss": loss, "bleu": bleu}, []


def stand_in_evaluate(translator: Translator, *_: Any) -> tuple[dict[str, float], list[Any]]:
    """Takes the place of `evaluate` of the callbacks: numbers that depend on the weights."""
    total = float(sum(np.abs(weight).sum() for weight in weights(translator)))
    return scored(100 * math.exp(-total / 1000), total)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `train` use the stand-ins for the update and for the batches."""
    monkeypatch.setattr(update, "train_step", stand_in_step)
    monkeypatch.setattr(loop, "stream_batches", stand_in_batches)


def stand_in_for_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `train` use the stand-ins for the update and the evaluation, with any tokenizer."""
    monkeypatch.setattr(update, "train_step", stand_in_step)
    monkeypatch.setattr(callbacks, "evaluate", stand_in_evaluate)


def asked(files: TextFiles, folder: Path, **user_options: Any) -> Training:
    """A training of which no option is chosen."""
    return Training(files.paths, folder, user_options, recipe_name="paper")


def prepared(training: Training) -> Translator:
    """What is to be trained."""
    with locked(training.model_dir):
        return load(prepare(training)[0])


def weights(translator: Translator) -> list[np.ndarray]:
    return [weight.numpy() for weight in translator.model.trainable_weights]


def log_of(folder: Path, name: str = "log.jsonl") -> list[dict[str, Any]]:
    return [*map(json.loads, lines_of(folder / name))]
