"""Allowed values of settings, and the errors for others."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, cast


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
        raise ValueError(f"{owner}: {name} is {value!r}, wanted a whole number, at least 1")
    return number


# For each annotation the allowed values, including NumPy's numbers, and their name.
_KINDS: dict[type, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a string"),
}


def check_values(owner: object, **ranges: Range) -> None:
    """Raises a ValueError unless the fields of a dataclass have allowed values.

    A value must have the annotated type, a number must lie in its range, and a field annotated
    `Literal` must have one of its values. None passes where the annotation allows it: it stands
    for "not given". NumPy's numbers are replaced by Python's, which JSON can hold.
    """
    values = {name: getattr(owner, name) for name in typing.get_type_hints(type(owner))}
    check_some(type(owner), values, ranges)
    for name, value in values.items():
        if hasattr(value, "item"):
            object.__setattr__(owner, name, value.item())  # it may be frozen


def check_some(owner: type, values: Mapping[str, object], ranges: Mapping[str, Range]) -> None:
    """As `check_values`, of values for some fields of a dataclass, by name; ignores other names."""
    for name, hint in typing.get_type_hints(owner).items():
        if name in values and (wanted := _wanted(values[name], hint, ranges.get(name))):
            raise ValueError(f"{owner.__name__}: {name} is {values[name]!r}, wanted {wanted}")


def did_you_mean(name: str, names: Iterable[str], before: str = "") -> str:
    """A hint for a wrong name: the names that contain it, or else those that are like it."""
    longer = sorted(other for other in names if len(name) > 2 and name in other)
    like = longer or get_close_matches(name, names)
    return f" (did you mean {' or '.join(before + other for other in like)}?)" if like else ""


def check_range(owner: object, name: str, allowed: Range) -> None:
    """Raises a ValueError unless the field of a dataclass, of a checked type, is in a range."""
    if (value := getattr(owner, name)) not in allowed:
        raise ValueError(f"{type(owner).__name__}: {name} is {value!r}, wanted {allowed}")


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
