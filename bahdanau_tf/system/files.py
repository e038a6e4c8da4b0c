"""Replaces files and folders as a whole: readers see the old or the new one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

if sys.platform != "win32":
    import fcntl

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a full disk
_UNPACKED = 1 << 28  # bytes that any archive may be unpacked to
_EXPANSION = 10  # or so many times its own size
_ASIDE = ".{}.new."  # hidden; a user is unlikely to choose such a name
_LEFTOVER = re.compile(r"\..+\.new\.[a-z0-9_]{8}")


def checksum(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@contextmanager
def full_disk_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Adds `path`, to which the block writes, to the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise


def new_name(folder: Path, prefix: str) -> Path:
    """An unused name in the folder.

    `tempfile` would also create the file or folder, with permissions for its owner
    only; what is renamed later should have those of the user's umask.
    """
    return folder / f"{prefix}{uuid4().hex[:8]}"


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a temporary file in the same folder, then renames it to `path`.

    It is flushed to the disk first: after a power failure there is the old file or the new one.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = new_name(path.parent, _ASIDE.format(path.name))
    try:
        with open(aside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:
        aside.unlink(missing_ok=True)  # missing if Ctrl-C came after the renaming
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raises a ValueError if a path is a pipe or a device.

    Reading a pipe would wait for a writer, forever if there is none.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path} is a pipe or a device, wanted a file")


def check_unpacked(archive: zipfile.ZipFile) -> None:
    """Raises a ValueError if an archive is small but unpacks to a large one.

    Arrays of numbers hardly shrink when packed, so an honest one does not.
    """
    unpacked = sum(member.file_size for member in archive.infolist())
    packed = sum(member.compress_size for member in archive.infolist())
    if unpacked > max(_UNPACKED, _EXPANSION * packed):
        raise ValueError(
            f"{packed:,} bytes would be unpacked to {unpacked:,}, wanted at "
            f"most {_EXPANSION} times as many, or {_UNPACKED:,}"
        )


def read_object(path: str | os.PathLike[str]) -> dict[str, object]:
    """Reads a file that holds a JSON object.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON, not an object, or not a file. The message names it.
    """
    check_regular(path)
    try:
        value = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a {type(value).__name__}, wanted a JSON object")
    return value


def read_versioned(path: str | os.PathLike[str], newest: int, reader: str) -> dict[str, object]:
    """Reads a JSON object with a "format_version".

    Args:
        path: The file.
        newest: The newest version that can be read; the first is 1.
        reader: The start of error messages.

    Returns:
        The object, without its "format_version".

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds something else, or a newer version.
    """
    value = read_object(path)
    version = value.pop("format_version", None)
    if type(version) is not int or version < 1:
        raise ValueError(
            f"{reader}: {path} has format_version {version!r}, wanted a number from 1 to {newest}"
        )
    if version > newest:
        raise ValueError(
            f"{reader}: {path} has format version {version}, newer than the "
            f"{newest} that this bahdanau_tf reads"
        )
    return value


@contextmanager
def replaced_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary folder, which replaces `path` when the block ends.

    If the block raises, `path` stays as it was. If the process is killed, `found_directory(path)`
    is still a complete folder, the old or the new one, and `remove_leftovers` deletes the rest.
    Files are flushed to the disk before the folder replaces `path`.

    Args:
        path: The folder to create or to replace.

    Yields:
        An empty folder on the same file system.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = new_name(path.parent, _ASIDE.format(path.name))
    aside.mkdir()
    try:
        with full_disk_named(path):
            yield aside
            for file in aside.rglob("*"):
                if file.is_file():
                    with open(file, "r+b") as stream:
                        os.fsync(stream.fileno())
        _exchange(path, aside)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(path: Path, new: Path) -> None:
    """Renames `new` to `path`, which need not exist.

    At every moment there is a complete folder at `path` or at `old`.
    """
    old = _old(path)
    if path.exists():
        _remove(old)  # left by a killed process; `path` is newer
        os.replace(path, old)
    try:
        os.replace(new, path)
    except OSError:
        if old.exists():
            os.replace(old, path)
        raise
    _remove(old)


def _old(path: Path) -> Path:
    """The name of the old folder while it is being replaced."""
    path = path if path.name else path.absolute()  # "." has no name
    return path.parent / f".{path.name}.replaced"


def found_directory(path: str | os.PathLike[str]) -> Path:
    """`path`, or its old folder if a writer was killed while replacing it."""
    path = Path(path)
    old = _old(path)
    return old if old.is_dir() and not path.exists() else path


def remove_leftovers(folder: str | os.PathLike[str]) -> None:
    """Removes what killed processes left in a folder.

    No process may be writing there now. `folder` is one in which `write_atomically` and
    `replaced_directory` have written. A folder that was about to be replaced gets its name back.
    """
    for entry in Path(folder).iterdir():
        replaced = re.fullmatch(r"\.(.+)\.replaced", entry.name)
        if replaced and not entry.with_name(replaced[1]).exists():
            os.replace(entry, entry.with_name(replaced[1]))
        elif replaced or _LEFTOVER.fullmatch(entry.name):
            _remove(entry)


def _remove(path: Path) -> None:
    """Removes a file, link or folder; errors below a folder are ignored."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def takes_lock(file: IO[str] | IO[bytes]) -> bool | None:
    """Tries to lock an open file, without waiting.

    The operating system releases the lock when the file is closed, even if the process is killed.

    Returns:
        True if the file is now locked, False if another process holds the
        lock, None where locks do not exist: on Windows, where Python has
        no `fcntl`, and on some file systems.
    """
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def check_file(flag: str, path: str | None) -> None:
    """Checks that a file exists and is not a folder; None always passes.

    Raises:
        ValueError: The message has the flag.
    """
    if path is None:
        return
    if not os.path.exists(path):
        raise ValueError(f"--{flag}: there is no file {path}")
    if os.path.isdir(path):
        raise ValueError(f"--{flag}: {path} is a folder, wanted a file")


def check_folder(flag: str, path: str) -> None:
    """Checks that a folder can be written to, or can be made.

    Raises:
        ValueError: The message has the flag.
    """
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise ValueError(f"--{flag}: {place} is a file, wanted a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ValueError(f"--{flag}: no permission to write to {place}")


def check_outside_models(flag: str, path: str) -> None:
    """Raises if the folder is in a saved model, or is one."""
    place = Path(path).resolve()
    for folder in (place, *place.parents):
        if (folder / "translator.json").is_file():
            raise ValueError(
                f"--{flag}: {folder} holds a saved model, and what else is in it is lost when the "
                "model is saved again; wanted a folder outside"
            )
