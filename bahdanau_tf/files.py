"""Files and folders that are either the old ones or the new, never half."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from typing import Any

if sys.platform != "win32":
    import fcntl

_ASIDE = ".{}.new."  # hidden, and no name that a user would give
_LEFTOVER = re.compile(r"\..+\.new\.[a-z0-9_]{8}")


def checksum(data: bytes) -> str:
    """Returns the SHA-256 of `data` in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes `data` aside, in the same folder, then renames it to `path`."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(
        dir=path.parent, prefix=_ASIDE.format(path.name)
    )
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(aside, 0o644)  # mkstemp gives 0600, a server may be another
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise


def read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a file that holds a JSON object.

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds something else; says which file.
    """
    try:
        found = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(
            f"{path} holds a {type(found).__name__}, wanted a JSON object"
        )
    return found


@contextmanager
def replaced_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a folder aside to fill; at the end it takes the place of `path`.

    After an error in between, `path` is as it was. Killed in between, `path`
    or what `found_directory` finds for it is whole, the old or the new one;
    `remove_leftovers` cleans up.

    Args:
        path: The folder to make or to replace.

    Yields:
        The folder aside, empty, on the same file system.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(
        tempfile.mkdtemp(dir=path.parent, prefix=_ASIDE.format(path.name))
    )
    try:
        yield aside
        aside.chmod(0o755)  # mkdtemp gives 0700, a server may be another user
        _exchange(path, aside)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(path: Path, new: Path) -> None:
    """Puts `new` in the place of `path`, which may be there or not.

    No moment is without a whole folder at `path` or at `old`.
    """
    old = _old(path)
    if path.exists():
        _remove(old)  # a leftover: `path` is newer
        os.replace(path, old)
    try:
        os.replace(new, path)
    except OSError:
        if old.exists():
            os.replace(old, path)
        raise
    _remove(old)


def _old(path: Path) -> Path:
    """Where a folder lies while another takes its place."""
    return path.with_name(f".{path.name}.replaced")


def found_directory(path: str | os.PathLike[str]) -> Path:
    """`path`, or where it lies if a writer was killed while replacing it."""
    path = Path(path)
    old = _old(path)
    return old if old.is_dir() and not path.exists() else path


def remove_leftovers(folder: str | os.PathLike[str]) -> None:
    """Removes what killed writers have left in a folder.

    Nobody may be writing in `folder`. A folder that was about to be replaced
    gets its name back.

    Args:
        folder: Where `write_atomically` and `replaced_directory` have written.
    """
    for entry in Path(folder).iterdir():
        replaced = re.fullmatch(r"\.(.+)\.replaced", entry.name)
        if replaced and not entry.with_name(replaced[1]).exists():
            os.replace(entry, entry.with_name(replaced[1]))
        elif replaced or _LEFTOVER.fullmatch(entry.name):
            _remove(entry)


def _remove(path: Path) -> None:
    """Removes a file, a link or a folder, if it is there and can be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def takes_lock(file: IO[Any]) -> bool | None:
    """Takes the system's lock of a file, which ends when the file is closed.

    So it ends with the process, however that ends.

    Args:
        file: An open file.

    Returns:
        Whether it was to be had; None where there are no locks, as on Windows,
        for which Python has no `fcntl`, and on some file systems.
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
