"""The command `bahdanau-tf`: finds the subcommand, parses flags, says errors.

Each subcommand is a module of `bahdanau_tf.commands` with a docstring, a
function `define_flags(flags)` and a function `run(flags)`; one that sets
TAKES_ARGUMENTS has `run(flags, arguments)`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from collections.abc import Sequence
from importlib import import_module
from importlib import resources
from types import ModuleType
from typing import TextIO

from absl import flags as absl_flags

from bahdanau_tf import __version__

COMMANDS = {
    "demo": "train on the built-in corpus, translate, draw, export: all of it",
    "train": "train a model on parallel text files",
    "translate": "translate lines",
    "evaluate": "score translations: BLEU and chrF",
    "ensembles": "score single models and ensembles",
    "report": "write the paper's tables and figures from any corpus",
    "rescore": "re-rank n-best lists with a model",
    "lexicon": "learn which words a word may become, for --shortlist",
    "export": "write a SavedModel that takes and returns strings",
    "data": "list public corpora, or get one",
    "select": "choose training pairs like an in-domain text",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: Arguments without the program's name; `sys.argv[1:]` if None.

    Returns:
        The exit status: 0, 1 for a job that failed, 2 for a mistake in what
        was given, 130 after Ctrl-C.
    """
    name, *rest = [*(sys.argv[1:] if argv is None else argv)] or ["--help"]
    if name in ("--help", "-h", "help"):
        return _say(_usage(), sys.stdout, 0)
    if name == "--version":
        return _say(f"bahdanau-tf {__version__}", sys.stdout, 0)
    if name not in COMMANDS:
        wanted = ", ".join(COMMANDS)
        return _fail(f"no command {name!r}, wanted one of {wanted}")
    with _quiet_start():
        command = import_module(f"bahdanau_tf.commands.{name}")
    return _run(name, command, rest)


def _run(name: str, command: ModuleType, arguments: list[str]) -> int:
    flags = absl_flags.FlagValues()
    flags.set_gnu_getopt()  # flags may follow arguments
    absl_flags.DEFINE_bool("help", False, "show this", flag_values=flags)
    absl_flags.DEFINE_bool(
        "traceback", False, "show where an error arose", flag_values=flags
    )
    command.define_flags(flags)
    try:
        left = flags([f"bahdanau-tf {name}", *map(_as_flagfile, arguments)])
        if flags.help:
            return _say(_help(name, command, flags), sys.stdout, 0)
        if getattr(command, "TAKES_ARGUMENTS", False):
            status = command.run(flags, left[1:])
        elif left[1:]:
            return _fail(f"{name}: {left[1]!r} is not a flag; see --help")
        else:
            status = command.run(flags)
        sys.stdout.flush()
        return int(status or 0)
    except absl_flags.Error as error:
        return _fail(f"{name}: {error}")
    except (ValueError, OSError, ImportError) as error:
        if isinstance(error, OSError):
            _forget_unwritten()
        if isinstance(error, BrokenPipeError):
            return 0  # whoever read our output has enough, as in `... | head`
        if flags.is_parsed() and flags.traceback:
            traceback.print_exc()
        return _fail(f"{name}: {error}")
    except KeyboardInterrupt:
        return _fail(f"{name}: interrupted", status=130)


def _forget_unwritten() -> None:
    """Keeps Python from failing at exit over an output full or closed."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_flagfile(argument: str) -> str:
    """--recipe=NAME stands for a file of flags in the package."""
    option, _, name = argument.partition("=")
    if option not in ("--recipe", "-recipe"):
        return argument
    folder = resources.files("bahdanau_tf").joinpath("recipes")
    path = folder.joinpath(f"{name}.flags")
    if not path.is_file():
        known = sorted(
            entry.name.removesuffix(".flags")
            for entry in folder.iterdir()
            if entry.name.endswith(".flags")
        )
        raise ValueError(f"--recipe is {name!r}, wanted one of {known}")
    return f"--flagfile={path}"


@contextlib.contextmanager
def _quiet_start() -> Iterator[None]:
    """Keeps TensorFlow's start-up messages off the screen.

    Some are written by its C++ libraries before any log level holds, so the
    error stream itself is turned away while TensorFlow is imported; what goes
    wrong in an import is an exception and is still seen.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import tensorflow as tf

        tf.config.list_physical_devices()
        tf.get_logger().setLevel(logging.ERROR)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _usage() -> str:
    lines = [
        "Attention-based recurrent translation.",
        "",
        "usage: bahdanau-tf COMMAND [--flag=value ...]",
        "",
        *(f"  {name:<10} {what}" for name, what in COMMANDS.items()),
        "",
        "bahdanau-tf COMMAND --help tells the flags of a command.",
    ]
    return "\n".join(lines)


def _help(name: str, command: ModuleType, flags: absl_flags.FlagValues) -> str:
    lines = [f"bahdanau-tf {name}: {COMMANDS[name]}", "", command.__doc__ or ""]
    for flag_name in flags:
        flag = flags[flag_name]
        if flag_name in ("help", "traceback") or flag.name != flag_name:
            continue
        default = "" if flag.default is None else f" [{flag.default}]"
        lines.append(f"  --{flag_name}{default}\n      {flag.help}")
    return "\n".join(lines)


def _say(text: str, stream: TextIO, status: int) -> int:
    print(text, file=stream)
    return status


def _fail(message: str, status: int = 2) -> int:
    return _say(f"bahdanau-tf: {message}", sys.stderr, status)
