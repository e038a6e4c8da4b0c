"""Tests run in a fork: which places each runs, and which fails first."""

from __future__ import annotations

import builtins
import json
import multiprocessing
import os
import resource
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


class Test(NamedTuple):
    """What is known of a test, all JSON.

    Attributes:
        name: The node id of pytest.
        seconds: Of the processor, with the fixtures that it needs.
        runs: The places of the package that it runs (`places.py`).
    """

    name: str
    seconds: float
    runs: list[str]


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])


# What an interpreter runs that a test starts: it notes places in a file.
SITE = """\
import builtins
import pathlib
notes = pathlib.Path(__file__).with_name("notes")
noted = set()
def runs(place):
    if place not in noted:
        noted.add(place)
        with notes.open("a") as file:
            file.write(place + "\\n")
builtins.__runs__ = runs
"""


class Trace:
    """A plugin of pytest that notes which places each test runs.

    What a fixture of a module or session runs counts for every test that asks for the fixture, what
    an import runs for none.

    Args:
        package: The folder that holds a package whose functions call `__runs__`.
    """

    def __init__(self, package: Path) -> None:
        (package / "sitecustomize.py").write_text(SITE)
        self.notes = package / "notes"
        self.places: set[str] = set()
        self.fixtures: dict[str, tuple[float, set[str]]] = {}
        self.spent_on_fixtures = 0.0
        self.passed: dict[str, bool] = defaultdict(lambda: True)
        self.tests: list[Test] = []
        builtins.__runs__ = self.runs  # type: ignore[attr-defined]

    def runs(self, place: str) -> None:
        self.places.add(place)

    def read_notes(self) -> None:
        """Adds what other interpreters have noted."""
        if self.notes.exists():
            self.places.update(self.notes.read_text().split())
            self.notes.unlink()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        before, outer = processor_seconds(), self.places
        self.places = set()
        try:
            return (yield)
        finally:
            spent = processor_seconds() - before
            self.read_notes()
            self.fixtures[fixturedef.argname] = spent, self.places
            self.spent_on_fixtures += spent
            self.places = outer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before, self.spent_on_fixtures = processor_seconds(), 0.0
        self.places = set()
        try:
            return (yield)
        finally:
            self.read_notes()
            spent = processor_seconds() - before - self.spent_on_fixtures
            self.note(item, spent)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.passed[report.nodeid] &= report.passed

    def note(self, item: Any, seconds: float) -> None:
        runs = set(self.places)
        for name in item.fixturenames:
            spent, places = self.fixtures.get(name, (0.0, set()))
            seconds += spent
            runs |= places
        if self.passed[item.nodeid]:
            self.tests.append(Test(item.nodeid, round(seconds, 3), sorted(runs)))


class Chosen:
    """A plugin of pytest that runs some tests, in their order.

    The name of the test that runs stands in a file, so that who reads it later knows which one
    failed, or took the whole process with it. Each has five times what it took without a mistake,
    and half a minute more.
    """

    def __init__(self, tests: Sequence[Test], running: Path) -> None:
        self.tests = {test.name: test for test in tests}
        self.running = running

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        tests = {item.nodeid: item for item in items}
        items[:] = [tests[name] for name in self.tests if name in tests]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running.write_text(nodeid)
        seconds = 30 + 5 * self.tests[nodeid].seconds
        own = resource.getrusage(resource.RUSAGE_SELF)
        until = int(own.ru_utime + own.ru_stime + seconds)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
        # One that waits for itself takes no processor.
        signal.alarm(int(10 * seconds))


def run_pytest(package: Path, files: Sequence[str], plugin: Any) -> int:
    """Runs test files on the package that lies in a folder."""
    os.chdir(package)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.environ["PYTHONPATH"] = str(package)  # for processes that a test starts
    sys.path.insert(0, str(package))
    settings = ["-c", str(REPOSITORY / "pyproject.toml")]
    settings += ["-p", "no:cacheprovider"]
    # Hypothesis has been imported before: its asserts are what they are.
    settings += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main(["-q", *settings, *files], plugins=[plugin])


def in_fork(run: Callable[[], int]) -> int:
    """Calls a function in a fork; its result, or minus a signal."""
    fork = multiprocessing.get_context("fork").Process(target=lambda: os._exit(run()))
    fork.start()
    fork.join()
    return int(fork.exitcode or 0)


def trace(package: Path, file: Path) -> list[Test]:
    """Runs a test file on a noting package; what its tests are that pass."""
    notes = package / "found.json"

    def run() -> int:
        plugin = Trace(package)
        status = run_pytest(package, [str(file)], plugin)
        notes.write_text(json.dumps(plugin.tests))
        return status

    if in_fork(run) == pytest.ExitCode.USAGE_ERROR:
        raise RuntimeError(f"pytest cannot run {file}")
    return [Test(*test) for test in json.loads(notes.read_text())]


def first_failure(package: Path, tests: Sequence[Test]) -> str | None:
    """Runs tests, until one fails; how it ended."""
    running = package / "running"
    running.write_text("import")
    files = dict.fromkeys(str(REPOSITORY / test.name.split("::")[0]) for test in tests)

    def run() -> int:
        return run_pytest(package, ["-x", *files], Chosen(tests, running))

    status = in_fork(run)
    if status == pytest.ExitCode.USAGE_ERROR:
        raise RuntimeError(f"pytest cannot run {[*files]}")
    if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return None
    how = {-signal.SIGXCPU: "timeout", -signal.SIGALRM: "timeout"}
    return f"{how.get(status, 'failed')}: {running.read_text()}"
