"""Reads files of arrays, .npz, which may be damaged or hostile."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from typing import IO

import numpy as np

from bahdanau_tf.system.files import check_regular, check_unpacked

_DAMAGE = (
    AttributeError,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Reads the arrays of an .npz file by name; objects are not unpickled.

    NumPy allocates an array of the size that the file claims before it reads the
    numbers, so the claims are checked first.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a whole .npz file, or claims more than it has.
    """
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked(archive)
            for member in archive.infolist():
                with archive.open(member) as file:
                    _check_claim(member, file)
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except _DAMAGE as error:
        raise ValueError(f"{os.fspath(path)!r} is not an .npz file of arrays: {error}") from error


def _check_claim(member: zipfile.ZipInfo, file: IO[bytes]) -> None:
    header = _HEADERS[np.lib.format.read_magic(file)]
    shape, _, dtype = header(file)
    claimed = math.prod(shape) * dtype.itemsize
    available = member.file_size - file.tell()
    if claimed > available:
        raise ValueError(
            f"{member.filename} claims an array of shape {shape}, "
            f"{claimed:,} bytes, and has {available:,}"
        )
