"""Reads and writes lines of text: plain, .gz, standard input and output.

Everything that reads text uses this module, so that all agree on the lines.
"""

from __future__ import annotations

import codecs
import gzip
import itertools
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from bahdanau_tf.system.files import FULL, AnyPath, check_regular, takes_lock
from bahdanau_tf.system.ranges import Refusal, named
from bahdanau_tf.system.terminal import StatusLine, amount

GZIP = b"\x1f\x8b"  # the first two bytes of a gzip file, RFC 1952
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # UTF-8 never starts with these
DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)
PART = ".part"  # ending of a file that is not complete
AT_ONCE = 1 << 22  # bytes unpacked at once

# A text: a file of one sentence a line, or sentences in memory.
Text = AnyPath | Sequence[str]

# The longest line that this process reads, in bytes with the line end; the
# command line sets it. There are several copies of a line in memory, and a small
# gzip file may hold one of a gigabyte. A book of 200 pages has half a megabyte.
LONGEST_LINE = 1 << 20
longest_line = LONGEST_LINE


def check_line(size: int, number: int, name: str) -> None:
    """Raises a ValueError if line `number` of a text has more bytes than `longest_line`."""
    if size > longest_line:
        raise ValueError(
            f"{name}: line {number} has more than {longest_line:,} bytes, wanted one sentence "
            f"per line; {named('max_line_bytes')} allows more"
        )


def check_ends(start: bytes, name: str) -> None:
    """Raises a ValueError if a text, of which this is the start, has CR alone at its line ends."""
    if b"\n" not in start and b"\r" in start.rstrip(b"\r"):
        raise ValueError(
            f"{name}: lines end in carriage returns alone, wanted line feeds: convert the text "
            r"with `tr '\r' '\n'`"
        )


def decoded(lines: bytes, before: int, name: str) -> str:
    """Decodes whole lines of a text, which has as many `before` them.

    A ValueError, with the number of the line and what to do, is raised if they are not UTF-8 or
    have a NUL.
    """
    if (place := lines.find(b"\0")) >= 0:
        # A text in UTF-16 starts with the NUL of an ASCII letter, or has it behind the letter.
        order = "LE" if before or place % 2 else "BE"
        fault = (
            f"has a NUL, wanted text in UTF-8; `iconv -f UTF-16{order} -t UTF-8` if it is in "
            r"UTF-16, or if there are few, `tr -d '\000'`"
        )
    else:
        try:
            return lines.decode()
        except UnicodeDecodeError as error:
            place, is_cut = error.start, error.reason == "unexpected end of data"
        fault = (
            "ends within a character of UTF-8; the text was cut off, or has another encoding"
            if is_cut
            else "is not UTF-8; convert the text with `iconv -f WINDOWS-1252 -t UTF-8` if it is "
            "Latin-1, or name its encoding there"
        )
    number = before + lines.count(b"\n", 0, place) + 1
    raise ValueError(f"{name}: line {number} {fault}")


def check_in_order(sentences: object, name: str) -> None:
    """Raises a ValueError for a set, a mapping or a table in place of a list of sentences."""
    kind = type(sentences).__name__
    if isinstance(sentences, set | frozenset | Mapping):
        raise ValueError(f"{name} is a {kind}, which has no order of sentences, wanted a list")
    if (columns := getattr(sentences, "columns", None)) is not None:  # of pandas or polars
        some = (f"df.{x}" if str(x).isidentifier() else f"df[{x!r}]" for x in [*columns][:2])
        raise ValueError(f"{name} is a {kind}, wanted its columns, such as {', '.join(some)}")


def encoded(sentence: object, name: str, unwanted: str = "\n\0") -> bytes:
    """A sentence as a line of a text; raises a ValueError with its name if it is not one."""
    if isinstance(sentence, str) and not any(letter in sentence for letter in unwanted):
        with suppress(UnicodeEncodeError):  # half of a pair of surrogates
            return f"{sentence}\n".encode()
    wanted = "a string"
    if isinstance(sentence, str):
        wanted = "one line of text that UTF-8 can encode, without NUL"
    raise ValueError(f"{name} is {sentence!r}, wanted {wanted}")


def end_of_line(stream: BinaryIO) -> bytes:
    """Reads the rest of a line, at most one byte more than `longest_line`."""
    return stream.readline(longest_line + 1)


def read_lines(path: AnyPath | None, first: int = 0, last: int | None = None) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 text without their line ends, of standard input if None.

    A line ends with \n, with or without carriage returns before it, and with nothing else, so that
    line numbers are those of `wc -l`. A byte order mark at the start is dropped. A gzip file is
    unpacked, whatever its name. The first lines may be skipped, and need not be UTF-8 then; `last`
    is the number of the last line that is read.

    A ValueError is raised if a line is not UTF-8, has a NUL or is too long (the message has its
    number), if the file is UTF-16, if its lines end in CR alone, or if a gzip file is damaged.
    """
    with _opened(path) as text:
        for number, line in itertools.islice(enumerate(_lines(text, path), 1), first, last):
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if line:  # empty if the file holds a byte order mark alone
                text_of_line = decoded(line, number - 1, _name(path))
                yield text_of_line.removesuffix("\n").rstrip("\r")


def read_pairs(path: AnyPath, owner: str, wanted: str) -> dict[str, str]:
    """Reads lines of two words with a tab between; empty lines are skipped.

    A ValueError, with the number of the line and what was wanted, is raised if one is different, or
    has the first word of another with another second one.
    """
    pairs: dict[str, str] = {}
    places: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), 1):
        words = line.split("\t")
        if len(words) == 2 and all(words):
            first = places.setdefault(words[0], number)
            if pairs.setdefault(*words) != words[1]:
                both = f"lines {first} and {number} begin with {words[0]!r}"
                raise Refusal(owner, f"{path}, {both}, wanted one of them")
        elif line:
            raise Refusal(owner, f"{path}, line {number} is {line!r}, wanted {wanted}")
    return pairs


def count_lines(path: AnyPath) -> int:
    """The number of lines of a text, which need not be UTF-8; raises errors as `read_lines`."""
    with _opened(path) as text:
        lines = _lines(text, path)
        first = next(lines, b"").removeprefix(codecs.BOM_UTF8)
        return bool(first) + sum(1 for _ in lines)


@contextmanager
def seekable(path: AnyPath) -> Iterator[BinaryIO]:
    """Opens a text as a binary stream that can be read in any order, after a byte order mark.

    A gzip file is unpacked to a temporary file without a name, which the system deletes when the
    process ends, even if it is killed; its folder and its size are written to standard error. A
    pipe, a device, UTF-16 and a damaged gzip file raise a ValueError.
    """
    check_regular(path)
    with _opened(path) as text:
        if isinstance(text, BufferedReader):  # not packed
            yield _behind_mark(text)
            return
        with tempfile.TemporaryFile() as copy:
            try:
                shutil.copyfileobj(text, copy, AT_ONCE)
                copy.flush()
            except OSError as error:
                if error.errno not in FULL:
                    raise
                message = f"no room to unpack {_name(path)}; set TMPDIR to another folder"
                raise OSError(error.errno, message, tempfile.gettempdir()) from error
            place, size = tempfile.gettempdir(), amount(copy.tell(), "byte")
            StatusLine().note(
                f"{_name(path)}: {size} unpacked in {place}; TMPDIR names another folder"
            )
            yield _behind_mark(cast(BinaryIO, copy))


@contextmanager
def written(path: AnyPath | None) -> Iterator[TextIO]:
    """Opens a file, plain or .gz, to write lines in UTF-8 to, or standard output if None.

    A file is written as `incomplete(path)` and renamed at the end, so `path` is never incomplete.
    After an error the lines written so far are in `incomplete(path)`; if there are none, no file
    is left. If another process is writing it, a ValueError is raised. Standard output is flushed
    at the end, so that a closed pipe raises here and not when the interpreter exits.
    """
    try:
        yield from _written(path)
    except OSError as error:
        if error.errno not in FULL or error.filename is not None:
            raise
        name = "standard output" if path is None else os.fspath(path)
        kept = ""
        if path is not None and os.path.exists(incomplete(path)):
            kept = f"; what was written is in {incomplete(path)}"
        raise OSError(error.errno, f"{error.strerror}{kept}", name) from error


def incomplete(path: AnyPath) -> str:
    """The name of a file until it is complete.

    If `path` is a symbolic link, it is in the folder of the file that is meant.
    """
    if os.path.islink(path):
        with suppress(FileNotFoundError):
            os.stat(path)  # raises an error if links form a circle
        path = os.path.realpath(path)
    return f"{os.fspath(path)}{PART}"


@contextmanager
def written_together(paths: Sequence[AnyPath]) -> Iterator[list[TextIO]]:
    """`written` for several files: all fit on the disk, or none is renamed."""
    with ExitStack() as stack:
        streams = [stack.enter_context(written(path)) for path in paths]
        yield streams
        for stream in streams:
            stream.flush()


def _written(path: AnyPath | None) -> Iterator[TextIO]:
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        yield sys.stdout
        sys.stdout.flush()
        return
    if os.path.exists(path) and not os.path.isfile(path):  # /dev/null
        with open(path, "wb") as device, _packed(device, path) as stream:
            yield stream
        return
    aside = incomplete(path)
    with _alone(aside, path) as file:
        if os.path.exists(path):  # keeps the permissions, as rewriting it would
            shutil.copymode(path, aside)
        with _packed(file, path) as stream:
            yield stream
        file.flush()
        if sys.platform == "win32":
            file.close()  # it cannot rename an open file, and has no lock to keep
        os.replace(aside, aside.removesuffix(PART))


@contextmanager
def _packed(file: BinaryIO, path: AnyPath) -> Iterator[TextIO]:
    """A text stream to an open file, packed if `path` ends in .gz; leaves it open."""
    with ExitStack() as stack:
        raw = file
        if Path(path).suffix == ".gz":
            packed = gzip.GzipFile(fileobj=file, mode="wb")
            raw = cast(BinaryIO, stack.enter_context(packed))
        stream = TextIOWrapper(raw, encoding="utf-8", newline="\n")
        stack.callback(stream.detach)
        yield stream


@contextmanager
def _alone(aside: str, path: AnyPath) -> Iterator[BinaryIO]:
    """Opens `aside`, to be renamed to `path`, unless another process is writing it."""
    with open(aside, "ab") as file:
        is_ours = takes_lock(file) is not False
        # False if the other process has renamed or removed it meanwhile.
        exists = os.path.exists(aside) and os.path.samestat(os.fstat(file.fileno()), os.stat(aside))
        if not (is_ours and exists):
            raise ValueError(
                f"another process is writing {os.fspath(path)}; wait until it "
                "ends, or name another file"
            )
        file.truncate(0)
        try:
            yield file
        except BaseException:
            if not os.fstat(file.fileno()).st_size:
                with suppress(OSError):  # an open file on Windows
                    os.remove(aside)
            raise


@contextmanager
def _opened(path: AnyPath | None) -> Iterator[BinaryIO]:
    """Opens a text, or standard input, to read its bytes; a gzip file is unpacked."""
    with nullcontext(sys.stdin.buffer) if path is None else open(path, "rb") as raw:
        try:
            # Peeking leaves the bytes in the stream: pipes and terminals cannot seek.
            text = raw
            if cast(BufferedReader, raw).peek(len(GZIP)).startswith(GZIP):
                text = cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="rb"))
            if cast(BufferedReader, text).peek(2).startswith(UTF_16):
                raise ValueError(
                    f"{_name(path)} is UTF-16, wanted UTF-8: convert it with "
                    "`iconv -f UTF-16 -t UTF-8`"
                )
            yield text
        except DAMAGE as error:
            raise ValueError(f"{_name(path)} is not a whole gzip file: {error}") from error


def _lines(text: BinaryIO, path: AnyPath | None) -> Iterator[bytes]:
    name = _name(path)
    for number, line in enumerate(iter(lambda: end_of_line(text), b""), 1):
        if number == 1:
            check_ends(line, name)
        check_line(len(line), number, name)
        yield line


def _behind_mark(stream: BinaryIO) -> BinaryIO:
    stream.seek(0)
    if stream.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
        stream.seek(0)
    return stream


def _name(path: AnyPath | None) -> str:
    return "standard input" if path is None else os.fspath(path)
