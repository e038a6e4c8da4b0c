"""Writes SavedModels for TensorFlow Serving."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf


def write_saved_model(
    folder: Path,
    signatures: Mapping[str, tf.types.experimental.ConcreteFunction],
    modules: Sequence[tf.Module],
) -> None:
    """Writes a SavedModel with the variables that its functions use.

    Args:
        folder: The folder to make.
        signatures: A concrete function for each name.
        modules: The modules that own the tables used by the functions.
    """
    module = tf.Module()
    module.modules = list(modules)
    module.used = list(
        {
            id(variable): variable
            for function in signatures.values()
            for variable in function.variables
        }.values()
    )
    tf.saved_model.save(module, str(folder), signatures=dict(signatures))
