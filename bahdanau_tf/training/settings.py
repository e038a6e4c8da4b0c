"""What a model's folder was made with, so that nothing else goes into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bahdanau_tf.files import read_object
from bahdanau_tf.files import write_atomically

FORMAT_VERSION = 1


def write_settings(path: Path, settings: dict[str, Any]) -> None:
    """Writes settings down, unless they are those written down already."""
    described = {"format_version": FORMAT_VERSION, **settings}
    data = json.dumps(described, indent=2).encode()
    if not path.is_file() or path.read_bytes() != data:
        write_atomically(path, data)


def check_settings(
    path: Path, settings: dict[str, Any], free: Sequence[str] = ()
) -> None:
    """Checks that settings are those written down.

    What was not written down, as by an earlier version, may be anything.

    Args:
        path: The JSON file.
        settings: What a folder was made with.
        free: Names of settings that may change.

    Raises:
        ValueError: The folder was made with other settings, or by a newer
            version of this package, or the file is damaged or missing.
    """
    for name, before, after in changes(path, settings):
        if name not in free:
            raise ValueError(
                f"model_dir: {path.parent} holds another model: {name} is "
                f"{before!r} there and {after!r} now; name another folder"
            )


def changes(path: Path, settings: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Names of settings that differ, as written down and as they are now.

    Raises:
        ValueError: As `check_settings`, but for other settings.
    """
    now = json.loads(json.dumps(settings))
    return [*_differences(read_settings(path), now)]


def read_settings(path: Path) -> dict[str, Any]:
    """Reads what `write_settings` wrote.

    Raises:
        ValueError: The file is missing or damaged, or a newer version of this
            package has written it.
    """
    if not path.is_file():
        raise ValueError(
            f"model_dir: {path.parent} holds a model, but {path} is missing, "
            "which says how it was made; name another folder"
        )
    known = read_object(path)
    version = known.pop("format_version", None)
    if type(version) is not int or version < 1:
        raise ValueError(
            f"model_dir: {path} has format_version {version!r}, wanted a "
            f"number from 1 to {FORMAT_VERSION}"
        )
    if version > FORMAT_VERSION:
        raise ValueError(
            f"model_dir: {path} has format version {version}, newer than the "
            f"{FORMAT_VERSION} that this bahdanau_tf reads"
        )
    return known


def _differences(
    before: Any, after: Any, name: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            yield from _differences(before[key], after.get(key), key)
    elif before != after:
        yield name, before, after
