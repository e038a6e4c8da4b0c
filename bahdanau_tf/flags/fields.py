"""Flags made from dataclasses, so that a setting is described in one place.

A group of flags is what absl calls the module that defines them.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import types
import typing
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from typing import TypedDict
from typing import TypeVar

from absl import flags as absl_flags

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

_DEFINE: dict[type, Callable[..., object]] = {
    bool: absl_flags.DEFINE_bool,
    int: absl_flags.DEFINE_integer,
    float: absl_flags.DEFINE_float,
    str: absl_flags.DEFINE_string,
}


class Group(TypedDict):
    """Where a flag is defined, and what it stands under in the help."""

    flag_values: absl_flags.FlagValues
    module_name: str


def define_strings(
    flags: absl_flags.FlagValues, group: str, texts: Mapping[str, str]
) -> None:
    """Defines flags for strings that are not given by default."""
    for name, text in texts.items():
        absl_flags.DEFINE_string(
            name, None, text, flag_values=flags, module_name=group
        )


def define_fields(
    flags: absl_flags.FlagValues,
    group: str,
    owner: type[DataclassInstance],
    without: Collection[str] = (),
) -> None:
    """Defines a flag for each field of a dataclass.

    Args:
        flags: Where to define them.
        group: What they stand under in the help.
        owner: A dataclass with defaults whose docstring has "Attributes:".
        without: Fields that get none.
    """
    texts = _attribute_texts(owner)
    hints = typing.get_type_hints(owner)
    options: Group = {"flag_values": flags, "module_name": group}
    for field in dataclasses.fields(owner):
        name, text, hint = field.name, texts[field.name], hints[field.name]
        if name in without:
            continue
        if typing.get_origin(hint) is typing.Literal:
            choices = [*typing.get_args(hint)]
            absl_flags.DEFINE_enum(
                name, getattr(owner, name), choices, text, **options
            )
            continue
        if typing.get_origin(hint) is types.UnionType:  # or None
            hint = typing.get_args(hint)[0]
        _DEFINE[hint](name, field.default, text, **options)


def from_flags(flags: absl_flags.FlagValues, owner: type[T]) -> T:
    """Makes the dataclass from its flags; the rest is as by default.

    Raises:
        ValueError: A value is out of range; it names class and field.
    """
    names = [one.name for one in dataclasses.fields(owner)]
    return owner(**{name: flags[name].value for name in names if name in flags})


def is_given(flags: absl_flags.FlagValues, name: str) -> bool:
    """Whether the user gave a flag, in a file of flags too."""
    return bool(flags[name].present)


def require(flags: absl_flags.FlagValues, *names: str) -> None:
    """Refuses flags that are missing, or are empty.

    Raises:
        ValueError: It names the first of them.
    """
    for name in names:
        if flags[name].value is None:
            raise ValueError(f"--{name} is missing")
        if flags[name].value in ("", []):
            raise ValueError(f"--{name} is empty")


def check_file(flag: str, path: str | None) -> None:
    """Refuses a file that is not there, or is a folder; None is no file.

    Raises:
        ValueError: It names the flag.
    """
    if path is None:
        return
    if not os.path.exists(path):
        raise ValueError(f"--{flag}: there is no file {path}")
    if os.path.isdir(path):
        raise ValueError(f"--{flag}: {path} is a folder, wanted a file")


def check_files(flags: absl_flags.FlagValues, *names: str) -> None:
    """Refuses files that are given and are not there.

    Raises:
        ValueError: It names the flag.
    """
    for name in names:
        check_file(name, flags[name].value)


def check_folder(flag: str, path: str) -> None:
    """Refuses a folder that can neither be written to nor made.

    Raises:
        ValueError: It names the flag.
    """
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise ValueError(f"--{flag}: {place} is a file, wanted a folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ValueError(f"--{flag}: {place} may not be written to")


def check_output(flag: str, path: str | None) -> None:
    """Refuses a file that cannot be written; None is standard output.

    Raises:
        ValueError: It names the flag.
    """
    if path is None:
        return
    if not path or os.path.isdir(path):
        raise ValueError(f"--{flag} is {path!r}, wanted the name of a file")
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"--{flag}: there is no folder {folder}")
    check_folder(flag, str(folder))


def refuse(
    flags: absl_flags.FlagValues, names: Iterable[str], where: str
) -> None:
    """Refuses flags that would change nothing.

    Args:
        flags: The flags.
        names: Those that are not used; flags that there are not do not matter.
        where: Without or with what they are not used, in words.

    Raises:
        ValueError: The user gave one of them.
    """
    for name in names:
        if name in flags and is_given(flags, name):
            raise ValueError(f"--{name} is not used {where}; leave it out")


def _attribute_texts(owner: type) -> dict[str, str]:
    text = inspect.cleandoc(owner.__doc__ or "").split("Attributes:\n")[1]
    texts: dict[str, str] = {}
    name = ""
    for line in text.split("\n"):
        entry = re.fullmatch(r" {4}(\w+): (.*)", line)
        if entry:
            name, texts[name] = entry[1], entry[2]
        elif line.strip():
            texts[name] += " " + line.strip()
    return texts
