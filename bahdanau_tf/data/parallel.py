"""Parallel text files of any size, read line by line in any order."""

from __future__ import annotations

import contextlib
import hashlib
import os
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bahdanau_tf.text_files import seekable

BLOCK = 1 << 22  # bytes of a file looked at together
STRIDE = 16  # lines that are read together to have one of them


class TextFile:
    """The lines of a UTF-8 file, by number.

    Holds where every 16th line begins, not the lines. They are those that
    `read_lines` gives. What is packed is unpacked to a temporary file without
    a name, which lives as long as this.

    Args:
        path: the file.

    Attributes:
        path: the file.
        blank: bool [lines], True where a line is nothing but white space.
        digest: BLAKE2b of the text.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not UTF-8, or not a whole gzip file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        opened = contextlib.ExitStack()
        weakref.finalize(self, opened.close)
        file = opened.enter_context(seekable(path))
        self._descriptor = file.fileno()
        digest = hashlib.blake2b()
        starts, blank, lines = [], [], 0
        place = file.tell()
        while block := file.read(BLOCK) + file.readline():
            digest.update(block)
            self._check_encoding(block, lines)
            begins = _line_begins(block)
            starts.append(place + begins[-lines % STRIDE :: STRIDE])
            blank.append(_is_blank(block, begins))
            place += len(block)
            lines += len(begins)
        self.digest = digest.digest()
        self.blank = np.concatenate([np.zeros(0, bool), *blank])
        self._starts = np.concatenate([*starts, [place]])

    def __len__(self) -> int:
        return len(self.blank)

    def read(self, rows: Iterable[int]) -> list[bytes]:
        """The lines with these numbers, counted from 0."""
        lines = []
        together, at_hand = [b""], -1
        for row in rows:
            index, place = divmod(row, STRIDE)
            if index != at_hand:
                start, end = self._starts[index : index + 2].tolist()
                # No seek: several threads may read.
                block = os.pread(self._descriptor, end - start, start)
                together = block.split(b"\n")
                at_hand = index
            lines.append(together[place].rstrip(b"\r"))
        return lines

    def _check_encoding(self, block: bytes, lines_before: int) -> None:
        try:
            block.decode()
        except UnicodeDecodeError as error:
            line = lines_before + block.count(b"\n", 0, error.start) + 1
            raise ValueError(
                f"ParallelCorpus: {self.path}, line {line} is not valid UTF-8"
            ) from error


def _line_begins(block: bytes) -> np.ndarray:
    """int64 [lines]: where the lines of a block begin."""
    feeds = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    last = len(feeds) - block.endswith(b"\n")
    return np.append(0, feeds[:last] + 1)


def _is_blank(block: bytes, begins: np.ndarray) -> np.ndarray:
    """bool [lines]: no byte of the line is above the blank."""
    return np.maximum.reduceat(np.frombuffer(block, np.uint8), begins) <= 32


class ParallelCorpus:
    """Two text files, line i of one translating line i of the other.

    Both are looked through once, when this is made; afterwards only the lines
    asked for are read. Memory is about 5 bytes a line.

    Args:
        source: the text to translate, UTF-8, plain or .gz.
        target: its translation.

    Attributes:
        lines: lines of each file.
        blank: lines without words on a side; they are no pairs.
        rows: uint32 [pairs], the numbers of the other lines.
        checksum: BLAKE2b of both texts, in hexadecimal digits.

    Raises:
        OSError: a file cannot be read.
        ValueError: the files differ in length, have no sentence pair, or are
            not valid UTF-8.
    """

    def __init__(
        self, source: str | os.PathLike[str], target: str | os.PathLike[str]
    ) -> None:
        with ThreadPoolExecutor(max_workers=2) as threads:
            self._source, self._target = threads.map(TextFile, (source, target))
        self.lines = len(self._source)
        if self.lines != len(self._target):
            raise ValueError(
                f"ParallelCorpus: {source} has {self.lines} lines and {target} "
                f"has {len(self._target)}, wanted as many in both"
            )
        blank = self._source.blank | self._target.blank
        self.rows = np.flatnonzero(~blank).astype(np.uint32)
        self.blank = self.lines - len(self.rows)
        if not len(self.rows):
            raise ValueError(
                f"ParallelCorpus: {source} and {target} are empty: of "
                f"{self.lines} lines none has words on both sides"
            )
        both = self._source.digest + self._target.digest
        self.checksum = hashlib.blake2b(both, digest_size=32).hexdigest()

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, rows: np.ndarray) -> tuple[list[bytes], list[bytes]]:
        """The lines with these numbers, source and target."""
        numbers = rows.tolist()
        return self._source.read(numbers), self._target.read(numbers)
