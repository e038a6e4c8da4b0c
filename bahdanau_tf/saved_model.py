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

Signature = tuple[Callable[..., dict[str, tf.Tensor]], Sequence[tf.TensorSpec]]


def write_saved_model(
    path: str | os.PathLike[str],
    parts: Sequence[Any],
    signatures: Mapping[str, Signature],
) -> Path:
    """Writes `path/<version>` as TensorFlow Serving wants it.

    The folder appears under its name when it is complete, since a server may
    be looking.

    Args:
        path: Base folder of the model's versions.
        parts: Whatever holds the variables and tables that the functions use.
        signatures: For each name a function and the specs of its arguments.

    Returns:
        The version's folder; the version is one more than the largest there.
    """
    path = Path(path)
    module = tf.Module()
    module.parts = list(parts)
    functions = {
        name: tf.function(
            function, input_signature=list(specs), autograph=False
        )
        for name, (function, specs) in signatures.items()
    }
    version = path / str(_next_version(path))
    with replaced_directory(version) as aside:
        tf.saved_model.save(
            module,
            str(aside),
            signatures={
                name: function.get_concrete_function()
                for name, function in functions.items()
            },
        )
    return version


def _next_version(path: Path) -> int:
    if not path.is_dir():
        return 1
    versions = [int(p.name) for p in path.iterdir() if p.name.isdecimal()]
    return max(versions, default=0) + 1
