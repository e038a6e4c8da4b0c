"""benchmarks/kills.py and soak.py in small, and what they compare."""

import importlib
import re
import shutil
from pathlib import Path
from types import ModuleType

import keras
import letters
import pytest
from processes import run_python

from bahdanau_tf import Translator
from bahdanau_tf.training import callbacks
from bahdanau_tf.translation.saved import write_translator

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
files = letters.files  # the fixture


@pytest.fixture(scope="module")
def tiny() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module("tiny")


@pytest.fixture(scope="module")
def two_trained(files, tmp_path_factory) -> list[Path]:
    """Folders of two trainings that only the clock can tell apart."""
    folders = [tmp_path_factory.mktemp("trained") / "model" for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        letters.stand_in(patch)
        patch.setattr(callbacks, "evaluate", letters.stand_in_evaluate)
        for folder in folders:
            keras.utils.clear_session()  # as in a new process: adam, not adam_1
            letters.train(letters.restarted(), files, letters.RECIPE, folder)
    return folders


def test_trainings_differ_only_in_readings_of_the_clock(tiny, two_trained):
    assert [*tiny.differences(*two_trained)] == []


def with_a_line_twice(folder: Path) -> None:
    path = folder / "log.jsonl"
    first, *_ = path.read_text().splitlines(keepends=True)
    path.write_text(first + path.read_text())


def with_a_line_lost(folder: Path) -> None:
    path = folder / "log.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


def with_the_checkpoint_before(folder: Path) -> None:
    for path in (folder / "checkpoints").glob("ckpt-4.*"):
        path.unlink()
    (folder / "checkpoints" / "checkpoint").write_text('model_checkpoint_path: "ckpt-3"\n')


def with_another_best(folder: Path) -> None:
    best = Translator.load(folder / "best")
    (weight, *_) = best.model.trainable_weights
    weight.assign(weight * (1 + 2**-20))
    write_translator(folder / "best", best.graph, best.habits)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (with_a_line_twice, "the log differs"),
        (with_a_line_lost, "the log differs"),
        (with_the_checkpoint_before, "state/step/.* differs"),
        (with_another_best, "best: .* differs"),
    ],
)
def test_what_a_kill_could_change_is_found(tiny, two_trained, tmp_path, change, difference):
    folder = Path(shutil.copytree(two_trained[0], tmp_path / "model"))
    assert [*tiny.differences(folder, two_trained[0])] == []
    change(folder)
    assert re.search(difference, "\n".join(tiny.differences(folder, two_trained[0])))


def run(program: str, *words: str) -> str:
    """Runs a program of benchmarks/; returns its output."""
    done = run_python(BENCHMARKS / program, *words)
    return f"{done.stdout}\nstatus {done.returncode}, {done.stderr[-2000:]}"


@pytest.mark.slow
def test_a_training_killed_three_times_ends_with_the_same_bits(tmp_path):
    report = run("kills.py", f"--out_dir={tmp_path / 'kills'}", "--kills=3", "--updates=60")
    assert "kill 3 of 3" in report
    assert "equal bit for bit, nothing left" in report


@pytest.mark.slow
def test_a_short_soak_leaves_nothing(tmp_path):
    """Too short to judge the memory by."""
    words = "--minutes=0.1", "--batches=2", "--warm_up=3", f"--out_dir={tmp_path / 'soak'}"
    report = run("soak.py", *words)
    assert "| minutes | updates |" in report
    # Each command ends well.
    for bad in (" is left", "the last ", "another way", "long training", "Traceback"):
        assert bad not in report
