"""The languages of a training text, where no flag names them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

from bahdanau_tf.options import TextOptions
from bahdanau_tf.progress import ProgressLine
from bahdanau_tf.text.guess import UNKNOWN
from bahdanau_tf.text.guess import guess_language
from bahdanau_tf.text_files import read_lines
from bahdanau_tf.training.loop import TrainingFiles

LINES = 5000  # of the begin of a text, to guess by


def with_languages(
    text: TextOptions, files: TrainingFiles, known: Mapping[str, Any]
) -> TextOptions:
    """Fills in source_language and target_language where they are None.

    They are those with which the folder was made, and else are guessed if the
    tokenizer has rules of languages; a guess is told on standard error.

    Args:
        text: What may lack them.
        files: The texts to guess by.
        known: The settings with which the folder was made, if it was.
    """
    found: dict[str, Any] = {}
    for side, path in (
        ("source", files.train_source),
        ("target", files.train_target),
    ):
        name = f"{side}_language"
        if getattr(text, name) is None:
            found[name] = known.get(name)
            if found[name] is None and name not in text.unused():
                found[name] = _guessed(side, path)
    return dataclasses.replace(text, **found)


def _guessed(side: str, path: str) -> str:
    language = guess_language(itertools.islice(read_lines(path), LINES))
    how = "guessed from the text"
    if language == UNKNOWN:
        how = "unknown: general rules"
    ProgressLine(0).note(
        f"{side} language: {language} ({how}; --{side}_language overrides)"
    )
    return language
