"""What a report trains; how trainings are stopped, and gone on with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bahdanau_tf.cli import defined_flags
from bahdanau_tf.cli import main
from bahdanau_tf.commands import report
from bahdanau_tf.device import available_cores
from bahdanau_tf.device import describe_device
from bahdanau_tf.flags.train import options
from bahdanau_tf.report import suites
from bahdanau_tf.report import trainings
from bahdanau_tf.report.trainings import Plan
from bahdanau_tf.report.trainings import read_record
from bahdanau_tf.report.trainings import train_all
from bahdanau_tf.text import load_text

FILES = suites.Files(*(f"/somewhere/{name}" for name in suites.Files._fields))

# Stands for `bahdanau-tf train`: notes that it ran, leaves a model, and, told
# to, waits for a signal or fails.
CHILD = """
import signal, sys, time
from pathlib import Path
folder = Path(sys.argv[-1].partition("=")[2])
def stop(*_):
    (folder / "stopped").touch()
    sys.exit(130)
signal.signal(signal.SIGTERM, stop)
with open(folder / "runs", "a") as runs:
    runs.write(" ".join(sys.argv[1:-1]) + "\\n")
print("3/12 loss 1.0", flush=True)
(folder / "best").mkdir(exist_ok="good" in sys.argv)
if "waits" in sys.argv and len((folder / "runs").read_text().split()) < 2:
    time.sleep(60)
if "fails" in sys.argv:
    sys.exit("no such corpus")
"""


@pytest.fixture
def children(monkeypatch):
    """Lets plans run `CHILD`."""
    monkeypatch.setattr(
        trainings,
        "command",
        lambda plan: [sys.executable, "-c", CHILD, *plan.flags],
    )


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().split("\n")) - 1


def test_what_is_finished_is_not_trained_again(children, tmp_path):
    plans = [Plan(f"system {n}*", ("good",)) for n in range(3)]
    for _ in range(2):
        found = train_all(plans, tmp_path, 1.0, 2)
    assert [*found] == ["system 0*", "system 1*", "system 2*"]
    for folder in found.values():
        assert runs(folder) == 1
        record = read_record(folder)
        assert record.is_over
        assert record.device == describe_device(1) or len(available_cores()) > 2
        assert record.seconds > 0


def test_a_training_is_stopped_in_time_and_goes_on(children, tmp_path, capsys):
    plan = Plan("slow", ("waits",))
    (folder,) = train_all([plan], tmp_path, 0.02, 1).values()
    first = read_record(folder)
    assert not first.is_over
    assert first.seconds < 30
    assert "stopped at the end of its time" in capsys.readouterr().err
    (folder / "best").rmdir()
    train_all([plan], tmp_path, 1.0, 1)
    assert runs(folder) == 2
    assert read_record(folder).is_over
    assert read_record(folder).seconds > first.seconds


def test_what_is_trained_is_saved_when_the_report_is_told_to_end(tmp_path):
    """SIGTERM, as `timeout` sends it: no training is left behind."""
    script = f"""
import sys
from pathlib import Path
from bahdanau_tf.report import trainings
trainings.command = lambda plan: [
    sys.executable, "-c", {CHILD!r}, "waits"
]
plan = trainings.Plan("slow", ())
trainings.train_all([plan], Path({str(tmp_path)!r}), 5.0, 1)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.DEVNULL
    )
    log = tmp_path / "slow" / "train.log"
    while not log.is_file() or b"loss" not in log.read_bytes():
        time.sleep(0.1)
        assert parent.poll() is None
    parent.terminate()
    assert parent.wait() == 143
    assert (tmp_path / "slow" / "stopped").exists()


def test_a_failure_says_why_and_stops_the_others(children, tmp_path):
    plans = [Plan("slow", ("waits",)), Plan("bad", ("good", "fails"))]
    start = time.monotonic()
    with pytest.raises(
        ValueError, match=r"of bad failed, see .*no such corpus"
    ):
        train_all(plans, tmp_path, 5.0, 2)
    assert time.monotonic() - start < 50  # not the minute that "slow" waits
    assert not read_record(tmp_path / "slow").is_over


@pytest.mark.parametrize(
    ("suite", "lengths", "count"),
    [
        (suites.QUICK, {15, 30}, 6),
        (suites.FULL_GRAMMAR, {15, 30}, 11),
        (suites.FULL, {30, 50}, 11),
    ],
)
def test_plans_are_commands_that_train_knows(suite, lengths, count):
    plans = suite.plans(FILES, ["--units=7"])
    assert len({plan.folder for plan in plans}) == len(plans) == count
    seeds = set()
    for plan in plans:
        flags = defined_flags("train")
        assert flags(["train", *plan.flags]) == ["train"]
        options(flags)  # each model is told only what it takes
        assert flags.train_source == FILES.train_source
        assert flags.dev_target == FILES.dev_target
        assert flags.units == 7  # what is given counts last
        name = plan.name.lower().replace(" ", "-")
        if plan.counterpart:
            assert name.startswith(f"{flags.model}-{flags.max_length}")
            assert flags.max_length in lengths
        else:
            assert flags.reverse_source == ("reversed" in name)
            seeds.add((flags.reverse_source, flags.seed))
    assert len(seeds) == sum(not plan.counterpart for plan in plans)
    counterparts = [plan.counterpart for plan in plans if plan.counterpart]
    assert {"RNNsearch-30", "RNNencdec-30"} < {*counterparts}
    assert "epochs" in suite.budget(suite.minutes)


def test_the_built_in_corpus_is_written_once(tmp_path):
    pairs = {"train": 30, "dev": 5, "test": 8}
    files = suites.write_grammar(tmp_path, pairs, 20)
    lines = {
        name: Path(path).read_text("utf-8").split("\n")[:-1]
        for name, path in files._asdict().items()
    }
    assert [len(found) for found in lines.values()] == [30, 30, 5, 5, 8, 8, 8]
    assert max(len(line.split()) for line in lines["train_source"]) <= 20
    assert max(len(line.split()) for line in lines["source"]) > 20
    before = os.stat(files.reference).st_mtime_ns
    assert suites.write_grammar(tmp_path, pairs, 20) == files
    assert os.stat(files.reference).st_mtime_ns == before


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "--quick, --full, --system or --hypotheses is missing"),
        (["--quick", "--full"], "wanted one of them"),
        (["--quick", "--source=a"], "--source is given, and the built-in"),
        (["--full", "--train_source=a"], "--source is missing"),
        (["--source=a", "--reference=b"], "--quick, --full, --system or"),
        (["--system=model"], "wanted NAME=PATH"),
        (["--system=a=b", "--system=a=c"], "each name once"),
        (
            ["--source=a", "--reference=b", "--dev_source=c", "--system=a=b"],
            "--dev_source and --dev_target go together",
        ),
    ],
)
def test_what_is_missing_is_said(capfd, tmp_path, flags, sentence):
    assert main(["report", f"--out_dir={tmp_path / 'out'}", *flags]) == 2
    assert sentence in capfd.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--train_flag=units=5"], "--train_flag is 'units=5', wanted a flag"),
        (["--train_flag=--colour=red"], "Unknown command line flag 'colour'"),
        (["--train_flag=--units=0"], "units is 0, wanted"),
        (["--train_flag=--joint"], "--joint is not used with --tokenizer=word"),
        (["--tokenize=soup"], "tokenize is 'soup'"),
        (["--beta=0.2"], "has no attention to penalize"),
        (["--hypotheses=RNNsearch-15={text}"], "is a system that is trained"),
        (["--system=a={tmp}"], "holds no translator"),
        (["--hypotheses=a={text}"], "--hypotheses=a has 1 lines"),
    ],
)
def test_nothing_is_trained_where_the_report_would_fail(
    capfd, tmp_path, monkeypatch, flags, sentence
):
    monkeypatch.setattr(
        report, "train_all", lambda *_: pytest.fail("hours are spent")
    )
    monkeypatch.setattr(
        suites, "QUICK_PAIRS", {"train": 20, "dev": 2, "test": 3}
    )
    text = tmp_path / "text"
    text.write_text("a b\n")
    flags = [flag.format(tmp=tmp_path, text=text) for flag in flags]
    out = f"--out_dir={tmp_path / 'out'}"
    assert main(["report", "--quick", out, *flags]) == 2
    err = capfd.readouterr().err
    assert sentence in err
    assert "Traceback" not in err


def test_a_flag_goes_to_the_trainings_that_take_it():
    plans = suites.QUICK.plans(FILES, ["--annotation_dropout=0.2"])
    for plan in plans:
        is_taken = "--annotation_dropout=0.2" in plan.flags
        assert is_taken == ("LSTM" not in plan.name)


@pytest.mark.slow
def test_all_of_it_and_again(tmp_path, monkeypatch, capsys):
    """Trains for seconds, writes; then writes again without training."""
    monkeypatch.setattr(
        suites, "QUICK_PAIRS", {"train": 120, "dev": 4, "test": 40}
    )
    # One with and one without attention, and the forward LSTM.
    plans = suites.Suite.plans
    monkeypatch.setattr(
        suites.Suite,
        "plans",
        lambda *given: plans(*given)[:2] + plans(*given)[4:5],
    )
    command = [
        "report",
        "--quick",
        f"--out_dir={tmp_path}",
        "--train_flag=--epochs=1",
        "--train_flag=--units=12",
        "--max_length=10",
        "--beam_size=2",
        "--minutes=30",
    ]
    assert main(command) == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("data:image/png;base64,") == 5
    assert "http" not in page
    data = json.loads((tmp_path / "report.json").read_text("utf-8"))
    rows = {row[0]: row for row in data["tables"]["table1"]["rows"]}
    assert rows["for RNNsearch-50*"][1] is None
    assert rows["RNNsearch-30"][5] == "RNNsearch-50"
    training = {row[0]: row for row in data["tables"]["table2"]["rows"]}
    assert training["LSTM forward"][1] == 2  # updates of 64 pairs
    aligned = {row[0]: row for row in data["tables"]["alignments"]["rows"]}
    assert 0 < aligned["RNNsearch-30"][1] <= 1
    text = load_text(tmp_path / "models" / "RNNsearch-30" / "target")
    assert text.vocabulary_size <= 260
    checkpoints = [*tmp_path.glob("models/*/checkpoints/checkpoint")]
    assert len(checkpoints) == 3
    before = {path: path.stat().st_mtime_ns for path in checkpoints}
    capsys.readouterr()
    assert main(command) == 0
    assert before == {path: path.stat().st_mtime_ns for path in checkpoints}
    again = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert again["tables"]["table1"] == data["tables"]["table1"]
