"""Trainings in processes of their own: stopping and resuming them."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from refusals import refused

from bahdanau_tf.training import processes
from bahdanau_tf.training.processes import COMMAND, Plan, Record, train_all

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
    monkeypatch.setattr(processes, "COMMAND", command)


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
    monkeypatch.setattr(processes, "time", clock)
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
    monkeypatch.setattr(processes, "time", clock)
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
    assert processes.progress(log, 1300.0) == wanted


def test_a_failed_training_is_reported_and_stops_the_others(tmp_path):
    """The other training would wait for ever."""
    plans = [Plan("slow", ("waits",)), Plan("bad", ("fails",))]
    refused(lambda: train_all(plans, tmp_path, 600.0, 2), "bad", "no such corpus")
    assert not Record.read(tmp_path / "slow").is_over
