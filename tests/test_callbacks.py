"""The callbacks of a user, called by `train` as Keras' `fit` calls them."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from typing import Any

import keras
import letters
import numpy as np
import pytest
import tensorflow as tf
from letters import RECIPE, log_of, restarted, weights

from bahdanau_tf import Translator
from bahdanau_tf.training import loop, train
from bahdanau_tf.training.dev import Evaluation

files = letters.files  # the fixture
SEVENS = replace(RECIPE, epochs=2, evaluate_every=7)  # 20 updates: 7, 7, 6


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A stand-in for the update; evaluations become better, then worse."""
    found = [Evaluation(b, 9 - b, []) for b in (1.0, 5.0, 2.0, 1.5, 1.0)]
    found = itertools.chain(found, itertools.repeat(found[-1]))
    monkeypatch.setattr(loop, "train_step", letters.stand_in_step)
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: next(found))


class Recorder(keras.callbacks.Callback):
    """Writes down all calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, Any, dict[str, float]]] = []

    def on_train_begin(self, logs=None):
        self.calls.append(("train begin", None, logs))

    def on_train_end(self, logs=None):
        self.calls.append(("train end", None, logs))

    def on_epoch_begin(self, epoch, logs=None):
        self.calls.append(("epoch begin", epoch, logs))

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append(("epoch end", epoch, dict(logs)))

    def on_train_batch_begin(self, batch, logs=None):
        self.calls.append(("batch begin", batch, logs))

    def on_train_batch_end(self, batch, logs=None):
        self.calls.append(("batch end", batch, dict(logs)))


def test_calls_are_those_of_fit(files, tmp_path):
    """With Keras' own `fit` as the judge of their order and numbers."""
    ours, theirs = Recorder(), Recorder()
    translator = restarted()
    recipe = replace(SEVENS, evaluate_every=5)
    train(translator, files, recipe, tmp_path, callbacks=[ours])
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    batch = tf.data.Dataset.from_tensors((np.ones([1, 1]), np.ones([1, 1])))
    model.fit(
        batch.repeat(), epochs=4, steps_per_epoch=5, shuffle=False, verbose=0, callbacks=[theirs]
    )
    assert [one[:2] for one in ours.calls] == [one[:2] for one in theirs.calls]
    assert ours.model is translator.model
    for name in ("epochs", "steps"):
        assert ours.params[name] == theirs.params[name]


def test_logs_have_the_losses_of_a_word_and_bleu(files, tmp_path):
    recorder = Recorder()
    train(restarted(), files, SEVENS, tmp_path, callbacks=[recorder])
    batches: list[dict[str, float]] = []
    epochs = []
    for what, _, logs in recorder.calls:
        if what == "batch end":
            batches.append(logs)
        if what == "epoch end":
            words = [one["words"] for one in batches]
            losses = [one["loss"] for one in batches]
            wanted = np.average(losses, weights=words)
            assert logs["loss"] == pytest.approx(wanted)
            epochs.append(logs)
            batches = []
    log = log_of(tmp_path)
    for ours, theirs in {
        "train_loss": "loss",
        "dev_loss": "val_loss",
        "dev_bleu": "val_bleu",
    }.items():
        assert [one[ours] for one in log] == [one[theirs] for one in epochs]
    assert [one["dev_bleu"] for one in log] == [1.0, 5.0, 2.0]


def test_keras_own_callbacks_stop_and_write(files, tmp_path):
    """The fourth evaluation is the second one that is no better."""
    recipe = replace(SEVENS, epochs=50)
    path = tmp_path / "table.csv"
    callbacks = [
        keras.callbacks.EarlyStopping("val_bleu", patience=2, mode="max"),
        keras.callbacks.CSVLogger(path),
    ]
    result = train(restarted(), files, recipe, tmp_path / "model", callbacks=callbacks)
    assert (result.stopped_by, result.steps) == ("callback", 28)
    assert result.best_bleu == 5.0
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_bleu"]) for row in rows] == [1.0, 5.0, 2.0, 1.5]
    # The same command goes on.
    result = train(restarted(), files, SEVENS, tmp_path / "model")
    assert (result.stopped_by, result.steps) == ("epochs", 28)


class Zeroed(keras.callbacks.Callback):
    """Sets all weights to 0 after the second evaluation, then stops."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            for weight in self.model.trainable_weights:
                weight.assign(tf.zeros_like(weight))
            self.model.stop_training = True


def test_what_a_callback_changes_is_saved_but_was_not_evaluated(files, tmp_path):
    """It comes between the best model and the checkpoint."""
    result = train(restarted(), files, SEVENS, tmp_path, callbacks=[Zeroed()])
    assert (result.stopped_by, result.steps) == ("callback", 14)
    assert result.best_bleu == 5.0
    assert all(np.any(one) for one in weights(Translator.load(tmp_path)))
    resumed = restarted()
    at_first = Beginning()
    train(resumed, files, SEVENS, tmp_path, callbacks=[at_first])
    assert not any(np.any(one) for one in at_first.weights)


class Beginning(keras.callbacks.Callback):
    """Keeps the weights with which training begins."""

    def on_train_begin(self, logs=None):
        self.weights = [one.numpy() for one in self.model.trainable_weights]


def test_a_callback_may_stop_within_an_epoch(files, tmp_path):
    """Then the model is evaluated, as it is in `fit`."""

    class Third(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 2

    result = train(restarted(), files, SEVENS, tmp_path, callbacks=[Third()])
    assert (result.stopped_by, result.steps) == ("callback", 3)
    assert [record["step"] for record in log_of(tmp_path)] == [3]


def test_a_callback_may_stop_before_the_first_update(files, tmp_path):
    class Never(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.model.stop_training = True

    result = train(restarted(), files, SEVENS, tmp_path, callbacks=[Never()])
    assert (result.stopped_by, result.steps) == ("callback", 0)
