"""Which numbers and names a setting takes, and what is said of others."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from numbers import Real
from typing import Any


@dataclass(frozen=True)
class Range:
    """Finite numbers, from the lowest to the highest.

    Attributes:
        low: The lowest.
        high: The highest.
        above_low: Whether the lowest itself is left out.
        below_high: Whether the highest itself is left out.
    """

    low: float
    high: float
    above_low: bool = False
    below_high: bool = False

    def __contains__(self, value: object) -> bool:
        # NaN is in no range: it is neither smaller nor larger.
        if not isinstance(value, Real):
            return False
        number: Any = value  # an int of any size is compared as it is
        is_low = number > self.low if self.above_low else number >= self.low
        is_high = number < self.high if self.below_high else number <= self.high
        return is_low and is_high

    def __str__(self) -> str:
        low, high = _plain(self.low), _plain(self.high)
        low = f"more than {low}" if self.above_low else low
        if self.below_high:
            return f"{low} or more, below {high}"
        joint = " and at most " if self.above_low else " to "
        return f"{low}{joint}{high}"


def _plain(number: float) -> str:
    """1,000,000 for 1e6."""
    whole = int(number)
    return f"{whole:,}" if whole == number else f"{number:,}"


def check_values(owner: object, **ranges: Range) -> None:
    """Refuses values of a dataclass that are out of their range.

    Names are checked too: a field annotated `Literal` takes those there.
    None is taken where a field has it for "not given".

    Args:
        owner: The dataclass.
        **ranges: Those of its numbers.

    Raises:
        ValueError: A value is out of range; says class, field, value, range.
    """
    for name, hint in typing.get_type_hints(type(owner)).items():
        wanted: Range | list[str] | None = ranges.get(name)
        if typing.get_origin(hint) is typing.Literal:
            wanted = list(typing.get_args(hint))
        value = getattr(owner, name)
        if wanted is None or value is None or value in wanted:
            continue
        one_of = "one of " if isinstance(wanted, list) else ""
        raise ValueError(
            f"{type(owner).__name__}: {name} is {value!r}, wanted {one_of}"
            f"{wanted}"
        )
