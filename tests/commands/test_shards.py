"""`bahdanau-tf translate --shard=i/n`: parts of a text, whole or none."""

import codecs
import gzip
import os
from pathlib import Path

import pytest
from hypothesis import assume, given, strategies as st
from processes import output_of
from test_translate import Shouter

from bahdanau_tf.commands import files
from bahdanau_tf.commands.main import main
from bahdanau_tf.commands.translate import Shard, _model_checksum
from bahdanau_tf.options.training import pretrained_names
from bahdanau_tf.system.lines import GZIP, UTF_16, count_lines, read_lines


@pytest.fixture
def model(monkeypatch) -> Shouter:
    shouter = Shouter()
    monkeypatch.setattr(files, "load_translator", lambda _: shouter)
    return shouter


def run(source: Path, output: Path, *flags: str) -> int:
    files = [f"--input={source}", f"--output={output}"]
    return main(["translate", "--model_dir=x", *files, *flags])


def joined(folder: Path, pattern: str) -> bytes:
    """The files of a pattern one after the other, as `cat` joins them."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob(pattern)))


def test_a_part_that_another_packaged_translator_made_is_not_complete():
    names = pretrained_names()
    assert len({_model_checksum(name) for name in names}) == len(names) > 1


@given(total=st.integers(0, 10**12), count=st.integers(1, 1000))
def test_the_parts_of_a_text_are_equal_and_follow_each_other(total, count):
    ends = [Shard(n + 1, count).lines(total) for n in range(count)]
    assert [first for first, _ in ends] == [0, *(last for _, last in ends[:-1])]
    assert ends[-1][1] == total
    assert {last - first for first, last in ends} <= {total // count, total // count + 1}


@given(count=st.integers(1, 2000))
def test_the_files_of_the_parts_are_in_the_order_of_their_names(count):
    names = [Shard(n + 1, count).file("out/a.fr") for n in range(count)]
    assert sorted(set(names)) == names


@given(data=st.binary(max_size=30), first=st.integers(0, 9), n=st.integers(0, 9))
def test_lines_are_counted_and_read_from_one_to_another(tmp_path_factory, data, first, n):
    assume(not data.startswith((GZIP, codecs.BOM_UTF8, *UTF_16)))
    assume(b"\0" not in data)
    assume(b"\n" in data or b"\r" not in data.rstrip(b"\r"))
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_bytes(data)
    lines = data.removesuffix(b"\n").split(b"\n") if data else []
    assert count_lines(path) == len(lines)
    try:
        wanted = [line.decode() for line in lines][first : first + n]
    except UnicodeDecodeError:
        return
    part = list(read_lines(path, first, first + n))
    assert part == [line.rstrip("\r") for line in wanted]


@pytest.mark.parametrize("count", [1, 3, 12])
@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_joined_parts_are_the_translation_of_the_whole(tmp_path, model, count, end, ending):
    source = tmp_path / f"source{ending}"
    pack = gzip.compress if ending else bytes
    unpack = gzip.decompress if ending else bytes
    text = "\n".join(f"line {n}" if n % 4 else "" for n in range(10)) + end
    source.write_bytes(pack(f"\ufeff{text}".encode()))
    for number in range(1, count + 1):
        flags = (f"--shard={number}/{count}", "--window=2", "--format=moses")
        assert run(source, tmp_path / f"out{ending}", *flags) == 0
    assert run(source, tmp_path / "whole", "--format=moses") == 0
    whole = (tmp_path / "whole").read_bytes()
    assert whole.count(b"\n") == 10
    assert unpack(joined(tmp_path, f"out-*-of-{count}{ending}")) == whole
    assert not list(tmp_path.glob("*.part"))


def test_each_line_keeps_its_prefix_and_its_number(tmp_path, model, capsys):
    source, prefixes = tmp_path / "source", tmp_path / "prefixes"
    source.write_text("a\nb\nc\nd cut\n")
    prefixes.write_text("A\nB\nC\nD\n")
    flags = ("--shard=2/2", f"--prefixes={prefixes}")
    assert run(source, tmp_path / "out", *flags) == 0
    assert model.prefixes == ["C", "D"]
    assert (tmp_path / "out-2-of-2").read_text() == "C\nCUT D\n"
    assert capsys.readouterr().err.startswith("line 4: translation cut off")
    with prefixes.open("a") as more:
        more.write("E\n")
    flags = ("--shard=1/2", f"--prefixes={prefixes}")
    assert run(source, tmp_path / "out", *flags) == 2
    assert "--prefixes has 5 lines and --input 4" in capsys.readouterr().err


def test_a_part_is_whole_or_not_there_and_is_not_translated_twice(tmp_path, model, capsys):
    """A line that is not UTF-8 costs its own part only."""
    source, output = tmp_path / "source", tmp_path / "out"
    source.write_bytes(b"a\n\xff\nc\nd\n")
    assert run(source, output, "--shard=1/2", "--window=1") == 2
    assert "line 2 is not UTF-8" in capsys.readouterr().err
    assert run(source, output, "--shard=2/2") == 0
    assert [path.name for path in tmp_path.glob("out*")] == ["out-2-of-2"]
    assert model.windows == [2]
    source.write_bytes(b"a\nb\nc\nd\n")
    model.windows.clear()
    assert run(source, output, "--shard=2/2") == 0
    assert "out-2-of-2 is complete; remove it" in capsys.readouterr().err
    assert model.windows == []
    assert run(source, output, "--shard=1/2") == 0
    assert model.windows == [2]
    assert joined(tmp_path, "out-*-of-2") == b"A\nB\nC\nD\n"


def test_a_part_of_other_lines_is_refused(tmp_path, model, capsys):
    """What counts are the lines of the part, however they are stored."""
    source, prefixes = tmp_path / "source", tmp_path / "prefixes"
    source.write_text("a\nb\nc\nd\n")
    prefixes.write_text("A\n\nC\n\n")
    flags = ("--shard=2/2", f"--prefixes={prefixes}")
    assert run(source, tmp_path / "out", *flags) == 0
    part = (tmp_path / "out-2-of-2").read_bytes()
    packed = gzip.compress("\ufeffa new\nb\nc\r\nd".encode())
    for text in (b"a\nb\nc\nd\n", b"\nb\nc\nd\n", packed):
        source.write_bytes(text)
        assert run(source, tmp_path / "out", *flags) == 0
        assert "out-2-of-2 is complete" in capsys.readouterr().err
    for text in (b"a\nb\nc\ne\n", b"a\nb\nc\nd\ne\nf\n", b"a\nb\nd\nc\n"):
        source.write_bytes(text)
        assert run(source, tmp_path / "out", *flags) == 2
        err = capsys.readouterr().err
        assert "out-2-of-2 was made with another --input" in err
    source.write_bytes(b"a\nb\nc\nd\n")
    prefixes.write_text("A\n\nC\nD\n")
    for changed in flags, ("--shard=2/2",):
        assert run(source, tmp_path / "out", *changed) == 2
        err = capsys.readouterr().err
        assert "out-2-of-2 was made with another --prefixes" in err
    assert (tmp_path / "out-2-of-2").read_bytes() == part


def test_a_part_of_another_model_or_by_other_flags_is_refused(tmp_path, model, capsys):
    source, folder = tmp_path / "source", tmp_path / "model"
    words = tmp_path / "dictionary"
    source.write_text("a\nb\n")
    words.write_text("a\tb\n")
    (folder / "best").mkdir(parents=True)
    (folder / "best" / "model.keras").write_bytes(b"weights")
    (folder / "log.jsonl").write_text("")
    of_model = f"--model_dir={folder}"
    replaces = ("--unknown=replace", f"--dictionary={words}")
    flags = (of_model, "--shard=1/2", *replaces)
    assert run(source, tmp_path / "out", *flags) == 0
    model.windows.clear()
    (folder / "log.jsonl").write_text("trained on")  # best is the same
    faster = ("--threads=2", "--batch_size=3", "--window=5")
    assert run(source, tmp_path / "out", *flags, *faster) == 0
    assert "out-1-of-2 is complete" in capsys.readouterr().err
    for changed in ("--beam_size=3", "--format=json", "--alignments"):
        assert run(source, tmp_path / "out", *flags, changed) == 2
        name = changed.partition("=")[0]
        assert f"was made with another {name};" in capsys.readouterr().err
    for file in (words, folder / "best" / "model.keras"):
        with file.open("a") as more:
            more.write("c\td\n")
    assert run(source, tmp_path / "out", *flags) == 2
    err = capsys.readouterr().err
    assert "with another --model_dir and another --dictionary;" in err
    assert model.windows == []


def test_a_part_that_another_job_makes_is_refused(tmp_path, model, capsys):
    source, other = tmp_path / "source", tmp_path / "other"
    source.write_text("a\nb\n")
    other.write_text("c\nd\n")
    translate_lines = model.translate

    def meanwhile(*args, **options):
        for text in (source, other):
            assert run(text, tmp_path / "out", "--shard=1/2") == 2
            assert "out-1-of-2; wait until it ends" in capsys.readouterr().err
        return translate_lines(*args, **options)

    model.translate = meanwhile
    assert run(source, tmp_path / "out", "--shard=1/2") == 0
    assert (tmp_path / "out-1-of-2").read_text() == "A\n"
    assert run(source, tmp_path / "out", "--shard=1/2") == 0  # it is its own
    assert "out-1-of-2 is complete" in capsys.readouterr().err


def test_a_part_of_a_pipe_is_refused(tmp_path, model, capsys):
    """It can be read only once; then there would be no lines."""
    os.mkfifo(tmp_path / "pipe")
    assert run(tmp_path / "pipe", tmp_path / "out", "--shard=1/2") == 2
    assert "wanted a file: with --shard" in capsys.readouterr().err


AGAIN = """
import sys
from bahdanau_tf.commands.main import main
assert main(sys.argv[1:]) == 0
assert "tensorflow" not in sys.modules
"""


def test_a_part_that_is_there_is_known_without_tensorflow(tmp_path, model):
    source, output = tmp_path / "source", tmp_path / "out"
    source.write_text("a\nb\n")
    assert run(source, output, "--shard=1/2") == 0
    files = [f"--input={source}", f"--output={output}"]
    arguments = ["translate", "--model_dir=x", *files, "--shard=1/2"]
    output_of("-c", AGAIN, *arguments)
