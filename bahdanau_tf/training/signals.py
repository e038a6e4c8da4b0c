"""Ctrl-C and SIGTERM end a training between two updates."""

from __future__ import annotations

import signal
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from types import FrameType


@contextmanager
def signals_caught(tell: Callable[[str], None]) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM; the training looks after each update.

    A second SIGINT is a KeyboardInterrupt, which ends the training at once:
    its last checkpoint is whole at any moment.

    Args:
        tell: Writes a line on the screen.
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
        with suppress(RuntimeError):  # came while a line was being written
            tell(said)

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            before[number] = signal.signal(number, catch)
        except ValueError:  # not the main thread: signals go elsewhere
            break
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
