"""SavedModels for TensorFlow Serving: the only code here that writes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from bahdanau_tf.files import replaced_directory


def write_saved_model(
    path: str | os.PathLike[str],
    signatures: Mapping[str, Any],
    modules: Sequence[tf.Module],
    finish: Callable[[Path], None],
) -> Path:
    """Writes `path/<version>` as TensorFlow Serving wants it.

    The folder appears under its name when it is complete, since a server may
    be looking. Of the variables it holds those that the functions use.

    Args:
        path: Base folder of the model's versions.
        signatures: For each name a concrete function.
        modules: Whatever holds the tables that the functions use.
        finish: Called with the folder before it gets its name; after an error
            there is none.

    Returns:
        The version's folder; the version is one more than the largest there.
    """
    path = Path(path)
    module = tf.Module()
    module.modules = list(modules)
    module.used = list(
        {
            id(variable): variable
            for function in signatures.values()
            for variable in function.variables
        }.values()
    )
    version = path / str(_next_version(path))
    with replaced_directory(version) as aside:
        tf.saved_model.save(module, str(aside), signatures=dict(signatures))
        finish(aside)
    return version


def _next_version(path: Path) -> int:
    if not path.is_dir():
        return 1
    versions = [int(p.name) for p in path.iterdir() if p.name.isdecimal()]
    return max(versions, default=0) + 1
