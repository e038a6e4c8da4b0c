"""Files of n-best lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.translation.rescoring import MalformedListError, NBest, read_nbest


def nbest_lists(flag: str, path: str | None, sources: Iterable[str]) -> Iterator[NBest]:
    """Reads the lists of some sentences; errors of a list name its flag.

    Args:
        flag: The flag that named the file.
        path: The file; None for standard input.
        sources: The sentences.

    Raises:
        ValueError: It is no such list, or a file is not UTF-8.
    """
    try:
        yield from read_nbest(read_lines(path), sources)
    except MalformedListError as error:
        raise ValueError(f"{flag}: {error}") from None
