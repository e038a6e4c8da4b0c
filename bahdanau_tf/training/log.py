"""Logs of a training, with a line of JSON for each record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.training.checkpoints import explain_write_errors


class Log:
    """Lines of JSON, each written once, such as `log.jsonl`.

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
        with explain_write_errors(self._path), open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def records(self) -> list[dict[str, float]]:
        """The lines; none if there is no file yet."""
        if not self._path.is_file():
            return []
        lines = self._path.read_text("utf-8", "replace").split("\n")[:-1]
        return [record for record in map(_record, lines) if record is not None]

    def forget_after(self, step: int) -> None:
        """Removes lines after an update, which will be written again.

        A killed run may have written lines after its last checkpoint, or half
        a line.
        """
        if not self._path.is_file():
            return
        text = self._path.read_text("utf-8", "replace")
        lines = text.split("\n")[:-1]
        kept = "".join(
            f"{line}\n"
            for line in lines
            if (record := _record(line)) is not None and record["step"] <= step
        )
        if kept != text:
            write_atomically(self._path, kept.encode())


def _record(line: str) -> dict[str, float] | None:
    """The record of a line; None if `Log.add` did not write it completely."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    is_whole = isinstance(record, dict) and isinstance(record.get("step"), int)
    return record if is_whole else None
