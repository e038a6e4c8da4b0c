"""One process of a training that `test_distribution.py` spreads.

Its only argument is a JSON object:

    folder      where the text is, and where `<name>.npz` is written
    name        its name
    model_dir   as in `train`
    model       "mean", which is traced quickly, or "rnnsearch"
    devices     number of virtual devices of a `MirroredStrategy`; 0 for the
                strategy of the environment
    recipe      options of the recipe
    dropout     of "rnnsearch"
    signal      which signal it sends itself, after `signal_at` updates
"""

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras
import letters
import numpy as np
import tensorflow as tf
from test_minimal_model import block

from bahdanau_tf import Recipe, StepwiseModel, Translator, Vocabulary, WordTokenizer
from bahdanau_tf.training import callbacks
from bahdanau_tf.training.cluster import strategy_of_environment


class Recorder(keras.callbacks.Callback):
    """A user's callback: keeps what it is called with, and may send a signal."""

    def __init__(self, number: int, updates: int) -> None:
        super().__init__()
        self.evaluations: list[tuple[float, float]] = []
        self.losses: list[float] = []
        self._signal, self._at = number, updates

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(logs["loss"])
        if self._signal and len(self.losses) == self._at:
            os.kill(os.getpid(), self._signal)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.evaluations.append((logs["val_loss"], logs["val_bleu"]))


def mean_model(size: int) -> StepwiseModel:
    """The model of CONTRIBUTING.md."""
    page = sys.modules["page"] = ModuleType("page")
    exec(compile(block(), "CONTRIBUTING.md", "exec"), page.__dict__)
    return page.MeanModel(size, size)


def make_translator(model: str, dropout: float) -> Translator:
    if model == "rnnsearch":
        return letters.make_translator(dropout)
    keras.utils.set_random_seed(5)
    sides = (
        WordTokenizer(Vocabulary([*letters.SPECIAL, *words]), "en")
        for words in (letters.LETTERS, letters.LETTERS.upper())
    )
    size = len(letters.SPECIAL) + len(letters.LETTERS)
    return Translator(mean_model(size), *sides)


def run(
    folder: str,
    name: str,
    model_dir: str,
    model: str,
    recipe: dict[str, Any],
    devices: int = 0,
    dropout: float = 0.0,
    signal: int = 0,
    signal_at: int = 0,
) -> None:
    """Trains, and writes weights and what the callback has seen."""
    if devices:
        (cpu,) = tf.config.list_physical_devices("CPU")
        each = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, devices * [each])
        names = [f"CPU:{number}" for number in range(devices)]
        strategy = tf.distribute.MirroredStrategy(names)
    else:
        strategy = strategy_of_environment()
    with strategy.scope():
        translator = make_translator(model, dropout)
    recorder = Recorder(signal, signal_at)
    text = Path(folder)
    sides = ("train.a", "train.b", "dev.a", "dev.b")
    files = letters.TextFiles(*(str(text / side) for side in sides))
    result = letters.train(translator, files, Recipe(**recipe), model_dir, callbacks=[recorder])
    np.savez(
        text / f"{name}.npz",
        *(weight.numpy() for weight in translator.model.trainable_weights),
        losses=recorder.losses,
        evaluations=recorder.evaluations,
        seeds=[variable.numpy() for variable in translator.model.non_trainable_variables],
        steps=result.steps,
        stopped_by=result.stopped_by,
    )


if __name__ == "__main__":
    callbacks.evaluate = letters.stand_in_evaluate
    run(**json.loads(sys.argv[1]))
