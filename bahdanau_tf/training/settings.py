"""The settings of a training folder, which a later run must share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf.files import read_versioned
from bahdanau_tf.files import write_atomically
from bahdanau_tf.options import ModelOptions
from bahdanau_tf.options import Recipe
from bahdanau_tf.options import TextOptions

FORMAT_VERSION = 1
TRAINING_TEXT = "training_text_checksum"
_FLAGS = {
    field.name
    for options in (TextOptions, ModelOptions, Recipe)
    for field in fields(options)
}


class Change(NamedTuple):
    """A setting as written in the folder, and as it is now."""

    name: str
    before: object
    after: object


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    """Writes settings, unless the file has them already."""
    described = {"format_version": FORMAT_VERSION, **settings}
    data = json.dumps(described, indent=2).encode()
    if not path.is_file() or path.read_bytes() != data:
        write_atomically(path, data)


def check_settings(
    path: Path, settings: Mapping[str, object], free: Sequence[str] = ()
) -> None:
    """Checks that settings are those of the file.

    Settings that the file lacks, as those of earlier versions do, may have any
    value.

    Args:
        path: The JSON file.
        settings: The settings now.
        free: Names of settings that may change.

    Raises:
        ValueError: The folder was made with other settings, or by a newer
            version of this package, or the file is damaged or missing.
    """
    for name, before, after in changes(path, settings):
        if name in free:
            continue
        if name == TRAINING_TEXT:
            raise ValueError(
                f"model_dir: the training text has changed since {path.parent} "
                "was made; give the same --train_source and --train_target as "
                "before, or name another folder"
            )
        flag = f"--{name}" if name in _FLAGS else name
        raise ValueError(
            f"model_dir: {path.parent} holds another model: {flag} is "
            f"{before!r} there and {after!r} now; name another folder"
        )


def changes(path: Path, settings: Mapping[str, object]) -> list[Change]:
    """The settings that differ from those of the file.

    Raises:
        ValueError: The file is missing or damaged, or of a newer version.
    """
    now = json.loads(json.dumps(settings))
    return [*_differences(read_settings(path), now)]


def read_settings(path: Path) -> dict[str, object]:
    """Reads what `write_settings` wrote.

    Raises:
        ValueError: The file is missing or damaged, or a newer version of this
            package wrote it.
    """
    if not path.is_file():
        raise ValueError(
            f"model_dir: {path.parent} holds a model, but {path} is missing, "
            "the file of its settings; name another folder"
        )
    return read_versioned(path, FORMAT_VERSION, "model_dir")


def _differences(
    before: object, after: object, name: str = ""
) -> Iterator[Change]:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if before != after:
            yield Change(name, _in_short(before), _in_short(after))
    elif before.get("class_name") != after.get("class_name"):
        yield Change(name, before.get("class_name"), after.get("class_name"))
    else:
        for key in before:
            yield from _differences(before[key], after.get(key), key)


def _in_short(value: object) -> object:
    """A part of a model is told by its class."""
    return value.get("class_name", value) if isinstance(value, dict) else value
