"""Files and folders that are either the old ones or the new, never half."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def checksum(data: bytes) -> str:
    """Returns the SHA-256 of `data` in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes `data` aside, in the same folder, then renames it to `path`."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(aside, 0o644)  # mkstemp gives 0600, a server may be another
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise


@contextmanager
def replaced_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a folder aside to fill; at the end it takes the place of `path`.

    After an error in between, `path` is as it was.

    Args:
        path: The folder to make or to replace.

    Yields:
        The folder aside, empty, on the same file system.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f"{path.name}."))
    try:
        yield aside
        aside.chmod(0o755)  # mkdtemp gives 0700, a server may be another user
        if path.exists():
            old = Path(tempfile.mkdtemp(dir=path.parent, prefix=".old."))
            os.replace(path, old / path.name)
            os.replace(aside, path)
            shutil.rmtree(old)
        else:
            os.replace(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
