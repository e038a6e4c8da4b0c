"""The progress of training on a terminal and in a notebook, with a fake clock."""

import io
import os
import sys
import time
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree

import pytest

from bahdanau_tf.system.notebook import progress_line
from bahdanau_tf.system.terminal import ProgressLine, StatusLine, amount, counted


@pytest.mark.parametrize("error", [BrokenPipeError, OSError(5, "EIO")])
def test_a_line_that_cannot_be_written_does_not_end_the_job(error):
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    ProgressLine(3, 0, Closed()).update(1, "loss 1.0")
    StatusLine(Closed()).note("resuming")


@pytest.mark.parametrize("stream", [None, "without isatty"])
def test_standard_error_may_be_missing_or_something_else(monkeypatch, stream):
    """As under `pythonw`, or where a program collects what is written."""
    texts: list[str] = []
    if stream is not None:
        stream = SimpleNamespace(write=texts.append, flush=lambda: None)
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(counted(["one", "two"], "text")) == ["one", "two"]
    StatusLine().note("resuming")
    assert texts == ([] if stream is None else ["resuming\n"])


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("done_before", [0, 700])
def test_the_remaining_time_is_estimated_without_the_first_step(clock, done_before):
    """The first step of a run traces a graph, so its time is left out."""
    stream = io.StringIO()
    line = ProgressLine(done_before + 100, done_before, stream)
    for step, seconds in enumerate([45.0, *[2.0] * 99], start=1):
        clock[0] += seconds
        line.update(done_before + step, "loss 1.0")
    first, *later, last = stream.getvalue().split("\n")[:-1]
    assert first == f"{done_before + 1}/{done_before + 100} loss 1.0"
    assert len(later) == 6  # one every 30 seconds
    for text in later:
        step = int(text.split("/")[0]) - done_before
        minutes, seconds = text.split(", ")[1].split()[0].split(":")
        assert 60 * int(minutes) + int(seconds) == 2 * (100 - step)
    assert last.endswith("loss 1.0, 0:00 left")


def test_a_job_of_limited_time_shows_the_time_alone(clock):
    stream = io.StringIO()
    for steps in (1000, 4):
        line = ProgressLine(steps, 0, stream, seconds=345.0)
        for step in range(1, 4):
            clock[0] += 45.0
            line.update(step, "loss 1.0")
    rows = stream.getvalue().splitlines()
    assert rows[:3] == [  # no number of steps that falls
        *("1, loss 1.0, at most 5:45 left", "2, loss 1.0, 5:00 left", "3, loss 1.0, 4:15 left")
    ]
    assert rows[-1] == "3/4 loss 1.0, 0:45 left"


@pytest.mark.parametrize("columns", [12, 40, 60, 100])
def test_a_line_fits_the_terminal(columns, monkeypatch, clock):
    """One that is wrapped could not be overwritten."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            return 2

    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: size)
    stream = Terminal()
    line = ProgressLine(14500, 0, stream)
    for step in 1, 2:
        clock[0] += 1.0
        line.update(step, "loss 3.211, 3548 words/s, best BLEU 12.20")
    *_, last = stream.getvalue().split("\r\x1b[K")
    assert len(last) < columns
    parts = ["2/14500 loss 3.211", "3548 words/s", "best BLEU 12.20"]
    wanted = {
        12: "2/14500 los",
        40: f"{parts[0]}, 4:01:38 left",
        60: f"{', '.join(parts[:2])}, 4:01:38 left",
        100: f"{'░' * 20} {', '.join(parts)}, 4:01:38 left",
    }
    assert last == wanted[columns]


def test_what_is_counted_has_the_right_number():
    texts = [amount(number, "pair") for number in (0, 1, 1.0, 1.5, 1234, 123456789)]
    assert texts == ["0 pairs", "1 pair", "1 pair", "1.5 pairs", "1,234 pairs", "123,456,789 pairs"]


RESULTS = [
    {"update": 150, "epoch": 1.0, "words/s": 9828.2, "dev loss": 3.25, "dev BLEU": 1e-48},
    {"update": 300, "epoch": 2.0, "words/s": 9900.0, "dev loss": 2.5, "dev BLEU": 12.344},
]


def test_evaluations_are_rows_of_a_table_with_headings():
    stream = io.StringIO()
    line = ProgressLine(300, 0, stream)
    for row in RESULTS:
        line.row(row)
    heads, *rows = stream.getvalue().splitlines()
    assert heads.split("  ")[-2:] == ["dev loss", "dev BLEU"]
    assert [row.split() for row in rows] == [
        ["150", "1.00", "9828", "3.25", "0.00"],
        ["300", "2.00", "9900", "2.50", "12.34"],
    ]
    assert {len(row) for row in rows} == {len(heads)}


@pytest.fixture
def pages(monkeypatch) -> list[str]:
    """What a notebook would show, by IPython's public functions: a page for each update."""
    pages: list[str] = []

    def display(value: object, display_id: bool) -> SimpleNamespace:
        assert display_id
        return SimpleNamespace(update=lambda value: pages.append(value._repr_html_()))

    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=None)
    ipython.display = ModuleType("IPython.display")
    ipython.display.display = display
    for module in (ipython, ipython.display):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return pages


def test_a_notebook_has_one_display_with_bar_table_and_curves(clock, pages, capsys):
    line = progress_line(300, curves=(("dev loss",), ("dev BLEU",)))
    line.note("1,000 <weights>")
    for step in (1, 150):
        clock[0] += 10.0
        line.update(step, "loss 1.0, 9 words/s")
    line.row(RESULTS[0])
    assert "<svg" not in pages[-1]  # a curve needs two points
    line.row(RESULTS[1])
    page = ElementTree.fromstring(f"<div>{pages[-1]}</div>")
    assert page[0].text == "1,000 <weights>"
    assert float(page.find(".//progress").get("value")) == 0.5
    assert "150/300 loss 1.0, 9 words/s, 0:10 left" in "".join(page.itertext())
    rows = [[cell.text for cell in row] for row in page.iter("tr")]
    assert rows == [
        list(RESULTS[0]),
        ["150", "1.00", "9828", "3.25", "0.00"],
        ["300", "2.00", "9900", "2.50", "12.34"],
    ]
    loss, bleu = (
        [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        for line in page.iter("polyline")
    )
    assert loss[0][0] < loss[1][0]  # to the right
    assert loss[0][1] < loss[1][1]  # down the page, as the loss
    assert bleu[0][1] > bleu[1][1]
    assert capsys.readouterr() == ("", "")


def test_messages_in_a_notebook_are_no_errors(pages, capsys):
    StatusLine().note("resuming")
    assert capsys.readouterr() == ("resuming\n", "")
