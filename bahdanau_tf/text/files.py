"""Files that are either the old one or the new one, never half of one."""

from __future__ import annotations

import hashlib
import os
import tempfile
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
