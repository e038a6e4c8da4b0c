"""A training of limited time: its learning rate and its end, by a clock."""

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

from bahdanau_tf.data.batching import Position
from bahdanau_tf.optimizers import WarmupLinearDecay
from bahdanau_tf.training import Recipe, loop, train
from bahdanau_tf.training.dev import Evaluation
from bahdanau_tf.training.run import Pace

files = letters.files  # the fixture


@pytest.fixture
def alone(files):
    """Without a dev set, so that evaluations take no time."""
    return replace(files, dev_source=None, dev_target=None)


@pytest.fixture
def nothing_learned(monkeypatch):
    """Each evaluation is as bad as the first."""
    monkeypatch.setattr(loop.DevSet, "evaluate", lambda *_: Evaluation(0.0, 1.0, []))


LINEAR = {"schedule": "linear", "warmup_steps": 3, "learning_rate": 0.02}
TIMED = replace(RECIPE, **LINEAR, epochs=1000, minutes=1.0, evaluate_every=20)


@given(
    total=st.integers(1, 500),
    step=st.integers(0, 500),
    warmup_steps=st.integers(0, 50),
    constant_share=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_by_updates_the_rate_is_that_of_the_schedule(total, step, warmup_steps, constant_share):
    options = {"warmup_steps": warmup_steps, "constant_share": constant_share}
    recipe = Recipe(learning_rate=0.5, schedule="linear", minutes=5, **options)
    step = min(step, total - 1)
    by_updates = WarmupLinearDecay(0.5, total, **options)
    rate = recipe.rate_after(step, step / total)
    rises_in_time = warmup_steps <= total // 10
    if rises_in_time and total * (1 - constant_share) >= 1:
        assert rate == pytest.approx(float(by_updates(step)), rel=1e-4)


@given(st.lists(st.floats(0, 1), min_size=2), st.integers(300, 9000))
def test_the_rate_never_rises_after_the_warm_up(shares, updates):
    recipe = Recipe(optimizer="adam", schedule="linear", minutes=1)
    rates = [recipe.rate_after(updates, share) for share in sorted(shares)]
    assert rates == sorted(rates, reverse=True)
    assert recipe.rate_after(updates, 1.0) == pytest.approx(0.02 * recipe.rate)


def test_a_warm_up_is_over_after_a_tenth_of_the_time():
    recipe = Recipe(learning_rate=1.0, schedule="linear", minutes=1)
    rates = [recipe.rate_after(1, share) for share in (0, 0.05, 0.1, 0.2)]
    assert rates == pytest.approx([2 / 200, 0.5, 1, 1])


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
    used = {"used": paced.seconds, "longest": paced.longest}
    again = Pace(10**6, minutes=10.0, clock=lambda: now[0], **used)
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
                return tf.constant(1.0)

            return ticking

        ids = tf.ones([1, 1], tf.int32)
        batch = {"source": ids, "target": ids}, ids, tf.ones([1, 1])
        endless = itertools.repeat((batch, Position(), tf.zeros(1, tf.int64)))
        monkeypatch.setattr(loop, "stream_numbered_batches", lambda *_: endless)
        monkeypatch.setattr(loop, "train_step", step_of)
        monkeypatch.setattr(loop.Cluster, "clock", lambda _: self.now)


def test_an_update_uses_the_rate_that_was_assigned():
    recipe = Recipe("sgd", 1.0, schedule="linear", max_norm=9.0, minutes=1)
    optimizer = recipe.make_optimizer(10)
    weight = tf.Variable([0.0])
    optimizer.build([weight])

    @tf.function
    def update():
        optimizer.apply([tf.constant([1.0])], [weight])

    for rate in (1.0, 0.5):
        optimizer.learning_rate = rate
        update()
    assert weight.numpy() == pytest.approx([-1.5])


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
def test_patience_waits_until_the_rate_falls(
    limit, steps, files, tmp_path, monkeypatch, nothing_learned
):
    Clock(monkeypatch)
    recipe = replace(TIMED, patience=1, evaluate_every=5, **limit)
    result = train(restarted(), files, recipe, tmp_path)
    assert (result.stopped_by, result.steps) == ("patience", steps)
    assert RECIPE.minutes == 0


def test_patience_waits_again_if_with_more_epochs_the_rate_rises(
    files, tmp_path, monkeypatch, nothing_learned
):
    monkeypatch.setattr(loop, "train_step", letters.stand_in_step)
    recipe = replace(TIMED, patience=1, evaluate_every=5, minutes=0)
    for epochs, steps in ((6, 35), (6, 35), (12, 65)):
        result = train(restarted(), files, replace(recipe, epochs=epochs), tmp_path)
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


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        ({"minutes": 0.5}, {"minutes": 0, "epochs": 1}, r"with a limit of time.*--minutes"),
        ({"minutes": 0, "epochs": 1}, {}, "without a limit of time"),
    ],
)
def test_whether_a_training_is_of_limited_time_is_chosen_once(
    alone, tmp_path, monkeypatch, first, second, complaint
):
    Clock(monkeypatch)
    train(restarted(), alone, replace(TIMED, **first), tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=complaint):
        train(restarted(), alone, replace(TIMED, **second), tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("schedule", ["constant", "halved"])
def test_other_schedules_only_end(schedule):
    timed = Recipe(schedule=schedule, minutes=1)
    untimed = replace(timed, minutes=0)
    assert not timed.is_paced
    rates = [one.make_optimizer(10).learning_rate for one in (timed, untimed)]
    assert float(rates[0]) == float(rates[1])
