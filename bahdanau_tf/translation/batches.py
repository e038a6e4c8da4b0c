"""Sentences of like length worked on together."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
Sentences = Sequence[str | bytes]


def in_batches(
    work: Callable[[list[int]], Iterator[T]],
    lengths: Sequence[int],
    batch_size: int,
) -> list[T]:
    """Works on places of like length together; results in their order."""
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    done: dict[int, T] = {}
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        done.update(zip(places, work(places), strict=True))
    return [done[place] for place in range(len(lengths))]


def rows_of(
    sentences: Sentences, prefixes: Sentences | None
) -> list[Sentences]:
    """The sentences, and the prefixes if there are any.

    Raises:
        ValueError: One of them is one string, or they differ in number.
    """
    for name, given in (("sentences", sentences), ("prefixes", prefixes)):
        if isinstance(given, (str, bytes)):
            raise ValueError(
                f"Translator.translate: {name} is one string, wanted a "
                "sequence of strings"
            )
    if prefixes is not None and len(prefixes) != len(sentences):
        raise ValueError(
            f"Translator.translate: {len(prefixes)} prefixes for "
            f"{len(sentences)} sentences, wanted as many"
        )
    return [sentences] if prefixes is None else [sentences, prefixes]
