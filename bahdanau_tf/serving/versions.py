"""Numbered versions of a served model, each published when complete."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from bahdanau_tf.system.files import new_name
from bahdanau_tf.system.files import takes_lock

_PREFIX = ".export."  # hidden, and not a number, so a server ignores it
_LOCK = "lock"


@contextmanager
def writing(base: Path) -> Iterator[None]:
    """Converts TensorFlow's errors about files to an OSError.

    Args:
        base: The folder as the user named it, for the message.

    Raises:
        OSError: Something cannot be written, for example to a full disk.
    """
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        raise OSError(
            f"nothing was exported: {base} cannot be written: {_reason(error)}"
        ) from error


@contextmanager
def workplace(base: Path) -> Iterator[Path]:
    """Yields an empty folder beside the versions, to make a new one in.

    It is removed at the end. First the folders of killed exports are removed,
    but not those of running ones: the owner of a folder holds a file lock,
    which the system releases when the process ends. Where there are no locks
    (Windows, some file systems), nothing is removed.

    Args:
        base: The folder of the versions; made if it does not exist.

    Yields:
        The folder, on the file system of `base`.

    Raises:
        OSError: `base` cannot be written to.
    """
    with writing(base):
        base.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(base)
        folder = new_name(base, _PREFIX)
        folder.mkdir()
    try:
        # It is renamed to "lock" only after it is locked.
        with open(folder / "unlocked", "wb") as file:
            if takes_lock(file):
                os.replace(file.name, folder / _LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, base: str | os.PathLike[str]) -> Path:
    """Renames a complete folder to `base/<version>`.

    Args:
        folder: The folder, on the file system of `base`.
        base: The folder of the versions.

    Returns:
        The new path. The version is one more than the largest one, or the next
        number if another export takes that first.

    Raises:
        OSError: `base` cannot be written to.
    """
    base = Path(base)
    with writing(base):
        while True:
            version = base / str(_next_version(base))
            try:
                os.rename(folder, version)  # fails on a folder with files
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
            else:
                return version


def _next_version(base: Path) -> int:
    versions = [int(p.name) for p in base.iterdir() if p.name.isdecimal()]
    return max(versions, default=0) + 1


def _remove_abandoned(base: Path) -> None:
    for lock in base.glob(f"{_PREFIX}*/{_LOCK}"):
        try:
            with open(lock, "r+b") as file:
                if takes_lock(file):
                    shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:
            continue  # another export removed it, or another user owns it


def _reason(error: Exception) -> str:
    """The system's message, without TensorFlow's additions."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error).split("; ")[-1].partition(" [Op:")[0]
