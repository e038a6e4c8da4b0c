"""The flag --shard=i/n: which of n equal parts of a text.

Beside the file of a part is a hidden one, written before it, with checksums of
the lines of which it is made: the part of another text is not taken for it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf.files import write_atomically
from bahdanau_tf.text_files import count_lines
from bahdanau_tf.text_files import read_lines


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

    def note(self, path: str, checksums: str) -> None:
        """Writes of which lines the file of this part is made.

        Args:
            path: As for `file`.
            checksums: Those of the lines.
        """
        write_atomically(self._note(path), checksums.encode())

    def is_there(self, path: str, inputs: Sequence[str]) -> bool:
        """Whether the file of this part is complete.

        Args:
            path: As for `file`.
            inputs: As for `checksums`.

        Raises:
            ValueError: It was made of other lines, or a line is not UTF-8.
        """
        if not os.path.isfile(self.file(path)):
            return False
        note = self._note(path)
        if note.is_file() and note.read_text() != self.checksums(inputs):
            raise ValueError(
                f"--shard: {self.file(path)} was made of other lines than "
                f"those of {' and '.join(inputs)}; remove it, or name another "
                "--output"
            )
        return True

    def checksums(self, inputs: Sequence[str]) -> str:
        """The SHA-256 of the lines of this part, for each of the texts.

        Args:
            inputs: The texts that are read, always in the same order.

        Raises:
            ValueError: A line is not UTF-8.
        """
        found = []
        for path in inputs:
            digest = hashlib.sha256()
            for line in read_lines(path, *self.lines(count_lines(path))):
                digest.update(f"{line}\n".encode())
            found.append(f"{digest.hexdigest()}\n")
        return "".join(found)

    def _note(self, path: str) -> Path:
        file = Path(self.file(path))
        return file.with_name(f".{file.name}.sha256")
