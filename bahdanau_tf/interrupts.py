"""Hears signals at once, also while TensorFlow computes.

Python runs the handler of a signal between two of its own instructions, so
only when a call of TensorFlow returns, once for all signals of one kind. But it
writes the number of each to a socket at once, and a thread reads them there.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress

GRACE = 1.0  # seconds in which an interrupted process may end by itself


@contextmanager
def heard(listen: Callable[[int], None]) -> Iterator[None]:
    """Calls a function for each signal that Python handles, in a thread.

    Only the main thread can ask for that; in others it has no effect.

    Args:
        listen: Takes the number of the signal.
    """
    here, there = socket.socketpair()
    there.setblocking(False)
    with here, there:
        try:
            before = signal.set_wakeup_fd(there.fileno())
        except ValueError:  # not the main thread
            yield
            return

        def read() -> None:
            while number := here.recv(1):
                if before != -1:  # who listened before hears it, too
                    with suppress(OSError):
                        os.write(before, number)
                listen(number[0])

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            there.close()
            reader.join()


@contextmanager
def ended_by_two_interrupts(last_words: str) -> Iterator[None]:
    """Ends the process if it goes on after a second SIGINT.

    This is for commands: it is as if the process were killed.

    Args:
        last_words: What is written to standard error.
    """
    count = 0
    is_over = threading.Event()

    def listen(number: int) -> None:
        nonlocal count
        count += number == signal.SIGINT
        if count > 1 and not is_over.wait(GRACE):
            os.write(2, f"\n{last_words}\n".encode())
            os._exit(130)

    with heard(listen):
        try:
            yield
        finally:
            is_over.set()
