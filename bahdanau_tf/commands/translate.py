"""Translates lines, in order: blank lines stay blank.

Reads --input or standard input, writes --output or standard output.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator
from typing import TextIO

from absl import flags as absl_flags

from bahdanau_tf.commands.lines import read_lines
from bahdanau_tf.commands.model import define_model_flags
from bahdanau_tf.commands.model import load_translator

WINDOW = 1000  # lines held at once, so that like lengths go together


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model_flags(flags)
    absl_flags.DEFINE_string(
        "input", None, "text to translate; a .gz too", flag_values=flags
    )
    absl_flags.DEFINE_string(
        "output", None, "where the translations go", flag_values=flags
    )


def run(flags: absl_flags.FlagValues) -> int:
    """Translates."""
    translator = load_translator(flags)
    lines = read_lines(flags.input)
    with _writer(flags.output) as output:
        while window := list(itertools.islice(lines, WINDOW)):
            for translation in translator.translate(window):
                output.write(translation.text + "\n")
            output.flush()
    return 0


@contextlib.contextmanager
def _writer(path: str | None) -> Iterator[TextIO]:
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        yield sys.stdout
        return
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        yield stream
