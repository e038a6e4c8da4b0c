"""Downloads files with checksums, and resumes interrupted downloads.

`keras.utils.get_file` cannot resume a download of gigabytes, reports errors as tracebacks, and
unpacks whole archives.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bahdanau_tf.corpora.public import Download
from bahdanau_tf.system.files import FULL
from bahdanau_tf.system.terminal import ProgressLine, StatusLine

BLOCK = 1 << 16  # bytes
TRIES = 3
PAUSE = 2.0  # seconds between two tries
TIMEOUT = 60.0  # seconds without a byte
Reply = http.client.HTTPResponse | urllib.error.HTTPError


class DownloadError(OSError):
    """A download failed; the message is one sentence."""


class _BrokenOff(DownloadError):
    """The connection was interrupted; another try may resume."""


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirections from https to an unencrypted address."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if req.type == "https" and not newurl.startswith("https:"):
            raise DownloadError(f"{req.full_url} redirects to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetch(download: Download, folder: Path) -> Path:
    """Downloads a file, or resumes the download of an earlier run.

    The file is NAME.part until it is complete and checked. The folder is created if it does not
    exist. A DownloadError is raised if the download fails, which the next run resumes, or if the
    file has a wrong checksum, which removes it.
    """
    whole = folder / download.name
    if whole.is_file() and has_checksum(whole, download.checksum):
        return whole
    part = folder / f"{download.name}.part"
    for tries_left in reversed(range(TRIES)):
        try:
            _receive(download, part)
            break
        except _BrokenOff as error:
            if not tries_left:
                raise
            StatusLine().note(f"{error}; trying again")
            time.sleep(PAUSE)
    if not has_checksum(part, download.checksum):
        _forget(part)
        raise DownloadError(
            f"{download.address} does not have the checksum "
            f"{download.checksum}; the downloaded file was removed"
        )
    os.replace(part, whole)
    _forget(part)
    return whole


def has_checksum(path: Path, checksum: str) -> bool:
    """Whether a file has the checksum "sha256:..."; True for ""."""
    if not checksum:
        return True
    algorithm, _, digits = checksum.partition(":")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == digits


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """Adds the folder to the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DownloadError(
            f"the disk of {folder} is full; free some space and run the command "
            "again: the partial download is kept"
        ) from error


def _receive(download: Download, part: Path) -> None:
    """Downloads the rest of `part`, or all of it if that is impossible."""
    done = part.stat().st_size if part.exists() else 0
    with _open(download, part, done) as reply:
        part.parent.mkdir(parents=True, exist_ok=True)
        if not _continues(reply, done):
            _forget(part)
            done = 0
            if reply.status != 200:
                raise _BrokenOff(f"{download.address} has changed")
            # The validator of this version of the file (RFC 9110).
            tag = reply.headers.get("ETag", "")
            if not tag or tag.startswith("W/"):  # the bytes may change under a weak tag
                tag = reply.headers.get("Last-Modified", "")
            if tag:
                _validator(part).write_text(tag)
        if reply.status == 416:
            return
        length = reply.headers.get("Content-Length", "")
        total = done + int(length) if length.isdecimal() else None
        line = ProgressLine((total or 0) // 1000, done // 1000)
        start, before = time.monotonic(), done
        with room_in(part.parent), open(part, "ab" if done else "wb") as file:
            for block in _blocks(reply, download.address):
                file.write(block)
                done += len(block)
                if total:
                    rate = (done - before) / max(time.monotonic() - start, 1e-3) / 1e6
                    line.update(done // 1000, f"kB of {download.name}, {rate:.1f} MB/s")
    if total is not None and done < total:
        raise _BrokenOff(
            f"{download.address}: connection lost after {done} of {total} bytes; "
            "run the command again to resume"
        )
    line.note(f"{download.name}: {done} bytes")


def _open(download: Download, part: Path, done: int) -> Reply:
    """Asks for the rest of a file of which `part` has the first `done` bytes."""
    headers = {
        "User-Agent": "bahdanau-tf",
        "Accept-Encoding": "identity",  # ranges count the bytes of the file
    }
    validator = _validator(part)
    if done and validator.exists():
        headers["If-Range"] = validator.read_text()
    if done and (download.checksum or validator.exists()):
        headers["Range"] = f"bytes={done}-"
    address = download.address
    request = urllib.request.Request(address, headers=headers)
    opener = urllib.request.build_opener(_SecureRedirects)
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT)
        return response
    except urllib.error.HTTPError as error:
        if error.code == 416 and "Range" in headers:
            return error
        error.close()
        message = f"{address}: the server answered {error.code} {error.reason}"
        if error.code >= 500:
            raise _BrokenOff(message) from error
        raise DownloadError(
            f"{message}; if the file has moved, download {download.name} yourself, put it "
            "into --data_dir and run the command again"
        ) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLError):
            raise DownloadError(f"{address} has no trusted certificate: {error.reason}") from error
        raise DownloadError(f"{address} cannot be reached: {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, DownloadError):
            raise
        raise _BrokenOff(f"{address}: connection lost: {error!r}") from error


def _blocks(reply: Reply, address: str) -> Iterator[bytes]:
    try:
        while block := reply.read(BLOCK):
            yield block
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenOff(
            f"{address}: connection lost ({error!r}); run the command again to resume"
        ) from error


def _continues(reply: Reply, done: int) -> bool:
    """Whether the reply continues after the first `done` bytes of the file."""
    place = reply.headers.get("Content-Range", "")
    if reply.status == 416:  # nothing is left, unless the file has changed
        return place == f"bytes */{done}"
    return reply.status == 206 and place.startswith(f"bytes {done}-")


def _validator(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _validator(part).unlink(missing_ok=True)
