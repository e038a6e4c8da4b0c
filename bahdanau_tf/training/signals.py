"""Ends a training between two updates on Ctrl-C and SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from bahdanau_tf.system.terminal import heard


@contextmanager
def signals_caught(tell: Callable[[str], None]) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list that the training checks.

    What follows is told at once, even if an update takes long. A second SIGINT
    raises KeyboardInterrupt, which ends the training at once, or when the
    update is over; a command ends at once anyway. There is a complete
    checkpoint at every moment.

    Args:
        tell: Writes a line on the screen.

    Yields:
        The list of signals received so far.
    """
    caught: list[int] = []
    came: list[int] = []  # also those that Python has not handled yet
    before = {}

    def listen(received: int) -> None:
        came.append(received)
        said = "stopping after this update"
        if received == signal.SIGINT:
            said += "; Ctrl-C again: at once, as of the last checkpoint"
        if received in before and came.count(signal.SIGINT) < 2:
            tell(said)

    def catch(received: int, _: FrameType | None) -> None:
        known = [*caught, received]
        if max(x.count(signal.SIGINT) for x in (known, came)) > 1:
            raise KeyboardInterrupt
        caught.append(received)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            continue  # a job of a script may ignore Ctrl-C
        try:
            before[number] = signal.signal(number, catch)
        except ValueError:  # only the main thread can handle signals
            break
    try:
        with heard(listen):
            yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
