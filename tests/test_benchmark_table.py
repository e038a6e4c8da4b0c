"""benchmarks/table.py: figures, goals and the file."""

from __future__ import annotations

import datetime
import importlib
from pathlib import Path
from typing import Any

import pytest
from absl import flags

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def table() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module("table")
    flags.FLAGS.__delattr__("table")


@pytest.mark.parametrize(
    ("figure", "row"),
    [
        (("speed", 1.999, "", 2.0), "| speed | 2 | at least 2 | no |"),
        (("speed", 2.0, "", 2.0), "| speed | 2 | at least 2 | yes |"),
        (("load", 0.5, "s", None, 1.0), "| load | 0.5 s | at most 1 | yes |"),
        (("load", 1.04, "s", None, 1.0), "| load | 1.04 s | at most 1 | no |"),
        (("rate", 12345.6, "words/s"), "| rate | 12,346 words/s |  |  |"),
    ],
)
def test_a_row_says_whether_the_goal_is_met(table, figure, row):
    assert str(table.Figure(*figure)) == row


def test_rows_are_added_to_one_table(table, tmp_path, monkeypatch):
    path = tmp_path / "bench.md"
    monkeypatch.setattr(table, "FLAGS", type("Flags", (), {"table": path}))
    table.add([table.Figure("a", 1.0)])
    table.add(table.Figure(name, 2.0) for name in "bc")
    lines = path.read_text("utf-8").split("\n")
    assert lines[0].startswith(f"{datetime.date.today()}, ")
    assert "tensorflow 2." in lines[0]
    assert lines[2:] == [
        "| figure | measured | goal | met |",
        "|---|---|---|---|",
        *(f"| {name} |  |  |" for name in ("a | 1", "b | 2", "c | 2")),
        "",
    ]
