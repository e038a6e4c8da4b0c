"""Replaces files and folders as a whole, and reads files that may be damaged or hostile."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING
from uuid import uuid4

from bahdanau_tf.system.ranges import Refusal, named

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    import numpy as np

AnyPath = str | os.PathLike[str]
RUNTIME = "runtime.json"  # in an export for ONNX Runtime
LONGEST_SOURCE = 128  # tokens that an export reads of a sentence, unless it says another number
BYTES_PER_TOKEN = 64  # read for each of these tokens; the average word of any language has fewer
CARD = "card.md"  # in a folder of a translator

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of a full disk
_UNPACKED = 1 << 28  # bytes that any archive may be unpacked to
_EXPANSION = 10  # or so many times its own size
_ASIDE = ".{}.new."  # hidden; a user is unlikely to choose such a name
_LEFTOVER = re.compile(r"\..+\.new\.[a-z0-9_]{8}")
# What `zipfile` and NumPy raise for a damaged file.
_DAMAGE = (
    *(AttributeError, EOFError, KeyError, NotImplementedError, RuntimeError, TypeError),
    *(ValueError, zipfile.BadZipFile, zlib.error),
)


def checksum(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@contextmanager
def full_disk_named(path: AnyPath) -> Iterator[None]:
    """Adds `path`, to which the block writes, to the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise


def reason(error: Exception) -> str:
    """The shortest description of an error of the system, or of TensorFlow."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = re.sub(r"\{\{.*?\}\} ?", "", str(error)).strip().partition("\n")[0]
    return first.split("; ")[-1].partition(" [Op:")[0]


def new_name(folder: Path, prefix: str) -> Path:
    """An unused name in the folder.

    `tempfile` would also create the file or folder, with permissions for its owner
    only; what is renamed later should have the user's default ones.
    """
    return folder / f"{prefix}{uuid4().hex[:8]}"


def write_atomically(path: AnyPath, data: bytes) -> None:
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


def check_regular(path: AnyPath) -> None:
    """Raises a ValueError if a path is a pipe or a device.

    Reading a pipe would wait for a writer, forever if there is none.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path} is a pipe or a device, wanted a file")


def check_own_files(reader: str, folder: Path) -> None:
    """Raises a ValueError unless every file of a model's folder is a regular file inside it.

    A link in a model from elsewhere could name any file of whoever loads it.
    """
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        inside = path.resolve().is_relative_to(folder.resolve())
        if not inside or not (path.is_file() or path.is_dir()):
            raise Refusal(reader, f"{path} is not a regular file inside {folder}, wanted one")


def check_unpacked(archive: zipfile.ZipFile) -> None:
    """Raises a ValueError if an archive is small but unpacks to a large one.

    Arrays of numbers hardly shrink when packed, so an honest one does not.
    """
    unpacked = sum(member.file_size for member in archive.infolist())
    packed = sum(member.compress_size for member in archive.infolist())
    if unpacked > max(_UNPACKED, _EXPANSION * packed):
        raise ValueError(
            f"{packed:,} bytes would unpack to {unpacked:,}, wanted at "
            f"most {_EXPANSION} times as many, or {_UNPACKED:,}"
        )


def read_object(path: AnyPath) -> dict[str, object]:
    """Reads a JSON object; raises a ValueError that names the file if it holds none."""
    check_regular(path)
    try:
        value = json.loads(Path(path).read_bytes())
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds a {type(value).__name__}, wanted a JSON object")
    return value


def read_versioned(path: AnyPath, newest: int, reader: str) -> dict[str, object]:
    """Reads a JSON object with a "format_version" from 1 to `newest`, and returns the rest of it.

    If it holds something else, a ValueError begins with `reader`.
    """
    value = read_object(path)
    version = value.pop("format_version", None)
    if type(version) is not int or version < 1:
        raise Refusal(
            reader, f"{path} has format_version {version!r}, wanted a number from 1 to {newest}"
        )
    if version > newest:
        raise Refusal(
            reader,
            f"{path} has format version {version}, newer than the "
            f"{newest} that this bahdanau_tf reads",
        )
    return value


def read_arrays(path: AnyPath) -> dict[str, np.ndarray]:
    """Reads the arrays of an .npz file by name; objects are not unpickled.

    NumPy allocates an array of the size that the file claims before it reads the numbers, so the
    claims are checked first. Raises ValueError if the file is damaged, or claims too much.
    """
    import numpy as np

    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked(archive)
            for member in archive.infolist():
                with archive.open(member) as file:
                    version = np.lib.format.read_magic(file)
                    shape, _, dtype = read_header[version](file)
                    claimed = math.prod(shape) * dtype.itemsize
                    available = member.file_size - file.tell()
                if claimed > available:
                    raise ValueError(
                        f"{member.filename} claims an array of shape {shape}, {claimed:,} bytes, "
                        f"but has {available:,}"
                    )
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except _DAMAGE as error:
        raise ValueError(f"{os.fspath(path)!r} is not an .npz file of arrays: {error}") from error


@contextmanager
def replaced_directory(path: AnyPath) -> Iterator[Path]:
    """Yields an empty folder on the same file system, which replaces `path` when the block ends.

    If the block raises, `path` stays as it was. If the process is killed, `found_directory(path)`
    is still a complete folder, the old or the new one, and `remove_leftovers` deletes the rest.
    Files are flushed to the disk before the folder replaces `path`.
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
    """Renames `new` to `path`; at every moment there is a complete folder there or at `_old`."""
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


def found_directory(path: AnyPath) -> Path:
    """`path`, or its old folder if a writer was killed while replacing it."""
    path = Path(path)
    old = _old(path)
    return old if old.is_dir() and not path.exists() else path


def newest_export(path: AnyPath) -> Path:
    """The newest of the numbered exports for ONNX Runtime in a folder; otherwise the folder itself.

    A folder that also holds a model, or is an export, is itself.
    """
    folder = found_directory(path)
    if any((folder / name).exists() for name in (RUNTIME, "translator.json", "best")):
        return folder
    exports = (x.parent for x in folder.glob(f"*/{RUNTIME}") if x.parent.name.isdecimal())
    return max(exports, default=folder, key=lambda x: int(x.name))


def remove_leftovers(folder: AnyPath) -> None:
    """Removes what killed calls of `write_atomically` and `replaced_directory` left in a folder.

    No process may be writing there now. A folder that was about to be replaced gets its name back.
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
    """Tries to lock an open file, without waiting; False if another process holds the lock.

    None where locks do not exist: on Windows, and on some file systems. The operating system
    releases the lock when the file is closed, even if the process is killed.
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
    """Raises a ValueError unless a file exists and is not a folder; None always passes."""
    if path is None:
        return
    if not os.path.exists(path):
        raise Refusal("fit", f"{named(flag)}: there is no file {path}")
    if os.path.isdir(path):
        raise Refusal("fit", f"{named(flag)}: {path} is a folder, wanted a file")


def check_folder(flag: str, path: str) -> None:
    """Raises a ValueError unless a folder can be written to, or can be made."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise Refusal("fit", f"{named(flag)}: {place} is a file, wanted a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise Refusal("fit", f"{named(flag)}: no permission to write to {place}")


def check_not_in_onnx(name: str, folder: AnyPath) -> None:
    """Raises a ValueError, which begins with `name`, if a folder is an export for ONNX Runtime."""
    if (newest_export(folder) / RUNTIME).is_file():
        raise ValueError(
            f"{name}: {folder} was exported for ONNX Runtime, for translate, evaluate and "
            "bahdanau_tf.runtime.Translator.load alone, wanted the model that it was made from"
        )


def check_outside_models(flag: str, path: str) -> None:
    """Raises a ValueError if a folder is in a saved model, or is one."""
    place = Path(path).resolve()
    for folder in (place, *place.parents):
        if any((folder / name).is_file() for name in ("translator.json", RUNTIME)):
            raise Refusal(
                "fit",
                f"{named(flag)}: {folder} holds a saved model, and anything else in it is lost "
                "when the model is saved again; wanted a folder outside it",
            )
