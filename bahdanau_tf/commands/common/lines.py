"""Files whose lines correspond to each other."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from absl import flags as absl_flags

from bahdanau_tf.text_files import read_lines

if TYPE_CHECKING:
    from bahdanau_tf.experiments.suites import Files


def check_count(
    flag: str, lines: Sequence[object], references: Sequence[str]
) -> None:
    """Checks that a file has a line for each reference.

    Raises:
        ValueError: The numbers differ. The message has both.
    """
    if len(lines) != len(references):
        raise ValueError(
            f"{flag} has {len(lines)} lines and --reference "
            f"{len(references)}, wanted equal numbers"
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
