"""Imports names of this package when they are first used, and lets Keras load its classes.

A saved model names its classes, and Keras looks them up among those that are registered. A class
registers when its module is imported, and this package imports a module when one of its names is
first used: a process that only loads a model would find no class. So stand-ins are registered as
soon as Keras is imported; each imports its class when Keras asks it for an object.

The user's modules are imported only where the user names them.
"""

from __future__ import annotations

import ast
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module, util
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from bahdanau_tf.system.ranges import OptionError

LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # TensorFlow's environment variable; 1: no information


def on_first_use(package: str, file: str) -> tuple[dict[str, str], Callable[[str], Any]]:
    """The names that a package imports for type checkers only, and its `__getattr__` for them.

    A file has them: a stub, or a module under TYPE_CHECKING. The module of each name is relative to
    the package; that of a public module is "".
    """
    body = ast.parse(pkgutil.get_data(package, file) or b"").body
    if file.endswith(".py"):
        body = [statement for node in body if isinstance(node, ast.If) for statement in node.body]
    homes = {
        alias.name: statement.module.removeprefix(package).removeprefix(".")
        for statement in body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }
    return homes, partial(_first_use, package, homes)


def _first_use(package: str, homes: Mapping[str, str], name: str) -> object:
    """Imports a name of a package, which gets it as an attribute."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    if not homes[name]:
        return import_module(f"{package}.{name}")
    from bahdanau_tf.system.terminal import uncollected

    # Without "This TensorFlow binary is optimized to use ..." later; at level 0 with all messages.
    is_loud = "tensorflow" in sys.modules or os.environ.setdefault(LOG_LEVEL, "1") == "0"
    with uncollected(), nullcontext() if is_loud else quiet():
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
    setattr(sys.modules[package], name, value)
    return value


@contextmanager
def quiet() -> Iterator[None]:
    """Discards what the process writes to standard error in the block, which imports TensorFlow.

    TensorFlow's libraries write messages before any log level is set. An error in an import is an
    exception, and is still reported.
    """
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


class StandIn(NamedTuple):
    """Takes the place of a class in Keras' register until the class is imported."""

    module: str
    name: str

    def from_config(self, config: dict[str, object]) -> object:
        """Imports the class and makes an object of it."""
        owner = getattr(import_module(self.module), self.name)
        return owner.from_config(config)


def register(stand_ins: Mapping[str, StandIn]) -> None:
    """Registers stand-ins, by the names that Keras writes into files.

    If Keras is not imported yet, its import does it. Another backend than TensorFlow raises an
    ImportError then.
    """
    if "keras" in sys.modules:
        _register(stand_ins)
    else:
        sys.meta_path.insert(0, _KerasFinder(stand_ins))


def _register(stand_ins: Mapping[str, StandIn]) -> None:
    import keras

    _check(keras.config.backend())
    registered = keras.saving.get_custom_objects()
    for name, stand_in in stand_ins.items():
        registered.setdefault(name, stand_in)


def _check(backend: str) -> None:
    if backend != "tensorflow":
        raise ImportError(
            f"bahdanau_tf needs Keras on TensorFlow, but the backend is {backend!r} here; set "
            "KERAS_BACKEND=tensorflow before Keras is imported"
        )


class _KerasFinder(MetaPathFinder, Loader):
    """Finds and loads Keras through the other finders, then registers the stand-ins."""

    loader: Loader  # Keras' own

    def __init__(self, stand_ins: Mapping[str, StandIn]) -> None:
        self.stand_ins = stand_ins
        self.asks_others = False

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of Keras, with this as its loader; else None."""
        if name != "keras" or self.asks_others:
            return None
        self.asks_others = True
        try:
            spec = util.find_spec(name)
        finally:
            self.asks_others = False
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        _check(os.environ.get("KERAS_BACKEND") or "tensorflow")
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        _register(self.stand_ins)
        sys.meta_path.remove(self)


def imported(module: str, option: str, value: str) -> ModuleType:
    """Imports a module that the user names by an option, such as cell="my_module.MyCell".

    If there is no such module, or it fails, an OptionError is raised.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        why = f"but there is no module {error.name}; add its folder to PYTHONPATH if you trust it"
        raise OptionError("ModelOptions", option, value, why=why) from error
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise blamed(error, option, value, f"but {module} cannot be imported") from error


def blamed(error: BaseException, option: str, value: str, what: str) -> OptionError:
    """The error for one of a part that the user names by an option; `what` says what failed.

    Raises the error itself when out of memory.
    """
    if is_shortage(error):
        raise error
    # Without Keras' appendices, on one line.
    text = re.split("Arguments received|Full object config", str(error))[0]
    words = re.sub(r"\x1b\[\d*m", "", text).split()
    why = f"{what}: {type(error).__name__}: {' '.join(words)}"
    return OptionError("ModelOptions", option, value, why=why)


def is_shortage(error: BaseException) -> bool:
    """Whether it ran out of memory, without importing TensorFlow."""
    return isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError"
