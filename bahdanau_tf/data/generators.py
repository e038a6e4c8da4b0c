"""Python generators in tf.data that let the interpreter exit.

If a thread of tf.data calls Python while the interpreter shuts down, it waits
for ever, and the shutdown waits for that thread: a script that ends with a
dataset half read would sometimes hang. So all generators are ended before the
shutdown begins, and with them the threads that prefetch from them.
"""

from __future__ import annotations

import atexit
import functools
import threading
import time
from collections.abc import Callable
from collections.abc import Iterator
from enum import Enum
from typing import ParamSpec
from typing import TypeVar

QUIET = 0.05  # seconds without a step after which we assume there are no more
PATIENCE = 10.0  # seconds to wait for that at most

Arguments = ParamSpec("Arguments")
Item = TypeVar("Item")


class _End(Enum):
    """What stands behind the last item."""

    END = 0


class _Steps:
    """Counts the steps of all generators, and stops them at exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._running = 0
        self._over = False

    def take(self, items: Iterator[Item]) -> Item | _End:
        """The next item; `END` after the last one and after `end`."""
        with self._lock:
            self._begun += 1
            if self._over:
                return _End.END
            self._running += 1
        try:
            return next(items, _End.END)
        finally:
            with self._lock:
                self._running -= 1

    def end(self) -> None:
        """Ends all generators; returns when no thread asks for a step."""
        with self._lock:
            self._over = True
        give_up = time.monotonic() + PATIENCE
        seen = 0
        while self._running or self._begun != seen:
            if time.monotonic() > give_up:
                return
            seen = self._begun
            time.sleep(QUIET)


_STEPS = _Steps()
atexit.register(_STEPS.end)


def until_exit(
    generator: Callable[Arguments, Iterator[Item]],
) -> Callable[Arguments, Iterator[Item]]:
    """Makes a generator fit for `tf.data.Dataset.from_generator`."""

    @functools.wraps(generator)
    def steps(
        *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Iterator[Item]:
        items = iter(generator(*args, **kwargs))
        while (item := _STEPS.take(items)) is not _End.END:
            yield item

    return steps
