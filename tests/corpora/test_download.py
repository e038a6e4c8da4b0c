"""Downloads from a faulty local server, and damaged or malicious archives."""

import gzip
import hashlib
import http.server
import io
import re
import socket
import ssl
import stat
import tarfile
import threading
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from refusals import refused

from bahdanau_tf.corpora.public import Download, assembly, download as downloads
from bahdanau_tf.corpora.public.assembly import ArchiveError, read_lines
from bahdanau_tf.corpora.public.download import DownloadError, fetch

DATA = bytes(range(256)) * 2000  # 512,000 bytes: several blocks
DIGEST = f"sha256:{hashlib.sha256(DATA).hexdigest()}"


class Remote(http.server.ThreadingHTTPServer):
    """A file server that can be told to send faulty replies."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"file": DATA}
        self.replies: list[Callable[[Handler], None]] = []
        self.headers: dict[str, str] = {}
        self.ranges = True
        self.asked: list[str | None] = []

    def address(self, name: str = "file") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Remote

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.server.asked.append(wanted)
        if self.server.replies:
            self.server.replies.pop(0)(self)
            return
        data = self.server.files.get(self.path[1:])
        if data is None:
            self.send_error(404)
            return
        self.send_file(data, wanted)

    def send_file(self, data: bytes, wanted: str | None, cut=None) -> None:
        tag = self.headers["If-Range"]
        same = tag is None or tag in self.server.headers.values()
        start = 0
        if wanted and self.server.ranges and same:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.end_headers()
                return
            self.send_response(206)
            place = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self.send_header("Content-Range", place)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data) - start))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[start:cut])


def cut_at(place: int) -> Callable[[Handler], None]:
    """A reply that ends early."""
    return lambda handler: handler.send_file(DATA, handler.headers["Range"], place)


@pytest.fixture
def remote(monkeypatch) -> Iterator[Remote]:
    monkeypatch.setattr(downloads, "PAUSE", 0.0)
    with Remote() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def not_fetched(download: Download, folder: Path, *parts: str) -> None:
    refused(lambda: fetch(download, folder), *parts, by=DownloadError)


def not_read(path: Path, member: str, *parts: str) -> None:
    refused(lambda: list(read_lines(path, member)), *parts, by=ArchiveError)


@pytest.mark.parametrize(
    "checksum",
    ["", DIGEST, f"md5:{hashlib.md5(DATA, usedforsecurity=False).hexdigest()}"],
    ids=["none", "sha256", "md5"],
)
def test_a_file_is_downloaded_into_a_new_folder(remote, tmp_path, checksum, capsys):
    path = fetch(Download(remote.address(), checksum), tmp_path / "deep" / "er")
    assert "512/512 kB of file" in capsys.readouterr().err
    assert path.read_bytes() == DATA
    assert names(path.parent) == ["file"]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_is_resumed_or_sent_again_without_ranges(remote, tmp_path, ranges):
    remote.ranges = ranges
    remote.replies = [cut_at(200_000), cut_at(300_000)][: 1 + ranges]
    path = fetch(Download(remote.address(), DIGEST), tmp_path)
    assert path.read_bytes() == DATA
    assert remote.asked == [None, "bytes=200000-", "bytes=300000-"][: 2 + ranges]


def test_a_broken_download_is_resumed_by_the_next_run(remote, tmp_path):
    remote.replies = [cut_at(200_000)] * 3
    not_fetched(Download(remote.address(), DIGEST), tmp_path, "200000", "512000", "after")
    assert names(tmp_path) == ["file.part"]
    remote.asked.clear()
    path = fetch(Download(remote.address(), DIGEST), tmp_path)
    assert path.read_bytes() == DATA
    assert remote.asked == ["bytes=200000-"]


def test_a_new_version_of_a_file_is_downloaded_from_the_start(remote, tmp_path):
    """Parts of two different files are never joined."""
    remote.headers["ETag"] = '"one"'
    remote.replies = [cut_at(200_000)] * 3
    not_fetched(Download(remote.address()), tmp_path)
    remote.headers["ETag"] = '"two"'
    remote.files["file"] = DATA[::-1]
    path = fetch(Download(remote.address()), tmp_path)
    assert remote.asked[-1] == "bytes=200000-"
    assert path.read_bytes() == DATA[::-1]
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ({"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, "bytes=200000-"),
        ({"ETag": 'W/"weak"'}, None),
        ({}, None),
    ],
    ids=["dated", "weakly tagged", "unnamed"],
)
def test_without_a_checksum_only_a_tagged_or_dated_file_is_resumed(
    remote, tmp_path, headers, asked
):
    remote.headers = headers
    remote.replies = [cut_at(200_000)]
    path = fetch(Download(remote.address()), tmp_path)
    assert path.read_bytes() == DATA
    assert remote.asked == [None, asked]


@pytest.mark.parametrize("extra", [0, 5], ids=["all of it", "too much"])
def test_a_part_as_long_as_the_file_is_used_and_a_longer_one_replaced(remote, tmp_path, extra):
    (tmp_path / "file.part").write_bytes(DATA + bytes(extra))
    path = fetch(Download(remote.address(), DIGEST), tmp_path)
    assert path.read_bytes() == DATA
    assert len(remote.asked) == 1 + bool(extra)


def test_a_reply_with_another_range_is_discarded(remote, tmp_path):
    def elsewhere(handler: Handler) -> None:
        handler.send_response(206)
        handler.send_header("Content-Range", "bytes 7-511999/512000")
        handler.end_headers()
        handler.wfile.write(DATA[7:])

    (tmp_path / "file.part").write_bytes(DATA[:100])
    remote.replies = [elsewhere]
    path = fetch(Download(remote.address(), DIGEST), tmp_path)
    assert path.read_bytes() == DATA


def test_corrupt_bytes_are_removed(remote, tmp_path):
    remote.files["file"] = b"x" + DATA[1:]
    not_fetched(Download(remote.address(), DIGEST), tmp_path, "checksum")
    assert names(tmp_path) == []


def test_a_chunked_reply_that_ends_early_is_an_error(remote, tmp_path):
    def chunked(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"400\r\n" + bytes(100))
        handler.close_connection = True

    remote.replies = [chunked] * 3
    not_fetched(Download(remote.address()), tmp_path, "connection")
    assert not (tmp_path / "file").exists()


def test_a_missing_file_is_reported_with_what_to_download(remote, tmp_path):
    not_fetched(Download(remote.address("nothing")), tmp_path, "404", "download")
    assert len(remote.asked) == 1
    assert names(tmp_path) == []


def test_a_request_to_a_busy_server_is_repeated(remote, tmp_path):
    busy = [lambda handler: handler.send_error(503)]
    remote.replies = busy * 2
    assert fetch(Download(remote.address()), tmp_path).read_bytes() == DATA
    remote.replies = busy * 3
    not_fetched(Download(f"{remote.address()}?"), tmp_path, "503")


def test_a_server_that_does_not_answer_times_out(remote, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "TIMEOUT", 0.05)
    silent = threading.Event()
    remote.replies = [lambda _: silent.wait(5)] * 3
    not_fetched(Download(remote.address()), tmp_path, "timed out")
    silent.set()


def test_an_unreachable_server_is_reported(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/file"
        not_fetched(Download(address), tmp_path, "reached")


def test_an_untrusted_certificate_is_refused(remote, tmp_path, certificate, monkeypatch):
    """The same file comes once the certificate is trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    remote.socket = context.wrap_socket(remote.socket, server_side=True)
    address = remote.address().replace("http:", "https:")
    not_fetched(Download(address), tmp_path, "certificate")
    assert remote.asked == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert fetch(Download(address), tmp_path).read_bytes() == DATA


def test_a_redirect_from_https_to_http_is_refused():
    handler = downloads._SecureRedirects()
    request = urllib.request.Request("https://there/file")

    def follow(address: str) -> urllib.request.Request | None:
        return handler.redirect_request(request, io.BytesIO(), 302, "Found", {}, address)

    assert follow("https://elsewhere/file").full_url == "https://elsewhere/file"
    refused(lambda: follow("http://elsewhere/file"), "encrypted", by=DownloadError)


def test_a_full_disk_is_reported(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, which this system does not have")
    with (
        pytest.raises(DownloadError, match=f"the disk of {re.escape(str(tmp_path))} is full"),
        downloads.room_in(tmp_path),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(DATA)


TEXT = b"one\ntwo\n"


def zip_of(path: Path, entries: dict[str, bytes], links=()) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
        for name in links:
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, "/etc/passwd")
    return path


def tar_of(path: Path, entries: dict[str, bytes], links=()) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as tar:
        for name, kind in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        for name, data in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("suffix", ["zip", "tar", "tgz"])
def test_archives_are_read_and_never_unpacked(tmp_path, suffix):
    inside = tmp_path / "inside"
    inside.mkdir()
    make = zip_of if suffix == "zip" else tar_of
    entries = dict.fromkeys(["../evil", str(tmp_path / "evil")], b"evil")
    entries |= {"folder/text": TEXT, "text.gz": gzip.compress(TEXT)}
    path = make(inside / f"file.{suffix}", entries)
    assert b"".join(read_lines(path, "folder/text")) == TEXT
    assert b"".join(read_lines(path, "text.gz")) == TEXT
    assert names(tmp_path) == [path.name, "inside"]
    not_read(path, "absent", "absent")
    if suffix != "zip":
        path = make(inside / path.name, {"./folder/text": TEXT})
        assert b"".join(read_lines(path, "folder/text")) == TEXT


def test_links_and_folders_are_refused(tmp_path):
    links = [("symbolic", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)]
    links += [("pipe", tarfile.FIFOTYPE), ("folder", tarfile.DIRTYPE)]
    path = tar_of(tmp_path / "file.tar", {}, links)
    for name, _ in links:
        not_read(path, name, "plain", name)
    path = zip_of(tmp_path / "file.zip", {"folder/": b""}, ["symbolic"])
    for name in ("symbolic", "folder/"):
        not_read(path, name, "plain", name)


def pack(path: Path, data: bytes) -> str:
    """Writes an archive or a compressed file; the name of the text in it."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
        return ""
    {".zip": zip_of, ".tgz": tar_of}[path.suffix](path, {"text": data})
    return "text"


@pytest.mark.parametrize("suffix", ["zip", "tgz", "gz"])
def test_damaged_archives_and_bombs_are_refused(tmp_path, suffix):
    path = tmp_path / f"file.{suffix}"
    member = pack(path, hashlib.shake_256(b"noise").digest(50_000))
    data = path.read_bytes()
    list(read_lines(path, member))
    flipped = data[:20_000] + bytes([data[20_000] ^ 1]) + data[20_001:]
    for damaged in (data[:20_000], flipped, b"<html>Sorry</html>", b""):
        path.write_bytes(damaged)
        # gzip reads an empty file as an empty text; a tar's checksum is after the member, see
        # test_registry.py.
        if (suffix, damaged) in (("gz", b""), ("tgz", flipped)):
            continue
        not_read(path, member, str(path))
    member = pack(path, (b"0" * 1000 + b"\n") * 8000)  # a zip bomb
    with pytest.raises(ArchiveError, match="times its own size"):
        for _ in read_lines(path, member):
            pass


def test_too_long_a_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, "LONGEST_LINE", 64)
    path = tmp_path / "text"
    path.write_bytes(b"a" * 63 + b"\n" + b"b" * 63)
    assert [len(line) for line in read_lines(path)] == [64, 64]
    path.write_bytes(b"a" * 65 + b"\n")
    not_read(path, "", "64", "bytes")


def test_archives_split_lines_only_at_line_feeds(tmp_path):
    path = tmp_path / "text"
    text = "a\u2028b\x85c\x0bd\re\r\nf".encode()
    path.write_bytes(text)
    assert list(read_lines(path)) == [text[:-1], b"f\n"]


def test_one_column_of_a_table_is_read(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"Go.\tVa !\tCC-BY\r\nHi.\tSalut.\nWho?\t\n")
    assert list(read_lines(path, column=0)) == [b"Go.\n", b"Hi.\n", b"Who?\n"]
    assert list(read_lines(path, column=1)) == [b"Va !\n", b"Salut.\n", b"\n"]
    refused(lambda: list(read_lines(path, column=2)), "2 columns", "line 2", "3", by=ArchiveError)


def test_segments_are_read_as_sacrebleu_reads_them(tmp_path):
    text = (
        '<srcset setid="x" srclang="any">\n<doc docid="1">\n<p>\n'
        '<seg id="1">A  cat &amp; a\u00a0dog.</seg>\n'
        '<seg id="2"> <b>Two</b> </seg>\n</p></doc></srcset>\n'
    )
    path = tmp_path / "set.sgm"
    path.write_text(text, encoding="utf-8")
    dataset = pytest.importorskip("sacrebleu.dataset.fake_sgml")
    reader = dataset.FakeSGMLDataset("x", data=[], langpairs={})
    reader._convert_format(str(path), str(tmp_path / "plain"))
    expected = (tmp_path / "plain").read_bytes()
    assert b"".join(read_lines(path)) == expected
    assert expected.count(b"\n") == 2
