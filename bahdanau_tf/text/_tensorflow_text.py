"""Imports TensorFlow Text when it is first needed; no other module does."""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType

import tensorflow as tf


@tf.autograph.experimental.do_not_convert
def tensorflow_text(user: str) -> ModuleType:
    """Imports TensorFlow Text, or raises an error that says what to install.

    Args:
        user: What needs it; the error begins with it.

    Returns:
        The module `tensorflow_text`.

    Raises:
        ImportError: It is not installed, or was built for another TensorFlow.
    """
    try:
        version = metadata.version("tensorflow-text")
    except metadata.PackageNotFoundError:
        version = None  # a custom build may have no metadata
    wanted = ".".join(tf.__version__.split(".")[:2])
    if version is not None and version.split(".")[:2] != wanted.split("."):
        raise ImportError(
            f"{user} needs tensorflow-text {wanted} beside TensorFlow "
            f"{tf.__version__}, but tensorflow-text {version} is installed: "
            f"pip install 'tensorflow-text=={wanted}.*'."
        )
    try:
        return importlib.import_module("tensorflow_text")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{user} needs tensorflow-text, which is not installed: "
            f"pip install 'tensorflow-text=={wanted}.*'."
        ) from error
