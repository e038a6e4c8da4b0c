"""SavedModels for TensorFlow Serving: the only code here that writes them."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf


def write_saved_model(
    folder: Path, signatures: Mapping[str, Any], modules: Sequence[tf.Module]
) -> None:
    """Writes a SavedModel; of the variables those that its functions use.

    Args:
        folder: Where to; made here.
        signatures: For each name a concrete function.
        modules: Whatever holds the tables that the functions use.
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
