"""What a command tells about its lines."""

from __future__ import annotations

import io
import sys

import pytest

from bahdanau_tf.commands import lines
from bahdanau_tf.commands.lines import LineCounter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(lines.time, "monotonic", lambda: now[0])
    return now


def test_a_log_is_told_every_half_minute(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    counter = LineCounter()
    for second in range(65):
        clock[0] = 101.0 + second
        counter.advance(10)
    counter.close()
    assert log.getvalue() == (
        "300 lines, 10.0 lines/s\n"
        "600 lines, 10.0 lines/s\n"
        "650 lines, 10.0 lines/s\n"
    )


def test_a_terminal_has_one_line(clock, monkeypatch):
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
        "\r\x1b[Klines 11, 14: odd\n"
        "\r\x1b[K20 lines, 5.0 lines/s"
        "\r\x1b[K20 lines, 5.0 lines/s\n"
        "\r\x1b[K2 of 20 lines: odd\n"
    )


def test_quiet_tells_odd_lines_only(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    counter = LineCounter(quiet=True)
    counter.report("odd", [])
    clock[0] += 100
    counter.advance(5)
    counter.close()
    assert screen.getvalue() == ""
