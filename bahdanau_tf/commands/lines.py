"""Lines of text from files and pipes."""

from __future__ import annotations

import contextlib
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
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
