"""Allowed values of settings, and the errors for others."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, cast

MARK = 1 << 24  # more than any id; added to those of marks in `Copying.copies`

# Whether a command speaks here: messages name options as flags, and not who refuses something.
_in_command: ContextVar[bool] = ContextVar("in_command", default=False)


@contextmanager
def flags_named() -> Iterator[None]:
    """Messages are those of a command in the block."""
    token = _in_command.set(True)
    try:
        yield
    finally:
        _in_command.reset(token)


# The keywords of `fit` for the flags that are named otherwise.
_KEYWORDS = {"train_source": "source", "train_target": "target", "dev_source": "dev"}


def as_flag(name: str, value: object) -> str:
    """An option as it is given on the command line."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    if isinstance(value, list):
        value = ",".join(value)
    return f"--{name}={value}"


def named(name: str, value: object = None) -> str:
    """An option in a message, as its reader gives it: --units=8 or units=8."""
    if _in_command.get():
        return f"--{name}" if value is None else as_flag(name, value)
    name = _KEYWORDS.get(name, name)
    if value is None:
        return name
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value!r}"


class Shown(str):
    """A value that messages show as it is, without quotes."""

    __repr__ = str.__str__


class Refusal(ValueError):
    """A class or function refuses something; a command says only what, Python also who.

    Attributes:
        owner: The class or function.
        what: What came, and what was wanted.
    """

    def __init__(self, owner: str, *about: object) -> None:
        self.owner, self._about = owner, about
        # Keras adds to the first argument, and makes the error anew of that alone.
        super().__init__(f"{owner}: {self.what}" if about else owner)

    def __reduce__(self) -> tuple[type[Refusal], tuple[object, ...]]:
        return type(self), (self.owner, *self._about)

    @property
    def what(self) -> str:
        return str(self._about[0]) if self._about else self.owner

    def __str__(self) -> str:
        alone = _in_command.get() or not self._about
        return self.what if alone else f"{self.owner}: {self.what}"


class OptionError(Refusal):
    """An option has a value that it cannot have.

    Attributes:
        owner: The class or function that has the option.
        option: The name of the option.
        value: The value that it cannot have.
        wanted: Which values it can have.
        why: Why it cannot have this one, or "".
    """

    def __init__(
        self, owner: str, option: str, value: object, wanted: str = "", why: str = ""
    ) -> None:
        self.option, self.value, self.wanted, self.why = option, value, wanted, why
        super().__init__(owner, option, value, wanted, why)

    @property
    def what(self) -> str:
        wanted = self.wanted and f"wanted {self.wanted}"
        said = f"{named(self.option)} is {self.value!r}"
        return ", ".join(part for part in (said, self.why, wanted) if part)


@dataclass(frozen=True)
class Range:
    """An interval of numbers."""

    low: float
    high: float
    above_low: bool = False  # whether the lower bound itself is excluded
    below_high: bool = False
    of: str = ""  # what the upper bound depends on, if it is not fixed

    def __contains__(self, value: object) -> bool:
        # NaN is in no range: all its comparisons are false.
        if not isinstance(value, Real):
            return False
        number = cast("float", value)  # not float(value): ints may be too large
        is_low = number > self.low if self.above_low else number >= self.low
        is_high = number < self.high if self.below_high else number <= self.high
        return is_low and is_high

    def __str__(self) -> str:
        low, high = (f"{int(x) if int(x) == x else x:,}" for x in (self.low, self.high))
        low = f"more than {low}" if self.above_low else low
        if self.below_high:
            return f"{low} or more, below {high}"
        joint = " and at most " if self.above_low else " to "
        return f"{low}{joint}{high}{self.of and f', {self.of}'}"


def size(owner: str, name: str, value: object) -> int:
    """A number of units, words or layers as a Python `int`: the argument `name` of a class.

    If it is not a whole number, or less than 1, a ValueError begins with the class, `owner`.
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or (number := int(cast("int", value))) < 1:
        raise OptionError(owner, name, value, "a whole number, at least 1")
    return number


# For each annotation the allowed values, including NumPy's numbers, and their name.
_KINDS: dict[type, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a string"),
}


_hints = functools.cache(typing.get_type_hints)  # of a class; they take 0.3 ms


def check_values(owner: type, values: Mapping[str, object], ranges: Mapping[str, Range]) -> None:
    """Raises a ValueError unless values for fields of a dataclass, by name, are allowed.

    A value must have the annotated type, a number must lie in its range, and a field annotated
    `Literal` must have one of its values. None passes where the annotation allows it: it stands
    for "not given". Names of no field are ignored.
    """
    hints = _hints(owner)
    for name, value in values.items():
        if name in hints and (wanted := _wanted(value, hints[name], ranges.get(name))):
            raise OptionError(owner.__name__, name, value, wanted)


def did_you_mean(name: str, names: Iterable[str], before: str = "") -> str:
    """A hint for a wrong name: the names that contain it, or else those that are like it."""
    longer = sorted(other for other in names if len(name) > 2 and name in other)
    like = longer or get_close_matches(name, names)
    return f" (did you mean {' or '.join(before + other for other in like)}?)" if like else ""


def check_range(owner: object, name: str, allowed: Range) -> None:
    """Raises a ValueError unless the field of a dataclass, of a checked type, is in a range."""
    if (value := getattr(owner, name)) not in allowed:
        raise OptionError(type(owner).__name__, name, value, str(allowed))


def _wanted(value: object, hint: Any, allowed: Range | None) -> str:
    """Describes the allowed values; empty if the value is allowed."""
    if typing.get_origin(hint) is typing.Literal:
        names = list(typing.get_args(hint))
        return "" if value in names else f"one of {names}"
    kinds = typing.get_args(hint) or (hint,)
    if value is None and type(None) in kinds:
        return ""
    kind, name = _KINDS[kinds[0]]
    is_bool = isinstance(value, bool) and kind is not bool  # Python takes True for 1
    if is_bool or not isinstance(value, kind):
        return name + (f", {allowed}" if allowed else "")
    return "" if allowed is None or value in allowed else str(allowed)
