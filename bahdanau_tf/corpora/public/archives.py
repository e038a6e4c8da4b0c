"""Reads lines of text from downloaded archives, which are not trusted.

Only the wanted member is read, as a stream; nothing is written under a name
from the archive, so no name can leave the folder and no link is followed. The
output is limited to a multiple of the archive's size.
"""

from __future__ import annotations

import gzip
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from typing import cast

LONGEST_LINE = 1 << 24  # bytes
MOST_EXPANSION = 100  # ratio of text to archive; that of text is 3 to 10
ALLOWANCE = 1 << 20  # bytes that any archive may contain in addition
SEGMENT = re.compile(r"<seg\b[^>]*>(.*)</seg>")
DAMAGE = (
    EOFError,
    RuntimeError,  # a compression or encryption that zipfile does not support
    gzip.BadGzipFile,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


class ArchiveError(ValueError):
    """A file that does not have the expected contents.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"{path} {message}")
        self.path = path


def read_lines(
    path: Path, member: str = "", column: int | None = None
) -> Iterator[bytes]:
    r"""Yields the lines of a text, each with its \n.

    The lines of an .sgm file are its segments, with single blanks, as sacreBLEU
    reads them. A .gz file is decompressed.

    Args:
        path: A plain file, or a .zip or .tar archive, compressed or not.
        member: The name in the archive; "" if `path` is not an archive.
        column: The wanted column of a tab-separated file, counted from 0; None
            for whole lines.

    Raises:
        ArchiveError: The archive is damaged, does not have the member or not as
            a plain file, or a line does not have the column.
    """
    try:
        with _opened(path, member) as stream:
            lines = _bounded_lines(stream, path)
            if (member or path.name).endswith(".sgm"):
                yield from _segments(lines, path)
            elif column is None:
                yield from lines
            else:
                yield from _cells(lines, column, path)
    except DAMAGE as error:
        what = f"archive with {member}" if member else "compressed file"
        raise ArchiveError(
            path, f"is not a complete {what}: {error}"
        ) from error


@contextmanager
def _opened(path: Path, member: str) -> Iterator[IO[bytes]]:
    with _opened_raw(path, member) as stream:
        if (member or path.name).endswith(".gz"):
            with gzip.GzipFile(fileobj=stream) as plain:
                yield cast(IO[bytes], plain)
        else:
            yield stream


@contextmanager
def _opened_raw(path: Path, member: str) -> Iterator[IO[bytes]]:
    if not member:
        with open(path, "rb") as file:
            yield file
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as zipped:
            if member not in zipped.namelist():
                raise ArchiveError(path, f"has no {member}")
            entry = zipped.getinfo(member)
            if entry.is_dir() or stat.S_ISLNK(entry.external_attr >> 16):
                raise ArchiveError(path, f"has no plain file {member}")
            with zipped.open(entry) as inner:
                yield inner
    else:
        with tarfile.open(path) as tarred:
            # Reads the archive only as far as the member.
            named = (i for i in tarred if i.name.removeprefix("./") == member)
            info = next(named, None)
            if info is None:
                raise ArchiveError(path, f"has no {member}")
            plain = tarred.extractfile(info) if info.isreg() else None
            if plain is None:
                raise ArchiveError(path, f"has no plain file {member}")
            yield plain


def _bounded_lines(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    left = MOST_EXPANSION * path.stat().st_size + ALLOWANCE
    while line := stream.readline(LONGEST_LINE):
        left -= len(line)
        if left < 0:
            raise ArchiveError(
                path, f"holds over {MOST_EXPANSION} times its own size"
            )
        if not line.endswith(b"\n"):
            if len(line) == LONGEST_LINE:
                raise ArchiveError(
                    path, f"has a line of over {LONGEST_LINE} bytes"
                )
            line += b"\n"
        yield line


def _segments(lines: Iterator[bytes], path: Path) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        try:
            segment = SEGMENT.search(line.decode())
        except UnicodeDecodeError as error:
            message = f"has a line {number} that is not UTF-8"
            raise ArchiveError(path, message) from error
        if segment:
            yield " ".join(segment[1].split()).encode() + b"\n"


def _cells(lines: Iterator[bytes], column: int, path: Path) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        cells = line.rstrip(b"\r\n").split(b"\t")
        if len(cells) <= column:
            raise ArchiveError(
                path,
                f"has {len(cells)} columns in line {number}, "
                f"wanted {column + 1} at least",
            )
        yield cells[column] + b"\n"
