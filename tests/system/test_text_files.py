"""Reading and writing lines of text: files, gzip, pipes, errors."""

import codecs
import functools
import gzip
import io
import itertools
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from limits import largest_file
from refusals import refused

from bahdanau_tf.data import ParallelCorpus
from bahdanau_tf.system import lines
from bahdanau_tf.system.lines import count_lines, read_lines, seekable, written
from bahdanau_tf.text import Dictionary, SubwordTokenizer, WordTokenizer, tokenizer


def readers(path: Path) -> list[Callable[[], object]]:
    """All that reads a text."""
    return [
        lambda: list(read_lines(path)),
        lambda: ParallelCorpus(path, path),
        lambda: WordTokenizer.train([path], 50),
        lambda: SubwordTokenizer.train([path], 300),
    ]


def packed_in_parts(data: bytes) -> bytes:
    """Two gzip files concatenated, as by `cat a.gz b.gz`."""
    return gzip.compress(data[:2]) + gzip.compress(data[2:])


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        ("a\u2028b\u0085c\x0b\x0cd\re\n".encode(), ["a\u2028b\x85c\x0b\x0cd\re"]),
        (b"a\r\n\r\nb\r", ["a", "", "b"]),
        ("\ufeffa\n\ufeffb\n".encode(), ["a", "\ufeffb"]),
        ("\ufeff".encode(), []),
        (b"\x1f", ["\x1f"]),
    ],
)
@pytest.mark.parametrize("name", ["text", "text.gz"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, packed_in_parts])
def test_lines_end_only_with_a_line_feed_in_every_kind_of_file(
    tmp_path, monkeypatch, data, wanted, name, pack
):
    path = tmp_path / name
    path.write_bytes(pack(data))
    assert list(read_lines(path)) == wanted
    assert count_lines(path) == len(wanted)
    with seekable(path) as stream:
        begin = stream.tell()
        text = stream.read()
        assert stream.seek(begin) == begin
        assert stream.read() == text == data.removeprefix(codecs.BOM_UTF8)
    with open(path) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert list(read_lines(None)) == wanted


def test_a_line_that_is_not_utf8_is_named(tmp_path, monkeypatch):
    path = tmp_path / "bad"
    path.write_bytes(b"good\ncaf\xe9\n")
    refused(lambda: list(read_lines(str(path))), "bad", "line 2", "UTF-8")
    bad = io.BufferedReader(io.BytesIO(b"\xff\n"))
    stdin = io.TextIOWrapper(bad)
    monkeypatch.setattr(sys, "stdin", stdin)
    refused(lambda: list(read_lines(None)), "standard input", "line 1")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_utf16_is_named(tmp_path, monkeypatch, encoding, pack):
    """Most of its lines are UTF-8 with NULs, but none of them is meant."""
    path = tmp_path / "text"
    path.write_bytes(pack("\ufeffa cat\na dog\n".encode(encoding)))
    for read in (*readers(path), lambda: list(read_lines(path, 1)), lambda: count_lines(path)):
        refused(read, "UTF-16", "UTF-8", "text")
    with open(path) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        refused(lambda: list(read_lines(None)), "UTF-16", "standard")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a cat\na dog\n".encode("utf-16-le"), "1 NUL UTF-16LE iconv"),
        ("a cat\na dog\n".encode("utf-16-be"), "1 NUL UTF-16BE"),
        ("кот\nпёс\n".encode("utf-16-le"), "2 NUL UTF-16LE"),
        (b"a cat\n" * 40 + b"a\0dog\n", "41 NUL tr"),
        ("un été\n".encode("latin-1"), "1 UTF-8 WINDOWS-1252"),
        ("un ét".encode()[:-2], "1 UTF-8 cut"),
        (b"a cat\ra dog\r", "feeds '\\r' '\\n'`"),
        (b"a cat\r" * 200_000, "carriage"),  # longer than a line may be
    ],
)
def test_other_encodings_and_line_ends_are_refused_with_a_remedy(tmp_path, data, said):
    path = tmp_path / "text"
    path.write_bytes(data)
    for read in (lambda: [*read_lines(path)], lambda: ParallelCorpus(path, path)):
        refused(read, "text", *said.split())


@pytest.mark.parametrize("name", ["plain", "packed.gz"])
def test_written_lines_are_read_back(tmp_path, name):
    path = str(tmp_path / name)
    with written(path) as stream:
        stream.write("é\u2028\r\n")
        stream.write("\n")
        assert not os.path.exists(path)
    assert list(read_lines(path)) == ["é\u2028", ""]
    assert os.listdir(tmp_path) == [name]


def test_an_error_keeps_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def write() -> None:
        with written(str(path)) as stream:
            stream.write("new\n")
            raise ValueError("mishap")

    refused(write, "mishap")
    assert path.read_text() == "old"
    assert (tmp_path / "file.part").read_text() == "new\n"


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_one_at_a_time_writes_a_file(tmp_path, name):
    path = tmp_path / name
    lines = [f"line {n}" for n in range(5000)]
    with written(path) as stream:
        stream.writelines(f"{line}\n" for line in lines[:3000])
        refused(lambda: written(path).__enter__(), "another", str(name))
        stream.writelines(f"{line}\n" for line in lines[3000:])
    assert [*read_lines(path)] == lines
    with written(path) as stream:  # the end released it
        stream.write("again\n")
    assert [*read_lines(path)] == ["again"]


def test_a_file_that_another_process_completes_is_left_alone(tmp_path, monkeypatch):
    """It was opened before the other one renamed it, and locked after."""
    path, aside = tmp_path / "file", tmp_path / "file.part"
    aside.write_text("whole\n")

    def locked_late(file):
        os.replace(aside, path)
        return True

    monkeypatch.setattr(lines, "takes_lock", locked_late)
    refused(lambda: written(path).__enter__(), "another")
    assert path.read_text() == "whole\n"


def test_devices_and_pipes_are_written_directly(tmp_path):
    with written(os.devnull) as stream:
        stream.write("gone\n")
    assert not os.path.isfile(os.devnull)
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.extend(read_lines(pipe)))
    reader.start()
    with written(pipe) as stream:
        stream.write("through\n")
    reader.join()
    assert received == ["through"]


@pytest.mark.parametrize("damage", ["cut", "changed", "more"])
def test_damaged_gzip_is_named(tmp_path, damage):
    packed = bytearray(gzip.compress(b"one line\n" * 1000))
    if damage == "cut":
        del packed[-12:]
    elif damage == "changed":
        packed[20] ^= 255
    else:
        packed += b"more"
    path = tmp_path / "text"
    path.write_bytes(packed)
    for read in readers(path):
        refused(read, "whole")


def test_it_is_said_where_a_text_is_unpacked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lines.tempfile, "tempdir", str(tmp_path))
    path = tmp_path / "train.gz"
    path.write_bytes(gzip.compress(b"one\n" * 300))
    with seekable(path):
        said = capsys.readouterr().err
    assert said == f"{path}: 1,200 bytes unpacked in {tmp_path}; TMPDIR names another folder\n"


def test_a_full_disk_while_unpacking_is_reported(tmp_path, monkeypatch):
    path = tmp_path / "train.gz"
    path.write_bytes(gzip.compress(b"one line\n"))
    full = functools.partial(open, "/dev/full", "w+b", buffering=0)
    monkeypatch.setattr(lines.tempfile, "TemporaryFile", full)
    refused(lambda: ParallelCorpus(path, path), "unpack", "train.gz", "TMPDIR", by=OSError)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_without_end_is_refused_before_it_is_read(tmp_path, monkeypatch, pack):
    """As many bytes as are allowed are read, and one more."""
    path = tmp_path / "text"
    path.write_bytes(pack(b"short\n" + b"a" * 99 + b"\n" + b"b" * 5000))
    for block in (1, 20, 1 << 20):
        monkeypatch.setattr("bahdanau_tf.data.parallel.BLOCK", block)
        for most, first in ((100, 3), (99, 2)):
            monkeypatch.setattr(lines, "longest_line", most)
            # A corpus names the longest line of a block.
            for read in (*readers(path), lambda: count_lines(path)):
                said = refused(read, f"{most} bytes")
                assert f"line {first}" in said or "line 3" in said
    monkeypatch.setattr(lines, "longest_line", 5000)
    assert list(map(len, read_lines(path))) == [5, 99, 5000]
    assert len(ParallelCorpus(path, path)) == 3


def test_a_text_that_is_read_twice_is_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(lambda: ParallelCorpus(tmp_path / "pipe", tmp_path / "pipe"), "device")


TEXT = "".join(f"the cat {i} sees {i * i} dogs .\n" for i in range(100))


@pytest.mark.parametrize(
    "disguise",
    [
        lambda text: gzip.compress(text),
        lambda text: codecs.BOM_UTF8 + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: gzip.compress(codecs.BOM_UTF8 + text.replace(b"\n", b"\r\n")),
    ],
    ids=["gzip", "mark", "returns", "all"],
)
def test_tokenizers_and_corpora_read_the_same_lines(tmp_path, disguise, plain):
    path = tmp_path / "text.gz"
    path.write_bytes(disguise(TEXT.encode()))
    assert learned(path) == plain


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "text"
    path.write_text(TEXT)
    return learned(path)


def learned(path: Path) -> list[object]:
    words = WordTokenizer.train([path], 200)
    corpus = ParallelCorpus(path, path)
    return [
        words.vocabulary.tokens,
        words.coverage([path]),
        SubwordTokenizer.train([path], 300).model_proto,
        corpus.read(corpus.rows),
    ]


@given(lines=st.lists(st.text("aé한 ", max_size=30), max_size=40))
def test_batches_are_limited_in_lines_and_characters(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizer, "MOST_LINES", 7)
        patch.setattr(tokenizer, "MOST_CHARACTERS", 60)
        batches = [
            [line.decode() for line in batch.numpy()]
            for batch in tokenizer.line_batches([path, path])
        ]
    assert list(itertools.chain(*batches)) == lines * 2
    assert all(map(fits, batches))
    for batch, after in itertools.pairwise(batches):
        assert not fits([*batch, after[0]])


def fits(batch: list[str]) -> bool:
    if len(batch) == 1:
        return True
    return len(batch) <= 7 and len(batch) * max(map(len, batch)) <= 60


@pytest.mark.parametrize("word", ["", "a\tb", "a\nb"])
def test_a_dictionary_refuses_words_that_a_file_cannot_store(word):
    for entries in ({word: "chat"}, {"cat": word}):
        refused(lambda own=entries: Dictionary(own), "Dictionary", "entry")


def test_a_full_disk_names_what_is_kept(tmp_path):
    path = tmp_path / "file"
    kept = f"File too large; what was written is in {path}.part: '{path}'"
    no_room = pytest.raises(OSError, match=re.escape(kept))
    with no_room, largest_file(4), written(path) as stream:
        stream.write("one\ntwo\n")
    assert (tmp_path / "file.part").read_text() == "one\n"


def test_an_output_that_is_a_link_stays_one(tmp_path):
    """The file to which it leads is written, whole or not at all."""
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    link.symlink_to("there/target")
    for text in "new\n", "newer\n":  # to a file that is not there, and is
        with written(link) as stream:
            stream.write(text)
            stream.flush()
            assert (tmp_path / "there" / "target.part").read_text() == text
        assert os.readlink(link) == "there/target"
        assert target.read_text() == text
    with pytest.raises(OSError, match=f"{target}.part"), largest_file(4):
        write_half(link)
    assert target.read_text() == "newer\n"
    assert (tmp_path / "there" / "target.part").read_text() == "half"


def write_half(path: Path) -> None:
    with written(path) as stream:
        stream.write("half of it\n")


def test_a_file_that_is_written_again_keeps_its_permissions(tmp_path):
    path, link = tmp_path / "text", tmp_path / "link"
    path.write_text("before")
    path.chmod(0o600)
    link.symlink_to(path)
    for name in (path, link):
        with written(name) as stream:
            stream.write("after")
        assert path.read_text() == "after"
        assert path.stat().st_mode & 0o777 == 0o600


def test_links_in_a_circle_are_no_file(tmp_path):
    first, second = tmp_path / "one", tmp_path / "other"
    first.symlink_to(second)
    second.symlink_to(first)
    with pytest.raises(OSError, match="symbolic links"), written(first):
        pass
    assert first.is_symlink()
