"""Experiments: which systems are trained; stopping and resuming them."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import refused

from bahdanau_tf.commands.main import defined_flags
from bahdanau_tf.commands.report import write_corpus
from bahdanau_tf.commands.train import asked
from bahdanau_tf.options import Decoding
from bahdanau_tf.report import results, trainings
from bahdanau_tf.report.trainings import COMMAND, Plan, Record, train_all
from bahdanau_tf.translation import Translation

FILES = trainings.Files(*(f"/somewhere/{name}" for name in trainings.Files._fields))

# Replaces `bahdanau-tf train`: records that it ran and leaves a model.
# Depending on its arguments it fails, or waits for a signal in its first run.
CHILD = """
import signal, sys
from pathlib import Path
folder = Path(sys.argv[-1].partition("=")[2])
def stop(*_):
    (folder / "stopped").touch()
    sys.exit(130)
signal.signal(signal.SIGTERM, stop)
with open(folder / "runs", "a") as runs:
    runs.write("run\\n")
(folder / "best").mkdir(exist_ok=True)
print("3/12 loss 1.0\\n3 updates; best model: dev BLEU 9.10; 0.1 minutes", flush=True)
if "waits" in sys.argv and (folder / "runs").read_text() == "run\\n":
    while True:
        signal.pause()
if "fails" in sys.argv:
    sys.exit("no such corpus")
"""


@pytest.fixture(autouse=True)
def children(monkeypatch):
    """Plans run `CHILD` instead of `bahdanau-tf train`."""
    command = (sys.executable, "-c", CHILD)
    monkeypatch.setattr(trainings, "COMMAND", command)


def has_begun(folder):
    log = folder / "train.log"
    return log.is_file() and b"loss" in log.read_bytes()


def test_finished_systems_are_not_trained_again(tmp_path):
    plans = [Plan(f"system {n}*", ()) for n in range(3)]
    for _ in range(2):
        folders = train_all(plans, tmp_path, 1.0, 2)
    assert [*folders] == ["system 0*", "system 1*", "system 2*"]
    for folder in folders.values():
        assert (folder / "runs").read_text() == "run\n"
        record = Record.read(folder)
        assert record.is_over
        assert record.device


def test_a_finished_system_with_other_flags_is_left_to_train(tmp_path):
    """So `train` goes on, or refuses what was changed."""
    for flags in ((), ("--updates=2",), ("--updates=2",)):
        folders = train_all([Plan("one", flags)], tmp_path, 1.0, 1)
        assert Record.read(folders["one"]).flags == flags
    assert (folders["one"] / "runs").read_text() == "run\nrun\n"


def test_a_training_stops_when_its_time_is_up_and_is_resumed(monkeypatch, tmp_path, capsys):
    """A fake clock shows one hour as soon as the training has begun."""
    folder = tmp_path / "slow"
    clock = SimpleNamespace(
        monotonic=lambda: 3600.0 * has_begun(folder), sleep=lambda _: time.sleep(0.01)
    )
    monkeypatch.setattr(trainings, "time", clock)
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "trained.json").write_text('{"is_over": true}')
    plan = Plan("slow", ("waits",))
    assert train_all([Plan("done", ()), plan], tmp_path, 59.0, 1) == {"slow": folder}
    assert (folder / "stopped").exists()
    device = Record.read(folder).device
    assert Record.read(folder) == Record(3600, device, False, ("waits",))
    said = capsys.readouterr().err
    assert "1 of 2 trained; now slow" in said
    assert "stopped when its time ran out, dev BLEU 9.10, 60.0 minutes" in said
    train_all([plan], tmp_path, 61.0, 1)
    assert (folder / "runs").read_text() == "run\nrun\n"
    assert Record.read(folder).is_over
    assert Record.read(folder).seconds >= 3600


def test_sigterm_stops_the_trainings_after_they_have_saved(monkeypatch, tmp_path):
    """SIGTERM, as from `timeout`: no training is left running."""
    before = signal.getsignal(signal.SIGTERM)

    def sleep(_):
        if has_begun(tmp_path / "slow"):
            assert signal.getsignal(signal.SIGTERM) != before
            signal.raise_signal(signal.SIGTERM)
        time.sleep(0.01)

    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=sleep)
    monkeypatch.setattr(trainings, "time", clock)
    with pytest.raises(SystemExit, match="143"):
        train_all([Plan("slow", ("waits",))], tmp_path, 600.0, 1)
    assert (tmp_path / "slow" / "stopped").exists()
    assert signal.getsignal(signal.SIGTERM) == before


# Waits for a signal, as `bahdanau_tf` in the place of which it is found.
WAITING = """
import pathlib, signal, sys
def stop(*_):
    pathlib.Path("stopped").write_text(" ".join(sys.argv[1:]))
    sys.exit(130)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_a_training_stops_if_its_parent_is_killed(tmp_path):
    """The end of the parent closes the pipe, as `close` does here."""
    package = tmp_path / "bahdanau_tf"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(WAITING)
    with subprocess.Popen(
        [*COMMAND, "train", "--units=4"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.wait() == 130
    assert (tmp_path / "stopped").read_text() == "train --units=4"


@pytest.mark.parametrize(
    ("log", "wanted"),
    [
        ("building the graph\n", (0, 0)),
        ("1/8 loss 2.1, 7 words/s\n4/8 loss 2.0, 900 words/s, 3:00 left\n  update\n", (50, 900)),
        ("7, loss 2.1, 700 words/s, best BLEU 3.10, at most 1:05:00 left\n", (25, 700)),
    ],
)
def test_the_progress_of_a_training_is_read_from_its_log(log, wanted):
    """After 1300 seconds; 3900 are left in the last case."""
    assert trainings.progress(log, 1300.0) == wanted


def test_a_failed_training_is_reported_and_stops_the_others(tmp_path):
    """The other training would wait for ever."""
    plans = [Plan("slow", ("waits",)), Plan("bad", ("fails",))]
    refused(lambda: train_all(plans, tmp_path, 600.0, 2), "bad", "no such corpus")
    assert not Record.read(tmp_path / "slow").is_over


@pytest.mark.parametrize(
    ("suite", "lengths", "count"),
    [
        (trainings.QUICK, {15, 30}, 6),
        (trainings.FULL_GRAMMAR, {15, 30}, 11),
        (trainings.FULL, {30, 50}, 11),
    ],
)
def test_plans_are_valid_flags_of_train(suite, lengths, count):
    plans = suite.plans(FILES, ["--units=7"])
    assert len({plan.folder for plan in plans}) == len(plans) == count
    seeds = set()
    for plan in plans:
        flags = defined_flags("train")
        assert flags(["train", *plan.flags]) == ["train"]
        _ = asked(flags).recipe  # raises if the model does not use a flag
        assert flags.train_source == FILES.train_source
        assert flags.dev_target == FILES.dev_target
        assert flags.units == 7  # given flags override those of the suite
        name = plan.name.lower().replace(" ", "-")
        if plan.counterpart:
            limit = flags[suite.limit].value
            assert name.startswith(f"{flags.model}-{limit}")
            assert limit in lengths
        else:
            assert flags.reverse_source == ("reversed" in name)
            seeds.add((flags.reverse_source, flags.seed))
    counterparts = [plan.counterpart for plan in plans if plan.counterpart]
    assert len(seeds) + len(counterparts) == count
    assert {"RNNsearch-30", "RNNencdec-30"} < {*counterparts}


def test_systems_of_a_users_corpus_make_equal_updates():
    """So that limits are compared; options are those chosen for the text."""
    limits = {}
    for plan in trainings.FULL.plans(FILES):
        flags = defined_flags("train")
        flags(["train", *plan.flags])
        assert flags.recipe is None
        assert flags.minutes == 0
        assert flags.epochs * 100 > flags.updates
        limits[plan.name] = (flags.max_words, flags.updates, flags.patience)
    longer = limits.pop("RNNsearch-50*")
    assert {row[1] for row in limits.values()} == {8000}
    assert longer[1] > 2 * 8000
    assert longer[2] == defined_flags("train")["patience"].default
    assert limits["RNNencdec-50"] == limits["RNNsearch-50"] == (50, 8000, 10_000)
    assert limits["RNNencdec-30"] == limits["RNNsearch-30"] == (30, 8000, 10_000)


def test_a_flag_is_passed_only_to_models_that_take_it():
    for plan in trainings.QUICK.plans(FILES, ["--annotation_dropout=0.2"]):
        is_taken = "--annotation_dropout=0.2" in plan.flags
        assert is_taken == ("LSTM" not in plan.name)


def test_a_translation_has_one_line_of_the_report():
    """A vocabulary of bytes can write line feeds and NUL."""

    def translate(sources, decoding, split_sentences):
        assert split_sentences is False
        text = f"a\n{decoding.unknown}\0"
        return [Translation(source, text) for source in sources]

    translator = SimpleNamespace(model=None, translate=translate)
    is_known, decoding = [True, False], Decoding()
    system = results._translate("m", translator, "xy", is_known, decoding)
    assert system.texts == ["a keep", "a keep"]
    assert system.known_texts == ["a forbid", "a keep"]


def test_the_built_in_corpus_is_written_once(tmp_path):
    pairs = {"train": 30, "dev": 5, "test": 8}
    suite = replace(trainings.QUICK, pairs=pairs)
    files = write_corpus(suite, tmp_path)
    lines = {
        name: Path(path).read_text("utf-8").split("\n")[:-1]
        for name, path in files._asdict().items()
    }
    assert [len(side) for side in lines.values()] == [30, 30, 5, 5, 8, 8, 8]
    assert max(len(line.split()) for line in lines["train_source"]) <= 30
    assert max(len(line.split()) for line in lines["source"]) > 30
    before = Path(files.reference).stat().st_mtime_ns
    assert write_corpus(suite, tmp_path) == files
    assert Path(files.reference).stat().st_mtime_ns == before
