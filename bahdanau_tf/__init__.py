"""Attention-based recurrent translation in TensorFlow and Keras.

The public names are listed in `__init__.pyi`. They are imported on first use, so that the command
line can configure TensorFlow before it is imported. Keras can load saved models without these
imports: see `system/imports.py`.
"""

from __future__ import annotations

from bahdanau_tf.system import imports

__version__ = "0.3.0"

_homes, __getattr__ = imports.on_first_use(__name__, "__init__.pyi")
__all__ = sorted(name for name, home in _homes.items() if home)

imports.register(
    {
        f"{__name__}>{name}": imports.StandIn(f"{__name__}.{home}", name)
        for name, home in _homes.items()
        if home in ("layers", "losses", "models", "optimizers")
    }
)


def __dir__() -> list[str]:
    return [*_homes, *(name for name in globals() if name.startswith("__"))]
