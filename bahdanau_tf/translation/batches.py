"""Runs work on strings in batches of similar lengths.

A string may be bytes, which need not be UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar

from bahdanau_tf.evaluation.scores import check_counts
from bahdanau_tf.options import Decoding
from bahdanau_tf.system.lines import check_in_order
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.translation.result import Translation

S = TypeVar("S")
T = TypeVar("T")
LONG = 512  # characters of a row; there are few sentences of more
Sentences = Sequence[str | bytes]
Row: TypeAlias = tuple[str | bytes, ...]
# Translates sentences, with the first words of their translations or without.
Work: TypeAlias = Callable[[Decoding, Sentences, Sentences | None], Iterable[Translation]]


def in_batches(
    caller: str,
    columns: Mapping[str, Sentences],
    work: Callable[..., Iterator[T]],
    batch_size: int,
    at_once: int = 1,
) -> list[T]:
    """Runs `work` on batches of similar lengths; results in input order.

    Each row of a batch is padded to the longest, so that one long row would make a batch of short
    ones as slow as a batch of long ones. So a row of more than `LONG` characters counts as several,
    which also limits memory. So many batches are processed `at_once`, by threads.

    `work` takes a list of strings for each column of a batch, and yields a value for each row.
    Equal rows are one row, whose value is that of all.
    """
    columns = strings(caller, columns)
    if batch_size < 1:
        raise Refusal(caller, f"batch_size is {batch_size}, wanted 1 or more")
    rows = [*zip(*columns.values(), strict=True)]
    different = [*dict.fromkeys(rows)]
    lengths = [sum(map(len, row)) for row in different]

    def run(places: list[int]) -> dict[Row, T]:
        batch = [different[place] for place in places]
        return dict(zip(batch, work(*map(list, zip(*batch, strict=True))), strict=True))

    results: dict[Row, T] = {}
    for some in _side_by_side(run, [*_batches(lengths, batch_size)], at_once):
        results.update(some)
    return [results[row] for row in rows]


def _batches(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Yields the rows of each batch, those of the shortest first."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if (len(batch) + 1) * max(lengths[row], LONG) > size * LONG and batch:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _side_by_side(run: Callable[[S], T], batches: Sequence[S], at_once: int) -> Iterator[T]:
    """Yields the result of each batch, in any order."""
    threads = min(at_once, len(batches))
    if threads < 2:
        yield from map(run, batches)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        yield from pool.map(run, reversed(batches))  # the longest ones begin
    finally:
        pool.shutdown(cancel_futures=True)


def decoded(text: str | bytes) -> str:
    """Decodes UTF-8; invalid bytes become U+FFFD."""
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def columns_of(sentences: Sentences, prefixes: Sentences | None) -> dict[str, Sentences]:
    """The columns of `Translator.translate`; without prefixes it has one."""
    return {"sentences": sentences} | ({} if prefixes is None else {"prefixes": prefixes})


def strings(caller: str, columns: Mapping[str, Sentences]) -> dict[str, list[str | bytes]]:
    """The strings of columns, see `_strings`.

    Raises ValueError, with the names of the caller and of its argument (the key of a column), if a
    column is not a sequence of strings, or the columns differ in length.
    """
    lists = {name: _strings(f"{caller}: {name}", column) for name, column in columns.items()}
    check_counts(caller, lists)
    return lists


def _strings(name: str, column: object) -> list[str | bytes]:
    """The strings of a list, an array or a tensor, without types of NumPy."""
    if hasattr(column, "numpy"):  # a tensor
        column = column.numpy()
    if isinstance(column, (str, bytes)) or getattr(column, "shape", 1) == ():
        raise ValueError(f"{name} is one string, wanted a sequence of strings")
    check_in_order(column, name)
    if not isinstance(column, Iterable):
        raise ValueError(f"{name} is {column!r}, wanted a sequence of strings")
    strings: list[str | bytes] = []
    for place, string in enumerate(column):
        if not isinstance(string, (str, bytes)):
            raise ValueError(f"{name}[{place}] is {type(string).__name__}, wanted a string")
        if isinstance(string, bytes):
            strings.append(bytes(string))
            continue
        try:
            string.encode()
        except UnicodeEncodeError as error:  # half of a pair of surrogates
            raise ValueError(
                f"{name}[{place}] is {string!r}, wanted text that UTF-8 can encode"
            ) from error
        # `str(string)` would be the name of a member of an enumeration.
        strings.append(str.__str__(string))
    return strings
