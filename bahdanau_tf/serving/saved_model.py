"""Writes SavedModels for TensorFlow Serving, and reads their graphs."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import descriptor_pool  # type: ignore[import-untyped]
from google.protobuf import message_factory

GRAPHS = "saved_model.pb"


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
    # TensorFlow would make these with mode 755, whatever the umask.
    for name in ("assets", "variables"):
        (folder / name).mkdir(parents=True)
    # A server computes no gradients.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, str(folder), dict(signatures), options)


def read_graphs(folder: Path) -> Any:
    """The message SavedModel in a folder."""
    message = descriptor_pool.Default().FindMessageTypeByName(
        "tensorflow.SavedModel"
    )
    saved = message_factory.GetMessageClass(message)()
    saved.ParseFromString((folder / GRAPHS).read_bytes())
    return saved
