"""How far the lines of a command are, and which are odd."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence


class LineCounter:
    """Tells on standard error how many lines are done, and which are odd.

    How many there will be is not known, as the lines may come from a pipe.

    Args:
        quiet: Whether to tell no progress, as where the lines themselves go
            to the same terminal.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.done = 0
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._interval = 0.5 if self._live else 30.0
        self._start = self._last = time.monotonic()
        self._odd: dict[str, int] = {}

    def advance(self, lines: int) -> None:
        """Tells that some more lines are done, if it is time."""
        self.done += lines
        now = time.monotonic()
        if self._quiet or now - self._last < self._interval:
            return
        self._last = now
        self._write(f"\r\x1b[K{self}" if self._live else f"{self}\n")

    def __str__(self) -> str:
        rate = self.done / max(time.monotonic() - self._start, 1e-9)
        return f"{self.done} lines, {rate:.1f} lines/s"

    def report(self, what: str, places: Sequence[int]) -> None:
        """Tells of odd lines among those to come next.

        Args:
            what: What is odd about them.
            places: Which lines, from 0 for the one after those `done`.
        """
        if not places:
            return
        self._odd[what] = self._odd.get(what, 0) + len(places)
        numbers = ", ".join(str(self.done + place + 1) for place in places)
        self._note(f"line{'s' * (len(places) > 1)} {numbers}: {what}")

    def close(self) -> None:
        """Tells how many lines were done, if that was told, and odd."""
        if self._last > self._start:
            self._note(str(self))
        for what, count in self._odd.items():
            self._note(f"{count} of {self.done} lines: {what}")

    def _note(self, text: str) -> None:
        """Writes a line that stays."""
        self._write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def check_count(
    flag: str, lines: Sequence[str], references: Sequence[str]
) -> None:
    """Refuses a file that has not a line for each reference.

    Raises:
        ValueError: The counts differ; says both.
    """
    if len(lines) != len(references):
        raise ValueError(
            f"{flag} has {len(lines)} lines and --reference "
            f"{len(references)}, wanted as many"
        )
