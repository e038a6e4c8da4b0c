"""Training folders: interruptions, damaged files, changed settings, locks."""

import contextlib
import fcntl
import functools
import json
import math
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import letters
import numpy as np
import pytest
import sacrebleu
import tensorflow as tf
from comparisons import all_equal, write_lines
from letters import RECIPE, TextFiles, log_of, restarted, scored, train, weights
from limits import largest_file
from refusals import fails, refused
from test_checkpoints import empty

from bahdanau_tf import Translator, Vocabulary, WordTokenizer
from bahdanau_tf.commands.main import main
from bahdanau_tf.data.dataset import stream_batches
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation import bleu_tokenizer
from bahdanau_tf.system.files import replaced_directory
from bahdanau_tf.training import TrainingResult, callbacks, loop, reporting, update
from bahdanau_tf.training.checkpoints import State
from bahdanau_tf.training.folder import (
    DEV_TEXT,
    Log,
    ModelFolder,
    check_settings,
    locked,
    write_settings,
)
from bahdanau_tf.translation import saved
from bahdanau_tf.translation.saved import best_folder

files = letters.files  # the fixture
SHORT = replace(RECIPE, epochs=2)
NOW = datetime(2015, 5, 19, 14, 30, tzinfo=timezone(timedelta(hours=2)))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    letters.stand_in(monkeypatch)
    monkeypatch.setattr(callbacks, "evaluate", letters.stand_in_evaluate)


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory) -> SimpleNamespace:
    """A training of two epochs: folder, model, weights, loss of each update."""
    costs: list[tuple[float, int]] = []
    watching = letters.watched(letters.stand_in_step, lambda _, *seen: costs.append(seen))
    folder = tmp_path_factory.mktemp("trained") / "model"
    translator = restarted()
    with pytest.MonkeyPatch.context() as patch:
        letters.stand_in(patch)
        patch.setattr(update, "train_step", watching)
        patch.setattr(callbacks, "evaluate", letters.stand_in_evaluate)
        patch.setattr(reporting, "datetime", SimpleNamespace(now=NOW.astimezone))
        train(translator, files, SHORT, folder)
    return SimpleNamespace(
        folder=folder, translator=translator, weights=weights(translator), costs=costs
    )


@pytest.fixture
def folder(trained, tmp_path) -> Path:
    """A copy of the folder of a training."""
    return Path(shutil.copytree(trained.folder, tmp_path / "model"))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "training.lock"
    }


def test_the_log_has_losses_learning_rate_and_date(trained):
    records = log_of(trained.folder)
    assert [record["step"] for record in records] == [10, 20]
    for record, half in zip(records, (trained.costs[:10], trained.costs[10:]), strict=True):
        costs, words = zip(*half, strict=True)
        assert record["train_loss"] == pytest.approx(sum(costs) / sum(words))
        assert record["learning_rate"] == pytest.approx(0.02)
        assert record["date"] == "2015-05-19 12:30:00+00:00"
    for weight, value in zip(
        trained.translator.model.trainable_weights, trained.weights, strict=True
    ):
        weight.assign(value)
    scores, _ = letters.stand_in_evaluate(trained.translator)
    assert records[-1]["dev_bleu"] == scores["bleu"] > records[0]["dev_bleu"]
    assert records[-1]["dev_loss"] == scores["loss"]


def without_dev(files, folder):
    return replace(files, dev_source=None, dev_target=None), SHORT


def with_another_dev_set(files, folder):
    other = folder.parent / "other"
    other.write_text("A B\n" * 10)
    return replace(files, dev_target=str(other)), SHORT


def without_checkpoints(files, folder):
    shutil.rmtree(folder / "checkpoints")
    return files, SHORT


def without_a_whole_checkpoint(files, folder):
    for path in (folder / "checkpoints").glob("*.index"):
        empty(path)
    return files, SHORT


def without_anything_to_read(files, folder):
    """A training is not started again, either: the files may be readable elsewhere."""
    shutil.rmtree(folder / "best")
    return without_a_whole_checkpoint(files, folder)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda files, folder: (folder / "training.json").unlink(), "training.json missing"),
        (without_dev, "dev_target another"),
        (with_another_dev_set, "another"),
        (lambda files, _: (files, replace(SHORT, tokenize="char")), "BLEU 13a tokenize="),
        (without_checkpoints, "none checkpoint"),
        (without_anything_to_read, "checkpoint"),
        (without_a_whole_checkpoint, "ckpt- checkpoint"),
    ],
)
def test_changes_that_would_lose_the_best_model_are_refused(
    trained, files, folder, change, sentence
):
    files, recipe = change(files, folder) or (files, SHORT)
    before = contents(folder)
    refused(lambda: train(trained.translator, files, recipe, folder), *sentence.split())
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("side", "words", "language", "sentence"),
    [
        ("source", letters.LETTERS[::-1], "en", "vocabulary"),
        ("target", "ABCDEFGJ", "en", "vocabulary"),
        ("source", letters.LETTERS, "fr", "'en' 'fr' now"),
    ],
)
def test_another_vocabulary_or_tokenizer_is_refused(
    trained, files, folder, side, words, language, sentence
):
    """Also one of the same size, which the model would not notice."""
    translator = trained.translator
    texts = {"source": translator.source_text, "target": translator.target_text}
    texts[side] = WordTokenizer(Vocabulary([*letters.SPECIAL, *words]), language)
    other = Translator(translator.model, *texts.values())
    before = contents(folder)
    refused(lambda: train(other, files, SHORT, folder), *sentence.split())
    assert contents(folder) == before


def test_a_deterministic_training_has_its_threads(files, folder, tmp_path, monkeypatch, capsys):
    """Others may round otherwise, so they are refused."""
    enabled, experimental = [], tf.config.experimental
    monkeypatch.setattr(experimental, "enable_op_determinism", lambda: enabled.append(True))
    exact = replace(SHORT, deterministic=True)
    monkeypatch.setattr("bahdanau_tf.training.loop.threads_of", lambda _: 3)
    train(restarted(), files, SHORT, folder)
    assert not enabled
    train(restarted(), files, exact, tmp_path / "exact")
    assert "deterministic, with threads=3\n" in capsys.readouterr().err
    assert enabled == [True]
    monkeypatch.setattr("bahdanau_tf.training.loop.threads_of", lambda _: 4)
    refused(lambda: train(restarted(), files, exact, tmp_path / "exact"), "3", "4", "=3")


@pytest.mark.parametrize(("name", "value"), [("minutes", 5.0), ("sample_subwords", True)])
def test_what_no_seed_repeats_is_not_deterministic(name, value):
    said = "determin", name, str(value)
    refused(lambda: replace(SHORT, deterministic=True, **{name: value}), *said)


def test_training_resumes_from_the_checkpoint_before_a_damaged_one(trained, files, folder, capsys):
    empty(folder / "checkpoints" / "ckpt-3.data-00000-of-00001")
    (folder / ".best.new.abcdefgh").mkdir()
    left = (".log.jsonl.new.abcd1234", "source/.model.new.abcd_234")  # by killed processes
    (folder / "source").mkdir()
    for name in (*left, "source/.mine"):
        (folder / name).touch()
    translator = restarted()
    train(translator, files, SHORT, folder)
    messages = capsys.readouterr().err
    assert "ignored a damaged checkpoint, ckpt-3: " in messages
    assert "resuming from update 10\n" in messages
    all_equal(weights(translator), trained.weights)
    assert numbers_of(folder) == numbers_of(trained.folder)
    assert [path.name for path in (*folder.glob(".*"), *folder.glob("*/.*"))] == [".mine"]
    # The last evaluation, which was made twice, counts once for patience.
    assert stale_of(folder) == stale_of(trained.folder)


def numbers_of(folder: Path) -> list[list[float]]:
    """What the log has of each evaluation."""
    names = ("step", "train_loss", "dev_loss", "dev_bleu")
    return [[record[name] for name in names] for record in log_of(folder)]


def stale_of(folder: Path) -> int:
    """Evaluations since the best one, as the last checkpoint has it."""
    reader = tf.train.load_checkpoint(str(folder / "checkpoints" / "ckpt-3"))
    (name,) = (n for n in reader.get_variable_to_shape_map() if "stale" in n)
    return int(reader.get_tensor(name))


def test_a_training_killed_in_its_first_checkpoint_begins_anew(trained, files, folder):
    shutil.rmtree(folder / "best")
    shutil.rmtree(folder / "checkpoints")
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "ckpt-1.data-00000-of-00001").write_bytes(b"h")
    translator = restarted()
    train(translator, files, SHORT, folder)
    all_equal(weights(translator), trained.weights)


@pytest.mark.parametrize(("step", "is_due"), [(6, False), (8, True)])
def test_without_dev_text_the_last_model_becomes_the_best(tmp_path, step, is_due):
    """Also if the run that made it was killed before it was evaluated."""
    (tmp_path / "best").mkdir()
    state = SimpleNamespace(step=step, best={"loss": math.nan})
    folder = ModelFolder(tmp_path, None, state, {DEV_TEXT: None})
    folder.log.add({"step": 6})
    assert folder.needs_evaluation is is_due


def test_a_better_best_than_the_checkpoint_knows_is_kept(files, folder):
    """It is of the evaluation whose checkpoint is damaged."""
    records = log_of(folder)
    records[-1]["dev_bleu"] = 99.0
    write_lines(folder / "log.jsonl", map(json.dumps, records))
    empty(folder / "checkpoints" / "ckpt-3.data-00000-of-00001")
    best = contents(folder / "best")
    result = train(restarted(), files, SHORT, folder)
    assert result.best_bleu == 99.0
    assert contents(folder / "best") == best
    assert log_of(folder)[-1]["dev_bleu"] < 99.0


def test_another_dev_set_is_accepted_if_the_best_model_was_moved_away(trained, files, folder):
    (folder / "best").rename(folder.parent / "kept")
    files, recipe = with_another_dev_set(files, folder)
    translator = restarted()
    result = train(translator, files, recipe, folder)
    assert result.steps == 20
    best = Translator.load(folder)
    all_equal(weights(best), trained.weights)
    assert [record["step"] for record in log_of(folder)] == [10, 20]
    # From now on this is the dev set of the folder.
    train(translator, files, recipe, folder)
    refused(lambda: train(translator, *without_dev(files, folder), folder), "another")


def test_nothing_is_written_before_everything_is_checked(
    trained, files, tmp_path, capsys, monkeypatch
):
    flags = [f"--{k}={v}" for k, v in asdict(files).items()]
    flags += [f"--model_dir={tmp_path / 'model'}", "--tokenize=runes"]
    fails(capsys, ["train", *flags], "tokenize is 'runes', wanted one of")
    assert not (tmp_path / "model").exists()
    for wrong, recipe, sentence in (
        (files, replace(SHORT, tokenize="runes"), "tokenize is 'runes'"),
        (replace(files, dev_target=files.train_target), SHORT, "equal numbers"),
    ):
        call = functools.partial(train, trained.translator, wrong, recipe, tmp_path / "model")
        refused(call, *sentence.split())
        assert not (tmp_path / "model").exists()
    pair = TextFiles(*[write_lines(tmp_path / "long", ["a b c"])] * 2)  # which does not fit
    recipe = replace(SHORT, max_length=2)
    monkeypatch.setattr(loop, "stream_batches", stream_batches)
    refused(lambda: train(trained.translator, pair, recipe, tmp_path / "model"), "max_length=2")
    assert not (tmp_path / "model").exists()  # not even for the lock


# Another process that holds the lock until it is killed.
HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
file.write("4711")
file.flush()
print("held", flush=True)
sys.stdin.read()
"""


def test_only_one_training_at_a_time_runs_in_a_folder(trained, files, folder, capsys):
    before = contents(folder)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder / "training.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        refused(lambda: train(trained.translator, files, SHORT, folder), "4711", "trained")
        # The command checks the lock before it trains a tokenizer.
        flags = [f"--{k}={v}" for k, v in asdict(files).items()]
        fails(capsys, ["train", *flags, f"--model_dir={folder}"], "process 4711")
        assert contents(folder) == before
        holder.kill()
    with locked(folder), locked(folder):  # one thread may lock twice
        assert (folder / "training.lock").read_text() == f"{os.getpid()}\n"
        with ThreadPoolExecutor() as threads:
            other = threads.submit(lambda: locked(folder).__enter__())
            with pytest.raises(ValueError, match=str(os.getpid())):
                other.result()
    with locked(folder):
        pass


def test_a_file_system_without_locks_is_accepted(tmp_path, monkeypatch):
    def unsupported(file: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with locked(tmp_path), locked(tmp_path):
        pass


def test_the_log_has_each_update_once(tmp_path):
    path = tmp_path / "log.jsonl"
    log = Log(path)
    log.forget_after(0)
    assert not path.exists()
    for step in (10, 20, 30):
        log.add({"step": step, "text": "é"})
    whole = path.read_bytes()
    with open(path, "ab") as file:
        file.write(b'{"step": 40, "te')  # killed while writing
    log.forget_after(30)
    assert path.read_bytes() == whole
    log.forget_after(29)
    assert [record["step"] for record in log_of(tmp_path)] == [10, 20]


def test_the_best_model_has_the_highest_bleu_then_the_lowest_loss():
    state = State()
    evaluations = [
        (0.0, 5.0, True),
        (0.0, 4.0, True),  # at equal BLEU the loss decides
        (0.0, 4.0, False),
        (0.0, 4.5, False),
        (0.9, 4.0, False),  # by chance: the loss still decides
        (0.9, 3.5, True),
        (0.0, 3.0, True),
        (1.1, 9.0, True),
        (0.9, 1.0, False),
        (1.1, 8.0, True),
        (1.1, 8.0 - 1e-9, False),  # equal up to rounding
    ]
    stale = 0
    for bleu, loss, best in evaluations:
        assert state.record(scored(bleu, loss)[0], "bleu") == best
        stale = 0 if best else stale + 1
        assert int(state.stale) == stale
    assert (float(state.best_bleu), float(state.best_loss)) == (1.1, 8.0)
    assert state.record({}, "bleu")  # without a dev set


class Fixed:
    """A translator with given translations."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def translate(self, sentences: list[str], decoding: Any, split_sentences: bool) -> list[Any]:
        return [SimpleNamespace(text=text) for text in self.texts]

    def score(self, sources: list[str], targets: list[str]) -> list[Any]:
        return [
            SimpleNamespace(log_prob=-float(n), token_log_probs=np.zeros(n))
            for n in range(1, len(sources) + 1)
        ]


def test_dev_bleu_uses_the_tokenizer_of_the_script(monkeypatch):
    monkeypatch.undo()  # `evaluate` is the real one
    references = ["ねこはとてもねむい。", "いぬははやくはしる。"]
    translations = ["ねこはとてもさむい。", "いぬははやくはねる。"]
    chosen = bleu_tokenizer("fr", references)
    assert chosen in {"ja-mecab", "char"}
    for how in (chosen, "char", "13a"):
        dev = ParallelCorpus(["a", "b"], references)
        scores, _ = callbacks.evaluate(Fixed(translations), dev, how, ["bleu"])  # type: ignore
        score = sacrebleu.corpus_bleu(translations, [references], tokenize=how).score
        assert scores["bleu"] == pytest.approx(score)
        assert (scores["bleu"] > 20) == (how != "13a")
        assert scores["loss"] == 1.0


def test_other_settings_and_other_versions_are_refused(tmp_path):
    path = tmp_path / "training.json"
    now = {"recipe": {"epochs": 1, "tokenize": None}, "dev": "x"}
    write_settings(path, now)
    check_settings(path, now)
    for other, name in (({"recipe": now["recipe"]}, "dev"), ({**now, "recipe": {}}, "epochs")):
        refused(lambda own=other: check_settings(path, own), "version", str(name))
    newer = {**now, "recipe": now["recipe"] | {"batch_size": 80, "keep": 2}, "lowercase": False}
    check_settings(path, newer)  # options that the file lacks have their defaults
    newer["recipe"]["batch_size"] = 8
    refused(lambda: check_settings(path, newer), "batch_size", "8", "80")
    tokenized = now | {"recipe": {"epochs": 1, "tokenize": "a"}}
    refused(lambda: check_settings(path, tokenized), "'a'", "None", "tokenize")
    refused(lambda: check_settings(path, now | {"dev": "b"}), "model", "'x'", "another")
    path.write_text(path.read_text().replace(": 1,", ": 99,", 1))
    refused(lambda: check_settings(path, now), "version", "99")
    for damaged in ("", "[1]", '{"format_version": "x"}', '{"recipe": {}}'):
        path.write_text(damaged)
        refused(lambda: check_settings(path, {"recipe": {}}), "training.json")


def named(kind: str, name: str, *cells: dict) -> dict:
    """The config of a registered layer as serialized by Keras."""
    registered = {"module": "one", "class_name": kind, "registered_name": f"bahdanau_tf>{kind}"}
    return registered | {"config": {"name": name, "cells": [*cells]}}


def test_only_automatic_names_of_layers_and_modules_of_registered_ones_may_change(tmp_path):
    """Also of those in a list. A class that is not registered is found by its module."""
    path = tmp_path / "training.json"
    stack = named("StackedCells", "stack", named("GRUCell", "gru_cell_7"))
    own = {"module": "mine", "class_name": "Own", "registered_name": "Own"}
    kept = {"dtype": named("DTypePolicy", "half"), "own": own}
    write_settings(path, {"cell": stack} | kept)
    first, second = (named("GRUCell", name) for name in ("gru_cell", "gru_cell_2"))
    moved = first | {"module": "another"}
    for cell in (first, second, moved):
        check_settings(path, {"cell": named("StackedCells", "stack", cell)} | kept)
    for cell in (
        named("StackedCells", "stacked_cells", first),
        named("StackedCells", "stack", named("GRUCell", "mine")),
        named("StackedCells", "stack", named("LSTMCell", "lstm_cell")),
        named("StackedCells", "stack", first, second),
        named("StackedCells", "stack", first | {"registered_name": "bahdanau_tf>Other"}),
    ):
        refused(lambda own=cell: check_settings(path, {"cell": own} | kept), "another")
    for change, said in (
        ({"dtype": named("DTypePolicy", "whole")}, ("'half'", "'whole'", "name")),
        ({"own": own | {"module": "yours"}}, ("'mine'", "'yours'", "module")),
    ):
        changed = {"cell": stack} | kept | change
        refused(lambda own=changed: check_settings(path, own), *said)


def test_loading_refuses_a_folder_without_an_evaluation(tmp_path):
    write_settings(tmp_path / "training.json", {})
    refused(lambda: Translator.load(tmp_path), "evaluation")
    refused(lambda: Translator.load(tmp_path / "none"), "folder")
    (tmp_path / ".best.replaced").mkdir()
    assert best_folder(tmp_path).name == ".best.replaced"
    (tmp_path / "best").mkdir()
    assert best_folder(tmp_path).name == "best"
    refused(lambda: Translator.load(tmp_path), "translator")


def test_the_best_model_is_read_completely_while_training_replaces_it(tmp_path, monkeypatch):
    """If the folder is replaced while it is read, it is read again."""

    def write(number: int) -> None:
        with replaced_directory(tmp_path / "best") as aside:
            for name in "ab":
                (aside / name).write_text(str(number))

    def read(directory: Path) -> list[str]:
        first = (directory / "a").read_text()
        if overtaking:
            write(overtaking.pop())
        return [first, (directory / "b").read_text()]

    monkeypatch.setattr(saved, "_parts", read)
    write(0)
    overtaking = [2, 1]
    assert saved.read_translator(tmp_path) == ["2", "2"]
    assert not overtaking
    (tmp_path / "best" / "b").unlink()
    with pytest.raises(FileNotFoundError):
        saved.read_translator(tmp_path)


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        (({"bleu": 12.345}, 7, "signal", 6.0, 5.0, "zh"), "7|signal|BLEU 12.35|zh|0.1 min|5 targ"),
        (({"bleu": 9.0}, 7, "minutes", 30.0, 5.0, "13a", "bleu", 0, 90.0), "time|13a|0.5 min|1.5"),
        (({}, 1, "epochs", 0.01, 0.0, "13a"), "1 update,|epoch|no evaluation|no updates"),
        (({}, 7, "signal", 0.01, 0.0), "no dev set|last model|no updates"),
        (({"loss": 2.346, "bleu": 12.3}, 7, "epochs", 0, 0, "13a", "loss"), "loss 2.35|BLEU 12.30"),
    ],
)
def test_a_training_result_describes_itself(result, parts):
    described = str(TrainingResult(*result))
    assert [part for part in parts.split("|") if part not in described] == []


def test_train_reports_a_full_disk_in_one_line(files, tmp_path, capsys):
    """The first checkpoint is written before training starts."""
    flags = {"train_source": files.train_source, "train_target": files.train_target}
    flags |= dict.fromkeys(("embedding_dim", "attention_units", "maxout_units"), 20)
    flags |= dict.fromkeys(("source_vocabulary_size", "target_vocabulary_size"), 20)
    flags |= {"units": 100, "model_dir": tmp_path / "model"}
    with largest_file(200_000):
        status = main(["train", "--recipe=paper", *(f"--{k}={v}" for k, v in flags.items())])
    assert status == 2
    lines = capsys.readouterr().err.split("\n")
    (sentence,) = [line for line in lines if "could not be written" in line]
    assert sentence.startswith("bahdanau-tf: train: --model_dir: ")
    assert "File too large" in sentence
    assert not [*(tmp_path / "model" / "checkpoints").iterdir()]


def test_a_full_disk_keeps_the_best_model_and_the_log(trained, folder):
    before = contents(folder)
    nothing: Any = None
    kept = loop.ModelFolder(folder, nothing, nothing, {})
    for name, write in {
        "best": lambda: kept.save_best(trained.translator),
        "log.jsonl": lambda: kept.log.add({"step": 30, "text": "a" * 2000}),
    }.items():
        with largest_file(1000), pytest.raises(OSError, match="is kept") as error:
            write()
        assert f"{folder / name} could not be written: " in str(error.value)
        kept.log.forget_after(20)
        assert contents(folder) == before


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_folder_that_is_moved_ends_the_training(trained, files, tmp_path, is_replaced):
    """What was saved is in the moved one, from which it is resumed; no other one is made."""
    folder, moved = tmp_path / "model", tmp_path / "moved"

    def move(batch: int, logs: object = None) -> None:
        if batch == 3:
            folder.rename(moved)
            if is_replaced:
                folder.mkdir()
                (folder / "training.lock").write_text("1\n")  # another process trains here

    moving = keras.callbacks.LambdaCallback(on_train_batch_begin=move)
    said = "model_dir", "replaced", str(folder)
    call = functools.partial(train, restarted(), files, SHORT, folder, callbacks=[moving])
    refused(call, *said, by=OSError)
    assert folder.exists() is is_replaced
    assert not is_replaced or [path.name for path in folder.iterdir()] == ["training.lock"]
    translator = restarted()
    train(translator, files, SHORT, moved)
    all_equal(weights(translator), trained.weights)


class Fills(keras.callbacks.Callback):
    """From update 13 on no file can have more than 60,000 bytes."""

    def __init__(self, until_over: contextlib.ExitStack) -> None:
        super().__init__()
        self.until_over = until_over
        self.updates = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.updates += 1
        if self.updates == 13:
            self.until_over.enter_context(largest_file(60_000))


@pytest.mark.parametrize(("seconds", "what"), [(300, "best"), (-1, "checkpoints")])
def test_a_disk_that_fills_during_training_loses_nothing(
    trained, files, tmp_path, monkeypatch, seconds, what
):
    """The best model of update 20 does not fit, or the checkpoint of 13."""
    monkeypatch.setattr(callbacks, "SECONDS", seconds)
    with contextlib.ExitStack() as until_over:
        call = functools.partial(train, restarted(), files, SHORT, tmp_path)
        refused(lambda: call(callbacks=[Fills(until_over)]), "kept", what, by=OSError)
    assert [record["step"] for record in log_of(tmp_path)] == [10]
    resumed = restarted()
    train(resumed, files, SHORT, tmp_path)
    all_equal(weights(resumed), trained.weights)
    assert numbers_of(tmp_path) == numbers_of(trained.folder)


def test_an_error_of_tensorflow_is_reported_in_one_line(trained, files, tmp_path, monkeypatch):
    def exhausted(*batch: Any) -> Any:
        said = "{{node a}} OOM when allocating [9,9]\n\t[[{{node b}}]]"
        raise tf.errors.ResourceExhaustedError(None, None, said)

    monkeypatch.setattr(update, "train_step", letters.stepping(exhausted))
    call = functools.partial(train, trained.translator, files, SHORT, tmp_path)
    refused(call, "train", "OOM", "[9,9]", by=OSError)
