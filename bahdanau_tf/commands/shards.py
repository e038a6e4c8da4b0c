"""The flag --shard=i/n: which of n equal parts of a text.

A hidden file beside the file of a part, written before it, records its lines,
model and flags, so that a part that was made differently is refused.
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
        match = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"--shard is {text!r}, wanted i/n with i from 1 to n, as 1/8")
        return cls(int(match[1]), int(match[2]))

    def lines(self, total: int) -> tuple[int, int]:
        """The numbers of lines before this part and up to its end, of `total`."""
        first, last = self.number - 1, self.number
        return total * first // self.parts, total * last // self.parts

    def file(self, path: str) -> str:
        """The file of this part of `path`; parts sort by name."""
        ending = ".gz" if Path(path).suffix == ".gz" else ""
        number = str(self.number).zfill(len(str(self.parts)))
        name = f"{path.removesuffix(ending)}-{number}-of-{self.parts}"
        return name + ending

    def note(self, path: str, made_of: Mapping[str, object]) -> None:
        """Records what the file of this part is made of.

        Args:
            path: As for `file`.
            made_of: What decides its contents, by flag.
        """
        write_atomically(self._note(path), json.dumps(made_of).encode())

    def is_there(self, path: str) -> bool:
        """Whether the file of this part of `path` is complete."""
        return os.path.isfile(self.file(path))

    def check(self, path: str, made_of: Mapping[str, object]) -> None:
        """Checks that the file of this part was made of the same.

        Args:
            path: As for `file`.
            made_of: As for `note`.

        Raises:
            ValueError: It was made of something else. The message has the
                flags that differ.
        """
        note = self._note(path)
        if not note.is_file():
            return  # made by an earlier version
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
