"""All options of a training, those of the user and those chosen from the text, and their file."""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bahdanau_tf.options.choices import Choice
from bahdanau_tf.options.fields import OptionGroup, setting
from bahdanau_tf.options.model import DROPOUT, ModelOptions, TextOptions
from bahdanau_tf.options.recipe import Recipe
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.system.ranges import Range, Refusal, as_flag, named

RECIPES = resources.files("bahdanau_tf").joinpath("recipes")
PRETRAINED = resources.files("bahdanau_tf").joinpath("pretrained")
FILE = "train.flags"
TEXTS_FILE = "texts.flags"
TEXTS = ("train_source", "train_target", "dev_source", "dev_target")
OF_DEV_TEXT = ("tokenize", "monitor", "patience")
OF_MODEL = tuple(field.name for owner in (TextOptions, ModelOptions) for field in fields(owner))
OF_TRAINED = tuple(name for name in OF_MODEL if name not in DROPOUT)  # those a model keeps
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class StartOptions(OptionGroup):
    """What a new training starts with.

    Attributes:
        init_from: a trained model whose weights and tokenizers a new training starts from: the
            folder of an earlier training or of a saved translator, or the name of a translator that
            comes with the package; a copy is kept in --model_dir; a side whose letters the model
            cannot read gets a new vocabulary, and then dropout is chosen anew
        dev_pairs: number of training pairs to hold out as dev text; 0 for none
        added_words: number of words to add to each side's vocabulary with --init_from, the most
            frequent unknown ones in the training text (not for sub-words, which can write any word)
    """

    init_from: str | None = None
    dev_pairs: int = setting(0, Range(0, 10**9))
    added_words: int = setting(0, Range(0, 10**9))


OWNERS = (TextOptions, ModelOptions, Recipe, StartOptions)


def _kind(hint: Any) -> type:
    """The type of an option; of "a type or None" the type."""
    kind: type = (*typing.get_args(hint), hint)[0]
    return str if typing.get_origin(hint) is typing.Literal else kind


# The type of each option, by name.
KINDS: Mapping[str, type] = MappingProxyType(
    {name: _kind(hint) for owner in OWNERS for name, hint in typing.get_type_hints(owner).items()}
)


def recipe_names() -> list[str]:
    """The names of the recipes, which are files of flags in the package."""
    names = (entry.name for entry in RECIPES.iterdir())
    return sorted(name.removesuffix(".flags") for name in names if name.endswith(".flags"))


def pretrained_names() -> list[str]:
    """The names of the translators that come with the package, which are folders in it."""
    return sorted(entry.name for entry in PRETRAINED.iterdir() if entry.is_dir())


def packaged(name: str | os.PathLike[str]) -> Path | None:
    """The folder of a translator that comes with the package; None if there is a folder `name`."""
    is_packaged = str(name) in pretrained_names() and not os.path.exists(name)
    return Path(str(PRETRAINED), name) if is_packaged else None


def no_folder(folder: object) -> Refusal:
    """The error for a translator's folder that is not there."""
    names = " and ".join(pretrained_names())
    return Refusal("Translator.load", f"there is no folder {folder}; {names} come with the package")


def absolute(init_from: str | os.PathLike[str]) -> str:
    """The path for a run that resumes in another current folder; a pretrained one's name stays."""
    if packaged(init_from):
        return os.fspath(init_from)
    return str(Path(init_from).absolute())


def refuse(user_options: Collection[str], names: Collection[str], where: str) -> None:
    """Raises ValueError if the user gave one of some options that have no effect.

    `where` says why, for the message, such as "without " and `named("model_dir")`.
    """
    for name in names:
        if name in user_options:
            raise Refusal("fit", f"{named(name)} is not used {where}; leave it out")


def write_options(
    path: Path, choices: Sequence[Choice], user_options: Collection[str], values: Mapping[str, Any]
) -> None:
    """Writes all options of a training: those chosen, with reasons, those given, the rest.

    `values` are those of all options that have an effect, by name.
    """
    lines = [
        "# The flags of `bahdanau-tf train`. This file can be edited and used",
        "# as --flagfile of a training in another folder.",
    ]
    rest = dict(values)
    for choice in choices:
        lines += ["", f"# {choice.reason}", *_flags(choice.values)]
        rest = {n: v for n, v in rest.items() if n not in choice.values}
    for title, is_here in (("given", True), ("all others", False)):
        part = {n: v for n, v in rest.items() if (n in user_options) is is_here}
        if part:
            lines += ["", f"# {title}", *_flags(part)]
    _write(path, lines)


def change_options(path: Path, values: Mapping[str, object]) -> None:
    """Gives options in such a file, if there is one, other values, at its end."""
    before = read_options(path) if path.is_file() else values
    values = {name: value for name, value in values.items() if before.get(name) != value}
    if not values:
        return
    old = re.compile(rf"\s*--?({'|'.join(values)})=.*")
    lines = path.read_text("utf-8").rstrip("\n").split("\n")
    lines = [line for line in lines if not old.fullmatch(line)]
    title = "# changed later"
    _write(path, [*lines, *([] if title in lines else ["", title]), *_flags(values)])


def write_texts(path: Path, texts: Mapping[str, str | None]) -> None:
    """Writes the paths of a training's texts, relative if in its folder, unless they are there."""
    folder = path.parent.absolute()
    paths = {name: Path(text).absolute() for name, text in texts.items() if text}
    inside = {n: x.relative_to(folder) for n, x in paths.items() if x.is_relative_to(folder)}
    lines = [
        "# The text files of this training, for commands that name none.",
        *_flags({**paths, **inside}),
    ]
    if not path.is_file() or path.read_text("utf-8").split("\n")[:-1] != lines:
        _write(path, lines)


def _write(path: Path, lines: Sequence[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def _flags(values: Mapping[str, object]) -> list[str]:
    return [as_flag(name, value) for name, value in values.items()]


_BOOLS = {"true": True, "1": True, "false": False, "0": False}


def read_options(path: Path, others: Collection[str] = ()) -> dict[str, Any]:
    """Reads a file that `write_options` or `write_texts` wrote, or a recipe.

    It may have been edited, and may have `others`, flags of text, besides options.
    """
    values: dict[str, Any] = {}
    where = f"{named('model_dir')}: {path}"
    for line in path.read_text("utf-8").split("\n"):
        flag = line.strip()
        if not flag or flag.startswith(("#", "//")):
            continue
        match = re.fullmatch(r"--?(\w+)(?:=(.*))?", flag)
        name, text = match.groups() if match else ("", None)
        if text is None:
            text = "true"
            if name not in KINDS and name.startswith("no"):
                name, text = name.removeprefix("no"), "false"
            if KINDS.get(name) is not bool:
                name = ""
        if name not in KINDS and name not in others:
            why = "another version of bahdanau_tf may have written it"
            raise Refusal("fit", f"{where}: {flag} is not an option of `train`; {why}")
        kind = KINDS.get(name, str)
        try:
            values[name] = _BOOLS[text.lower()] if kind is bool else kind(text)
        except (ValueError, KeyError) as error:
            wanted = f"wanted a value of type {kind.__name__}"
            raise Refusal("fit", f"{where}: --{name} is {text!r}, {wanted}") from error
    return values
