"""Progress lines of long jobs: how much is done, the rate, the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TextIO


class ProgressLine:
    """Writes progress of a job whose number of steps is known.

    On a terminal one line is overwritten, at most twice a second; elsewhere
    (a log file) a new line is written every 30 seconds. The time left is
    estimated without the first step, which may include work done once, such
    as tracing a graph.

    Args:
        total: Number of steps, those of earlier runs included.
        done: Steps done in earlier runs.
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
        """Reports that `done` steps are done; `text` follows the count."""
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
        """The time left, from the mean time of the steps after the first."""
        if self._start is None or done <= self._first:
            return ""
        per_step = (now - self._start) / (done - self._first)
        return f", {_clock(per_step * (self._total - done))} left"

    def note(self, text: str) -> None:
        """Writes a line that stays."""
        self._stream.write(("\r\x1b[K" if self._live else "") + text + "\n")
        self._stream.flush()


class LineCounter:
    """Reports on standard error how many lines are done, and which are odd.

    The total is unknown, since the lines may come from a pipe.

    Args:
        about: What the lines are; written before the count.
        quiet: Whether to report odd lines only, for when the output itself
            goes to the same terminal.
    """

    def __init__(self, about: str = "", quiet: bool = False) -> None:
        self.done = 0
        self._told = 0
        self._about = f"{about}: " if about else ""
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._interval = 0.5 if self._live else 30.0
        self._start = self._last = time.monotonic()
        self._odd: dict[str, int] = {}

    def advance(self, lines: int) -> None:
        """Counts `lines` more; reports if the last report is old enough."""
        self.done += lines
        now = time.monotonic()
        if self._quiet or now - self._last < self._interval:
            return
        self._last, self._told = now, self.done
        self._write(f"\r\x1b[K{self}" if self._live else f"{self}\n")

    def __str__(self) -> str:
        rate = self.done / max(time.monotonic() - self._start, 1e-9)
        digits = f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"
        return f"{self._about}{self.done} lines, {digits} lines/s"

    def report(self, what: str, places: Sequence[int]) -> None:
        """Reports odd lines among those not yet counted.

        Args:
            what: What is odd about them.
            places: Which lines; 0 is the first line that is not yet counted.
        """
        if not places:
            return
        self._odd[what] = self._odd.get(what, 0) + len(places)
        numbers = ", ".join(str(self.done + place + 1) for place in places)
        self._note(f"line{'s' * (len(places) > 1)} {numbers}: {what}")

    def close(self) -> None:
        """Reports the final counts: of all lines, and of the odd ones.

        The first is left out if it was never reported, or just now.
        """
        if self._told and (self._live or self._told < self.done):
            self._note(str(self))
        for what, count in self._odd.items():
            self._note(f"{count} of {self.done} lines: {what}")

    def _note(self, text: str) -> None:
        """Writes a line that stays."""
        self._write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def counted(lines: Iterable[str], about: str) -> Iterator[str]:
    """Yields the lines and reports their number by a `LineCounter`."""
    counter = LineCounter(about)
    try:
        for line in lines:
            yield line
            counter.advance(1)
    finally:
        counter.close()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{minutes}:{seconds:02d}"
