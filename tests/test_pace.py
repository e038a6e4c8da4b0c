"""A training of limited time: its learning rate and its end, by a clock."""

from __future__ import annotations

import itertools
import math
import signal
from dataclasses import replace

import keras
import letters
import pytest
import tensorflow as tf
from hypothesis import given, strategies as st
from letters import RECIPE, log_of, restarted

from bahdanau_tf.data.dataset import Position
from bahdanau_tf.optimizers import WarmupLinearDecay
from bahdanau_tf.training import Recipe, loop, train
from bahdanau_tf.training.dev import Evaluation
from bahdanau_tf.training.run import Pace, Rate, make_optimizer

files = letters.files  # the fixture


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
    rate, rates = Rate(replace(recipe, epochs=10**6), 100), []
    for share in shares:
        rate.follow(updates, share)
        rates.append(float(rate.value(updates)))
    return rates


@pytest.mark.parametrize("schedule", ["linear", "cosine", "PolynomialDecay(rate, total, 0.00002)"])
@given(st.lists(st.floats(0.01, 1), min_size=2), st.integers(300, 9000))
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
    paced = Pace(100, minutes=2.0, used=30.0, clock=lambda: now[0])
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
    paced = Pace(10**6, minutes=1.0, clock=lambda: now[0])
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
    paced = Pace(10**6, minutes=10.0, clock=lambda: now[0])
    paced.begin()
    now[0] = 541.0
    assert paced.is_out_of_time
    with paced.evaluating():
        now[0] += 5
    again = Pace(
        10**6, minutes=10.0, used=paced.seconds, clock=lambda: now[0], longest=paced.longest
    )
    assert again.is_out_of_time
    assert again.share(1) == 1.0


def test_without_a_limit_time_does_not_matter():
    now = [0.0]
    paced = Pace(10, clock=lambda: now[0])
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
        monkeypatch.setattr(loop, "stream_numbered_batches", lambda *_: endless)
        monkeypatch.setattr(loop, "train_step", step_of)
        monkeypatch.setattr(loop.Cluster, "clock", lambda _: self.now)


def test_an_update_uses_the_share_that_was_assigned():
    """Of 50 updates, then of 50 / 0.6: the rate falls after the half."""
    recipe = Recipe("sgd", 1.0, schedule="linear", warmup_steps=0, max_norm=9.0, minutes=1)
    rate = Rate(recipe, 10)
    optimizer = make_optimizer(recipe, 10, rate)
    weight = tf.Variable([0.0])
    optimizer.build([weight])

    @tf.function
    def update():
        optimizer.apply([tf.constant([1.0])], [weight])

    optimizer.iterations.assign(50)
    for share in (0.5, 0.75):
        rate.follow(int(optimizer.iterations), share)
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
    falls = [one - two for one, two in itertools.pairwise(rates[32:])]
    assert falls == pytest.approx([0.02 * 0.98 / 30] * 28, rel=1e-3)
    # All is over; the same command does nothing, more time goes on.
    capsys.readouterr()
    assert train(restarted(), alone, TIMED, tmp_path).steps == 61
    said = capsys.readouterr().err
    assert "\nnothing is left to do: time limit reached\n" in said
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
    same = Evaluation(0.0, 1.0, [])
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: same)
    recipe = replace(TIMED, patience=1, evaluate_every=5, **limit)
    result = train(restarted(), files, recipe, tmp_path)
    assert (result.stopped_by, result.steps) == ("patience", steps)
    assert RECIPE.minutes == 0


def test_patience_waits_again_if_with_more_epochs_the_rate_rises(files, tmp_path, monkeypatch):
    same = Evaluation(0.0, 1.0, [])
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: same)
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
        return Evaluation(clock.now, 1.0, [])

    def interrupt(batch, logs):
        if clock.now == GRAPH + 54.0:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(loop.DevSet, "evaluate", evaluate)
    ctrl_c = keras.callbacks.LambdaCallback(on_train_batch_end=interrupt)
    broken = train(restarted(), files, TIMED, tmp_path, callbacks=[ctrl_c])
    assert (broken.stopped_by, broken.steps) == ("signal", 50)
    assert [one["step"] for one in log_of(tmp_path)] == [20, 40]
    recipe = replace(TIMED, minutes=minutes)
    for _ in "more", "nothing more":
        result = train(restarted(), files, recipe, tmp_path)
        assert (result.stopped_by, result.steps) == ("minutes", steps)
        assert [one["step"] for one in log_of(tmp_path)] == [20, 40, steps]
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


@pytest.mark.parametrize("schedule", ["constant", "halved"])
def test_other_schedules_only_end(schedule):
    timed = Recipe(schedule=schedule, minutes=1)
    untimed = replace(timed, minutes=0)
    assert not Rate(timed, 10).follows_time
    rates = [make_optimizer(one, 10).learning_rate for one in (timed, untimed)]
    assert float(rates[0]) == float(rates[1])
