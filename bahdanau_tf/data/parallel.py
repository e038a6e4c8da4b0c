"""Parallel text files of any size, whose lines are read in any order."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from bahdanau_tf.system.files import replaced_directory
from bahdanau_tf.system.lines import (
    Text,
    check_ends,
    check_line,
    decoded,
    encoded,
    end_of_line,
    read_lines,
    seekable,
)
from bahdanau_tf.system.ranges import Refusal, named
from bahdanau_tf.system.terminal import amount

SIDES = ("source", "target")
OUTPUTS = ("source.txt", "target.txt")  # a training text that the package writes
BLOCK = 1 << 22  # bytes read at once when a file is indexed
CHUNK = 10_000  # lines of `read_in_chunks`
TAGS = 10  # lines of a table of inflection have the same tags, at least, on average
STRIDE = 16  # only the start of every so many lines is kept in memory
_SPACES = "".join(x for x in map(chr, range(0x3001)) if x <= " " or x.isspace())
_IN_SPACES = np.isin(np.arange(256), list(_SPACES.encode()))


class TextFile:
    """The lines of a text, by number; those of `read_lines`.

    Only the offset of every 16th line is kept in memory. A gzip file is unpacked to a temporary
    file without a name, which exists as long as this object; a list is written to one. `name` is
    the path, or `side` for a list; `is_blank`, bool [lines], is True for lines of white space only;
    `digest` is the BLAKE2b digest of the text.

    A ValueError is raised for a text that is not UTF-8 or has a NUL, a line that is too long, lines
    that end in CR alone, a damaged gzip file, a pipe, or a sentence that is not a string of one
    line.
    """

    def __init__(self, text: Text, side: str = "text") -> None:
        if isinstance(text, str | os.PathLike):
            self.name, content = os.fspath(text), seekable(text)
        else:
            self.name, content = side, _in_file(text, side)
        opened = contextlib.ExitStack()
        weakref.finalize(self, opened.close)
        file = opened.enter_context(content)
        self._descriptor = file.fileno()
        digest = hashlib.blake2b()
        starts, blank, lines = [], [], 0
        name = f"ParallelCorpus: {self.name}"
        place = file.tell()
        while block := file.read(BLOCK) + end_of_line(file):
            if not lines:
                check_ends(block, name)
            digest.update(block)
            feeds = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            here = np.append(0, feeds[feeds < len(block) - 1] + 1)  # the starts of its lines
            sizes = np.diff(np.append(here, len(block)))
            longest = int(sizes.argmax())
            check_line(int(sizes[longest]), lines + longest + 1, name)
            decoded(block, lines, name)  # checks the encoding
            starts.append(place + here[-lines % STRIDE :: STRIDE])
            blank.append(_is_blank(block, here))
            place += len(block)
            lines += len(here)
        self.digest = digest.digest()
        self.is_blank = np.concatenate([np.zeros(0, bool), *blank])
        self._starts = np.concatenate([*starts, [place]])

    def __len__(self) -> int:
        return len(self.is_blank)

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


@contextlib.contextmanager
def _in_file(sentences: Sequence[str], side: str) -> Iterator[BinaryIO]:
    """Writes sentences to a temporary file without a name, one a line."""
    with tempfile.TemporaryFile() as file:
        for place, sentence in enumerate(sentences):
            file.write(encoded(sentence, f"ParallelCorpus: {side}[{place}]"))
        file.seek(0)
        yield cast(BinaryIO, file)


def _is_blank(block: bytes, starts: np.ndarray) -> np.ndarray:
    """bool [lines]: True for lines of white space and control characters."""
    codes = np.frombuffer(block, np.uint8)
    blank = np.maximum.reduceat(codes, starts) <= ord(" ")
    # Few lines have only bytes that white space has in UTF-8; these are read.
    may_be = np.logical_and.reduceat(_IN_SPACES[codes], starts) & ~blank
    ends = np.append(starts[1:], len(block))
    for line in np.flatnonzero(may_be):
        text = block[starts[line] : ends[line]].decode()
        blank[line] = not text.strip(_SPACES)
    return blank


class ParallelCorpus:
    """Two texts whose lines are translations of each other.

    The constructor reads both once to index them; afterwards only the requested lines are read.
    Memory is about 5 bytes per line.

    Args:
        source: the text to translate, a UTF-8 file, plain or .gz, or a list of sentences.
        target: its translation.

    Attributes:
        lines: number of lines of each file.
        `blank`: number of pairs of lines of which one or both have only white space; they do not
            count as pairs.
        rows: uint32 [pairs], the numbers of the other lines.
        checksum: BLAKE2b digest of both texts, in hexadecimal digits.

    Raises:
        OSError: a file cannot be read.
        ValueError: the files differ in length, have no sentence pair, or are not valid UTF-8.
    """

    def __init__(self, source: Text, target: Text) -> None:
        with ThreadPoolExecutor(max_workers=2) as threads:
            texts = [
                threads.submit(copy_context().run, TextFile, text, side)
                for text, side in zip((source, target), SIDES, strict=True)
            ]
        self._source, self._target = (text.result() for text in texts)
        self.lines = len(self._source)
        if self.lines != len(self._target):
            raise Refusal(
                "ParallelCorpus",
                f"{self._source.name} has {amount(self.lines, 'line')} "
                f"and {self._target.name} has {len(self._target):,}, wanted equal numbers",
            )
        blank = self._source.is_blank | self._target.is_blank
        self.rows = np.flatnonzero(~blank).astype(np.uint32)
        self.blank = self.lines - len(self.rows)
        if not len(self.rows):
            raise Refusal(
                "ParallelCorpus",
                f"{self._source.name} and {self._target.name} have no sentence "
                f"pair: none of their lines ({self.lines:,}) has words on both sides",
            )
        both = self._source.digest + self._target.digest
        self.checksum = hashlib.blake2b(both, digest_size=32).hexdigest()

    @property
    def names(self) -> tuple[str, str]:
        """The paths of the two texts; the side of a list."""
        return self._source.name, self._target.name

    @property
    def is_copy(self) -> bool:
        """Whether both texts are the same."""
        return self._source.digest == self._target.digest

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, rows: np.ndarray) -> tuple[list[bytes], list[bytes]]:
        """The lines with these numbers, source and target."""
        numbers = rows.tolist()
        return self._source.read(numbers), self._target.read(numbers)

    def read_in_chunks(self, rows: np.ndarray) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Reads as `read` does, but with few lines in memory at once."""
        for first in range(0, len(rows), CHUNK):
            yield self.read(rows[first : first + CHUNK])

    def spread(self, most: int) -> np.ndarray:
        """The numbers of at most so many lines, evenly spread."""
        return self.rows[:: -(-len(self) // most)]

    def pairs(self, rows: np.ndarray) -> Iterator[tuple[str, str]]:
        """Yields lines of both sides as strings."""
        for sides in self.read_in_chunks(rows):
            for source, target in zip(*sides, strict=True):
                yield source.decode(), target.decode()


_JSON = (
    "`jq -r .en FILE` writes the field en of each line, if that is its name, "
    "and likewise for the other side; or make a .tsv file as in docs/train.md"
)
_XML = "docs/train.md has Python code that makes a .tsv file from it"
_TABLE = "save its two columns as a .tsv file, which {} (or {}) alone reads"
OTHERS = {
    **dict.fromkeys((".jsonl", ".ndjson"), _JSON),
    **dict.fromkeys((".tmx", ".xlf", ".xliff", ".po"), _XML),
    **dict.fromkeys((".csv", ".xlsx", ".parquet"), _TABLE),
}


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether the name is that of tab-separated values, plain or .gz."""
    return _ending(path) == ".tsv"


def check_is_text(flag: str, path: str) -> None:
    """Raises a ValueError if a file is named after a format that holds both sides."""
    if how := OTHERS.get(_ending(path)):
        raise Refusal(
            "fit",
            f"{named(flag)}: {path} holds both sides, wanted one of them, a sentence per line; "
            f"{how.format(named('train_source'), named('dev_source'))}",
        )


def _ending(path: str | os.PathLike[str]) -> str:
    return Path(os.fspath(path).lower().removesuffix(".gz")).suffix


def column_paths(model_dir: Path, name: str) -> dict[str, str]:
    """Where `write_columns` writes the two columns, by flag."""
    return {f"{name}_{side}": str(model_dir / f"{name}_columns" / side) for side in SIDES}


def write_columns(table: str, model_dir: Path, name: str) -> None:
    """Writes the columns of a table as two text files; the name is "train" or "dev".

    A line that has not two columns, or is not UTF-8, raises a ValueError.
    """
    with replaced_directory(model_dir / f"{name}_columns") as new:
        source, target = (new / side for side in SIDES)
        with (
            open(source, "w", encoding="utf-8", newline="\n") as sources,
            open(target, "w", encoding="utf-8", newline="\n") as targets,
        ):
            for pair in read_table(table, f"{name}_source"):
                sources.write(f"{pair[0]}\n")
                targets.write(f"{pair[1]}\n")


def check_columns(table: str, model_dir: Path, name: str) -> None:
    """Raises a ValueError unless `write_columns` has written the columns of this table."""
    written = column_paths(model_dir, name).values()
    if not all(map(os.path.exists, written)):
        raise Refusal(
            "fit",
            f"{named(name + '_source')} is {table}, but the training in {model_dir} began without "
            "this table; leave it out to resume, or name another folder",
        )
    pairs = zip(*map(read_lines, written), strict=True)
    rows = read_table(table, f"{name}_source")
    if any(a != b for a, b in zip_longest(rows, pairs)):
        raise Refusal(
            "fit",
            f"{named(name + '_source')}: {table} has different pairs than when the training "
            f"in {model_dir} began; use the earlier ones, or name another folder",
        )


def read_table(table: str, flag: str) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a table, of which `flag` is the path; a blank line is a blank pair.

    Raises a ValueError for a line that has not two columns, or quotes of CSV around others.
    """
    for number, line in enumerate(read_lines(table), 1):
        cells = line.split("\t") if line.strip() else ["", ""]
        if len(cells) != len(SIDES):
            count = amount(len(cells), "column") if len(cells) > 1 else "no tab"
            raise Refusal(
                "fit",
                f"{named(flag)}: {table}, line {number} has {count}, wanted two "
                "columns, a sentence and its translation with a tab between "
                f"them{_cut(table, len(cells))}",
            )
        if any(re.fullmatch('".*"".*"', cell) for cell in cells):
            raise Refusal(
                "fit",
                f"{named(flag)}: {table}, line {number} has quotes of CSV, wanted plain text; "
                "pandas writes it with `to_csv(..., sep='\\t', quoting=csv.QUOTE_NONE)`",
            )
        yield cells[0].rstrip("\r"), cells[1]


def _cut(table: str, columns: int) -> str:
    """How to make two columns of a table, by its first lines with so many; "" if unclear."""
    every = [line.split("\t") for line in read_lines(table, last=CHUNK)]
    if all(len(cells) == 1 for cells in every):
        return "; if it is a pronouncing dictionary, docs/short_strings.md makes a table of it"
    rows = [cells for cells in every if len(cells) == columns]
    texts = text_columns(rows)
    if len(texts) < len(SIDES):
        return "; `cut -f1,2` keeps the first two" if columns > len(SIDES) else ""
    if columns == 3 and 1 < len({cells[2] for cells in rows}) <= len(rows) / TAGS:
        lemma, form, tags = rows[0]
        return (
            "; if these are lemma, form and tags, join lemma and tags: "
            f"{lemma + '+' + tags!r} and, after a tab, {form!r} (docs/short_strings.md has the "
            "command); otherwise `cut -f1,2` keeps the first two"
        )
    like = f"{', '.join(map(str, texts[:-1]))} and {texts[-1]}"
    return f"; columns {like} look like text, and `cut -f{texts[0]},{texts[1]}` keeps two of them"


def text_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """The numbers, from 1, of the columns that look like sentences, not like ids, codes or links.

    Most cells of such a column have letters and no digits, and they are not all the same.
    """
    return [
        number
        for number, cells in enumerate(zip(*rows, strict=True), 1)
        if 2 * sum(any(map(str.isalpha, x)) and not any(map(str.isdigit, x)) for x in cells)
        > len(cells)
        and (len(rows) == 1 or len({*cells}) > 1)
    ]
