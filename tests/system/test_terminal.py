"""Progress in logs, terminals and notebooks, with a fake clock; garbage collection."""

import gc
import io
import os
import sys
import time
import weakref
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree

import pytest

from bahdanau_tf.system import terminal
from bahdanau_tf.system.notebook import progress_line
from bahdanau_tf.system.terminal import LineCounter, ProgressLine, StatusLine, counted, uncollected

REWRITTEN = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def screen(monkeypatch) -> Terminal:
    """Standard error, as if it were a terminal."""
    stream = Terminal()
    monkeypatch.setattr(
        terminal, "sys", SimpleNamespace(stderr=stream, maxsize=sys.maxsize, modules=sys.modules)
    )
    return stream


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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb\x9b2J\x7f", r"a\rb\x9b2J\x7f"),
        ("\u202efdp.exe", r"\u202efdp.exe"),
        ("é\tすし\n\udcff", "é\tすし\n\udcff"),
    ],
)
def test_a_terminal_does_nothing_that_a_name_says(clock, name, shown):
    for stream, start in ((Terminal(), REWRITTEN), (io.StringIO(), "")):
        StatusLine(stream).note(f"file {name}")
        ProgressLine(1, stream=stream).update(0, name)
        assert stream.getvalue().startswith(f"{start}file {shown}\n{start}")
        assert stream.getvalue().rstrip("\n").endswith(f" {shown}".rstrip("\n"))


@pytest.mark.parametrize("done_before", [0, 700])
def test_the_remaining_time_is_estimated_without_the_first_step(clock, capsys, done_before):
    """The first step of a run traces a graph, so its time is left out."""
    line = ProgressLine(done_before + 100, done_before)
    for step, seconds in enumerate([45.0, *[2.0] * 99], start=1):
        clock[0] += seconds
        line.update(done_before + step, "loss 1.0")
    first, *later, last = capsys.readouterr().err.split("\n")[:-1]
    assert first == f"{done_before + 1}/{done_before + 100} loss 1.0"
    assert len(later) == 6  # one every 30 seconds
    for text in later:
        step = int(text.split("/")[0]) - done_before
        minutes, seconds = text.split(", ")[1].split()[0].split(":")
        assert 60 * int(minutes) + int(seconds) == 2 * (100 - step)
    assert last.endswith("loss 1.0, 0:00 left")


def test_a_job_of_limited_time_shows_the_time_alone(clock, capsys):
    for steps in (1000, 4):
        line = ProgressLine(steps, seconds=345.0)
        for step in range(1, 4):
            clock[0] += 45.0
            line.update(step, "loss 1.0")
    rows = capsys.readouterr().err.splitlines()
    assert rows[:3] == [  # no number of steps that falls
        *("1, loss 1.0, at most 5:45 left", "2, loss 1.0, 5:00 left", "3, loss 1.0, 4:15 left")
    ]
    assert rows[-1] == "3/4 loss 1.0, 0:45 left"
    line = ProgressLine(1000, seconds=345.0)
    line.update(1, "loss 1.0")
    clock[0] += 45.0
    line.end_in(600.0)
    line.update(2, "loss 1.0")
    assert capsys.readouterr().err.splitlines()[-1] == "2, loss 1.0, 10:00 left"


@pytest.mark.parametrize("columns", [12, 40, 60, 100])
def test_a_line_fits_the_terminal(columns, monkeypatch, clock, screen):
    """One that is wrapped could not be overwritten."""
    size = os.terminal_size((columns, 24))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: size)
    line = ProgressLine(14500, 0)
    for step in 1, 2:
        clock[0] += 1.0
        line.update(step, "loss 3.211, 3548 words/s, best BLEU 12.20")
    *_, last = screen.getvalue().split(REWRITTEN)
    assert len(last) < columns
    parts = ["2/14500 loss 3.211", "3548 words/s", "best BLEU 12.20"]
    wanted = {
        12: "2/14500 los",
        40: f"{parts[0]}, 4:01:38 left",
        60: f"{', '.join(parts[:2])}, 4:01:38 left",
        100: f"{'░' * 20} {', '.join(parts)}, 4:01:38 left",
    }
    assert last == wanted[columns]


def test_a_log_gets_a_line_every_half_minute(clock, capsys):
    counter = LineCounter()
    for second in range(65):
        clock[0] = 1001.0 + second
        counter.advance(10)
    counter.close()
    assert capsys.readouterr().err == (
        "300 lines, 10.0 lines/s\n600 lines, 10.0 lines/s\n650 lines, 10.0 lines/s\n"
    )


def test_counted_yields_the_lines_unchanged(clock, screen):
    for number, line in enumerate(counted(map(str, range(5)), "train.en")):
        assert line == str(number)
        clock[0] += 1
    counts = ("1 line", *(f"{n} lines" for n in range(2, 6)), "5 lines")
    shown = "".join(f"{REWRITTEN}train.en: {count}, 1.0 lines/s" for count in counts)
    assert screen.getvalue() == f"{shown}\n"


def test_a_terminal_shows_one_line_that_is_rewritten(clock, screen):
    counter = LineCounter()
    clock[0] += 2
    counter.advance(10)
    counter.report("odd", [0, 3])
    clock[0] += 2
    counter.advance(10)
    counter.close()
    assert screen.getvalue().split(REWRITTEN) == [
        "",
        "10 lines, 5.0 lines/s",
        "20 lines, 5.0 lines/s",
        "20 lines, 5.0 lines/s\n",
        "lines 11, 14: odd\n",
    ]


def test_odd_lines_are_reported_every_half_minute_and_counted(clock, capsys):
    counter = LineCounter()
    for seconds, places in ((1, [1, 2]), (28, [0]), (2, [9]), (1, [4])):
        clock[0] += seconds
        counter.report("odd", places)
        counter.advance(10)
    counter.close()
    assert [row for row in capsys.readouterr().err.split("\n") if "odd" in row] == [
        "lines 2-3, 11, 30: odd",
        "line 35: odd",
        "5 of 40 lines: odd",
    ]


def test_a_report_names_only_some_of_many_odd_lines(capsys):
    counter = LineCounter()
    counter.report("odd", range(0, 10_000, 2))
    counter.close()
    first = ", ".join(str(number) for number in range(1, 40, 2))
    assert capsys.readouterr().err == f"lines {first}, ... (5000 lines): odd\n"


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_quiet_shows_odd_lines_at_once_and_no_counts(clock, monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream())
    counter = LineCounter(quiet=True)
    counter.report("odd", [])
    clock[0] += 100
    counter.advance(5)
    assert sys.stderr.getvalue() == ""
    counter.report("odd", [0])
    counter.advance(1)
    assert sys.stderr.getvalue().endswith("line 6: odd\n")


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
    assert "150/300 loss 1.0, 9 words/s, 0:10 left" in pages[-1]
    line.row(RESULTS[0])
    assert "<svg" not in pages[-1]  # a curve needs two points
    line.row(RESULTS[1])
    page = ElementTree.fromstring(f"<div>{pages[-1]}</div>")
    assert page[0].text == "1,000 <weights>"
    assert float(page.find(".//progress").get("value")) == 0.5
    assert page[1][0].tail == " 150/300 loss 1.0"  # what the table knows better is left out
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


class Loop:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


def test_nothing_is_collected_inside_and_all_afterwards():
    with uncollected():
        loop = weakref.ref(Loop())
        for _ in range(5):
            _ = [[] for _ in range(100_000)]
        assert loop() is not None
    gc.collect()
    assert loop() is None


def test_the_collector_is_as_before():
    with pytest.raises(ValueError, match="no"), uncollected():
        raise ValueError("no")
    assert gc.isenabled()
    with uncollected():
        with uncollected():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
