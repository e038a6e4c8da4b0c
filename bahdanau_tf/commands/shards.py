"""The flag --shard=i/n: which of n equal parts of a text.

Beside the file of a part is a hidden one, written before it, which says of
which lines, by which model and with which flags it is made: a part that was
made otherwise is not taken for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf.system.files import read_object, write_atomically
from bahdanau_tf.system.lines import count_lines, read_lines


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
            raise ValueError(f"--shard is {text!r}, wanted i/n with i from 1 to n, as 1/8")
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

    def note(self, path: str, made_of: Mapping[str, object]) -> None:
        """Writes of what the file of this part is made.

        Args:
            path: As for `file`.
            made_of: What decides its contents, by flag.
        """
        write_atomically(self._note(path), json.dumps(made_of).encode())

    def is_there(self, path: str) -> bool:
        """Whether the file of this part of `path` is complete."""
        return os.path.isfile(self.file(path))

    def check(self, path: str, made_of: Mapping[str, object]) -> None:
        """Checks that the file of this part is made of the same.

        Args:
            path: As for `file`.
            made_of: As for `note`.

        Raises:
            ValueError: It was made of something else. The message has the
                flags that differ.
        """
        note = self._note(path)
        if not note.is_file():
            return  # an earlier version made it
        before = read_object(note)
        names = [*made_of, *(name for name in before if name not in made_of)]
        others = [f"--{name}" for name in names if before.get(name) != made_of.get(name)]
        if others:
            raise ValueError(
                f"--shard: {self.file(path)} was made with another "
                f"{' and another '.join(others)}; remove it, or name another "
                "--output"
            )

    def checksum(self, path: str) -> str:
        """The SHA-256 of the lines of this part of a text.

        Raises:
            ValueError: A line is not UTF-8.
        """
        digest = hashlib.sha256()
        for line in read_lines(path, *self.lines(count_lines(path))):
            digest.update(f"{line}\n".encode())
        return digest.hexdigest()

    def _note(self, path: str) -> Path:
        file = Path(self.file(path))
        return file.with_name(f".{file.name}.json")
