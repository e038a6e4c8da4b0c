"""What a model's folder was made with, so that nothing else goes into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bahdanau_tf.files import write_atomically

FORMAT_VERSION = 1


def remember(
    path: Path, settings: dict[str, Any], free: Sequence[str] = ()
) -> None:
    """Writes settings down, or checks that they are those written down.

    Args:
        path: The JSON file.
        settings: What a folder was made with.
        free: Names of settings that may change.

    Raises:
        ValueError: The folder was made with other settings, or by a newer
            version of this package.
    """
    if not path.exists():
        described = {"format_version": FORMAT_VERSION, **settings}
        write_atomically(path, json.dumps(described, indent=2).encode())
        return
    known = json.loads(path.read_text("utf-8"))
    version = known.pop("format_version")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"model_dir: {path} has format version {version}, newer than the "
            f"{FORMAT_VERSION} that this bahdanau_tf reads"
        )
    now = json.loads(json.dumps(settings))
    for name, before, after in _differences(known, now):
        if name not in free:
            raise ValueError(
                f"model_dir: {path.parent} holds another model: {name} is "
                f"{before!r} there and {after!r} now; name another folder"
            )


def _differences(
    before: Any, after: Any, name: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from _differences(before.get(key), after.get(key), key)
    elif before != after:
        yield name, before, after
