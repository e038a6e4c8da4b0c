"""Keeps Python's garbage collector away where there is little to collect.

It looks through all objects of TensorFlow's modules again and again, while many
new objects are made that stay.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Collects nothing until the end; for a second or two."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def never_collected() -> Iterator[None]:
    """Collects nothing, and what was made until the end never.

    This is for the imports of a command, at its start.
    """
    with uncollected():
        yield
        gc.freeze()
