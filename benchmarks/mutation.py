"""What the tests prove: small mistakes are made in the package, one at a time.

    python benchmarks/mutation.py --results=mutants.jsonl
    python benchmarks/mutation.py --results=mutants.jsonl --stage=rest
    python benchmarks/mutation.py --results=mutants.jsonl --show=survived

A mutant is the package with one mistake: a comparison, an operator, a number
or a condition changed, a statement taken away (`mutants.py`). They are drawn by
a seed over the rooms of `TESTS`. The stage "room" shows each to the test files
of its room, the stage "rest" shows those that survived it to all others. A
mutant is killed by a test that fails, or that takes far more of the processor
than it does without a mistake.

Every result is a line of the file of results; what is there already is not run
again, so that the program may be stopped at any time. Each test file runs in a
fork of a process that has imported TensorFlow, and not yet used it. First each
runs without a mistake: one that fails then can kill nobody and is left out.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import keras  # noqa: F401 - what every fork has imported already
import pytest
import tensorflow as tf  # noqa: F401
import tensorflow_text  # noqa: F401
from absl import app
from absl import flags
from mutants import Mutant
from mutants import draw

FLAGS = flags.FLAGS

flags.DEFINE_string("results", None, "A file of JSON lines.", required=True)
flags.DEFINE_enum("stage", "room", ["room", "rest"], "Which tests to run.")
flags.DEFINE_integer("mutants", 200, "How many to draw.")
flags.DEFINE_integer("seed", 15, "Which to draw.")
flags.DEFINE_enum(
    "show", None, ["killed", "survived"], "Print these instead of running."
)

REPOSITORY = Path(__file__).resolve().parents[1]

# Files and folders of the package, each with the tests that are about it.
TESTS = {
    "layers": (
        *("layers", "reference", "masks", "keras_cells", "models"),
        *("conformance", "fast_training"),
    ),
    "search": ("search", "constraints", "translator"),
    "losses.py": ("losses", "masks", "fast_training"),
    "optimizers": ("optimizers", "compiled_step", "replicas"),
    "text": (
        *("vocabulary", "rows", "true_case", "guess", "tokenizer", "subword"),
        *("text_files", "translator"),
    ),
    "data": ("dataset", "selection", "language_model", "training_text"),
}


def tests_of(room: str, stage: str) -> list[Path]:
    """The test files of a room, or all others."""
    folder = REPOSITORY / "tests"
    own = [folder / f"test_{name}.py" for name in TESTS[room]]
    if stage == "room":
        return own
    return [
        path for path in sorted(folder.glob("test_*.py")) if path not in own
    ]


class FirstFailure:
    """Notes which test failed first."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.path.write_text(report.nodeid)


def run_tests(package: Path, test: Path, seconds: int, failure: Path) -> None:
    """Runs one test file on the package below a folder; ends the process."""
    os.chdir(package)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    os.environ["PYTHONPATH"] = str(package)  # for processes that a test starts
    sys.path.insert(0, str(package))
    settings = ["-c", str(REPOSITORY / "pyproject.toml")]
    status = pytest.main(
        ["-q", "-x", "-p", "no:cacheprovider", *settings, str(test)],
        plugins=[FirstFailure(failure)],
    )
    os._exit(int(status))


def outcome(package: Path, test: Path, seconds: int) -> dict[str, Any]:
    """What one test file says: passed, failed and which test, or timeout."""
    failure = package / "failure"
    failure.unlink(missing_ok=True)
    fork = multiprocessing.get_context("fork").Process(
        target=run_tests, args=(package, test, seconds, failure)
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    fork.start()
    fork.join(20 * seconds)  # one that waits for itself takes no processor
    if fork.is_alive():
        fork.kill()
        fork.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    code = fork.exitcode
    if code == pytest.ExitCode.USAGE_ERROR:
        raise RuntimeError(f"pytest cannot run {test}")
    passed = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    found = "passed" if passed else "timeout" if code < 0 else "failed"
    by = failure.read_text() if failure.exists() else test.name
    return {"outcome": found, "by": by, "processor_seconds": round(used)}


class Results:
    """Lines of a file, each the result of one test file or one mutant."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        self.lines = [json.loads(line) for line in lines]

    def find(self, **wanted: Any) -> dict[str, Any] | None:
        for line in self.lines:
            if wanted.items() <= line.items():
                return line
        return None

    def add(self, **line: Any) -> dict[str, Any]:
        self.lines.append(line)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return line


def without_mistake(test: Path, results: Results) -> dict[str, Any]:
    """What a test file says of the package as it is."""
    found = results.find(clean=test.name)
    if found is None:
        with tempfile.TemporaryDirectory() as folder:
            package = copy_of_package(Path(folder))
            found = results.add(clean=test.name, **outcome(package, test, 1200))
        print(f"{test.name} without a mistake: {found}", flush=True)
    return found


def copy_of_package(folder: Path, mutant: Mutant | None = None) -> Path:
    """Makes a folder that holds the package, with a mistake or without."""
    copy = folder / "bahdanau_tf"
    shutil.copytree(
        REPOSITORY / "bahdanau_tf",
        copy,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    if mutant is not None:
        (copy / mutant.path).write_text(mutant.source, "utf-8")
    return folder


def judge(mutant: Mutant, tests: Sequence[Path], results: Results) -> str:
    """Shows a mutant to test files, until one kills it."""
    with tempfile.TemporaryDirectory() as folder:
        package = copy_of_package(Path(folder), mutant)
        for test in tests:
            clean = without_mistake(test, results)
            if clean["outcome"] != "passed":
                continue
            seconds = 60 + 5 * clean["processor_seconds"]
            found = outcome(package, test, seconds)
            if found["outcome"] != "passed":
                return f"{found['outcome']}: {found['by']}"
    return "survived"


def stage(mutants: Sequence[Mutant], stage: str, results: Results) -> None:
    """Judges the mutants that a stage has not judged yet."""
    for mutant in mutants:
        if results.find(mutant=mutant.name, stage=stage):
            continue
        if stage == "rest" and not results.find(
            mutant=mutant.name, stage="room", result="survived"
        ):
            continue
        result = judge(mutant, tests_of(mutant.room, stage), results)
        results.add(mutant=mutant.name, stage=stage, result=result)
        print(f"{mutant.name}\n    {result}", flush=True)


def summary(mutants: Sequence[Mutant], results: Results) -> dict[str, str]:
    """The last result of each mutant that has met some tests."""
    names = {mutant.name for mutant in mutants}
    found = [line for line in results.lines if line.get("mutant") in names]
    return {line["mutant"]: line["result"] for line in found}


def main(_: Sequence[str]) -> None:
    """Runs a stage, or shows what was found."""
    package = REPOSITORY / "bahdanau_tf"
    mutants = draw(package, list(TESTS), FLAGS.mutants, FLAGS.seed)
    results = Results(Path(FLAGS.results).resolve())
    if FLAGS.show is None:
        stage(mutants, FLAGS.stage, results)
    found = summary(mutants, results)
    for name, result in found.items():
        if FLAGS.show and (result == "survived") == (FLAGS.show == "survived"):
            print(f"{name}\n    {result}")
    counts = Counter(result == "survived" for result in found.values())
    print(
        f"{counts[False]} of {len(found)} killed, "
        f"{len(mutants) - len(found)} not run yet"
    )


if __name__ == "__main__":
    app.run(main)
