"""The flag --shard=i/n: which of n equal parts of a text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Shard(NamedTuple):
    """One of several parts of a text, whose numbers of lines differ by 1.

    Attributes:
        number: Which part, from 1.
        parts: How many there are.
    """

    number: int
    parts: int

    @classmethod
    def of(cls, text: str) -> Shard:
        """Reads "i/n".

        Raises:
            ValueError: It is something else, or i is not a number from 1 to n.
        """
        found = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(
                f"--shard is {text!r}, wanted i/n with i from 1 to n, as 1/8"
            )
        return cls(int(found[1]), int(found[2]))

    def lines(self, total: int) -> tuple[int, int]:
        """How many of `total` lines are before this part, and up to its end."""
        first, last = self.number - 1, self.number
        return total * first // self.parts, total * last // self.parts

    def file(self, path: str) -> str:
        """The file of this part of `path`; in the order of their names."""
        ending = ".gz" if Path(path).suffix == ".gz" else ""
        number = str(self.number).zfill(len(str(self.parts)))
        name = f"{path.removesuffix(ending)}-{number}-of-{self.parts}"
        return name + ending
