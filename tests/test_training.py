"""Training: it learns, it stops, it goes on exactly where it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from bahdanau_tf import RNNSearch
from bahdanau_tf import Translator
from bahdanau_tf import WordTokenizer
from bahdanau_tf import make_dataset
from bahdanau_tf.data.dataset import measure
from bahdanau_tf.device import describe_device
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.training import Recipe
from bahdanau_tf.training import TrainingFiles
from bahdanau_tf.training import loop
from bahdanau_tf.training import train
from bahdanau_tf.training.settings import check_settings
from bahdanau_tf.training.settings import write_settings
from bahdanau_tf.training.signals import signals_caught

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


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> TrainingFiles:
    """A language where every letter is written as its capital."""
    folder = tmp_path_factory.mktemp("text")
    random = np.random.default_rng(3)
    lines = [
        " ".join(random.choice(list(LETTERS), random.integers(1, 7)))
        for _ in range(80)
    ]
    paths = {}
    for name, part in (("train", lines), ("dev", lines[:10])):
        for side, change in (("source", str), ("target", str.upper)):
            path = folder / f"{name}.{side}"
            path.write_text("".join(f"{change(line)}\n" for line in part))
            paths[f"{name}_{side}"] = str(path)
    return TrainingFiles(**paths)


def make_translator(files: TrainingFiles, dropout: float = 0.0) -> Translator:
    keras.utils.set_random_seed(5)
    source = WordTokenizer.train([files.train_source], 20, language="en")
    target = WordTokenizer.train([files.train_target], 20, language="en")
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


def weights(translator: Translator) -> list[np.ndarray]:
    return [weight.numpy() for weight in translator.model.trainable_weights]


def test_learns_and_keeps_the_best(files, tmp_path):
    translator = make_translator(files)
    recipe = replace(RECIPE, epochs=20, schedule="linear", warmup_steps=10)
    result = train(translator, files, recipe, tmp_path / "model")
    assert result.best_bleu > 80
    assert result.stopped_by == "epochs"
    assert result.steps == 200
    best = Translator.load(tmp_path / "model" / "best")
    found = best.translate(["a b", "c d h"])
    assert [translation.text for translation in found] == ["A B", "C D H"]
    log = log_of(tmp_path / "model")
    scores = [record["dev_bleu"] for record in log]
    assert max(scores) == pytest.approx(result.best_bleu)
    assert len(scores) == 20
    assert log[-1]["device"] == describe_device()


def test_batches_by_tokens(files, tmp_path, monkeypatch):
    """No update holds more, and an epoch is as long as was counted."""
    translator = make_translator(files)
    cells = []

    def no_step(model, optimizer, _):
        optimizer.build(model.trainable_variables)
        return lambda features, *_: (
            cells.append(max(int(tf.size(ids)) for ids in features.values()))
            or tf.constant(1.0)
        )

    monkeypatch.setattr(loop, "train_step", no_step)
    recipe = replace(RECIPE, token_budget=30, epochs=2, batch_size=20)
    files = replace(files, dev_source=None, dev_target=None)
    result = train(translator, files, recipe, tmp_path / "model")
    batches = make_dataset(
        (files.train_source, files.train_target),
        translator.source_text,
        translator.target_text,
        batch_size=20,
        pool_batches=2,
        token_budget=30,
        shuffle="each_epoch",
        seed=recipe.seed,
    )
    epoch = measure(batches)
    assert epoch.pairs == 80
    assert result.steps == len(cells) == 2 * epoch.batches
    assert 20 < max(cells) <= 30


def test_stops_when_bleu_stalls(files, tmp_path, capsys):
    recipe = replace(RECIPE, learning_rate=1e-9, epochs=50, patience=2)
    translator = make_translator(files)
    unheard_of = tmp_path / "dev.target"
    unheard_of.write_text("X Y Z\n" * 10)
    files = replace(files, dev_target=str(unheard_of))
    result = train(translator, files, recipe, tmp_path / "model")
    assert result.stopped_by == "patience"
    assert result.steps == 3 * 10
    told = capsys.readouterr().err
    count = sum(weight.size for weight in weights(translator))
    assert f"\n{count:,} weights, {4 * count / 1e6:.1f} MB\n" in f"\n{told}"
    assert result.best_bleu == 0
    assert told.count("dev BLEU (13a) was 0.00 at every evaluation so far") == 1
    assert "too long" not in told  # as none was


def log_of(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "log.jsonl").read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]


@pytest.fixture(scope="module")
def never_stopped(files, tmp_path_factory) -> tuple[list[np.ndarray], Path]:
    """Weights and folder of a training with dropout, not interrupted."""
    whole = make_translator(files, dropout=0.2)
    folder = tmp_path_factory.mktemp("whole")
    train(whole, files, RECIPE, folder)
    return weights(whole), folder


@pytest.fixture
def finished(never_stopped, tmp_path) -> Path:
    """A copy of that folder."""
    return shutil.copytree(never_stopped[1], tmp_path / "finished")


def stopped_after(updates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets SIGTERM come in the midst of an update."""
    make_step = loop.train_step

    def interrupting(model, optimizer, loss):
        step = make_step(model, optimizer, loss)
        calls = []

        def counted(*batch):
            calls.append(None)
            if len(calls) == updates:
                os.kill(os.getpid(), signal.SIGTERM)
            return step(*batch)

        return counted

    monkeypatch.setattr(loop, "train_step", interrupting)


@pytest.mark.parametrize(
    "stop_after",
    [10, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 7, 24))],
)
def test_interrupted_training_ends_as_if_never_stopped(
    files, tmp_path, monkeypatch, never_stopped, stop_after
):
    """Stopped by a signal after some updates, then run again: equal weights."""
    stopped_after(stop_after, monkeypatch)
    first = make_translator(files, dropout=0.2)
    result = train(first, files, RECIPE, tmp_path / "parts")
    assert (result.stopped_by, result.steps) == ("signal", stop_after)
    first_seconds = result.seconds
    monkeypatch.undo()
    second = make_translator(files, dropout=0.2)
    result = train(second, files, RECIPE, tmp_path / "parts")
    assert (result.stopped_by, result.steps) == ("epochs", 30)
    log = log_of(tmp_path / "parts")
    seconds = [record["seconds"] for record in log]
    assert seconds == sorted(seconds)
    assert first_seconds + result.seconds > seconds[-1] > first_seconds
    whole_weights, folder = never_stopped
    whole_log = log_of(folder)
    for name in ("step", "train_loss", "dev_loss", "dev_bleu", "learning_rate"):
        assert [record[name] for record in log] == pytest.approx(
            [record[name] for record in whole_log], rel=1e-5
        )
    for expected, found in zip(whole_weights, weights(second), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_without_dev_a_signal_leaves_the_last_model(
    files, tmp_path, monkeypatch, never_stopped, capsys
):
    """`best` is of the last update, not of the last epoch's end."""
    alone = TrainingFiles(files.train_source, files.train_target)
    stopped_after(13, monkeypatch)
    first = make_translator(files, dropout=0.2)
    result = train(first, alone, RECIPE, tmp_path)
    assert (result.stopped_by, result.steps) == ("signal", 13)
    assert "stopping after this update\n" in capsys.readouterr().err
    best = Translator.load(tmp_path / "best")
    for expected, found in zip(weights(first), weights(best), strict=True):
        np.testing.assert_array_equal(found, expected)
    monkeypatch.undo()
    second = make_translator(files, dropout=0.2)
    assert train(second, alone, RECIPE, tmp_path).steps == 30
    whole, folder = never_stopped
    whole_log = log_of(folder)
    for name in ("step", "train_loss"):
        assert [record[name] for record in log_of(tmp_path)] == pytest.approx(
            [record[name] for record in whole_log], rel=1e-5
        )
    for expected, found in zip(whole, weights(second), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)


def test_a_second_interrupt_ends_at_once():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    told: list[str] = []
    with signals_caught(told.append) as came:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert came == [signal.SIGTERM, signal.SIGTERM, signal.SIGINT]
        assert ["again" in text for text in told] == [False, False, True]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    after = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert after == before


def test_a_finished_training_does_nothing_when_run_again(files, finished):
    again = make_translator(files, dropout=0.2)
    result = train(again, files, RECIPE, finished)
    assert (result.steps, result.words_per_second) == (30, 0.0)
    best = Translator.load(finished / "best")
    assert not np.isnan(result.best_bleu)
    assert best.translate(["a"])


def test_another_model_in_the_folder_is_refused(files, finished):
    translator = make_translator(files, dropout=0.2)
    other = replace(RECIPE, batch_size=9)
    with pytest.raises(ValueError, match="batch_size is 8 there and 9 now"):
        train(translator, files, other, finished)
    longer = replace(RECIPE, epochs=4)
    assert train(translator, files, longer, finished).steps == 40


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "training.json"
    write_settings(path, {"a": 1})
    check_settings(path, {"a": 1})
    path.write_text(path.read_text().replace(": 1,", ": 99,", 1))
    with pytest.raises(ValueError, match="format version 99"):
        check_settings(path, {"a": 1})


def test_without_dev_the_last_model_is_kept(files, tmp_path):
    alone = TrainingFiles(files.train_source, files.train_target)
    translator = make_translator(files)
    result = train(translator, alone, RECIPE, tmp_path / "model")
    assert np.isnan(result.best_bleu)
    best = Translator.load(tmp_path / "model" / "best")
    for expected, found in zip(weights(translator), weights(best), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("optimizer", "lion"),
        ("schedule", "lunar"),
        ("batch_size", 0),
        ("epochs", 0),
        ("patience", 0),
    ],
)
def test_recipe_names_a_bad_option(option, value):
    with pytest.raises(ValueError, match=f": {option} is {value!r}, wanted"):
        Recipe(**{option: value})


def test_recipe_defaults_are_the_papers():
    recipe = Recipe()
    optimizer = recipe.make_optimizer(100)
    assert isinstance(optimizer, keras.optimizers.Adadelta)
    assert (optimizer.rho, optimizer.epsilon) == (0.95, 1e-6)
    assert float(optimizer.learning_rate) == 1.0
    assert optimizer.max_norm == 1.0
    batching = recipe.make_batching()
    assert (batching.batch_size, batching.pool_batches) == (80, 20)
    assert (batching.shuffle, batching.max_length) == ("once", 50)


def test_fit_and_train_make_the_same_updates(files, tmp_path):
    """A Keras user's `fit` on `make_dataset` equals our own loop."""
    recipe = replace(
        RECIPE, shuffle="once", shuffle_pool=False, epochs=1, seed=2
    )
    ours = make_translator(files)
    train(ours, files, recipe, tmp_path / "model")
    theirs = make_translator(files)
    dataset = make_dataset(
        (files.train_source, files.train_target),
        theirs.source_text,
        theirs.target_text,
        batch_size=8,
        pool_batches=2,
        seed=2,
    )
    # Keras warns where it does not know how many batches there are.
    batches = measure(dataset).batches
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(batches))
    theirs.model.compile(
        optimizer=recipe.make_optimizer(10), loss=TokenCrossentropy()
    )
    history = theirs.model.fit(dataset, epochs=1, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    for expected, found in zip(weights(ours), weights(theirs), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_sutskevers_recipe():
    """SGD 0.7, halved every half epoch after the fifth; norm 5; loss / 128."""
    recipe = Recipe.from_preset("sutskever-2014")
    optimizer = recipe.make_optimizer(steps_per_epoch=100)
    assert isinstance(optimizer, keras.optimizers.SGD)
    assert (optimizer.momentum, optimizer.max_norm) == (0.0, 5.0)
    assert (recipe.batch_size, recipe.divisor) == (128, 128.0)
    rates = {}
    for step in (0, 499, 500, 549, 550, 749):
        optimizer.iterations.assign(step)
        rates[step] = float(optimizer.learning_rate)
    expected = {0: 0.7, 499: 0.7, 500: 0.35, 549: 0.35, 550: 0.175}
    for step, rate in expected.items():
        assert rates[step] == pytest.approx(rate)
    assert rates[749] == pytest.approx(0.7 / 32)


def test_no_such_recipe():
    with pytest.raises(ValueError, match="name is 'soup', wanted one of"):
        Recipe.from_preset("soup")
