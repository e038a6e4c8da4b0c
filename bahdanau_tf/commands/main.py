"""The command `bahdanau-tf`: finds the subcommand, parses flags, prints errors."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TextIO

from absl import flags as absl_flags

from bahdanau_tf import __version__
from bahdanau_tf.commands.flags import Group, parse, require, required
from bahdanau_tf.commands.help import help_of, usage
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.options.training import RECIPES, pretrained_names, recipe_names
from bahdanau_tf.system import lines
from bahdanau_tf.system.files import FULL
from bahdanau_tf.system.imports import LOG_LEVEL, imported, is_shortage, quiet
from bahdanau_tf.system.ranges import Range, did_you_mean, flags_named
from bahdanau_tf.system.terminal import (
    StatusLine,
    ended_by_two_interrupts,
    never_collected,
    printable,
)

COMMANDS = {
    "demo": "train on the built-in corpus, translate, draw, export",
    "train": "train a model on parallel text files",
    "translate": "translate lines",
    "align": "align sentences with their translations, word by word",
    "evaluate": "score translations: BLEU, chrF, TER",
    "ensembles": "score single models and ensembles",
    "report": "write the paper's tables and figures from any corpus",
    "rescore": "re-rank n-best lists with a model",
    "lexicon": "learn target words for each source word, for --shortlist",
    "distil": "write training text with a model's or ensemble's translations",
    "backtranslate": "write training text from text of one language",
    "export": "write a SavedModel, or for ONNX Runtime: strings in, strings out",
    "page": "write one HTML page that translates in the browser",
    "data": "list public corpora, or download one",
    "select": "choose training pairs similar to an in-domain text",
}


@dataclass(frozen=True)
class _Every(OptionGroup):
    flagfile: str | None = option(
        "file of flags, one per line, read at this point: later flags override them; may be "
        "repeated"
    )
    max_line_bytes: int = option(
        "longest line of a text, in bytes; a longer one is an error, since a line is held in "
        "memory several times over",
        lines.LONGEST_LINE,
        Range(1, 10**12),
    )
    help: bool = option("show this help", False)
    traceback: bool = option("show the traceback of an error", False)


EVERY = Group(_Every, "Every command")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: Arguments without the program's name; `sys.argv[1:]` if None.

    Returns:
        The exit status: 0 for success, 1 if a check of the command failed, 2
        for a mistake in flags or files, 130 after Ctrl-C, 143 if SIGTERM stops a
        training. After a second Ctrl-C the process ends, whatever it computes.
    """
    try:
        with flags_named(), ended_by_two_interrupts("bahdanau-tf"):
            return _main([*(sys.argv[1:] if argv is None else argv)] or ["--help"])
    except KeyboardInterrupt:
        return _fail("interrupted", status=130)
    except OSError as error:  # the help cannot be written
        _forget_unwritten()
        is_over = isinstance(error, BrokenPipeError)
        return 0 if is_over else _fail(_of_system(error))


def _main(argv: list[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    name, *rest = argv
    if name in ("--help", "-h", "help"):
        return _say(usage(COMMANDS), sys.stdout, 0)
    if name == "--version":
        return _say(f"bahdanau-tf {__version__}", sys.stdout, 0)
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS)
        return _fail(f"no command {name!r}{hint}, wanted one of {', '.join(COMMANDS)}")
    return _run(name, ["--help" if word == "-h" else word for word in rest])


def _run(name: str, arguments: list[str]) -> int:
    command, flags = _module(name), defined_flags(name)
    try:
        rest = parse_with_recipe(name, arguments, flags)
        if flags.help:
            return _say(help_of(name, COMMANDS[name], command, flags), sys.stdout, 0)
        if rest and not _arguments(name):
            hint = "text comes from --input or a pipe" if "input" in flags else "see --help"
            if "train_source" in flags:
                hint = "--train_source and --train_target name the text"
            return _fail(f"{name}: {rest[0]!r} is not a flag; {hint}")
        lines.longest_line = flags.max_line_bytes
        inputs = (flags, rest) if _arguments(name) else (flags,)
        require(flags, *required(command.GROUPS))
        command.check(*inputs)
        already_done = getattr(command, "already_done", lambda *_: None)
        if reason := already_done(*inputs):
            return _say(reason, sys.stderr, 0)
        if getattr(command, "needs_tensorflow", lambda *_: True)(*inputs):
            _import_tensorflow()
        for module in flags.modules if "modules" in flags else ():
            imported(module, "modules", module)
        with _short_warnings(name):
            status = command.run(*inputs)
        sys.stdout.flush()
        return int(status or 0)
    except Exception as error:
        if not (isinstance(error, (ValueError, OSError, ImportError)) or is_shortage(error)):
            raise  # a bug, not the user's input or machine
        if isinstance(error, OSError):
            _forget_unwritten()
        if isinstance(error, BrokenPipeError):
            return 0  # the reader of our output has closed it, as `head` does
        if flags.is_parsed() and flags.traceback:
            _say(traceback.format_exc(), sys.stderr, 2)
        return _fail(f"{name}: {_said(error)}")
    except KeyboardInterrupt:
        return _fail(f"{name}: interrupted", status=130)
    finally:
        lines.longest_line = lines.LONGEST_LINE


@contextlib.contextmanager
def _short_warnings(name: str) -> Iterator[None]:
    """Prints warnings like errors, without their lines of code."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        StatusLine().note(f"bahdanau-tf: {name}: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def defined_flags(name: str) -> absl_flags.FlagValues:
    """The flags of a subcommand, including those of all subcommands."""
    flags = absl_flags.FlagValues()
    flags.set_gnu_getopt()  # flags may follow arguments
    for group in (*_module(name).GROUPS, EVERY):
        group.define(flags)
    return flags


def _complete() -> None:
    """Answers a shell's request for completion and exits.

    argcomplete needs an argparse parser, so the flags, which are absl's, are added to one. absl's
    own `argparse_flags` is not used: it lacks the choices of a flag and, outside the main module,
    its help.
    """
    import argcomplete
    from argcomplete.completers import DirectoriesCompleter

    folders = DirectoriesCompleter()

    def trained(prefix: str, **_: object) -> list[str]:
        return [*(name for name in pretrained_names() if name.startswith(prefix)), *folders(prefix)]

    parser = argparse.ArgumentParser("bahdanau-tf", add_help=False)
    subparsers = parser.add_subparsers()
    for command, text in COMMANDS.items():
        subparser = subparsers.add_parser(command, help=text, add_help=False)
        flags = defined_flags(command)
        for name in flags:
            is_bool, own = flags[name].boolean, getattr(flags[name].parser, "enum_values", None)
            choices = recipe_names() if name == "recipe" else own or None
            takes: Any = {"action": "store_true"} if is_bool else {"choices": choices}
            # Where there is --init_from, --model_dir is written.
            is_read = name == "init_from" or (name == "model_dir" and "init_from" not in flags)
            for flag in (f"--{name}", f"--no{name}")[: 1 + is_bool]:
                argument: Any = subparser.add_argument(flag, **takes)
                if is_read:
                    argument.completer = trained
        for place, words in enumerate(_arguments(command)):
            subparser.add_argument(f"argument {place}", choices=words)
    argcomplete.autocomplete(parser, always_complete_options="long")


def _arguments(name: str) -> Sequence[Sequence[str]]:
    """The choices of each argument of a subcommand that is not a flag."""
    return getattr(_module(name), "ARGUMENTS", ())


def _said(error: Exception) -> str:
    """An error's message in the words of the command line."""
    if isinstance(error, OSError) and error.strerror:
        return _of_system(error)
    if is_shortage(error):
        why = re.sub(r"^\{\{.*?\}\} ", "", str(error).split("\n")[0])
        return f"out of memory or disk space; smaller sizes need less. {why}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{error}: pip install {error.name.partition('.')[0]}"
    return str(error)


def _of_system(error: OSError) -> str:
    """The system's message, with the name of the file."""
    # Files are named where they are written.
    default = "standard output" if error.errno in FULL else None
    name = default if error.filename is None else error.filename
    return f"{'' if name is None else f'{name}: '}{error.strerror}"


def _forget_unwritten() -> None:
    """Discards output that cannot be written, which Python would flush at exit and fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parse_with_recipe(name: str, arguments: list[str], flags: absl_flags.FlagValues) -> list[str]:
    """Sets the flags of a subcommand, and returns the words that are no flags.

    --recipe=NAME, a file of flags in the package, sets those that the user does not give. They
    count as not given: with another model than the recipe's, some have no effect, and only flags
    that the user gave are refused for that.
    """
    rest = parse(flags, _expanded(arguments, flags))
    if "recipe" in flags and (recipe := flags.recipe) is not None:
        if recipe not in recipe_names():
            raise ValueError(f"--recipe is {recipe!r}, wanted one of {recipe_names()}")
        others = defined_flags(name)
        parse(others, _expanded([f"--flagfile={RECIPES.joinpath(f'{recipe}.flags')}"], others))
        for flag in others:
            if others[flag].present and not flags[flag].present:
                flags[flag].value = others[flag].value
    return rest


def _expanded(arguments: list[str], flags: absl_flags.FlagValues) -> list[str]:
    """Replaces --flagfile=FILE by the flags in the file."""
    if {"--flagfile=", "-flagfile="} & {*arguments}:
        raise ValueError("--flagfile is empty")
    try:
        return flags.read_flags_from_files(arguments)
    except UnicodeDecodeError as error:
        files = [word for word in arguments if word.lstrip("-")[:8] == "flagfile"]
        raise ValueError(
            f"{' or '.join(files)}: the file, or one that it names, is not UTF-8"
        ) from error
    except absl_flags.Error as error:  # with the system's, if a file cannot be opened
        raise error.__context__ or ValueError(str(error)) from None


def _module(name: str) -> ModuleType:
    return import_module(f"bahdanau_tf.commands.{name}")


def _import_tensorflow() -> None:
    """Imports TensorFlow and what all models need, without start-up messages."""
    is_first = "tensorflow" not in sys.modules
    os.environ.setdefault(LOG_LEVEL, "3")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # overrides the user's setting
    with quiet(), never_collected() if is_first else contextlib.nullcontext():
        with _without_pyplot():
            import tensorflow as tf
        tf.config.list_physical_devices()
        tf.get_logger().setLevel(logging.ERROR)
        import_module("bahdanau_tf.translator")


@contextlib.contextmanager
def _without_pyplot() -> Iterator[None]:
    """Lets nothing import pyplot, as if matplotlib were not installed.

    Keras 3.15 imports it for functions that plot images, which takes a fifth
    of the time in which TensorFlow and Keras are imported.
    """
    name = "matplotlib.pyplot"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def _say(text: str, stream: TextIO, status: int) -> int:
    print(printable(text), file=stream, flush=True)
    return status


def _fail(message: str, status: int = 2) -> int:
    return _say(f"bahdanau-tf: {message}", sys.stderr, status)
