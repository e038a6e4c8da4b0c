"""What both clients share: errors, retrying, batches, replies, lines."""

from __future__ import annotations

import random
import reprlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
LARGEST_REPLY = 64 << 20  # bytes; the alignments of a batch are megabytes


class ServingError(Exception):
    """The server did not answer as it should; see the message.

    The message may quote the server, so it is one line, and control characters are escaped.
    """

    def __str__(self) -> str:
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in super().__str__())


class WrongReply(ServingError):
    """The server answered with something that was not asked for.

    Args:
        place: The server's address.
        name: Which part of the reply is wrong.
        value: What it is.
        wanted: What it should be.
    """

    def __init__(self, place: str, name: str, value: object, wanted: str) -> None:
        super().__init__(
            f"{place}: {reprlib.repr(name)} of the reply is {reprlib.repr(value)}, wanted {wanted}"
        )


class TryAgain(ServingError):
    """The server is not reachable or too busy, perhaps only for a while."""


def retrying(call: Callable[[], T], attempts: int, wait: float = 0.2) -> T:
    """Calls `call` until it returns, with ever longer pauses.

    Args:
        call: A function without arguments. It is called again only if it raised `TryAgain`.
        attempts: The largest number of calls.
        wait: The longest first pause in seconds; each later pause may be twice as long. Pauses are
            drawn at random, so that clients do not all come back at the same time.

    Returns:
        The result of `call`.

    Raises:
        ServingError: The last call raised it, or a call raised one that is not a `TryAgain`.
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
