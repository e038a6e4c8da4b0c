"""Parallel text files of any size, whose lines are read in any order."""

from __future__ import annotations

import contextlib
import hashlib
import os
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bahdanau_tf.system.lines import check_line, end_of_line, seekable
from bahdanau_tf.system.terminal import amount

BLOCK = 1 << 22  # bytes read at once when a file is indexed
CHUNK = 10_000  # lines of `read_in_chunks`
STRIDE = 16  # only the begin of every so many lines is kept in memory
_BLANKS = "".join(one for one in map(chr, range(0x3001)) if one <= " " or one.isspace())
_IN_BLANKS = np.isin(np.arange(256), list(_BLANKS.encode()))


class TextFile:
    """The lines of a UTF-8 file, by number.

    The lines are those of `read_lines`. Only the offset of every 16th line is
    kept in memory. A gzip file is unpacked to a temporary file without a name,
    which exists as long as this object.

    Args:
        path: the file.

    Attributes:
        path: the file.
        blank: bool [lines], True for lines of white space only.
        digest: BLAKE2b digest of the text.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not UTF-8, a line is too long, it is a damaged gzip
            file, or a pipe.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        opened = contextlib.ExitStack()
        weakref.finalize(self, opened.close)
        file = opened.enter_context(seekable(path))
        self._descriptor = file.fileno()
        digest = hashlib.blake2b()
        starts, blank, lines = [], [], 0
        name = f"ParallelCorpus: {self.path}"
        place = file.tell()
        while block := file.read(BLOCK) + end_of_line(file):
            digest.update(block)
            begins = _line_begins(block)
            sizes = np.diff(np.append(begins, len(block)))
            longest = int(sizes.argmax())
            check_line(int(sizes[longest]), lines + longest + 1, name)
            self._check_encoding(block, lines)
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
                # pread, not seek and read: several threads may read.
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
    """int64 [lines]: the offsets of the lines in a block."""
    feeds = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    last = len(feeds) - block.endswith(b"\n")
    return np.append(0, feeds[:last] + 1)


def _is_blank(block: bytes, begins: np.ndarray) -> np.ndarray:
    """bool [lines]: True for lines of white space and control characters."""
    codes = np.frombuffer(block, np.uint8)
    blank = np.maximum.reduceat(codes, begins) <= ord(" ")
    # Few lines have only bytes that white space has in UTF-8; these are read.
    may_be = np.logical_and.reduceat(_IN_BLANKS[codes], begins) & ~blank
    ends = np.append(begins[1:], len(block))
    for line in np.flatnonzero(may_be):
        text = block[begins[line] : ends[line]].decode()
        blank[line] = not text.strip(_BLANKS)
    return blank


class ParallelCorpus:
    """Two text files whose lines are translations of each other.

    The constructor reads both once to index them; afterwards only the requested
    lines are read. Memory is about 5 bytes per line.

    Args:
        source: the text to translate, UTF-8, plain or .gz.
        target: its translation.

    Attributes:
        lines: number of lines of each file.
        blank: number of lines that are blank on one side or both; they are
            not pairs.
        rows: uint32 [pairs], the numbers of the other lines.
        checksum: BLAKE2b digest of both texts, in hexadecimal digits.

    Raises:
        OSError: a file cannot be read.
        ValueError: the files differ in length, have no sentence pair, or are
            not valid UTF-8.
    """

    def __init__(self, source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
        with ThreadPoolExecutor(max_workers=2) as threads:
            self._source, self._target = threads.map(TextFile, (source, target))
        self.lines = len(self._source)
        if self.lines != len(self._target):
            raise ValueError(
                f"ParallelCorpus: {source} has {amount(self.lines, 'line')} "
                f"and {target} has {len(self._target):,}, wanted equal numbers"
            )
        blank = self._source.blank | self._target.blank
        self.rows = np.flatnonzero(~blank).astype(np.uint32)
        self.blank = self.lines - len(self.rows)
        if not len(self.rows):
            raise ValueError(
                f"ParallelCorpus: {source} and {target} have no sentence pair: "
                f"none of their lines ({self.lines:,}) has words on both sides"
            )
        both = self._source.digest + self._target.digest
        self.checksum = hashlib.blake2b(both, digest_size=32).hexdigest()

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, rows: np.ndarray) -> tuple[list[bytes], list[bytes]]:
        """The lines with these numbers, source and target."""
        numbers = rows.tolist()
        return self._source.read(numbers), self._target.read(numbers)

    def read_in_chunks(self, rows: np.ndarray) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """As `read`, but with few lines in memory at once."""
        for first in range(0, len(rows), CHUNK):
            yield self.read(rows[first : first + CHUNK])
