"""One training at a time in a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

NAME = "training.lock"


@contextmanager
def locked(model_dir: Path) -> Iterator[None]:
    """Keeps other processes from training in a folder.

    The lock is the system's, on the file `training.lock`: it ends with the
    process, however that ends; the file stays. On Windows, where Python has
    no `fcntl`, and on file systems without locks nobody is kept out.

    Args:
        model_dir: The folder; it is there.

    Raises:
        ValueError: Another training has the folder.
        OSError: The file cannot be written.
    """
    with open(model_dir / NAME, "a+", encoding="utf-8") as file:
        if not _take(file.fileno()):
            file.seek(0)
            owner = file.read().strip()
            raise ValueError(
                f"model_dir: {model_dir} is being trained by process {owner}; "
                "wait for it, or name another folder"
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _take(file: int) -> bool:
    """Takes the lock until the file is closed; False if another has it."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
