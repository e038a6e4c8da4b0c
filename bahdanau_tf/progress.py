"""A line that tells how far a long job is, how fast and how long still."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class ProgressLine:
    """Writes progress, at most every so often.

    On a terminal the line is overwritten; elsewhere (a log file) lines follow
    one another, more rarely. Time left is told from the second step on: the
    first may hold what is done once, such as tracing a graph.

    Args:
        total: Steps until the end.
        done: Steps done before, in an earlier run.
        stream: Where to write; standard error if None.
    """

    def __init__(
        self, total: int, done: int = 0, stream: TextIO | None = None
    ) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._interval = 0.5 if self._live else 30.0
        self._total = total
        self._first = done
        self._start: float | None = None  # after the first step
        self._last = -float("inf")

    def update(self, done: int, text: str) -> None:
        """Tells that `done` steps are done, with some words on them."""
        now = time.monotonic()
        if self._start is None and done > self._first:
            self._first, self._start = done, now
        if now - self._last < self._interval and done < self._total:
            return
        self._last = now
        share = done / max(self._total, 1)
        bar = "█" * round(20 * share) if self._live else ""
        line = f"{done}/{self._total} {text}{self._left(done, now)}"
        if self._live:
            self._stream.write(f"\r\x1b[K{bar:░<20} {line}")
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def _left(self, done: int, now: float) -> str:
        """How long still, by what the steps after the first have taken."""
        if self._start is None or done <= self._first:
            return ""
        per_step = (now - self._start) / (done - self._first)
        return f", {_clock(per_step * (self._total - done))} left"

    def note(self, text: str) -> None:
        """Writes a line that stays."""
        self._stream.write(("\r\x1b[K" if self._live else "") + text + "\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{minutes}:{seconds:02d}"
