"""Lines of text from and to files and pipes, and how far they are."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import time
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO
from typing import TextIO
from typing import cast


def read_lines(path: str | None) -> Iterator[str]:
    """Gives the lines of a file, plain or .gz, or of standard input.

    Lines end with a line feed alone, so that line numbers are those of `wc -l`.

    Args:
        path: The file; None for standard input.

    Raises:
        OSError: The file cannot be read.
        ValueError: A line is not UTF-8; it says which.
    """
    with _opened(path) as stream:
        for number, line in enumerate(stream, 1):
            try:
                yield line.decode("utf-8").removesuffix("\n")
            except UnicodeDecodeError as error:
                name = path or "standard input"
                raise ValueError(
                    f"{name}: line {number} is not UTF-8"
                ) from error


@contextlib.contextmanager
def _opened(path: str | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdin.buffer
        return
    is_gzip = Path(path).suffix == ".gz"
    with gzip.open(path, "rb") if is_gzip else open(path, "rb") as stream:
        yield cast(BinaryIO, stream)


@contextlib.contextmanager
def written(path: str | None) -> Iterator[TextIO]:
    """Opens a file, plain or .gz, or standard output, to write lines to.

    A file is written as `path`.part and takes its name at the end: `path` is
    never half a file, it may be the file that is read, and after an error
    what was done is kept.

    Args:
        path: The file; None for standard output.

    Yields:
        The stream, in UTF-8. Standard output is flushed at the end, so that a
        closed pipe is seen here and not when the interpreter ends.
    """
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        yield sys.stdout
        sys.stdout.flush()
        return
    special = os.path.exists(path) and not os.path.isfile(path)  # /dev/null
    aside = path if special else f"{path}.part"
    opener = gzip.open if Path(path).suffix == ".gz" else open
    with opener(aside, "wt", encoding="utf-8", newline="\n") as stream:
        yield cast(TextIO, stream)
    if not special:
        os.replace(aside, path)


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
