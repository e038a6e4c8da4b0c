"""A command of bahdanau_tf that writes what it is doing to a file.

    python benchmarks/watched.py FILE SECONDS train --model_dir=model ...

The file has "start", then "update" or one of `PARTS`, or "between" them, and
the number of updates of this run; who reads it can kill the command at such a
moment. Checkpoints are written every so many seconds, not every five minutes.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bahdanau_tf import Translator
from bahdanau_tf.commands.main import main
from bahdanau_tf.training import callbacks, loop
from bahdanau_tf.training.checkpoints import Checkpoints
from bahdanau_tf.training.dev import DevSet
from bahdanau_tf.training.folder import ModelFolder


def _serving(name: str) -> object:
    return importlib.import_module(f"bahdanau_tf.serving.{name}")


PARTS: dict[str, tuple[object, str]] = {
    "evaluation": (DevSet, "evaluate"),
    "best": (ModelFolder, "save_best"),
    "save": (Checkpoints, "save"),
    "trace": (Translator, "export"),
    "export": (_serving("export"), "write_saved_model"),
    "slim": (_serving("export"), "slim"),
    "reload": (_serving("doctor"), "answers"),
}
WIDTH = 24  # of the file, so that a name replaces the one before at once


class Moments:
    """Writes what is being done; what is within it comes first.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY)
        self._now, self._updates = "", 0
        self._tell("start")

    def told(self, name: str, function: Callable[..., Any]) -> Any:
        """The function, which tells its name while it runs."""

        @functools.wraps(function)
        def telling(*arguments: Any, **options: Any) -> Any:
            before = "between" if self._now == "start" else self._now
            self._updates += name == "update"
            self._tell(name)
            try:
                return function(*arguments, **options)
            finally:
                self._tell(before)

        return telling

    def _tell(self, name: str) -> None:
        self._now = name
        text = f"{name} {self._updates}".ljust(WIDTH)
        os.pwrite(self._file, text.encode(), 0)


class Moment(NamedTuple):
    """What a command is doing, and the number of updates of this run."""

    name: str = ""
    updates: int = 0

    @classmethod
    def read(cls, path: Path) -> Moment:
        """Reads the file of a command; there is none before it begins."""
        found = path.read_text().split() if path.is_file() else []
        return cls(found[0], int(found[1])) if found else cls()


def watch(path: Path) -> None:
    """Lets all parts tell when they begin and end."""
    moments = Moments(path)
    for name, (owner, attribute) in PARTS.items():
        function = getattr(owner, attribute)
        setattr(owner, attribute, moments.told(name, function))
    make_step = loop.train_step
    loop.train_step = lambda *arguments: moments.told("update", make_step(*arguments))


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
    callbacks.SECONDS = float(sys.argv[2])
    sys.exit(main(sys.argv[3:]))
