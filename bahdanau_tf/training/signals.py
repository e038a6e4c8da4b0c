"""Ends a training between two updates on Ctrl-C and SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from types import FrameType


@contextmanager
def signals_caught(tell: Callable[[str], None]) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list that the training checks.

    A second SIGINT raises KeyboardInterrupt, which ends the training at once.
    There is a complete checkpoint at every moment.

    Args:
        tell: Writes a line on the screen.

    Yields:
        The list of signals received so far.
    """
    caught: list[int] = []
    before = {}

    def catch(received: int, _: FrameType | None) -> None:
        is_interrupt = received == signal.SIGINT
        if is_interrupt and received in caught:
            raise KeyboardInterrupt
        caught.append(received)
        said = "stopping after this update"
        if is_interrupt:
            said += "; Ctrl-C again: at once, as of the last checkpoint"
        with suppress(RuntimeError):  # received while a line was written
            tell(said)

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[number] = signal.signal(number, catch)
        except ValueError:  # only the main thread can handle signals
            break
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
