"""Training: it learns, stops, and resumes exactly where it stopped."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import letters
import numpy as np
import pytest
import tensorflow as tf
from comparisons import all_close
from letters import RECIPE, TextFiles, log_of, train, weights
from refusals import refused

from bahdanau_tf import Translator, make_dataset
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.system import terminal
from bahdanau_tf.system.device import describe_device
from bahdanau_tf.training import Recipe, callbacks, loop, update
from bahdanau_tf.training.callbacks import GREEDY
from bahdanau_tf.training.run import signals_caught
from bahdanau_tf.training.schedule import Schedule, make_optimizer

files = letters.files  # the fixture

DROPOUT = 0.03  # learning succeeds, and still depends on its random numbers
# Evaluations, and so checkpoints, are within epochs, which have 10 updates.
WHOLE = replace(RECIPE, evaluate_every=7)


def restarted() -> Translator:
    """The untrained translator of all tests of this file, with dropout."""
    return letters.restarted(dropout=DROPOUT)


def test_training_learns_and_keeps_the_best_model(files, tmp_path):
    """The model in `best` is the one that had the best BLEU."""
    translator = restarted()
    options = {"learning_rate": 0.03, "schedule": "linear", "warmup_steps": 10}
    recipe = replace(RECIPE, epochs=24, evaluate_every=80, **options)
    result = train(translator, files, recipe, tmp_path / "model")
    assert result.best_bleu > 80
    assert result.stopped_by == "epochs"
    assert result.steps == 240
    best = Translator.load(tmp_path / "model" / "best")
    assert best.habits.kept == ""  # no word of a source is in its target
    assert best.card.startswith("# model\n\nTrained on 2")  # letters are of no language
    assert "| text | 80 pairs |" in best.card
    assert f"; source {translator.source_text.vocabulary_size} words; target" in best.card
    assert f"BLEU {result.best_bleu:.2f} (10 pairs, greedy)" in best.card
    for weight, value in zip(translator.model.weights, best.model.weights, strict=True):
        weight.assign(value)
    translations = translator.translate(["a b", "c d h"], GREEDY)
    assert [translation.text for translation in translations] == ["A B", "C D H"]
    scores, _ = callbacks.evaluate(translator, files.dev, "13a", ["bleu", "ter"])
    assert scores["bleu"] == pytest.approx(result.best_bleu)
    log = log_of(tmp_path / "model")
    scores = [record["dev_bleu"] for record in log]
    assert max(scores) == pytest.approx(result.best_bleu)
    assert len(scores) == 3
    assert log[-1]["device"] == describe_device()


def test_batches_have_at_most_the_token_budget(files, tmp_path, monkeypatch):
    """No update has more tokens; an epoch has as many updates as counted."""
    cells, pairs = [], []

    def step(model, optimizer, features, *_):
        cells.append(max(int(tf.size(ids)) for ids in features.values()))
        pairs.append(len(features["source"]))
        return tf.constant(1.0)

    monkeypatch.setattr(update, "train_step", letters.stepping(step))
    # "once": all epochs have equally many batches.
    budget = {"token_budget": 30, "batch_size": 20, "shuffle": "once"}
    recipe = replace(RECIPE, **budget, epochs=2)
    alone = TextFiles(files.train_source, files.train_target)
    result = train(restarted(), alone, recipe, tmp_path / "model")
    assert result.steps == len(cells)
    assert sum(pairs) == 2 * 80
    assert sum(pairs[: len(pairs) // 2]) == 80
    assert 20 < max(cells) <= 30


def test_training_stops_if_bleu_does_not_improve(files, tmp_path, monkeypatch, capsys):
    """The weights do not change, and no word of the dev set is known."""
    letters.stand_in(monkeypatch)
    monkeypatch.setattr(update, "train_step", letters.stepping(lambda *_: tf.constant(1.0)))
    recipe = replace(RECIPE, epochs=50, patience=2)
    translator = restarted()
    unheard_of = tmp_path / "dev.target"
    unheard_of.write_text("X Y Z\n" * 10)
    files = replace(files, dev_target=str(unheard_of))
    result = train(translator, files, recipe, tmp_path / "model")
    assert result.stopped_by == "patience"
    assert result.steps == 3 * 10
    messages = capsys.readouterr().err
    count = sum(weight.size for weight in weights(translator))
    assert f"\n{count:,} weights, {4 * count / 1e6:.1f} MB\n" in f"\n{messages}"
    assert result.best_bleu == 0
    assert messages.count("dev BLEU (13a) is still below 1: the best model") == 1
    assert "too long" not in messages  # no line was too long


class NeverStopped(NamedTuple):
    """A training with dropout that was not interrupted.

    Attributes:
        weights: Its weights at the end.
        folder: Its folder at the end.
        early: The folder as it was after update 7.
    """

    weights: list[np.ndarray]
    folder: Path
    early: Path


@pytest.fixture(scope="module")
def never_stopped(files, tmp_path_factory) -> NeverStopped:
    folder = tmp_path_factory.mktemp("whole")
    early = tmp_path_factory.mktemp("early") / "model"
    whole = restarted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(callbacks, "evaluate", letters.stand_in_evaluate)
        before_update(8, lambda: shutil.copytree(folder, early), patch)
        train(whole, files, WHOLE, folder)
    return NeverStopped(weights(whole), folder, early)


@pytest.fixture
def same_evaluation(monkeypatch) -> None:
    """The one of `never_stopped`, without search."""
    monkeypatch.setattr(callbacks, "evaluate", letters.stand_in_evaluate)


def before_update(number: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Does something just before an update."""
    make_step = update.train_step

    def watched(*arguments):
        step = make_step(*arguments)
        calls = []

        def counted(*batch):
            calls.append(None)
            if len(calls) == number:
                act()
            return step(*batch)

        return counted

    monkeypatch.setattr(update, "train_step", watched)


def stopped_after(updates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends SIGTERM during an update."""
    before_update(updates, lambda: os.kill(os.getpid(), signal.SIGTERM), monkeypatch)


def check_resumed(resumed: Translator, folder: Path, never_stopped: NeverStopped) -> None:
    """Equal weights and an equal log."""
    log, whole_log = log_of(folder), log_of(never_stopped.folder)
    for name in ("step", "train_loss", "dev_loss", "dev_bleu", "learning_rate"):
        assert [record[name] for record in log] == pytest.approx(
            [record[name] for record in whole_log], rel=1e-5
        )
    seconds = [record["seconds"] for record in log]
    assert seconds == sorted(seconds)
    all_close(weights(resumed), never_stopped.weights, atol=2e-6)


@pytest.mark.usefixtures("same_evaluation")
def test_resumed_training_equals_uninterrupted_training(files, never_stopped):
    """From a checkpoint within an epoch, as after a power failure."""
    resumed = restarted()
    result = train(resumed, files, WHOLE, never_stopped.early)
    assert (result.stopped_by, result.steps) == ("epochs", 30)
    check_resumed(resumed, never_stopped.early, never_stopped)


@pytest.mark.slow
@pytest.mark.usefixtures("same_evaluation")
@pytest.mark.parametrize("stop_after", [1, 7, 10, 24])
def test_training_stopped_by_a_signal_equals_uninterrupted_training(
    files, tmp_path, monkeypatch, never_stopped, stop_after
):
    """Stopped by a signal and run again with more epochs: equal weights."""
    with monkeypatch.context() as patch:
        stopped_after(stop_after, patch)
        shorter = replace(WHOLE, epochs=2.5)
        first = train(restarted(), files, shorter, tmp_path)
    assert (first.stopped_by, first.steps) == ("signal", stop_after)
    assert first.signal == signal.SIGTERM
    resumed = restarted()
    result = train(resumed, files, WHOLE, tmp_path)
    assert (result.stopped_by, result.steps) == ("epochs", 30)
    last = log_of(tmp_path)[-1]["seconds"]
    assert first.seconds + result.seconds > last > first.seconds
    check_resumed(resumed, tmp_path, never_stopped)


@pytest.mark.usefixtures("same_evaluation")
def test_with_dev_a_signal_ends_training_without_an_evaluation(
    files, tmp_path, monkeypatch, capsys
):
    """The model is saved nonetheless, until an evaluation finds the best."""
    letters.stand_in(monkeypatch)
    with monkeypatch.context() as patch:
        stopped_after(3, patch)
        translator = restarted()
        result = train(translator, files, RECIPE, tmp_path)
    assert (result.stopped_by, result.steps) == ("signal", 3)
    assert "no evaluation yet" in str(result)
    messages = capsys.readouterr().err
    assert "best is the model after update 3, until" in messages
    assert "stopped at update 3, saved; the training can be resumed\n" in messages
    check_best(tmp_path, weights(translator))
    newest = tf.train.latest_checkpoint(tmp_path / "checkpoints")
    step = tf.train.load_variable(newest, "state/step/.ATTRIBUTES/VARIABLE_VALUE")
    assert step == 3
    names = "best checkpoints log.jsonl training.json training.lock"
    assert sorted(path.name for path in tmp_path.iterdir()) == names.split()
    (record,) = log_of(tmp_path)
    assert (record["step"], "dev_loss" in record) == (3, False)
    over = shutil.copytree(tmp_path, tmp_path.with_name("over"))
    for folder, updates in ((over, 3), (tmp_path, 5)):
        translator = restarted()
        limited = replace(RECIPE, updates=updates)
        result = train(translator, files, limited, folder)
        assert (result.stopped_by, result.steps) == ("updates", updates)
        assert np.isfinite(result.best_bleu)
        assert "until" not in capsys.readouterr().err
        check_best(folder, weights(translator))


def test_without_dev_the_last_model_is_kept(files, tmp_path, monkeypatch, capsys):
    """`best` is the model of the last update, also after a signal.

    More epochs may be asked for later: then the sentences, too, go on within
    the epoch that was interrupted, and so does the time. Each update adds 1 to
    each weight.
    """
    lines = []

    def plus_one(model, optimizer, features, *_):
        lines.append(features["source"].numpy().tolist())
        for weight in model.trainable_weights:
            weight.assign_add(np.ones(weight.shape))
        return tf.constant(1.0)

    letters.stand_in(monkeypatch)
    monkeypatch.setattr(update, "train_step", letters.stepping(plus_one))
    start = weights(restarted())
    alone = TextFiles(files.train_source, files.train_target)
    with monkeypatch.context() as patch:
        stopped_after(13, patch)
        short = replace(RECIPE, epochs=2)
        result = train(restarted(), alone, short, tmp_path)
    assert (result.stopped_by, result.steps) == ("signal", 13)
    assert "stopping after this update\n" in capsys.readouterr().err
    check_best(tmp_path, [weight + 13 for weight in start])
    first_seconds = result.seconds
    result = train(restarted(), alone, RECIPE, tmp_path)
    assert result.steps == 30
    assert np.isnan(result.best_bleu)
    last = log_of(tmp_path)[-1]["seconds"]
    assert first_seconds + result.seconds > last > first_seconds
    first, *others = (
        sorted([*filter(None, line)] for batch in lines[n : n + 10] for line in batch)
        for n in (0, 10, 20)
    )
    assert len(first) == 80
    assert others == [first, first]
    check_best(tmp_path, [weight + 30 for weight in start])


def check_best(folder: Path, wanted: list[np.ndarray]) -> None:
    best = Translator.load(folder / "best")
    all_close(weights(best), wanted, rtol=1e-5)


def test_a_second_interrupt_ends_training_at_once():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    messages: list[str] = []
    with signals_caught(messages.append) as came:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert came == [signal.SIGTERM, signal.SIGTERM, signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    after = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert after == before
    assert len(messages) == 1  # at the first


def test_ctrl_c_is_answered_once(monkeypatch, capfd):
    """By the training; the command, which answers while a training cannot, says no more."""
    monkeypatch.setattr(terminal, "GRACE", 0.01)
    messages: list[str] = []
    with terminal.ended_by_two_interrupts("it"):
        with signals_caught(messages.append) as came:
            os.kill(os.getpid(), signal.SIGINT)
            assert not is_said(capfd)
        assert came == [signal.SIGINT]
        assert len(messages) == 1
    with terminal.ended_by_two_interrupts("it"):
        before = signal.signal(signal.SIGINT, lambda *_: None)
        os.kill(os.getpid(), signal.SIGINT)
        signal.signal(signal.SIGINT, before)
        assert is_said(capfd)


def is_said(capfd) -> bool:
    """Whether the command says in the next second that it is stopping."""
    for _ in range(20):
        time.sleep(0.05)
        if "stopping" in capfd.readouterr().err:
            return True
    return False


def test_a_training_that_is_told_to_ignore_ctrl_c_does_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_caught(lambda _: None) as came:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
        assert came == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("same_evaluation")
def test_a_finished_training_does_nothing_if_run_again(files, never_stopped, tmp_path, monkeypatch):
    finished = shutil.copytree(never_stopped.folder, tmp_path / "finished")
    letters.stand_in(monkeypatch)

    def of_best():
        return [path.read_bytes() for path in sorted(finished.glob("best/*.*"))]

    before = of_best(), log_of(finished)
    other = replace(WHOLE, batch_size=9)
    refused(lambda: train(restarted(), files, other, finished), "batch_size", "9", "8")
    result = train(restarted(), files, WHOLE, finished)
    assert (result.steps, result.words_per_second) == (30, 0.0)
    assert not np.isnan(result.best_bleu)
    assert len(before[0]) >= 2
    assert (of_best(), log_of(finished)) == before


def test_text_and_recipe_are_not_taken_for_one_another(files, tmp_path):
    for name, arguments in {
        "corpus": (("a", "b"), RECIPE, tmp_path, None),
        "recipe": (files.corpus, files.dev, tmp_path, None),
        "dev": (files.corpus, RECIPE, tmp_path, ("a", "b")),
    }.items():
        refused(
            lambda own=arguments: loop.train(restarted(), *own[:3], dev=own[3]), f"train: {name} "
        )


def test_fit_makes_the_same_updates_as_train(files, never_stopped):
    """A Keras user's `fit` on `make_dataset` equals our own loop."""
    theirs = letters.make_translator(dropout=DROPOUT)
    options = {"batch_size": 8, "pool_batches": 2, "shuffle": "each_epoch", "shuffle_pool": True}
    texts = theirs.source_text, theirs.target_text
    dataset = make_dataset(files.corpus, *texts, **options, seed=WHOLE.seed)
    # Keras warns if the number of batches is unknown.
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(10))
    theirs.model.compile(make_optimizer(WHOLE, Schedule(WHOLE, 10)), TokenCrossentropy())
    history = theirs.model.fit(dataset, epochs=3, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    # Adam makes a rounding of a tiny gradient visible.
    all_close(weights(theirs), never_stopped.weights, atol=3e-5)


def test_newer_options_of_a_recipe_move_no_older_ones():
    """By position they are those that there were at first."""
    first = ("adam", 0.1, "linear", 7, 0.25, 2.0, 0.1, 3.0, 8, 20, 4, True)
    recipe = Recipe(*first, "none", True, 2.0, 6, 9, 11)
    assert (recipe.divisor, recipe.batch_size, recipe.max_length) == (3, 8, 20)
    assert (recipe.shuffle, recipe.sample_subwords) == ("none", True)
    assert (recipe.epochs, recipe.patience, recipe.seed) == (2.0, 9, 11)


def test_an_unknown_recipe_is_refused():
    refused(lambda: Recipe.from_preset("soup"), "'soup'", "name")
