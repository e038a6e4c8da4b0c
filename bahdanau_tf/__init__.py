"""Attention-based recurrent translation in TensorFlow and Keras.

The public names stand in `__init__.pyi`. They are imported when they are first used, so that
the command line can configure TensorFlow before it is imported. Keras can load saved models
without these imports: see `system/imports.py`.
"""

from __future__ import annotations

from importlib import import_module

from bahdanau_tf.system import imports

__version__ = "0.3.0"

_homes, _modules = imports.read_stub(__name__, __file__)
__all__ = sorted(_homes)

imports.register(
    {
        f"{__name__}>{name}": imports.StandIn(f"{__name__}.{home}", name)
        for name, home in _homes.items()
        if home in ("layers", "losses", "models", "optimizers")
    }
)


def __getattr__(name: str) -> object:
    if name in _modules:
        return import_module(f"{__name__}.{name}")
    return imports.first_use(__name__, _homes, name)


def __dir__() -> list[str]:
    return [*__all__, *_modules, *(name for name in globals() if name.startswith("__"))]
