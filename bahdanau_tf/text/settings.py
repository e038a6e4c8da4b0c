"""tokenizer.json: class and options of the tokenizer in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bahdanau_tf.system.files import read_object
from bahdanau_tf.system.files import write_atomically

_FILE = "tokenizer.json"


def settings_of(
    tokenizer: object, checksum: str, config: Mapping[str, object]
) -> dict[str, object]:
    """The settings: class, options and the SHA-256 of the tokenizer's file."""
    return {
        "class": type(tokenizer).__name__,
        "config": config,
        "checksum": checksum,
    }


def write_settings(
    directory: str | os.PathLike[str], settings: Mapping[str, object]
) -> None:
    """Writes the settings of `settings_of` to tokenizer.json."""
    data = json.dumps(settings, indent=2) + "\n"
    write_atomically(Path(directory, _FILE), data.encode())


def read_settings(
    directory: str | os.PathLike[str],
) -> tuple[str, str, dict[str, Any]]:
    """Reads class, SHA-256 and options from tokenizer.json.

    Raises:
        ValueError: The file is not JSON, or lacks one of them.
    """
    path = Path(directory, _FILE)
    settings = read_object(path)
    name, checksum = settings.get("class"), settings.get("checksum")
    config = settings.get("config")
    if (
        not isinstance(name, str)
        or not isinstance(checksum, str)
        or not isinstance(config, dict)
    ):
        raise ValueError(
            f"load_text: {path} lacks a class, a checksum or a config."
        )
    return name, checksum, config
