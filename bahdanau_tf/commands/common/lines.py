"""Files whose lines correspond to each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

from absl import flags as absl_flags

from bahdanau_tf.system.lines import incomplete, read_lines
from bahdanau_tf.system.terminal import StatusLine, amount

if TYPE_CHECKING:
    from bahdanau_tf.report.trainings import Files

MOST_CHARACTERS = 1 << 22  # of a window; 2,000 lines have some 200,000
T = TypeVar("T", bound=tuple[str, ...])


def check_count(flag: str, lines: Sequence[object], references: Sequence[str]) -> None:
    """Checks that a file has a line for each reference.

    Raises:
        ValueError: The numbers differ. The message has both.
    """
    check_equal(flag, len(lines), "--reference", len(references))


def check_equal(flag: str, lines: int, other: str, wanted: int) -> None:
    """Checks that the files of two flags have as many lines.

    Raises:
        ValueError: The numbers differ. The message has both.
    """
    if lines != wanted:
        raise ValueError(
            f"{flag} has {amount(lines, 'line')} and {other} {wanted:,}, wanted equal numbers"
        )


def line_pairs(
    flags: absl_flags.FlagValues | Files,
    first: str,
    second: str,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[str, str]]:
    """Yields pairs of lines of two files as they are read.

    Args:
        flags: The flags, or what else has their values as attributes.
        first: The flag of the first file; standard input if it is not given.
        second: The flag of the second file.
        start: How many lines of both are skipped.
        stop: The number of the last line; None for all.

    Raises:
        ValueError: One file ends before the other.
    """
    names = (first, second)
    files = (read_lines(getattr(flags, name), start, stop) for name in names)
    for number, (one, other) in enumerate(zip_longest(*files), start + 1):
        if one is None or other is None:
            short, long = (first, second)[:: 1 if one is None else -1]
            raise ValueError(
                f"--{short} has no line {number}, but --{long} has one; "
                "wanted equal numbers of lines"
            )
        yield one, other


def windows(lines: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yields `size` lines at a time; before an error, those that came before.

    Args:
        lines: Lines as they are read, each with others that belong to it.
        size: How many; the last window may have fewer, and so has one of long
            lines.

    Raises:
        OSError: That of reading, as of `read_lines`.
        ValueError: The same.
    """
    window: list[T] = []
    characters = 0
    try:
        for line in lines:
            window.append(line)
            characters += sum(map(len, line))
            if len(window) == size or characters >= MOST_CHARACTERS:
                yield window
                window, characters = [], 0
    except (OSError, ValueError):
        if window:
            yield window
        raise
    if window:
        yield window


@contextmanager
def kept_lines_named(
    path: str | None, count: Callable[[], int], what: str = "translation"
) -> Iterator[None]:
    """Says after an error or Ctrl-C where the lines written so far are.

    Args:
        path: The file that `written` was to write; None for standard output.
        count: Returns how many lines it holds.
        what: What a line is.
    """
    try:
        yield
    except (ValueError, KeyboardInterrupt):
        if path is not None and count() and os.path.exists(incomplete(path)):
            kept = amount(count(), what)
            StatusLine().note(f"{incomplete(path)} has {kept}")
        raise
