"""The mutants that benchmarks/mutation.py makes of the package."""

import contextlib
import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SOURCE = '''\
def shown(x: int | None = 1, *, y=True):
    """A - b."""
    if x > 2 and not y:  # été
        raise ValueError(f"{x + 1}, not {-1}")
    x += 3
    print("é", x * 0.5)
    return -x
'''
MISTAKES = {
    "1 -> 2",
    "True -> False",
    "x > 2 and (not y) -> not (x > 2 and (not y))",
    "x > 2 and (not y) -> x > 2 or not y",
    "x > 2 -> x >= 2",
    "2 -> 3",
    "not y -> y",
    "raise ValueError(f'{x + 1}, not {-1}') -> pass",
    "x += 3 -> pass",
    "3 -> 4",
    "print('é', x * 0.5) -> pass",
    "x * 0.5 -> x / 0.5",
    "0.5 -> 1.0",
    "-x -> x",
}


@pytest.fixture
def mutants(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("mutants")


def test_each_mutant_has_one_mistake(mutants, tmp_path):
    """Annotations, docstrings and error messages are not mutated."""
    path = tmp_path / "shown.py"
    path.write_text(SOURCE, "utf-8")
    every = list(mutants.mutants_of(tmp_path, path))
    assert sorted(mutant.name.split(": ", 1)[1] for mutant in every) == sorted(MISTAKES)
    for mutant in every:
        pairs = zip(SOURCE.split("\n"), mutant.source.split("\n"), strict=True)
        different = [number for number, (old, new) in enumerate(pairs, 1) if old != new]
        assert different == [mutant.line]


def test_a_seed_draws_the_same_mutants(mutants, tmp_path):
    (tmp_path / "room").mkdir()
    for path in (tmp_path / "room" / "a.py", tmp_path / "b.py"):
        path.write_text(SOURCE, "utf-8")
    every = mutants.everything(tmp_path, ["room", "b.py"])
    first = mutants.draw(every, 10, seed=1)
    assert first == mutants.draw(every, 10, seed=1)
    assert first != mutants.draw(every, 10, seed=2)
    assert len({mutant.name for mutant in first}) == 10
    assert {mutant.room for mutant in first} == {"room", "b.py"}


def test_noting_records_which_mutants_run(mutants, tmp_path):
    """A default runs with the `def`, a constant with its file."""
    path = tmp_path / "shown.py"
    path.write_text("LEAST = -1\n\n\n" + SOURCE, "utf-8")
    statements = {m.mistake: m.statement for m in mutants.mutants_of(tmp_path, path)}
    places = importlib.import_module("places")
    noted: set[str] = set()
    source = places.noting(path.read_text("utf-8"), path.name, {*statements.values()})
    names: dict[str, Any] = {"__runs__": noted.add}
    exec(source, names)
    assert noted == set()
    assert names["shown"].__doc__ == "A - b."

    def runs(x: int, **settings: bool) -> set[str]:
        noted.clear()
        with contextlib.suppress(ValueError):
            names["shown"](x, **settings)
        return {mistake for mistake, place in statements.items() if place in noted}

    always = {"-1 -> 1", "1 -> 2", "True -> False", "x > 2 -> x >= 2"}
    assert always <= runs(1) & runs(3, y=False)
    assert "-x -> x" in runs(1) - runs(3, y=False)
    assert [*runs(3, y=False) - runs(1)] == ["raise ValueError(f'{x + 1}, not {-1}') -> pass"]
