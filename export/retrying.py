"""What the two clients share: their error, and when to try again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class ServingError(Exception):
    """The server did not answer, or refused; the message says which."""


class TryAgain(ServingError):
    """The server is not there or too busy; later it may not be."""


def retrying(call: Callable[[], T], attempts: int, wait: float = 0.2) -> T:
    """Calls until an answer comes, waiting longer each time.

    Args:
        call: What to do; only after `TryAgain` is it done again.
        attempts: How often at most.
        wait: The first pause is up to so many seconds, each next one up to
            twice as long; by chance, lest all clients return at once.

    Returns:
        The answer.

    Raises:
        ServingError: There was none.
    """
    for attempt in range(1, attempts):
        try:
            return call()
        except TryAgain:
            time.sleep(random.uniform(0.5, 1.0) * wait * 2 ** (attempt - 1))
    return call()


def batches(sentences: Sequence[str], size: int) -> Iterator[list[str]]:
    """Cuts sentences into lists that a server with batching accepts."""
    if isinstance(sentences, str):
        raise ValueError("sentences is one string, wanted a list of strings")
    for start in range(0, len(sentences), size):
        yield list(sentences[start : start + size])
