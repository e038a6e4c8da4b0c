"""The learning rate and the ends of a training, by updates and by a clock."""

from __future__ import annotations

import itertools
import math
import signal
from dataclasses import replace

import keras
import letters
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st
from letters import RECIPE, log_of, restarted, scored, train
from refusals import refused

from bahdanau_tf.data.dataset import Position, stream_batches
from bahdanau_tf.optimizers import WarmupLinearDecay
from bahdanau_tf.training import Recipe, callbacks, loop, update
from bahdanau_tf.training.schedule import Schedule, make_optimizer

files = letters.files  # the fixture
FIVES = replace(RECIPE, epochs=3, evaluate_every=5, learning_rate=0.08)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    letters.stand_in(monkeypatch)
    same = scored(1.0, 1.0)
    monkeypatch.setattr(callbacks, "evaluate", lambda *_: same)


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

    monkeypatch.setattr(update, "train_step", noted)
    return Rates(optimizers)


def test_on_a_plateau_the_rate_is_halved(files, tmp_path, monkeypatch, rates):
    """Also after a pause; the model of evaluation 2 is the best for long."""
    bleu = iter([1.0, 5.0, 2.0, 3.0, 4.0, 4.5, 6.0, 5.0, 5.5, 5.6])
    monkeypatch.setattr(callbacks, "evaluate", lambda *_: scored(next(bleu), 1.0))
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
    scores = [(1.0, 3.0), (2.0, 2.0), (3.0, 2.1), (4.0, 2.2), (5.0, 2.3)]
    results = iter([scored(*pair) for pair in scores])
    monkeypatch.setattr(callbacks, "evaluate", lambda *_: next(results))
    recipe = replace(FIVES, monitor="loss", patience=3, schedule="plateau", plateau=2)
    result = train(restarted(), files, recipe, tmp_path, callbacks=[rates])
    assert (result.stopped_by, result.steps) == ("patience", 25)
    assert result.best_bleu == 2.0
    assert rates.values == pytest.approx([0.08] * 20 + [0.04] * 5)
    by_bleu = replace(recipe, monitor="bleu", epochs=9)
    refused(lambda: train(restarted(), files, by_bleu, tmp_path), "'bleu'", "'loss'", "monitor")


def test_a_plateau_needs_a_dev_set(files, tmp_path):
    alone = replace(files, dev_source=None, dev_target=None)
    recipe = replace(FIVES, schedule="plateau")
    refused(lambda: train(restarted(), alone, recipe, tmp_path / "model"), "'plateau'", "dev")
    assert not (tmp_path / "model").exists()


def test_a_resumed_training_may_have_another_rate(files, tmp_path, rates, capsys):
    recipes = [
        replace(FIVES, epochs=1),
        replace(FIVES, epochs=2, learning_rate=0.01),
        replace(FIVES, epochs=3, learning_rate=0.01),
    ]
    said = []
    for recipe in recipes:
        train(restarted(), files, recipe, tmp_path, callbacks=[rates])
        said.append("learning_rate is 0.01 from now on; it was 0.08\n" in capsys.readouterr().err)
    assert rates.values == pytest.approx([0.08] * 10 + [0.01] * 20)
    assert said == [False, True, False]


def test_the_peak_of_a_schedule_may_change(files, tmp_path):
    """It falls from 0.5 of 30 updates on, to 2 %."""
    linear = replace(FIVES, schedule="linear", warmup_steps=1, updates=30)
    train(restarted(), files, replace(linear, updates=20), tmp_path)
    lower = replace(linear, learning_rate=0.01)
    train(restarted(), files, lower, tmp_path)
    logged = {record["step"]: record["learning_rate"] for record in log_of(tmp_path)}
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
    optimizer = make_optimizer(recipe, Schedule(recipe, 10))
    rates = []
    for step in (49, 99, 399):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    assert rates == pytest.approx([0.04, 0.08, 0.04])
    assert set(recipe.unused()) >= {"constant_share", "plateau"}
    assert "warmup_steps" not in recipe.unused()


@pytest.fixture
def lengths(files, monkeypatch) -> list[int]:
    """Of the sentences; the batches are the real ones, which leave out long pairs."""
    monkeypatch.setattr(loop, "stream_batches", stream_batches)
    with open(files.train_source, encoding="utf-8") as file:
        return [len(line.split()) for line in file]


def test_pairs_left_out_are_counted_if_an_update_begins_in_the_next_epoch(
    files, tmp_path, capsys, lengths
):
    """With 3 batches an update; the number is counted in the text itself."""
    long = sum(length > 4 for length in lengths)
    recipe = replace(FIVES, max_length=4, accumulate=3, epochs=2)
    result = train(restarted(), files, recipe, tmp_path)
    assert make_optimizer(recipe, Schedule(recipe, 4)).accumulation_steps == 3
    assert long % 24
    assert result.steps == 7  # 20 batches, and one of the third epoch
    message = f"{long} pairs left out: more than 4 tokens\n"
    assert capsys.readouterr().err.count(message) == 1


def test_pairs_that_fit_and_those_left_out_are_printed_once(files, tmp_path, capsys, lengths):
    """The first before the first update; the others even if no other epoch is read."""
    short = sum(length <= 4 for length in lengths)
    assert short > 40  # so two batches are an epoch, with those left out as without
    recipe = replace(FIVES, max_length=4, epochs=1, batch_size=40)
    for is_new in (True, False):
        train(restarted(), files, recipe, tmp_path)
        err = capsys.readouterr().err
        place = err.find(f"{short} of {len(lengths)} pairs have 1 to 4 tokens")
        assert (0 <= place < err.find("building the graph")) is is_new
        assert err.count(f"{len(lengths) - short} pairs left out: ") == is_new


@pytest.mark.parametrize(("accumulate", "epochs", "updates"), [(7, 3, 5), (40, 1, 1)])
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


@pytest.mark.slow
def test_accumulated_batches_are_like_a_larger_one(files, tmp_path, monkeypatch):
    """Half of the size, twice as many; the pools are the same."""
    monkeypatch.undo()  # real updates
    same = scored(1.0, 1.0)
    monkeypatch.setattr(callbacks, "evaluate", lambda *_: same)
    all_weights, losses = [], []
    large = replace(RECIPE, optimizer="sgd", epochs=1.2, shuffle_pool=False, max_norm=2.0)
    for name, recipe in (
        ("large", replace(large, learning_rate=0.05, divisor=2.0)),
        ("small", replace(large, learning_rate=0.05, batch_size=4, pool_batches=4, accumulate=2)),
    ):
        translator = letters.make_translator()
        result = train(translator, files, recipe, tmp_path / name)
        assert result.steps == 12
        all_weights.append(letters.weights(translator))
        losses.append([record["train_loss"] for record in log_of(tmp_path / name)])
    start = letters.weights(letters.make_translator())
    moved = [abs(a - b).max() for a, b in zip(start, all_weights[0], strict=True)]
    assert max(moved) > 0.01
    for large_weight, small_weight in zip(*all_weights, strict=True):
        assert small_weight == pytest.approx(large_weight, abs=1e-5)
    for large_losses, small_losses in itertools.pairwise(losses):
        assert small_losses == pytest.approx(large_losses, rel=1e-5)


def test_epochs_are_not_rounded_up_to_another_update():
    assert 0.07 * 100 > 7
    assert replace(RECIPE, epochs=0.07).total_updates(100) == 7
    assert replace(RECIPE, epochs=1e-8).total_updates(100) == 1


@pytest.mark.parametrize("total", [40, 1000])
def test_cosine_is_the_half_cosine_after_a_warm_up(total):
    """Loshchilov and Hutter 2017, equation 5, from the peak to 2 % of it."""
    recipe = Recipe(learning_rate=0.3, schedule="cosine", warmup_steps=10, epochs=total / 10)
    schedule = Schedule(recipe, 10).rate
    steps = np.arange(0, total + 5, total // 40, dtype=np.float64)
    over = np.clip((steps - 10) / (total - 10), 0, 1)
    falling = 0.3 * (0.02 + 0.98 * (1 + np.cos(np.pi * over)) / 2)
    expected = np.where(steps < 10, 0.3 * steps / 10, falling)
    assert [float(schedule(step)) for step in steps] == pytest.approx(expected, rel=1e-4)
    assert {*recipe.unused()} >= {"constant_share", "plateau"}
    assert "warmup_steps" not in recipe.unused()


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [
        ("ExponentialDecay(rate, total, 0.5)", 10, 0.08 * 0.5**0.5),
        ("ExponentialDecay(rate, decay_steps=5, decay_rate=0.5)", 10, 0.02),
        ("CosineDecay", 10, 0.04),
        ("halved", 49, 0.08),
        ("halved", 50, 0.04),
        ("halved", 74, 0.08 / 32),
        ("PiecewiseConstantDecay([5, 8], [1.0, 0.5, 0.25])", 7, 0.5),
    ],
)
def test_a_schedule_may_be_a_class_of_ours_or_of_keras(schedule, step, expected):
    recipe = replace(FIVES, schedule=schedule, epochs=2)
    assert float(Schedule(recipe, 10).rate(step)) == pytest.approx(expected)
    assert {*recipe.unused()} >= {"constant_share", "plateau", "warmup_steps"}


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("lunar", "'lunar' ['constant' 'cosine'"),
        ("Cosine(lunar)", ""),
        ("CosineDecay(open('x'))", ""),
        ("NoSuchDecay", "keras.optimizers.schedules NoSuchDecay class"),
        ("PiecewiseConstantDecay([5], [1.0])", "made"),
        ("ExponentialDecay", "made decay_rate"),
    ],
)
def test_other_schedules_are_refused(schedule, message):
    refused(lambda: Schedule(replace(FIVES, schedule=schedule), 10), *message.split())


@pytest.fixture
def alone(files):
    """Without a dev set, so that evaluations take no time."""
    return replace(files, dev_source=None, dev_target=None)


TIMED = replace(
    RECIPE,
    schedule="linear",
    warmup_steps=3,
    learning_rate=0.02,
    epochs=1000,
    minutes=1.0,
    evaluate_every=20,
)


# The rate of a training of limited time, and its end, by a clock.


@given(
    st.integers(1, 500),
    st.integers(0, 500),
    st.integers(0, 50),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_by_updates_the_rate_is_that_of_the_schedule(total, step, warmup_steps, constant_share):
    recipe = Recipe(
        learning_rate=0.5,
        schedule="linear",
        warmup_steps=warmup_steps,
        constant_share=constant_share,
        minutes=5,
    )
    step = min(step, total - 1)
    by_updates = WarmupLinearDecay(0.5, total, warmup_steps, constant_share)
    if warmup_steps <= total // 10 and total * (1 - constant_share) >= 1:
        (followed,) = rates_after(recipe, step, [step / total])
        assert followed == pytest.approx(float(by_updates(step)), rel=1e-3)


def rates_after(recipe, updates, shares):
    """The rates after so many updates, if these shares of the time are over."""
    timed, rates = Schedule(replace(recipe, epochs=10**6), 100), []
    for share in shares:
        timed.follow(updates, share)
        rates.append(float(timed.rate(updates)))
    return rates


@pytest.mark.parametrize("schedule", ["linear", "cosine", "PolynomialDecay(rate, total, 0.00002)"])
@given(st.lists(st.floats(0.01, 1), min_size=2), st.integers(300, 9000))
@settings(max_examples=25)
def test_the_rate_never_rises_after_the_warm_up(schedule, shares, updates):
    recipe = Recipe(optimizer="adam", schedule=schedule, minutes=1)
    *rates, last = rates_after(recipe, updates, [*sorted(shares), 1.0])
    assert all(after <= before * (1 + 1e-5) for before, after in itertools.pairwise(rates))
    assert last == pytest.approx(0.02 * recipe.rate, rel=1e-3)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_warm_up_is_over_after_a_tenth_of_the_time(schedule):
    recipe = Recipe(learning_rate=1.0, schedule=schedule, minutes=1)
    rates = rates_after(recipe, 38, [1e-4, 0.05, 0.1])
    first = schedule == "linear"  # Keras' update n has the rate of n - 1
    assert rates == pytest.approx([(38 + first) / 200, (38 + first) / 76, 1], abs=1e-4)


def test_the_larger_share_counts_and_time_is_kept_for_an_evaluation():
    now = [1000.0]
    paced = Schedule(Recipe(minutes=2.0, epochs=1), 100, clock=lambda: now[0])
    paced.resume(used=30.0)
    now[0] += 500.0  # the graph is made
    assert paced.seconds == 30
    paced.begin()
    assert paced.seconds == 30
    assert paced.share(10) == pytest.approx(30 / 108)  # a tenth is kept
    assert paced.share(50) == 0.5
    with paced.evaluating():
        now[0] += 20
    assert paced.share(0) == pytest.approx(50 / 100)
    assert paced.seconds_left == 50
    now[0] += 49.9
    assert not paced.is_out_of_time
    now[0] += 0.2
    assert paced.is_out_of_time
    assert paced.share(0) == 1


def test_a_shorter_evaluation_than_expected_does_not_undo_a_share():
    now = [0.0]
    paced = Schedule(Recipe(minutes=1.0, epochs=10), 10**5, clock=lambda: now[0])
    paced.begin()
    now[0] = 40.0
    paced.begin()  # it has begun
    assert paced.share(1) == pytest.approx(40 / 54)
    with paced.evaluating():
        now[0] += 1
    assert paced.seconds_left == 18
    assert paced.share(1) == pytest.approx(40 / 54)
    now[0] += 9
    assert paced.share(1) == pytest.approx(50 / 59)


def test_a_training_whose_time_was_over_is_over_for_the_next_run():
    """Although its first evaluation was shorter than what was kept for it."""
    now = [0.0]
    paced = Schedule(Recipe(minutes=10.0, epochs=10), 10**5, clock=lambda: now[0])
    paced.begin()
    now[0] = 541.0
    assert paced.is_out_of_time
    with paced.evaluating():
        now[0] += 5
    again = Schedule(Recipe(minutes=10.0, epochs=10), 10**5, clock=lambda: now[0])
    again.resume(paced.seconds, paced.longest)
    assert again.is_out_of_time
    assert again.share(1) == 1.0


def test_without_a_limit_time_does_not_matter():
    now = [0.0]
    paced = Schedule(Recipe(epochs=1), 10, clock=lambda: now[0])
    paced.begin()
    now[0] = 1e9
    assert paced.seconds_left == math.inf
    assert not paced.is_out_of_time
    assert paced.share(4) == 0.4


GRAPH = 100.0  # seconds; more than a training may last


class Clock:
    """Each update takes a second of it, and learns nothing from no text.

    The first one of a run also makes the graph.
    """

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.rates: list[float] = []

        def step_of(model, optimizer, *_):
            optimizer.build(model.trainable_variables)
            seconds = itertools.chain([GRAPH + 1.0], itertools.repeat(1.0))

            def ticking(*_):
                self.now += next(seconds)
                self.rates.append(float(optimizer.learning_rate))
                optimizer.iterations.assign_add(1)
                return tf.constant(1.0)

            return ticking

        ids = tf.ones([1, 1], tf.int32)
        batch = {"source": ids, "target": ids}, ids, tf.ones([1, 1])
        endless = itertools.repeat((batch, Position(), tf.zeros(1, tf.int64)))
        monkeypatch.setattr(loop, "stream_batches", lambda *_: endless)
        monkeypatch.setattr(update, "train_step", step_of)
        monkeypatch.setattr(loop.Cluster, "clock", lambda _: self.now)


def test_an_update_uses_the_share_that_was_assigned():
    """Of 50 updates, then of 50 / 0.6: the rate falls after the half."""
    recipe = Recipe("sgd", 1.0, schedule="linear", warmup_steps=0, max_norm=9.0, minutes=1)
    schedule = Schedule(recipe, 10)
    optimizer = make_optimizer(recipe, schedule)
    weight = tf.Variable([0.0])
    optimizer.build([weight])

    @tf.function
    def update():
        optimizer.apply([tf.constant([1.0])], [weight])

    optimizer.iterations.assign(50)
    for share in (0.5, 0.75):
        schedule.follow(int(optimizer.iterations), share)
        update()
    assert weight.numpy() == pytest.approx([-1.0 - (1 - 0.98 / 2)])


def test_time_ends_a_training_and_lets_the_rate_fall(alone, tmp_path, monkeypatch, capsys):
    clock = Clock(monkeypatch)
    result = train(restarted(), alone, TIMED, tmp_path)
    assert (result.stopped_by, result.seconds) == ("minutes", 60.0)
    assert result.steps == 61  # the time begins after the first one
    assert log_of(tmp_path)[-1]["step"] == 61
    rates = clock.rates
    assert rates[:4] == pytest.approx([0.02 / 3, 0.04 / 3, 0.02, 0.02])
    assert rates[30] == pytest.approx(0.02)
    falls = [rate - next_rate for rate, next_rate in itertools.pairwise(rates[32:])]
    assert falls == pytest.approx([0.02 * 0.98 / 30] * 28, rel=1e-3)
    # All is over; the same command does nothing, more time goes on.
    capsys.readouterr()
    assert train(restarted(), alone, TIMED, tmp_path).steps == 61
    said = capsys.readouterr().err
    assert "\nnothing left to do: time limit reached, 1.0 of minutes=1" in said
    assert "graph" not in said
    longer = replace(TIMED, minutes=1.5)
    result = train(restarted(), alone, longer, tmp_path)
    assert (result.steps, result.seconds) == (92, 30.0)
    assert len(rates) == 92
    assert rates[87] == pytest.approx(0.02 * (1 - 0.98 * 8 / 9), rel=1e-3)


@pytest.mark.parametrize(
    ("limit", "steps"),
    [
        ({}, 35),
        ({"minutes": 0, "epochs": 6}, 35),
        ({"minutes": 0, "epochs": 6, "constant_share": 1.0}, 10),
    ],
)
def test_patience_waits_until_the_rate_falls(limit, steps, files, tmp_path, monkeypatch):
    """Nothing is learned, so each evaluation is as bad as the first."""
    Clock(monkeypatch)
    recipe = replace(TIMED, patience=1, evaluate_every=5, **limit)
    result = train(restarted(), files, recipe, tmp_path)
    assert (result.stopped_by, result.steps) == ("patience", steps)


def test_patience_waits_again_if_with_more_epochs_the_rate_rises(files, tmp_path):
    recipe = replace(TIMED, patience=1, evaluate_every=5, minutes=0)
    for epochs, steps in ((6, 35), (6, 35), (12, 65)):
        longer = replace(recipe, epochs=epochs)
        result = train(restarted(), files, longer, tmp_path)
        assert (result.stopped_by, result.steps) == ("patience", steps)


@pytest.mark.parametrize(("minutes", "steps"), [(1.0, 56), (0.8, 50)])
def test_after_a_signal_near_the_end_no_time_and_no_update_is_lost(
    minutes, steps, files, tmp_path, monkeypatch
):
    """Evaluations after 20 and 40 updates and at the end, of 2 s each."""
    clock = Clock(monkeypatch)

    def evaluate(*_):
        clock.now += 2.0
        return scored(clock.now, 1.0)

    def interrupt(batch, logs):
        if clock.now == GRAPH + 54.0:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(callbacks, "evaluate", evaluate)
    ctrl_c = keras.callbacks.LambdaCallback(on_train_batch_end=interrupt)
    broken = train(restarted(), files, TIMED, tmp_path, callbacks=[ctrl_c])
    assert (broken.stopped_by, broken.steps) == ("signal", 50)
    assert [record["step"] for record in log_of(tmp_path)] == [20, 40]
    recipe = replace(TIMED, minutes=minutes)
    for _ in "more", "nothing more":
        result = train(restarted(), files, recipe, tmp_path)
        assert (result.stopped_by, result.steps) == ("minutes", steps)
        assert [record["step"] for record in log_of(tmp_path)] == [20, 40, steps]
    graphs = 1 + (steps > 50)  # one for each run that updates the weights
    assert clock.now == graphs * GRAPH + steps + 3 * 2.0


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_limit_of_time_may_come_and_go(alone, tmp_path, monkeypatch, schedule):
    """The rate follows the updates, then the time, then the updates."""
    clock = Clock(monkeypatch)
    recipe = replace(TIMED, schedule=schedule, warmup_steps=1)
    untimed = replace(recipe, minutes=0, epochs=6)
    train(restarted(), alone, replace(untimed, updates=10), tmp_path)
    train(restarted(), alone, replace(recipe, minutes=0.5), tmp_path)
    steps = len(clock.rates)
    assert clock.rates[-1] < 0.02 * 0.1
    assert train(restarted(), alone, replace(untimed, updates=60), tmp_path).steps == 60
    assert clock.rates[steps] > 0.02 * 0.1
