"""Lists of arrays compared one by one, and files of lines."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np


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
