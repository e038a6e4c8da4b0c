"""A line that tells how far a long job is, how fast and how long still."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class ProgressLine:
    """Writes progress, at most every so often.

    On a terminal the line is overwritten; elsewhere (a log file) lines follow
    one another, more rarely.

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
        self._start = time.monotonic()
        self._last = -float("inf")

    def update(self, done: int, text: str) -> None:
        """Tells that `done` steps are done, with some words on them."""
        now = time.monotonic()
        if now - self._last < self._interval and done < self._total:
            return
        self._last = now
        per_step = (now - self._start) / max(done - self._first, 1)
        left = _clock(per_step * (self._total - done))
        share = done / max(self._total, 1)
        bar = "█" * round(20 * share) if self._live else ""
        line = f"{done}/{self._total} {text}, {left} left"
        if self._live:
            self._stream.write(f"\r\x1b[K{bar:░<20} {line}")
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

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
