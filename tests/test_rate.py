"""The learning rate of a training, and its ends by updates."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import keras
import letters
import numpy as np
import pytest
from letters import RECIPE, log_of, restarted

from bahdanau_tf.commands.main import main
from bahdanau_tf.options import Recipe
from bahdanau_tf.training import loop, train
from bahdanau_tf.training.dev import Evaluation
from bahdanau_tf.training.run import Rate, make_optimizer

files = letters.files  # the fixture
FIVES = replace(RECIPE, epochs=3, evaluate_every=5, learning_rate=0.08)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(loop, "train_step", letters.stand_in_step)
    same = Evaluation(1.0, 1.0, [])
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: same)


class Rates(keras.callbacks.Callback):
    """Keeps the learning rate with which each update was made."""

    def __init__(self, optimizers: list) -> None:
        super().__init__()
        self.values: list[float] = []
        self._optimizers = optimizers

    def on_train_batch_end(self, batch, logs=None):
        self.values.append(float(self._optimizers[-1].learning_rate))


@pytest.fixture
def rates(monkeypatch) -> Rates:
    """Of constant rates; a schedule would be one update ahead."""
    optimizers = []

    def noted(model, optimizer, *others):
        optimizers.append(optimizer)
        return letters.stand_in_step(model, optimizer, *others)

    monkeypatch.setattr(loop, "train_step", noted)
    return Rates(optimizers)


def test_on_a_plateau_the_rate_is_halved(files, tmp_path, monkeypatch, rates):
    """Also after a pause; the model of evaluation 2 is the best for long."""
    bleu = iter([1.0, 5.0, 2.0, 3.0, 4.0, 4.5, 6.0, 5.0, 5.5, 5.6])
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: Evaluation(next(bleu), 1.0, []))
    recipe = replace(FIVES, schedule="plateau", plateau=2)
    for epochs in (2.3, 4.5):  # the first run ends with an evaluation, too
        recipe = replace(recipe, epochs=epochs)
        train(restarted(), files, recipe, tmp_path, callbacks=[rates])
    # Evaluations after 5, 10, 15, 20, 23, 25, 30, 35, 40 and 45 updates.
    halved = [0.08] * 20 + [0.04] * 5 + [0.02] * 15 + [0.01] * 5
    assert rates.values == pytest.approx(halved)
    logged = [record["learning_rate"] for record in log_of(tmp_path)]
    assert logged[:4] == pytest.approx([0.08] * 4)


def test_the_loss_may_decide_when_a_training_ends(files, tmp_path, monkeypatch, rates):
    """BLEU rises at each evaluation; the loss is lowest at the second."""
    found = [(1.0, 3.0), (2.0, 2.0), (3.0, 2.1), (4.0, 2.2), (5.0, 2.3)]
    results = iter([Evaluation(*one, []) for one in found])
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: next(results))
    recipe = replace(FIVES, monitor="loss", patience=3, schedule="plateau", plateau=2)
    result = train(restarted(), files, recipe, tmp_path, callbacks=[rates])
    assert (result.stopped_by, result.steps) == ("patience", 25)
    assert result.best_bleu == 2.0
    assert rates.values == pytest.approx([0.08] * 20 + [0.04] * 5)
    by_bleu = replace(recipe, monitor="bleu", epochs=9)
    with pytest.raises(ValueError, match="--monitor is 'bleu', but 'loss' in"):
        train(restarted(), files, by_bleu, tmp_path)


def test_a_plateau_needs_a_dev_set(files, tmp_path, capsys):
    alone = replace(files, dev_source=None, dev_target=None)
    recipe = replace(FIVES, schedule="plateau")
    with pytest.raises(ValueError, match="'plateau' without a dev set"):
        train(restarted(), alone, recipe, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    flags = [
        "--recipe=paper",
        "--schedule=plateau",
        f"--train_source={files.train_source}",
        f"--train_target={files.train_target}",
        f"--model_dir={tmp_path / 'model'}",
    ]
    assert main(["train", *flags]) == 2
    assert "--schedule=plateau needs --dev_source" in capsys.readouterr().err


def test_a_resumed_training_may_have_another_rate(files, tmp_path, rates, capsys):
    recipes = [
        replace(FIVES, epochs=1),
        replace(FIVES, epochs=2, learning_rate=0.01),
        replace(FIVES, epochs=3, learning_rate=0.01),
    ]
    said = []
    for recipe in recipes:
        train(restarted(), files, recipe, tmp_path, callbacks=[rates])
        said.append("--learning_rate is 0.01 from now on, it was 0.08\n" in capsys.readouterr().err)
    assert rates.values == pytest.approx([0.08] * 10 + [0.01] * 20)
    assert said == [False, True, False]


def test_the_peak_of_a_schedule_may_change(files, tmp_path):
    """It falls from 0.5 of 30 updates on, to 2 %."""
    linear = replace(FIVES, schedule="linear", warmup_steps=1, updates=30)
    train(restarted(), files, replace(linear, updates=20), tmp_path)
    lower = replace(linear, learning_rate=0.01)
    train(restarted(), files, lower, tmp_path)
    logged = {one["step"]: one["learning_rate"] for one in log_of(tmp_path)}
    assert logged[20] == pytest.approx(0.08 * 0.02)
    assert logged[25] == pytest.approx(0.01 * (1 - 0.98 * 10 / 15))
    assert logged[30] == pytest.approx(0.01 * 0.02)


def test_training_ends_after_a_number_of_updates(files, tmp_path):
    """Or after the epochs, of which each has 10 updates."""
    ends = []
    for updates, epochs in ((13, 3), (17, 3), (10, 3), (0, 2), (99, 2.5)):
        recipe = replace(FIVES, updates=updates, epochs=epochs)
        result = train(restarted(), files, recipe, tmp_path)
        ends.append((result.stopped_by, result.steps))
    assert ends == [
        ("updates", 13),
        ("updates", 17),
        ("updates", 17),  # fewer than there are
        ("epochs", 20),
        ("epochs", 25),
    ]
    steps = [record["step"] for record in log_of(tmp_path)]
    assert steps == [5, 10, 13, 15, 17, 20, 25]


def test_inverse_sqrt_is_a_schedule_of_the_recipe():
    recipe = replace(FIVES, schedule="inverse_sqrt", warmup_steps=100)
    optimizer = make_optimizer(recipe, 10)
    found = []
    for step in (49, 99, 399):
        optimizer.iterations.assign(step)
        found.append(float(optimizer.learning_rate))
    assert found == pytest.approx([0.04, 0.08, 0.04])
    assert set(recipe.unused()) >= {"constant_share", "plateau"}
    assert "warmup_steps" not in recipe.unused()


def test_pairs_left_out_are_counted_if_an_update_begins_in_the_next_epoch(files, tmp_path, capsys):
    """With 3 batches an update; the number is counted in the text itself."""
    with open(files.train_source, encoding="utf-8") as file:
        long = sum(len(line.split()) > 4 for line in file)
    recipe = replace(FIVES, max_length=4, accumulate=3, epochs=2)
    result = train(restarted(), files, recipe, tmp_path)
    assert make_optimizer(recipe, 4).accumulation_steps == 3
    assert long % 24
    assert result.steps == 7  # 20 batches, and one of the third epoch
    said = capsys.readouterr().err
    told = f"{long} sentence pairs left out, with more than 4 tokens\n"
    assert said.count(told) == 1


def test_pairs_that_fit_are_told_before_the_first_update(files, tmp_path, capsys):
    with open(files.train_source, encoding="utf-8") as file:
        lengths = [len(line.split()) for line in file]
    short = sum(length <= 4 for length in lengths)
    recipe = replace(FIVES, max_length=4, epochs=1)
    for is_new in (True, False):
        train(restarted(), files, recipe, tmp_path)
        said = capsys.readouterr().err
        told = f"{short} of {len(lengths)} sentence pairs have 1 to 4 tokens"
        place = said.find(told)
        assert (0 <= place < said.find("making the graph")) is is_new


def test_pairs_left_out_of_the_only_epoch_are_told(files, tmp_path, capsys):
    """Once, although no batch of another epoch is read, nor told again."""
    with open(files.train_source, encoding="utf-8") as file:
        long = sum(len(line.split()) > 4 for line in file)
    recipe = replace(FIVES, max_length=4, epochs=1)
    for told in (1, 0):
        train(restarted(), files, recipe, tmp_path)
        said = capsys.readouterr().err
        assert said.count(f"{long} sentence pairs left out, with") == told


@pytest.mark.parametrize(("accumulate", "epochs", "updates"), [(7, 3, 5), (10, 3, 3), (40, 1, 1)])
def test_an_epoch_is_a_pass_also_with_accumulated_batches(
    files, tmp_path, accumulate, epochs, updates
):
    """The last update alone reads more than `epochs` times the 80 pairs."""
    recipe = replace(RECIPE, accumulate=accumulate, epochs=epochs)
    result = train(restarted(), files, recipe, tmp_path)
    assert result.steps == updates
    last = log_of(tmp_path)[-1]
    assert last["step"] == updates
    assert last["epoch"] == pytest.approx(updates * accumulate * 8 / 80)


def test_epochs_are_not_rounded_up_to_another_update():
    assert 0.07 * 100 > 7
    assert replace(RECIPE, epochs=0.07).total_updates(100) == 7
    assert replace(RECIPE, epochs=1e-8).total_updates(100) == 1


@pytest.mark.slow
def test_accumulated_batches_are_like_a_larger_one(files, tmp_path, monkeypatch):
    """Half of the size, twice as many; the pools are the same."""
    monkeypatch.undo()  # real updates
    same = Evaluation(1.0, 1.0, [])
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: same)
    found, losses = [], []
    large = replace(RECIPE, optimizer="sgd", epochs=1.2, shuffle_pool=False, max_norm=2.0)
    for name, recipe in (
        ("large", replace(large, learning_rate=0.05, divisor=2.0)),
        ("small", replace(large, learning_rate=0.05, batch_size=4, pool_batches=4, accumulate=2)),
    ):
        translator = letters.make_translator()
        result = train(translator, files, recipe, tmp_path / name)
        assert result.steps == 12
        found.append(letters.weights(translator))
        losses.append([one["train_loss"] for one in log_of(tmp_path / name)])
    start = letters.weights(letters.make_translator())
    moved = [abs(a - b).max() for a, b in zip(start, found[0], strict=True)]
    assert max(moved) > 0.01
    for one, other in zip(*found, strict=True):
        assert other == pytest.approx(one, abs=1e-5)
    for one, other in itertools.pairwise(losses):
        assert other == pytest.approx(one, rel=1e-5)


@pytest.mark.parametrize("total", [40, 1000])
def test_cosine_is_the_half_cosine_after_a_warm_up(total):
    """Loshchilov and Hutter 2017, equation 5, from the peak to 2 % of it."""
    recipe = Recipe(learning_rate=0.3, schedule="cosine", warmup_steps=10, epochs=total / 10)
    schedule = Rate(recipe, 10).value
    steps = np.arange(total + 5, dtype=np.float64)
    over = np.clip((steps - 10) / (total - 10), 0, 1)
    falling = 0.3 * (0.02 + 0.98 * (1 + np.cos(np.pi * over)) / 2)
    expected = np.where(steps < 10, 0.3 * steps / 10, falling)
    assert [float(schedule(step)) for step in steps] == pytest.approx(expected, rel=1e-4)
    assert {*recipe.unused()} >= {"constant_share", "plateau"}
    assert "warmup_steps" not in recipe.unused()


def test_a_training_with_a_cosine_resumes(files, tmp_path):
    recipe = replace(FIVES, schedule="cosine", warmup_steps=2, updates=30)
    for updates in (12, 30):
        train(restarted(), files, replace(recipe, updates=updates), tmp_path)
    logged = {record["step"]: record["learning_rate"] for record in log_of(tmp_path)}
    assert logged[15] == pytest.approx(0.08 * (0.02 + 0.98 * (1 + math.cos(math.pi * 13 / 28)) / 2))
    assert logged[30] == pytest.approx(0.08 * 0.02)


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [
        ("ExponentialDecay(rate, total, 0.5)", 10, 0.08 * 0.5**0.5),
        ("ExponentialDecay(rate, decay_steps=5, decay_rate=0.5)", 10, 0.02),
        ("CosineDecay", 10, 0.04),
        ("PiecewiseConstantDecay([5, 8], [1.0, 0.5, 0.25])", 7, 0.5),
    ],
)
def test_a_schedule_may_be_a_class_of_keras(schedule, step, expected):
    recipe = replace(FIVES, schedule=schedule, epochs=2)
    assert float(Rate(recipe, 10).value(step)) == pytest.approx(expected)
    assert {*recipe.unused()} >= {"constant_share", "plateau", "warmup_steps"}


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("lunar", r"schedule is 'lunar', wanted one of \['constant', 'cosine'"),
        ("Cosine(lunar)", "wanted one of"),
        ("CosineDecay(open('x'))", "wanted one of"),
        ("NoSuchDecay", "keras.optimizers.schedules has no class NoSuchDecay"),
        ("PiecewiseConstantDecay([5], [1.0])", "cannot be made"),
        ("ExponentialDecay", "cannot be made: .*decay_rate"),
    ],
)
def test_other_schedules_are_refused(schedule, message):
    with pytest.raises(ValueError, match=message):
        Rate(replace(FIVES, schedule=schedule), 10)
