"""Ctrl-C and SIGTERM end a training between two updates."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals_caught() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM; the training looks after each update."""
    caught: list[int] = []
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[number] = signal.signal(
                number, lambda received, _: caught.append(received)
            )
        except ValueError:  # not the main thread: signals go elsewhere
            break
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
