"""A lock, so that one process at a time trains in a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from bahdanau_tf.system.files import takes_lock

NAME = "training.lock"
_held: dict[Path, int] = {}  # locked folders, and the threads that hold them


@contextmanager
def locked(model_dir: Path) -> Iterator[None]:
    """Keeps other processes from training in a folder.

    It is a file lock on `training.lock`, which the system releases when the
    process ends; the file stays. On Windows and on file systems without locks
    it has no effect. A thread that holds the lock may take it again. After an
    error, a folder that was made here is removed if nothing was written to it.

    Args:
        model_dir: The folder; made if it does not exist.

    Raises:
        ValueError: Another process trains in the folder.
        OSError: The file cannot be written.
    """
    is_new = not model_dir.exists()
    model_dir.mkdir(parents=True, exist_ok=True)
    place, thread = model_dir.resolve(), threading.get_ident()
    if _held.get(place) == thread:
        yield
        return
    with _taken(model_dir / NAME) as file:
        try:
            _write_owner(file)
            _held[place] = thread
            yield
        except BaseException:
            if is_new and [path.name for path in place.iterdir()] == [NAME]:
                with suppress(OSError):
                    (place / NAME).unlink()
                    place.rmdir()
            raise
        finally:
            _held.pop(place, None)


@contextmanager
def _taken(path: Path) -> Iterator[TextIO]:
    with open(path, "a+", encoding="utf-8") as file:
        if takes_lock(file) is False:
            file.seek(0)
            owner = file.read().strip()
            raise ValueError(
                f"model_dir: {path.parent} is being trained by process "
                f"{owner}; wait for it, or name another folder"
            )
        yield file


def _write_owner(file: TextIO) -> None:
    """Writes the number of this process; at once, as the disk may be full."""
    file.truncate(0)
    try:
        os.write(file.fileno(), f"{os.getpid()}\n".encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, file.name) from error
