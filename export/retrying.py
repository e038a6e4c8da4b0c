"""What both clients share: errors, retrying, batches, lines."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class ServingError(Exception):
    """The server did not answer, or refused the request; see the message."""


class TryAgain(ServingError):
    """The server is not reachable or too busy, perhaps only for a while."""


def retrying(call: Callable[[], T], attempts: int, wait: float = 0.2) -> T:
    """Calls `call` until it returns, with longer and longer pauses.

    Args:
        call: A function without arguments. It is called again only if it
            raised `TryAgain`.
        attempts: The largest number of calls.
        wait: The longest first pause in seconds; each later pause may be twice
            as long. Pauses are drawn at random, so that clients do not all
            come back at the same time.

    Returns:
        The result of `call`.

    Raises:
        ServingError: The last call raised it, or a call raised one that is not
            a `TryAgain`.
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


def one_line(translation: str) -> str:
    """A translation without line feeds and NUL, as `Translation.line`."""
    return translation.replace("\0", "").replace("\n", " ")
