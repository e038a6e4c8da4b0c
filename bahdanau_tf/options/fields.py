"""Options: fields of dataclasses, from which flags, help and checks follow."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bahdanau_tf.system.ranges import Range, check_some, check_values, did_you_mean as did_you_mean


def option(
    text: str,
    default: Any = None,
    within: Range | None = None,
    *,
    used_if: Mapping[str, Sequence[object]] | None = None,
    required: bool = False,
    repeated: bool = False,
    kw_only: bool = False,
) -> Any:
    """A field of a dataclass, which is an option and a flag.

    The annotation of the field says which type it has and, if it is a `Literal`, its choices;
    `X | None` may be None, "not given". `text` is for the help and the docstring of its class,
    `used_if` has the values of other options with which it has an effect. A command may need it
    (`required`); a flag that is `repeated` has several values, separated by commas otherwise.
    """
    about: dict[str, object] = {"text": text, "within": within, "used_if": used_if or {}}
    about |= {"required": required, "repeated": repeated}
    return dataclasses.field(default=default, metadata=about, kw_only=kw_only)


def as_flag(name: str, value: object) -> str:
    """An option as it is given on the command line."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    return f"--{name}={value}"


@dataclass(frozen=True)
class OptionGroup:
    """The base of a dataclass of options.

    The texts of the fields are put into the docstring of the class, as "Attributes:".
    """

    def __init_subclass__(cls) -> None:
        lines = [
            textwrap.fill(
                f"{name}: {field.metadata['text']}",
                width=80,
                initial_indent=" " * 4,
                subsequent_indent=" " * 8,
                break_long_words=False,
                break_on_hyphens=False,
            )
            for name, field in vars(cls).items()
            if isinstance(field, dataclasses.Field)
        ]
        before, section, after = inspect.cleandoc(cls.__doc__ or "").partition("Raises:\n")
        attributes = "\n".join(["Attributes:", *lines])
        cls.__doc__ = f"{before.rstrip()}\n\n{attributes}\n\n{section}{after}".rstrip() + "\n"

    def __post_init__(self) -> None:
        check_values(self, **self._ranges())

    @classmethod
    def _ranges(cls) -> dict[str, Range]:
        fields = dataclasses.fields(cls)
        return {f.name: within for f in fields if (within := f.metadata["within"])}

    @classmethod
    def check(cls, values: Mapping[str, object]) -> None:
        """Raises a ValueError unless each option among `values` is allowed, apart from others."""
        check_some(cls, values, cls._ranges())

    def unused(self) -> dict[str, str]:
        """The options that have no effect, and the flag that is the reason."""
        return {
            field.name: as_flag(other, value)
            for field in dataclasses.fields(self)
            for other, values in field.metadata["used_if"].items()
            if (value := getattr(self, other)) not in values
        }
