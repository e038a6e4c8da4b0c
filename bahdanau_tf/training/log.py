"""The log of a training, with a line of JSON for each evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bahdanau_tf.files import write_atomically
from bahdanau_tf.training.errors import told_by_path


class Log:
    """`log.jsonl`, in which each evaluation is written once.

    Args:
        path: The file; made with the first line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, record: Mapping[str, object]) -> None:
        """Adds a line; `record` has a "step".

        Raises:
            OSError: The file cannot be written.
        """
        with (
            told_by_path(self._path),
            open(self._path, "a", encoding="utf-8") as file,
        ):
            file.write(json.dumps(record) + "\n")

    def forget_after(self, step: int) -> None:
        """Removes lines after an update, which will be written again.

        A killed run may have logged evaluations after its last checkpoint, or
        half a line.
        """
        if not self._path.is_file():
            return
        text = self._path.read_text("utf-8", "replace")
        lines = text.split("\n")[:-1]
        kept = "".join(f"{x}\n" for x in lines if _is_known(x, step))
        if kept != text:
            write_atomically(self._path, kept.encode())


def _is_known(line: str, step: int) -> bool:
    try:
        return bool(json.loads(line)["step"] <= step)
    except (ValueError, TypeError, KeyError):
        return False
