"""Flags made from dataclasses, so that a setting is described in one place."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable
from collections.abc import Collection
from typing import Any
from typing import TypeVar

from absl import flags as absl_flags

T = TypeVar("T")

_DEFINE: dict[type, Callable[..., Any]] = {
    bool: absl_flags.DEFINE_bool,
    int: absl_flags.DEFINE_integer,
    float: absl_flags.DEFINE_float,
    str: absl_flags.DEFINE_string,
}


def define_fields(
    flags: absl_flags.FlagValues, owner: type, without: Collection[str] = ()
) -> None:
    """Defines a flag for each field of a dataclass.

    Args:
        flags: Where to define them.
        owner: A dataclass with defaults whose docstring has "Attributes:".
        without: Fields that get none.
    """
    texts = _attribute_texts(owner)
    hints = typing.get_type_hints(owner)
    for field in dataclasses.fields(owner):
        name, hint = field.name, hints[field.name]
        if name in without:
            continue
        if typing.get_origin(hint) is types.UnionType:  # or None
            hint = typing.get_args(hint)[0]
        _DEFINE[hint](name, field.default, texts[name], flag_values=flags)


def from_flags(flags: absl_flags.FlagValues, owner: type[T]) -> T:
    """Makes the dataclass from its flags; the rest is as by default.

    Raises:
        ValueError: A value is out of range; it names the field.
    """
    names = [one.name for one in dataclasses.fields(owner)]  # type: ignore[arg-type]
    return owner(**{name: flags[name].value for name in names if name in flags})


def _attribute_texts(owner: type) -> dict[str, str]:
    text = inspect.cleandoc(owner.__doc__ or "").split("Attributes:\n")[1]
    texts: dict[str, Any] = {}
    name = ""
    for line in text.split("\n"):
        entry = re.fullmatch(r" {4}(\w+): (.*)", line)
        if entry:
            name, texts[name] = entry[1], entry[2]
        elif line.strip():
            texts[name] += " " + line.strip()
    return texts
