"""Options: fields of dataclasses, from which flags, help and checks follow."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from bahdanau_tf.system.ranges import Range, check_values, named

# An entry of a docstring's list, whose further lines are indented.
_TEXT = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def option(
    text: str,
    default: Any = None,
    within: Range | None = None,
    *,
    required: bool = False,
    repeated: bool = False,
) -> Any:
    """A field of a dataclass, which is a flag of a command, with the text for its help.

    The annotation of the field says which type it has and, if it is a `Literal`, its choices;
    `X | None` may be None, "not given". A command may need it (`required`); a flag that is
    `repeated` has several values, separated by commas otherwise.
    """
    about = {"text": text, "within": within, "required": required, "repeated": repeated}
    return dataclasses.field(default=default, metadata=about)


def setting(
    default: Any = None,
    within: Range | None = None,
    *,
    used_if: Mapping[str, Sequence[object]] = MappingProxyType({}),
    kw_only: bool = False,
) -> Any:
    """An option whose text is under "Attributes:" in the docstring of its class.

    `used_if` has the values of other options that give it an effect. One that needs neither
    this nor a range is a plain default.
    """
    about = {"within": within, "used_if": used_if}
    return dataclasses.field(default=default, metadata=about, kw_only=kw_only)


T = TypeVar("T", bound="OptionGroup")


@dataclass(frozen=True)
class OptionGroup:
    """The base of a dataclass of options."""

    def __post_init__(self) -> None:
        self.check(vars(self))
        for name, value in [*vars(self).items()]:
            if hasattr(value, "item"):  # NumPy's numbers become Python's, which JSON can hold
                object.__setattr__(self, name, value.item())

    @classmethod
    def of(cls: type[T], values: Mapping[str, Any]) -> T:
        """The options of this class, from values of all options by name."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})

    @classmethod
    def texts(cls) -> dict[str, str]:
        """What each option means, by name."""
        documented = (inspect.cleandoc(owner.__doc__ or "") for owner in cls.__mro__)
        texts = {n: " ".join(text.split()) for doc in documented for n, text in _TEXT.findall(doc)}
        own = (field for field in dataclasses.fields(cls) if "text" in field.metadata)
        return texts | {field.name: field.metadata["text"] for field in own}

    @classmethod
    def check(cls, values: Mapping[str, object]) -> None:
        """Raises a ValueError unless each option among `values` is allowed, apart from others."""
        fields = dataclasses.fields(cls)
        ranges = {f.name: within for f in fields if (within := f.metadata.get("within"))}
        check_values(cls, values, ranges)

    def unused(self) -> dict[str, str]:
        """The options that have no effect, and the option that is the reason."""
        return {
            field.name: named(other, value)
            for field in dataclasses.fields(self)
            for other, values in field.metadata.get("used_if", {}).items()
            if (value := getattr(self, other)) not in values
        }
