"""Ends a training between two updates on Ctrl-C and SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from bahdanau_tf.system.terminal import heard

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_caught(note: Callable[[str], None]) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM in a list that the training checks.

    `note` prints a line at once, even if an update takes long. A second SIGINT raises
    KeyboardInterrupt, which ends the training at once, or after the update; a command ends at once
    anyway. There is a complete checkpoint at every moment.
    """
    caught: list[int] = []
    received: list[int] = []  # even those that Python has not handled yet
    before = {}

    def listen(number: int) -> None:
        received.append(number)
        text = "stopping after this update"
        if number == signal.SIGINT:
            text += "; Ctrl-C again: at once, as of the last checkpoint"
        if number in before and received.count(signal.SIGINT) < 2:
            note(text)

    def catch(number: int, _: FrameType | None) -> None:
        if max(x.count(signal.SIGINT) for x in ([*caught, number], received)) > 1:
            raise KeyboardInterrupt
        caught.append(number)

    for number in SIGNALS:
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
