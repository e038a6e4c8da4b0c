"""The progress of commands that work on lines, in logs and terminals."""

from __future__ import annotations

import io
import sys

import pytest

from bahdanau_tf.system import terminal
from bahdanau_tf.system.terminal import LineCounter, ProgressLine, StatusLine, counted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


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
    for stream, begin in ((Terminal(), "\r\x1b[K"), (io.StringIO(), "")):
        StatusLine(stream).note(f"file {name}")
        ProgressLine(1, stream=stream).update(0, name)
        line = f"{begin}file {shown}\n{begin}"
        assert stream.getvalue().startswith(line)
        assert stream.getvalue().rstrip("\n").endswith(f" {shown}".rstrip("\n"))


def test_a_log_gets_a_line_every_half_minute(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    counter = LineCounter()
    for second in range(65):
        clock[0] = 101.0 + second
        counter.advance(10)
    counter.close()
    assert log.getvalue() == (
        "300 lines, 10.0 lines/s\n600 lines, 10.0 lines/s\n650 lines, 10.0 lines/s\n"
    )


@pytest.mark.parametrize(("seconds", "rate"), [(35, "0.057"), (2000, "0.001"), (0.5, "4.0")])
def test_no_count_is_logged_twice(clock, monkeypatch, seconds, rate):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    counter = LineCounter("test.en")
    clock[0] += seconds
    counter.advance(2)
    counter.close()
    told = f"test.en: 2 lines, {rate} lines/s\n"
    assert log.getvalue() == (told if seconds > 30 else "")


def test_counted_yields_the_lines_unchanged(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    lines = counted(map(str, range(5)), "train.en")
    for number, line in enumerate(lines):
        assert line == str(number)
        clock[0] += 1
    assert screen.getvalue() == (
        "".join(
            f"\r\x1b[Ktrain.en: {n}, 1.0 lines/s"
            for n in ("1 line", *(f"{n} lines" for n in range(2, 6)))
        )
        + "\r\x1b[Ktrain.en: 5 lines, 1.0 lines/s\n"
    )


def test_a_terminal_shows_one_line_that_is_rewritten(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    counter = LineCounter()
    clock[0] += 2
    counter.advance(10)
    counter.report("odd", [0, 3])
    clock[0] += 2
    counter.advance(10)
    counter.close()
    assert screen.getvalue() == (
        "\r\x1b[K10 lines, 5.0 lines/s"
        "\r\x1b[K20 lines, 5.0 lines/s"
        "\r\x1b[K20 lines, 5.0 lines/s\n"
        "\r\x1b[Klines 11, 14: odd\n"
    )


def test_odd_lines_are_reported_every_half_minute_and_counted(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    counter = LineCounter()
    for seconds, places in ((1, [1, 2]), (28, [0]), (2, [9]), (1, [4])):
        clock[0] += seconds
        counter.report("odd", places)
        counter.advance(10)
    counter.close()
    assert [row for row in log.getvalue().split("\n") if "odd" in row] == [
        "lines 2-3, 11, 30: odd",
        "line 35: odd",
        "5 of 40 lines: odd",
    ]


def test_a_report_names_only_some_of_many_odd_lines(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    counter = LineCounter()
    counter.report("odd", range(0, 10_000, 2))
    counter.close()
    first = ", ".join(str(number) for number in range(1, 40, 2))
    assert log.getvalue() == f"lines {first}, ... (5000 lines): odd\n"


def test_quiet_shows_no_counts(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    counter = LineCounter(quiet=True)
    counter.report("odd", [])
    clock[0] += 100
    counter.advance(5)
    counter.close()
    assert screen.getvalue() == ""


def test_quiet_reports_odd_lines_at_once(clock, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    counter = LineCounter(quiet=True)
    counter.report("odd", [0])
    counter.advance(1)
    assert screen.getvalue() == "line 1: odd\n"
