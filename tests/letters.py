"""A toy task to train on: every letter is translated to its capital."""

import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from bahdanau_tf import RNNSearch, Translator, Vocabulary, WordTokenizer
from bahdanau_tf.training import Recipe, TrainingFiles

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


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> TrainingFiles:
    folder = tmp_path_factory.mktemp("text")
    chance = np.random.default_rng(3)
    lines = [" ".join(chance.choice(list(LETTERS), chance.integers(1, 7))) for _ in range(80)]
    paths = {}
    for name, part in (("train", lines), ("dev", lines[:10])):
        for side, change in (("source", str), ("target", str.upper)):
            path = folder / f"{name}.{side}"
            path.write_text("".join(f"{change(line)}\n" for line in part))
            paths[f"{name}_{side}"] = str(path)
    return TrainingFiles(**paths)


def make_translator(dropout: float = 0.0) -> Translator:
    """An untrained translator, each time with the same weights."""
    random.seed(5)  # Keras draws the seeds of weights from it
    source, target = (
        WordTokenizer(Vocabulary([*SPECIAL, *letters]), "en")
        for letters in (LETTERS, LETTERS.upper())
    )
    model = RNNSearch(
        source.vocabulary_size,
        target.vocabulary_size,
        units=12,
        embedding_dim=10,
        attention_units=8,
        maxout_units=6,
        kernel_initializer="glorot_uniform",
        embeddings_initializer="normal",
        embedding_dropout=dropout,
        state_dropout=dropout,
    )
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


def weights(translator: Translator) -> list[np.ndarray]:
    return [weight.numpy() for weight in translator.model.trainable_weights]


def log_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]
