"""A command of bahdanau_tf that writes what it is doing to a file.

    python benchmarks/watched.py FILE SECONDS train --model_dir=model ...

The file has "start", then "update" or one of `PARTS`, or "between" them, and the number of updates
of this run, so that a reader can kill the command at such a moment. Checkpoints are written every
so many seconds, not every five minutes.
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
from bahdanau_tf.training import callbacks, update
from bahdanau_tf.training.checkpoints import Checkpoints
from bahdanau_tf.training.folder import ModelFolder

EXPORT, REQUESTS = (
    importlib.import_module(f"bahdanau_tf.serving.{n}") for n in ("export", "requests")
)
PARTS: dict[str, tuple[object, str]] = {
    "evaluation": (callbacks, "evaluate"),
    "best": (ModelFolder, "save_best"),
    "save": (Checkpoints, "save"),
    "trace": (Translator, "export"),
    "export": (EXPORT, "write_saved_model"),
    "slim": (EXPORT, "slim"),
    "reload": (REQUESTS, "answers"),
}
WIDTH = 24  # of the file, so that a name replaces the one before at once


class Moments:
    """Writes what the command is doing to a file; an inner part hides the outer one."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY)
        self._now, self._updates = "", 0
        self._write("start")

    def watch(self, name: str, function: Callable[..., Any]) -> Any:
        """The function, whose name is in the file while it runs."""

        @functools.wraps(function)
        def watched(*arguments: Any, **options: Any) -> Any:
            before = "between" if self._now == "start" else self._now
            self._updates += name == "update"
            self._write(name)
            try:
                return function(*arguments, **options)
            finally:
                self._write(before)

        return watched

    def _write(self, name: str) -> None:
        self._now = name
        text = f"{name} {self._updates}".ljust(WIDTH)
        os.pwrite(self._file, text.encode(), 0)


class Moment(NamedTuple):
    """What a command is doing, and the number of updates of this run."""

    name: str = ""
    updates: int = 0

    @classmethod
    def read(cls, path: Path) -> Moment:
        """Reads the file of a command; it does not exist before the command starts."""
        words = path.read_text().split() if path.is_file() else []
        return cls(words[0], int(words[1])) if words else cls()


def watch(path: Path) -> None:
    """Makes all parts write when they start and end."""
    moments = Moments(path)
    for name, (owner, attribute) in PARTS.items():
        setattr(owner, attribute, moments.watch(name, getattr(owner, attribute)))
    make_step = update.train_step
    update.train_step = lambda *arguments: moments.watch("update", make_step(*arguments))


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
    callbacks.SECONDS = float(sys.argv[2])
    sys.exit(main(sys.argv[3:]))
