"""The callbacks of a user, as Keras' `fit` calls them, and those of the training itself."""

import contextlib
import csv
import functools
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import letters
import numpy as np
import pytest
import tensorflow as tf
from comparisons import all_close
from letters import RECIPE, log_of, restarted, scored, train, weights
from refusals import refused

from bahdanau_tf import Translator
from bahdanau_tf.optimizers import Adam
from bahdanau_tf.system.language import in_language
from bahdanau_tf.training import callbacks, update
from bahdanau_tf.training.callbacks import averaged

files = letters.files  # the fixture
SEVENS = replace(RECIPE, epochs=2, evaluate_every=7)  # 20 updates: 7, 7, 6


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Stand-ins; evaluations become better, then worse."""
    evaluations = [scored(b, 9 - b) for b in (1.0, 5.0, 2.0, 1.5, 1.0)]
    evaluations = itertools.chain(evaluations, itertools.repeat(evaluations[-1]))
    letters.stand_in(monkeypatch)
    monkeypatch.setattr(callbacks, "evaluate", lambda *_: next(evaluations))


class Recorder(keras.callbacks.Callback):
    """Writes down all calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, tuple, dict[str, float]]] = []
        for part, moment in itertools.product(("train", "epoch", "train_batch"), ("begin", "end")):
            name = f"on_{part}_{moment}"
            setattr(self, name, functools.partial(self.called, name))

    def called(self, name: str, *arguments: Any, **named: Any) -> None:
        *number, logs = *arguments, *named.values()
        self.calls.append((name, tuple(number), dict(logs or {})))


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
    assert [call[:2] for call in ours.calls] == [call[:2] for call in theirs.calls]
    assert ours.model is translator.model
    for name in ("epochs", "steps"):
        assert ours.params[name] == theirs.params[name]


@pytest.mark.parametrize("language", ["ko", "ja"])
def test_tables_and_progress_are_in_the_language_set(files, tmp_path, capsys, language):
    """A letter of Korean or Japanese takes two columns of a terminal."""
    with in_language("test", language):
        train(restarted(), files, SEVENS, tmp_path)
    shown = re.sub(".*diverging.*", "", capsys.readouterr().err)  # advice
    assert {*re.findall("[A-Za-z]+", shown)} <= {"MB", "BLEU", "a"}  # as 13a
    table = [line for line in shown.splitlines() if line.startswith("  ")]
    wide = "[\u3000-\uffff]"
    assert len(table) == 4
    assert len({len(re.sub(wide, "xx", row)) for row in table}) == 1


def test_logs_have_the_losses_of_a_word_and_bleu(files, tmp_path):
    recorder = Recorder()
    train(restarted(), files, SEVENS, tmp_path, callbacks=[recorder])
    batches: list[tuple[float, float]] = []
    epochs = []
    for what, _, logs in recorder.calls:
        if what == "on_train_batch_end":
            batches.append((logs["loss"], logs["words"]))
        if what == "on_epoch_end":
            losses, words = zip(*batches, strict=True)
            assert logs["loss"] == pytest.approx(np.average(losses, weights=words))
            epochs.append(logs)
            batches = []
    log = log_of(tmp_path)
    names = {"train_loss": "loss", "dev_loss": "val_loss", "dev_bleu": "val_bleu"}
    for ours, theirs in names.items():
        assert [record[ours] for record in log] == [logs[theirs] for logs in epochs]
    assert [record["dev_bleu"] for record in log] == [1.0, 5.0, 2.0]


@pytest.mark.parametrize(
    ("monitor", "best", "shown", "told"),
    [
        ("wer", 20.0, "WER 20.00", "WER"),
        ("exact", 80.0, "exact match 80.00", "exact match"),
        ("ter", 20.0, "TER 20.00, dev BLEU 1.00", "BLEU with 13a"),
        ("loss", 3.0, "loss 3.00, dev BLEU 1.00", "BLEU with 13a"),
    ],
)
def test_any_score_selects_the_best_model(
    files, tmp_path, monkeypatch, capsys, monitor, best, shown, told
):
    """The lowest or the highest; it is in the logs, the log and the result."""
    evaluations = iter([(80.0, 3.0), (20.0, 5.0), (50.0, 4.0)])

    def evaluate(_, __, ___, metrics):
        score, loss = next(evaluations)
        return {"loss": loss, **{x: 1.0 if x == "bleu" else score for x in metrics}}, []

    monkeypatch.setattr(callbacks, "evaluate", evaluate)
    recorder, recipe = Recorder(), replace(SEVENS, monitor=monitor)
    result = train(restarted(), files, recipe, tmp_path, callbacks=[recorder])
    assert result.best[monitor] == best
    assert f"; best model: dev {shown}; " in str(result)
    said = capsys.readouterr().err
    assert f"dev scores: greedy search, {told}\n" in said
    assert ("dev BLEU" in said) == ("BLEU" in told)
    assert Translator.load(tmp_path).habits.is_short == ("BLEU" not in told)
    scores = [logs[f"val_{monitor}"] for what, _, logs in recorder.calls if what == "on_epoch_end"]
    assert scores == [record[f"dev_{monitor}"] for record in log_of(tmp_path)]
    unknown = replace(SEVENS, monitor="bluff")
    refused(lambda: train(restarted(), files, unknown, tmp_path), "'bluff'", "monitor")


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
    assert all(np.any(weight) for weight in weights(Translator.load(tmp_path)))
    resumed = restarted()
    at_first = Beginning()
    train(resumed, files, SEVENS, tmp_path, callbacks=[at_first])
    assert not any(np.any(weight) for weight in at_first.weights)


class Beginning(keras.callbacks.Callback):
    """Keeps the weights with which training begins."""

    def on_train_begin(self, logs=None):
        self.weights = [weight.numpy() for weight in self.model.trainable_weights]


@pytest.mark.parametrize(("method", "steps"), [("on_train_batch_end", 3), ("on_train_begin", 0)])
def test_a_callback_may_stop_within_an_epoch_or_at_once(files, tmp_path, method, steps):
    """Then the model is evaluated, as it is in `fit`, if there was an update."""

    def stop(batch_or_logs, logs=None):
        callback.model.stop_training = batch_or_logs not in (0, 1)

    callback = keras.callbacks.LambdaCallback(**{method: stop})
    result = train(restarted(), files, SEVENS, tmp_path, callbacks=[callback])
    assert (result.stopped_by, result.steps) == ("callback", steps)
    if steps:
        assert [record["step"] for record in log_of(tmp_path)] == [steps]


# The moving average of the weights, compared with NumPy.

DECAY = 0.8


class Weights(keras.callbacks.Callback):
    """Keeps the weights after each update."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[list[np.ndarray]] = []

    def on_train_batch_end(self, batch, logs=None):
        self.values.append([weight.numpy() for weight in self.model.trainable_weights])


def average(values: list[list[np.ndarray]]) -> list[np.ndarray]:
    """In float64, from the weights after each update."""
    mean = [np.float64(value) for value in values[0]]
    for after in values[1:]:
        mean = [DECAY * old + (1 - DECAY) * new for old, new in zip(mean, after, strict=True)]
    return mean


assert_close = functools.partial(all_close, atol=2e-6)


def test_the_average_is_evaluated_and_saved_and_goes_on(files, tmp_path, monkeypatch):
    """Over two runs. Training has the weights."""
    monkeypatch.setattr(update, "train_step", letters.applying_step)
    evaluated = []

    def evaluate(translator: Translator, *_: object) -> tuple[dict[str, float], list[object]]:
        evaluated.append(weights(translator))
        return scored(float(len(evaluated)), 1.0)

    monkeypatch.setattr(callbacks, "evaluate", evaluate)
    recipe = replace(RECIPE, average=DECAY, evaluate_every=7)
    seen = Weights()
    for epochs in (1.2, 2):  # 12 updates, then 8 more
        translator = restarted()
        recipe = replace(recipe, epochs=epochs)
        train(translator, files, recipe, tmp_path, callbacks=[seen])
        assert_close(weights(translator), seen.values[-1])
        best = Translator.load(tmp_path / "best")
        assert_close(weights(best), average(seen.values))
    assert len(seen.values) == 20
    # Evaluations after 7, 12, 14 and 20 updates.
    for step, at_step in zip((7, 12, 14, 20), evaluated, strict=True):
        assert_close(at_step, average(seen.values[:step]))
    # It is another one than the weights.
    for mean, weight in zip(evaluated[-1], seen.values[-1], strict=True):
        assert np.abs(mean - weight).max() > 1e-4


def test_an_error_gives_the_weights_back():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    optimizer = Adam(0.1, use_ema=True, ema_momentum=0.5)
    optimizer.build(model.trainable_variables)
    before = model.get_weights()
    with averaged(model, optimizer):
        assert_close(model.get_weights(), before)  # no update yet
    gradients = [tf.ones_like(weight.value) for weight in model.trainable_variables]
    for _ in range(2):
        optimizer.apply(gradients)
    after = model.get_weights()
    with contextlib.suppress(KeyError), averaged(model, optimizer):
        assert np.all(model.get_weights()[0] > after[0] + 0.01)
        raise KeyError
    assert_close(model.get_weights(), after)


# Updates whose loss or gradient is not finite.

RARE = replace(RECIPE, max_skipped=3, evaluate_every=10)


@pytest.fixture
def skipping(monkeypatch) -> Callable[..., list[tuple[list, list]]]:
    """Lets updates fail: by their gradient if even, by their loss if odd.

    Returns the ids of all batches.
    """

    def skip(*numbers: int) -> list[tuple[list, list]]:
        batches: list[tuple[list, list]] = []

        def make_step(model: Any, optimizer: Any, *_: Any) -> Any:
            update = letters.stand_in_step(model, optimizer)

            def step(inputs: Any, target: tf.Tensor, *others: Any) -> Any:
                batches.append(tuple(ids.numpy().tolist() for ids in (inputs["source"], target)))
                number = len(batches)
                if number not in numbers:
                    return update(inputs, target, *others)
                if number % 2:
                    return tf.constant(np.inf)
                optimizer.skipped_updates.assign_add(1)
                return tf.constant(1.0)

            return step

        monkeypatch.setattr(update, "train_step", make_step)
        return batches

    return skip


def skipped(folder: Path) -> list[dict[str, Any]]:
    return log_of(folder, "skipped.jsonl")


def test_the_pairs_of_skipped_updates_are_written(files, tmp_path, skipping, capsys):
    """Their text has the ids of the batch, and stands in the line named."""
    batches = skipping(2, 13)
    translator = restarted()
    result = train(translator, files, RARE, tmp_path)
    assert (result.stopped_by, result.steps) == ("epochs", 30)
    pairs = skipped(tmp_path)
    assert [pair["step"] for pair in pairs] == [2] * 8 + [13] * 8
    for side, name in enumerate(("source", "target")):
        lines = Path(getattr(files, f"train_{name}")).read_text().split("\n")
        assert all(lines[pair["line"] - 1] == pair[name] for pair in pairs)
        rows = [row for number in (2, 13) for row in batches[number - 1][side]]
        ids = getattr(translator, f"{name}_text").tokenize([pair[name] for pair in pairs])
        assert ids.to_list() == [[word for word in row if word] for row in rows]
    err = capsys.readouterr().err
    assert err.count("was skipped because its loss or gradient is not finite") == 2
    assert "\nupdate 13 was skipped" in err
    assert "words/s   skipped      rate" in err  # a column, once there are some


def test_training_stops_after_a_number_in_a_row_and_resumes(files, tmp_path, skipping):
    """Two of three are not enough; each skipped pair is written once."""
    skipping(3, 4, 6, 13, 14, 15)
    refused(lambda: train(restarted(), files, RARE, tmp_path), "max_skipped", "3", "skipped.jsonl")
    assert [pair["step"] for pair in skipped(tmp_path)][::8] == [3, 4, 6, 13, 14, 15]
    # The last checkpoint is that of update 10.
    skipping(3)  # update 13 once more, and no other
    resumed = restarted()
    result = train(resumed, files, RARE, tmp_path)
    assert (result.stopped_by, result.steps) == ("epochs", 30)
    assert [pair["step"] for pair in skipped(tmp_path)][::8] == [3, 4, 6, 13]
    assert all(np.isfinite(weight).all() for weight in weights(resumed))


GUESSED = math.log(11)  # of the letters and the special symbols


@pytest.mark.parametrize(
    ("losses", "after_first", "at_the_end"),
    [
        ([50.0, 50.0], "above the 2.40 of guessing among the 11 ids", "50.00, above the 2.40 "),
        ([2.0, 50.0], "", "after update 20 is 50.00, above the 2.40 of guessing"),
        ([1.0, 2.0], "", "20 is 2.00, not below the 1.00 of the first"),
        ([2.0, 1.0], "", ""),
        ([1.1 * GUESSED], "2.64, above the 2.40 of guessing", ""),
    ],
)
def test_a_training_that_learns_nothing_says_so(
    files, tmp_path, monkeypatch, capsys, losses, after_first, at_the_end
):
    """Though all its losses are finite."""
    of_words = itertools.chain(*([loss] * 10 for loss in losses))

    def step(model: Any, optimizer: Any, inputs: Any, target: Any, weights: Any, *_: Any) -> Any:
        optimizer.iterations.assign_add(1)
        return next(of_words) * tf.reduce_sum(weights)

    of_dev = iter(losses)
    monkeypatch.setattr(update, "train_step", letters.stepping(step))
    monkeypatch.setattr(callbacks, "evaluate", lambda *_: scored(1.0, next(of_dev)))
    result = train(restarted(), files, replace(RECIPE, epochs=len(losses)), tmp_path)
    assert result.stopped_by == "epochs"
    assert not (tmp_path / "skipped.jsonl").exists()
    # The rows of updates 10 and 20 in the table of evaluations.
    _, first, *end = re.split(r"^ +[12]0  .*$", capsys.readouterr().err, flags=re.MULTILINE)
    for wanted, err in ((after_first, first), (at_the_end, "".join(end))):
        assert wanted in err
        assert ("above the" in err) == ("abo" in wanted)
        assert ("not below" in err) == ("not below" in wanted)
