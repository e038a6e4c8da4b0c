"""What the file of a Keras model names, checked before Keras reads it.

A config names classes and functions by module and name. Keras imports what is named, so a file from
elsewhere would choose what runs.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import keras

from bahdanau_tf.system.files import check_unpacked

# What a model is made of: of Keras' own classes, only those that derive from these are allowed.
_KINDS = (
    keras.DTypePolicy,
    keras.Operation,  # layers, models and operations
    keras.constraints.Constraint,
    keras.initializers.Initializer,
    keras.losses.Loss,
    keras.metrics.Metric,
    keras.optimizers.Optimizer,
    keras.optimizers.schedules.LearningRateSchedule,
    keras.quantizers.Quantizer,
    keras.random.SeedGenerator,
    keras.regularizers.Regularizer,
)
# But these run what lies elsewhere, or in the file itself.
_RUNNING = ("FlaxLayer", "JaxLayer", "TFSMLayer", "TorchModuleWrapper")
_LARGEST_CONFIG = 1 << 24  # bytes; that of a model here has some 10,000
# Not classes: Keras makes these values itself.
_VALUES = (
    *("__bytes__", "__ellipsis__", "__keras_tensor__"),
    *("__numpy__", "__slice__", "__tensor__"),
)


def check_model_file(path: Path) -> None:
    """Checks that all that a model's file names may run.

    That is what is registered in this process, for example by a module that the user has imported,
    and what Keras itself makes models of. Nothing is imported.

    Args:
        path: The file.

    Raises:
        ValueError: It names something else.
        Exception: The file is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("config.json").file_size
        if size > _LARGEST_CONFIG:
            raise ValueError(
                f"its config.json has {size:,} bytes, wanted at most {_LARGEST_CONFIG:,}"
            )
        check_unpacked(archive)
        config = json.loads(archive.read("config.json"))
    config.pop("compile_config", None)  # the model is not compiled
    for entry in _entries(config):
        _check(entry)


def _entries(config: object) -> Iterator[dict[str, object]]:
    """All parts of a config that Keras may turn into an object."""
    waiting = [config]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "class_name" in value or "registered_name" in value:
                yield value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _check(entry: dict[str, object]) -> None:
    kind = entry.get("class_name")
    if kind in _VALUES:
        return
    is_function = kind == "function"
    name = entry.get("config") if is_function else kind
    registered = name if is_function else entry.get("registered_name", kind)
    if isinstance(registered, str) and keras.saving.get_registered_object(registered) is not None:
        return
    module = entry.get("module")
    if is_function:
        is_kerass = _is_function_of_keras(module, name)
    else:
        is_kerass = _is_class_of_keras(module, name)
    if is_kerass:
        return
    if kind == "__lambda__":
        raise ValueError(
            "it contains code of its own, a lambda, which is not run; wanted "
            "a function that is registered"
        )
    top = module.partition(".")[0] if isinstance(module, str) else ""
    said = f"it names {module}.{name}, which is not registered"
    if top not in ("", "bahdanau_tf", "builtins", "keras"):
        said += (
            "; if you trust that module, import it first (on the command line "
            f"--modules={module}, with its folder in PYTHONPATH)"
        )
    raise ValueError(said)


def _is_class_of_keras(module: object, name: object) -> bool:
    value = _of_keras(module, name)
    return isinstance(value, type) and issubclass(value, _KINDS) and name not in _RUNNING


def _is_function_of_keras(module: object, name: object) -> bool:
    if module not in ("builtins", "keras.activations", "keras.ops"):
        return False
    home = "keras.activations" if module == "builtins" else module
    return callable(_of_keras(home, name))


def _of_keras(module: object, name: object) -> object:
    """What a module of Keras has under this name; None for other modules."""
    if not (isinstance(module, str) and isinstance(name, str)):
        return None
    if module.partition(".")[0] != "keras":
        return None
    return getattr(sys.modules.get(module), name, None)
