"""Numbered versions of a served model: each appears whole, and stays."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from bahdanau_tf.files import takes_lock

_PREFIX = ".export."  # hidden, and no number: a server does not look inside
_LOCK = "lock"


@contextmanager
def writing(base: Path) -> Iterator[None]:
    """Makes TensorFlow's errors about files what they are, an OSError.

    Args:
        base: What the user knows of the place that is written to.

    Raises:
        OSError: It cannot be written, as when the disk is full.
    """
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        raise OSError(
            f"nothing was exported, as {base} cannot be written: "
            f"{_reason(error)}"
        ) from error


@contextmanager
def workplace(base: Path) -> Iterator[Path]:
    """Gives an empty folder beside the versions, to make a new one in.

    It goes at the end. What killed exports have left is removed first; of
    exports that are still at work nothing is. A folder's owner holds a lock of
    the system's, which ends with the process, however that ends; where there
    are no locks (Windows, some file systems) nothing is removed.

    Args:
        base: The folder of the versions; made if it is not there.

    Yields:
        The folder, on the file system of `base`.

    Raises:
        OSError: Nothing can be written in `base`.
    """
    with writing(base):
        base.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(base)
        folder = Path(tempfile.mkdtemp(dir=base, prefix=_PREFIX))
    try:
        # Under its name the file is seen only when it is locked.
        with open(folder / "unlocked", "wb") as file:
            if takes_lock(file):
                os.replace(file.name, folder / _LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, base: Path) -> Path:
    """Renames a complete folder to `base/<version>`.

    Args:
        folder: The folder, on the file system of `base`.
        base: The folder of the versions.

    Returns:
        The new name; the version is one more than the largest there. If
        another export takes that number first, it is the next one.
    """
    folder.chmod(0o755)  # a server may be another user
    while True:
        version = base / str(_next_version(base))
        try:
            os.rename(folder, version)  # never in place of a folder with files
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
            continue  # another export was quicker, or it is another user's


def _reason(error: Exception) -> str:
    """The system's words, without TensorFlow's around them."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error).split("; ")[-1].partition(" [Op:")[0]
