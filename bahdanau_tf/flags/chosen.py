"""The flags of a training, given or chosen from the text, and their file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import is_given
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions
from bahdanau_tf.options.fitted import Choice
from bahdanau_tf.options.recipe import FORMER
from bahdanau_tf.system.files import write_atomically

FILE = "train.flags"
TEXTS_FILE = "texts.flags"
TEXTS = ("train_source", "train_target", "dev_source", "dev_target")
_CHANGED = "# changed later"
NAMES = (
    *(field.name for owner in (TextOptions, ModelOptions, Recipe) for field in fields(owner)),
    "dev_pairs",
    "init_from",
    "added_words",
)


def given_values(flags: absl_flags.FlagValues) -> dict[str, object]:
    """The options that the user gave, and "dev_source" if there is one."""
    given = [name for name in NAMES if is_given(flags, name)]
    if flags.dev_source is not None:  # by the user, or by an earlier run
        given.append("dev_source")
    return {name: flags[name].value for name in given}


def write_flags(
    path: Path,
    choices: Sequence[Choice],
    given: Mapping[str, object],
    values: Mapping[str, object],
) -> None:
    """Writes all flags of a training: what was chosen, given, and the rest.

    Args:
        path: The file.
        choices: What was chosen, with reasons.
        given: What the user gave.
        values: The values of all flags that have an effect, by name.

    Raises:
        OSError: It cannot be written.
    """
    lines = [
        "# The flags of `bahdanau-tf train`. This file can be edited and used",
        "# as --flagfile of a training in another folder.",
    ]
    rest = dict(values)
    for choice in choices:
        lines += ["", f"# {choice.reason}", *_words(choice.values)]
        rest = {n: v for n, v in rest.items() if n not in choice.values}
    for title, is_here in (("given", True), ("all others", False)):
        part = {n: v for n, v in rest.items() if (n in given) is is_here}
        if part:
            lines += ["", f"# {title}", *_words(part)]
    _write(path, lines)


def change_flags(path: Path, values: Mapping[str, object]) -> None:
    """Gives flags of such a file other values, at its end.

    Raises:
        OSError: It cannot be written.
    """
    old = re.compile(rf"\s*--?({'|'.join(values)})=.*")
    lines = path.read_text("utf-8").rstrip("\n").split("\n")
    lines = [line for line in lines if not old.fullmatch(line)]
    title = [] if _CHANGED in lines else ["", _CHANGED]
    _write(path, [*lines, *title, *_words(values)])


def write_texts(path: Path, texts: Mapping[str, str]) -> None:
    """Writes the paths of the text files of a training, unless they are there.

    Args:
        path: The file.
        texts: The paths, by flag.

    Raises:
        OSError: It cannot be written.
    """
    found = {name: str(Path(one).absolute()) for name, one in texts.items()}
    lines = [
        "# The text files of this training, for commands that name none.",
        *_words(found),
    ]
    if not path.is_file() or path.read_text("utf-8").split("\n")[:-1] != lines:
        _write(path, lines)


def _write(path: Path, lines: Sequence[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def _words(values: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, bool):
            yield f"--{name}" if value else f"--no{name}"
        else:
            yield f"--{name}={value}"


def read_flags(
    path: Path,
    define: Callable[[absl_flags.FlagValues], None],
    names: Collection[str] = NAMES,
) -> dict[str, object]:
    """Reads a file that `write_flags` or `write_texts` wrote.

    Args:
        path: The file; it may have been edited.
        define: Defines the flags of `train`.
        names: The flags that are read.

    Raises:
        ValueError: A flag is unknown or has no such value.
    """
    flags = absl_flags.FlagValues()
    define(flags)
    former = {*_words(FORMER)}
    try:
        words = flags.read_flags_from_files([f"--flagfile={path}"])
        flags(["train", *(word for word in words if word not in former)])
    except absl_flags.Error as error:
        raise ValueError(f"model_dir: {path}: {error}") from error
    return {name: flags[name].value for name in names if is_given(flags, name)}
