"""Lines from and to files and pipes, and what is told about them."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading

import pytest

from bahdanau_tf.commands import lines
from bahdanau_tf.commands.lines import LineCounter
from bahdanau_tf.commands.lines import read_lines
from bahdanau_tf.commands.lines import written


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (
            "a\u2028b\u0085c\x0b\x0cd\re\n".encode(),
            ["a\u2028b\x85c\x0b\x0cd\re"],
        ),
    ],
)
def test_only_a_line_feed_ends_a_line(tmp_path, data, wanted):
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(data))
    assert list(read_lines(str(tmp_path / "plain"))) == wanted
    assert list(read_lines(str(tmp_path / "packed.gz"))) == wanted


def test_what_is_not_utf8_is_named(tmp_path, monkeypatch):
    path = tmp_path / "bad"
    path.write_bytes(b"good\ncaf\xe9\n")
    with pytest.raises(ValueError, match="bad: line 2 is not UTF-8"):
        list(read_lines(str(path)))
    stdin = io.TextIOWrapper(io.BytesIO(b"\xff\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(ValueError, match="standard input: line 1"):
        list(read_lines(None))


@pytest.mark.parametrize("name", ["plain", "packed.gz"])
def test_what_is_written_can_be_read(tmp_path, name):
    path = str(tmp_path / name)
    with written(path) as stream:
        stream.write("é\u2028\r\n")
        stream.write("\n")
        assert not os.path.exists(path)
    assert list(read_lines(path)) == ["é\u2028\r", ""]
    assert os.listdir(tmp_path) == [name]


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def write() -> None:
        with written(str(path)) as stream:
            stream.write("new\n")
            raise ValueError("mishap")

    with pytest.raises(ValueError, match="mishap"):
        write()
    assert path.read_text() == "old"
    assert (tmp_path / "file.part").read_text() == "new\n"


def test_devices_and_pipes_are_written_directly(tmp_path):
    with written(os.devnull) as stream:
        stream.write("gone\n")
    assert not os.path.isfile(os.devnull)
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.extend(read_lines(pipe)))
    reader.start()
    with written(pipe) as stream:
        stream.write("through\n")
    reader.join()
    assert found == ["through"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(lines.time, "monotonic", lambda: now[0])
    return now


def test_a_log_is_told_every_half_minute(clock, monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    counter = LineCounter()
    for second in range(65):
        clock[0] = 101.0 + second
        counter.advance(10)
    counter.close()
    assert log.getvalue() == (
        "300 lines, 10.0 lines/s\n"
        "600 lines, 10.0 lines/s\n"
        "650 lines, 10.0 lines/s\n"
    )


def test_a_terminal_has_one_line(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    counter = LineCounter()
    clock[0] += 2
    counter.advance(10)
    counter.report("odd", [0, 3])
    clock[0] += 2
    counter.advance(10)
    counter.close()
    assert screen.getvalue() == (
        "\r\x1b[K10 lines, 5.0 lines/s"
        "\r\x1b[Klines 11, 14: odd\n"
        "\r\x1b[K20 lines, 5.0 lines/s"
        "\r\x1b[K20 lines, 5.0 lines/s\n"
        "\r\x1b[K2 of 20 lines: odd\n"
    )


def test_quiet_tells_odd_lines_only(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    counter = LineCounter(quiet=True)
    counter.report("odd", [])
    clock[0] += 100
    counter.advance(5)
    counter.close()
    assert screen.getvalue() == ""
