"""Lists of arrays compared one by one, files of lines, and places in a text."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bahdanau_tf.translation import Translation


def all_equal(arrays: Iterable[Any], wanted: Iterable[Any]) -> None:
    """Checks that two lists have the same arrays."""
    for array, other in zip(arrays, wanted, strict=True):
        np.testing.assert_array_equal(array, other)


def all_close(arrays: Iterable[Any], wanted: Iterable[Any], **tolerance: float) -> None:
    """Checks that two lists have arrays that differ by a `tolerance` (atol, rtol) at most."""
    for array, other in zip(arrays, wanted, strict=True):
        np.testing.assert_allclose(array, other, **tolerance)


def write_lines(path: Path, lines: Iterable[str]) -> str:
    """Writes a text of lines; returns its path."""
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def lines_of(path: Path) -> list[str]:
    """The lines of a text."""
    return path.read_bytes().decode().split("\n")[:-1]


def aligned(
    source: str, text: str, read: list[str], written: list[str], **more: Any
) -> Translation:
    """A translation, with the offsets of its tokens."""
    offsets = {"source_offsets": offsets_of(source, read)}
    offsets["target_offsets"] = offsets_of(text, written)
    return Translation(source, text, written, source_tokens=read, **offsets, **more)


def offsets_of(text: str, words: list[str]) -> list[tuple[int, int]]:
    """The offsets of words in a text, in bytes."""
    offsets, end = [], 0
    for word in words:
        start = text.encode().index(word.encode(), end)
        end = start + len(word.encode())
        offsets.append((start, end))
    return offsets
