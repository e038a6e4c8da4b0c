"""What the tests prove: small mistakes are made in the package, one at a time.

    python benchmarks/mutation.py --results=mutants.jsonl
    python benchmarks/mutation.py --results=mutants.jsonl --stage=rest
    python benchmarks/mutation.py --results=mutants.jsonl --show=survived
    python benchmarks/mutation.py --results=again.jsonl --again=mutants.jsonl

A mutant is the package with one mistake: a comparison, an operator, a number or a condition
changed, a statement taken away (`mutants.py`). They are drawn by a seed over the rooms of `TESTS`.
With `--again` those are taken that survived in another file of results, and stand in the package
still.

Each test file runs without a mistake first, and it is noted which statements each test runs
(`places.py`, `forked_tests.py`). Then a mutant meets those that run its statement, the cheapest
first, until one fails, or takes far more of the processor than it did without the mistake: in the
stage "room" the test files of its room, one after the other, in the stage "rest" all others. Tests
of a file that would cost more than `--seconds` together are left out; with more seconds the
survivors meet them too.

Every result is a line of the file of results; what is there already is not run again, so that the
program may be stopped at any time. It refuses to go on where the package or the tests have changed.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import hypothesis.strategies  # noqa: F401 - what every fork has already
import keras  # noqa: F401
import tensorflow as tf  # noqa: F401
import tensorflow_text  # noqa: F401
from absl import app, flags
from forked_tests import REPOSITORY, Test, first_failure, trace
from mutants import Mutant, draw, everything
from places import noting

FLAGS = flags.FLAGS

flags.DEFINE_string("results", None, "A file of JSON lines.", required=True)
flags.DEFINE_enum("stage", "room", ["room", "rest"], "Which tests to run.")
flags.DEFINE_integer("mutants", 200, "How many to draw.")
flags.DEFINE_integer("seed", 15, "Which to draw.")
flags.DEFINE_string("again", None, "Results whose survivors to run instead.")
flags.DEFINE_float("seconds", 60, "What the tests of a mutant may cost.")
flags.DEFINE_enum("show", None, ["killed", "survived"], "Print these instead of running.")

# The first tests of a mutant, in seconds; most mutants need no others.
FIRST = 3

# Files and folders of the package, each with the tests that are about it.
TESTS = {
    "layers": (
        *("layers", "reference", "keras_cells", "masks", "fast_training"),
        *("models", "conformance", "remembering"),
    ),
    "search": ("search", "constraints", "translator"),
    "losses.py": ("losses", "masks", "fast_training"),
    "optimizers": ("optimizers", "compiled_step", "replicas"),
    "text": (
        *("vocabulary", "rows", "true_case", "guess", "tokenizer", "subword"),
        *("text_files", "translator"),
    ),
    "data": ("dataset", "selection", "held_out"),
}


def tests_of(room: str, stage: str) -> list[Path]:
    """The test files of a room, or all others."""
    folder = REPOSITORY / "tests"
    own = [path for name in TESTS[room] for path in folder.rglob(f"test_{name}.py")]
    if stage == "room":
        return own
    return [path for path in sorted(folder.rglob("test_*.py")) if path not in own]


class Results:
    """Lines of a file, each the result of one test file or one mutant."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        self.lines = [json.loads(line) for line in lines]

    def find(self, **wanted: Any) -> dict[str, Any] | None:
        """The last line that says so, if one does."""
        for line in reversed(self.lines):
            if wanted.items() <= line.items():
                return line
        return None

    @property
    def killed(self) -> dict[str, str]:
        """By name, what killed each mutant that does not live."""
        return {
            line["mutant"]: line["result"]
            for line in self.lines
            if line.get("result", "survived") != "survived"
        }

    @property
    def survivors(self) -> list[str]:
        """The names of those that have met tests, and live."""
        met = dict.fromkeys(line["mutant"] for line in self.lines if "mutant" in line)
        return [name for name in met if name not in self.killed]

    def add(self, **line: Any) -> dict[str, Any]:
        self.lines.append(line)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return line


def copy_of_package(folder: str, other: Mapping[str, str]) -> Path:
    """Fills a folder with the package, with other sources for some files."""
    copy = Path(folder) / "bahdanau_tf"
    shutil.copytree(REPOSITORY / "bahdanau_tf", copy)
    for path, source in other.items():
        (copy / path).write_text(source, "utf-8")
    return copy.parent


def noting_sources(places: Set[str]) -> dict[str, str]:
    """Files that tell when places in them run."""
    return {
        path: noting((REPOSITORY / "bahdanau_tf" / path).read_text("utf-8"), path, places)
        for path in {place.split(":")[0] for place in places}
    }


def digest() -> str:
    """Of the package and the tests: results hold for these alone."""
    sources = hashlib.sha256()
    for folder in ("bahdanau_tf", "tests"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            sources.update(path.read_bytes())
    return sources.hexdigest()[:16]


def cheapest_first(tests: Sequence[Test]) -> list[Test]:
    """Orders tests; of one function each case costs more than the last."""
    cases: Counter[str] = Counter()
    costs = {}
    for test in sorted(tests, key=lambda test: test.seconds):
        function = test.name.split("[")[0]
        cases[function] += 1
        costs[test.name] = test.seconds * cases[function]
    return sorted(tests, key=lambda test: costs[test.name])


def within(tests: Sequence[Test], seconds: float) -> int:
    """How many of some tests cost so much together."""
    costs = itertools.accumulate(test.seconds for test in tests)
    return sum(cost <= seconds for cost in costs)


def judge(mutant: Mutant, tests: Sequence[Test]) -> str:
    """Shows a mutant to tests, until one kills it."""
    first = max(1, within(tests, FIRST))
    with tempfile.TemporaryDirectory() as folder:
        package = copy_of_package(folder, {mutant.path: mutant.source})
        for part in filter(None, (tests[:first], tests[first:])):
            failure = first_failure(package, part)
            if failure:
                return failure
    return "survived"


def that_meet(mutant: Mutant, tests: Sequence[Test]) -> list[Test]:
    """The tests that run what a mutant changes, the cheapest first."""
    return cheapest_first([test for test in tests if mutant.statement in test.runs])


class Stage:
    """Shows test files to mutants, and keeps what they say.

    Args:
        mutants: All mutants.
        results: What is known already.
    """

    def __init__(self, mutants: Sequence[Mutant], results: Results) -> None:
        self.mutants = mutants
        self.results = results
        self.noting = noting_sources({m.statement for m in mutants})

    def run(self, stage: str) -> None:
        """Shows each room's first file to its mutants, then the second."""
        files = {room: tests_of(room, stage) for room in TESTS}
        for rank in range(max(map(len, files.values()))):
            for mutant in sorted(self.mutants, key=lambda m: [*TESTS].index(m.room)):
                if rank < len(files[mutant.room]):
                    self.meet(mutant, files[mutant.room][rank])

    def meet(self, mutant: Mutant, file: Path) -> None:
        """Shows a file to a mutant that no other has killed."""
        if mutant.name in self.results.killed:
            return
        earlier = self.results.find(mutant=mutant.name, file=file.name)
        before = earlier["met"] if earlier else -1
        tests = that_meet(mutant, self.tests_in(file))
        met = within(tests, FLAGS.seconds)
        if met <= before:
            return
        tests_now = tests[max(before, 0) : met]
        result = judge(mutant, tests_now) if tests_now else "survived"
        self.results.add(mutant=mutant.name, file=file.name, result=result, met=met)
        print(
            f"{mutant.name}\n    {result}: {met} of {len(tests)} tests of {file.name}", flush=True
        )

    def tests_in(self, file: Path) -> list[Test]:
        """The tests of a file that pass without a mistake."""
        record = self.results.find(traced=file.name)
        if record is None:
            with tempfile.TemporaryDirectory() as folder:
                package = copy_of_package(folder, self.noting)
                tests = trace(package, file)
            record = self.results.add(traced=file.name, tests=tests)
            seconds = sum(test.seconds for test in tests)
            print(f"{file.name}: {len(tests)} tests, {seconds:.0f} s", flush=True)
        return [Test(*test) for test in record["tests"]]


def that_survived(mutants: Sequence[Mutant], results: Results, stage: str) -> list[Mutant]:
    """Those that have met all tests of a stage, and live."""
    return [
        mutant
        for mutant in mutants
        if mutant.name not in results.killed
        and all(
            results.find(mutant=mutant.name, file=file.name)
            for file in tests_of(mutant.room, stage)
        )
    ]


def that_stand(names: Sequence[str], mutants: Sequence[Mutant]) -> list[Mutant]:
    """Mutants by name, in a package whose lines may have moved since."""
    standing = []
    for name in names:
        place, mistake = name.split(": ", 1)
        path, line, column = place.split(":")
        same = [mutant for mutant in mutants if (mutant.path, mutant.mistake) == (path, mistake)]
        if same:
            standing.append(
                min(same, key=lambda m: (m.column != int(column), abs(m.line - int(line))))
            )
        else:
            print(f"{name}\n    stands no longer")
    return standing


def main(_: Sequence[str]) -> None:
    """Runs a stage, or shows what was found."""
    mutants = everything(REPOSITORY / "bahdanau_tf", list(TESTS))
    results = Results(Path(FLAGS.results).resolve())
    if FLAGS.again:
        others = Results(Path(FLAGS.again)).survivors
        mutants = that_stand(others, mutants)
    else:
        mutants = draw(mutants, FLAGS.mutants, FLAGS.seed)
    if FLAGS.show is None:
        if not results.lines:
            results.add(digest=digest())
        if not results.find(digest=digest()):
            raise app.UsageError(f"{FLAGS.results}: of other sources or tests")
        gc.freeze()  # a collection in a fork need not look at TensorFlow
        Stage(mutants, results).run(FLAGS.stage)
    survivors = that_survived(mutants, results, FLAGS.stage)
    shown = {mutant.name: "survived" for mutant in survivors}
    if FLAGS.show == "killed":
        shown = results.killed
    for name, result in shown.items() if FLAGS.show else ():
        print(f"{name}\n    {result}")
    done = len(results.killed) + len(survivors)
    print(f"{len(results.killed)} of {done} killed, {len(mutants) - done} not run yet")


if __name__ == "__main__":
    app.run(main)
