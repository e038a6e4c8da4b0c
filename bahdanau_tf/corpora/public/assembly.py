"""Creates the folder of a corpus from downloads, as corpora.json describes it.

The folder has the name of the corpus and a file SPLIT.LANGUAGE for each side of each split, one
sentence per line. It is renamed into place when complete.

Only the required member of an archive is read, as a stream; no file gets a name from the archive,
so no name can leave the folder and no link is followed.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import re
import shutil
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

from bahdanau_tf.corpora.public import Corpus, Download
from bahdanau_tf.corpora.public.download import fetch, has_checksum, room_in
from bahdanau_tf.system.files import replaced_directory
from bahdanau_tf.system.terminal import StatusLine

LONGEST_LINE = 1 << 24  # bytes
MOST_EXPANSION = 100  # ratio of text to archive; usually 3 to 10
ALLOWANCE = 1 << 20  # further bytes that any archive may contain
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
    """A file, `path`, that does not have the expected contents."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"{path} {message}")
        self.path = path


def read_lines(path: Path, member: str = "", column: int | None = None) -> Iterator[bytes]:
    r"""Yields the lines of a text, each with its \n.

    The lines of an .sgm file are its segments, with single spaces, as sacreBLEU reads them. A .gz
    file is decompressed. `member` and `column` are as in `Text`. An ArchiveError is raised if the
    archive is damaged, the member is missing or not a plain file, or a line lacks the column.
    """
    name = member or path.name
    try:
        with ExitStack() as stack:
            stream = stack.enter_context(_opened(path, member))
            if name.endswith(".gz"):
                plain = stack.enter_context(gzip.GzipFile(fileobj=stream))
                stream = cast(IO[bytes], plain)
            lines = _bounded_lines(stream, path)
            if name.endswith(".sgm"):
                yield from _segments(lines, path)
            elif column is None:
                yield from lines
            else:
                yield from _cells(lines, column, path)
    except DAMAGE as error:
        what = f"archive with {member}" if member else "compressed file"
        raise ArchiveError(path, f"is not a complete {what}: {error}") from error


@contextmanager
def _opened(path: Path, member: str) -> Iterator[IO[bytes]]:
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
            # Reads the archive only up to the member.
            infos = (each for each in tarred if each.name.removeprefix("./") == member)
            info = next(infos, None)
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
            raise ArchiveError(path, f"unpacks to over {MOST_EXPANSION} times its own size")
        if not line.endswith(b"\n"):
            if len(line) == LONGEST_LINE:
                raise ArchiveError(path, f"has a line of more than {LONGEST_LINE} bytes")
            line += b"\n"
        yield line


def _segments(lines: Iterator[bytes], path: Path) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        try:
            segment = SEGMENT.search(line.decode())
        except UnicodeDecodeError as error:
            message = f"is not UTF-8 in line {number}"
            raise ArchiveError(path, message) from error
        if segment:
            yield " ".join(segment[1].split()).encode() + b"\n"


def _cells(lines: Iterator[bytes], column: int, path: Path) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        cells = line.rstrip(b"\r\n").split(b"\t")
        if len(cells) <= column:
            message = f"has {len(cells)} columns in line {number}, wanted {column + 1} or more"
            raise ArchiveError(path, message)
        yield cells[column] + b"\n"


Pair = tuple[bytes, bytes]


def get_corpus(corpus: Corpus, data_dir: Path) -> Path:
    """Creates the folder of a corpus in `data_dir` and downloads what is missing.

    An existing folder is only checked. A file that was downloaded by hand into `data_dir`, under
    its original name, is used.

    Returns:
        The folder of the corpus.

    Raises:
        DownloadError: A download failed, or the disk is full.
        ValueError: A file does not have the expected contents.
    """
    folder = data_dir / corpus.name
    if folder.exists():
        if fault := _fault(corpus, folder):
            raise ValueError(f"{folder} {fault}; move it away to create the corpus again")
        return folder
    fetched = data_dir / f"{corpus.name}.download"
    paths = {}
    for download in corpus.downloads:
        path = data_dir / download.name
        by_hand = path.is_file() and has_checksum(path, download.checksum)
        paths[download] = path if by_hand else fetch(download, fetched)
    try:
        with room_in(data_dir), replaced_directory(folder) as aside:
            _write(corpus, paths, aside)
            if fault := _fault(corpus, aside):
                raise ValueError(f"{corpus.name} as downloaded {fault}")
    except ArchiveError as error:
        if error.path.parent == fetched:  # or the next run would use it again
            error.path.unlink()
        raise
    shutil.rmtree(fetched, ignore_errors=True)
    return folder


def missing_files(corpus: Corpus, folder: Path) -> list[str]:
    """The files of a corpus that are missing in its folder."""
    return [name for name in corpus.files if not (folder / name).is_file()]


def held_out_pairs(pairs: Iterable[Pair], count: int) -> Iterator[tuple[str, Pair]]:
    """Yields the split and the pair: train, dev or test, by a hash of the source sentence.

    Test gets the `count` sources with the smallest hashes, dev the next `count`; the first
    translation of each is kept. A pair is left out of train if dev or test has the same source or
    target, and out of dev if test has it; case, width, punctuation and spaces are ignored. Pairs
    with an empty side and repeated pairs are also left out; the others keep their order.
    """
    folded: dict[Pair, tuple[str, str]] = {}
    for pair in pairs:
        if pair[0].strip() and pair[1].strip():
            folded.setdefault(pair, (_folded(pair[0]), _folded(pair[1])))

    def rank(source: str) -> bytes:
        return hashlib.blake2b(source.encode(), digest_size=16).digest()

    ranked = sorted({source for source, _ in folded.values()}, key=rank)
    split = dict.fromkeys(ranked[:count], "test")
    split |= dict.fromkeys(ranked[count : 2 * count], "dev")
    targets: dict[str, set[str]] = {"test": set(), "dev": set()}
    for source, target in folded.values():
        if source in split:
            targets[split[source]].add(target)
    excluded = {"train": targets["test"] | targets["dev"], "dev": targets["test"]}
    held_out = set()
    for pair, (source, target) in folded.items():
        name = split.get(source, "train")
        if target in excluded.get(name, ()) or source in held_out:
            continue
        if name != "train":
            held_out.add(source)
        yield name, pair


def _write(corpus: Corpus, paths: Mapping[Download, Path], folder: Path) -> None:
    for part in corpus.parts:
        names = [f"{part.split}.{language}" for language in corpus.languages]
        counts = [0, 0]
        for side, text in enumerate((part.source, part.target)):
            path = paths[text.download]
            StatusLine().note(f"{names[side]}: from {path} {text.member}".rstrip())
            with open(folder / names[side], "ab") as out:
                for line in read_lines(path, text.member, text.column):
                    out.write(line)
                    counts[side] += 1
        if counts[0] != counts[1]:
            raise ArchiveError(
                paths[part.source.download],
                f"is not parallel: {counts[0]} lines for {names[0]} and {counts[1]} for {names[1]}",
            )
    if corpus.held_out:
        _divide(corpus, folder)


def _divide(corpus: Corpus, folder: Path) -> None:
    """Moves the pairs of dev and test from train to files of their own."""
    train = [folder / f"train.{language}" for language in corpus.languages]
    sides = [path.read_bytes().split(b"\n")[:-1] for path in train]
    for path in train:
        path.unlink()
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(folder / name, "wb")) for name in corpus.files}
        pairs = zip(*sides, strict=True)
        for split, pair in held_out_pairs(pairs, corpus.held_out):
            for language, line in zip(corpus.languages, pair, strict=True):
                files[f"{split}.{language}"].write(line + b"\n")


def _fault(corpus: Corpus, folder: Path) -> str:
    """Describes what is wrong with the folder of a corpus; "" if nothing is."""
    if missing := missing_files(corpus, folder):
        return f"has no {', '.join(missing)}"
    for name, sha256 in corpus.checksums.items():
        if not has_checksum(folder / name, f"sha256:{sha256}"):
            return f"has another {name}: its SHA-256 is not {sha256}"
    return ""


def _folded(line: bytes) -> str:
    text = unicodedata.normalize("NFKC", line.decode("utf-8", "replace")).casefold()
    return re.sub(r"\W+", "", text) or text
