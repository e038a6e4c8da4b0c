"""The languages of a training text, and the options that depend on them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

from bahdanau_tf.options import TextOptions
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.terminal import StatusLine
from bahdanau_tf.text.script import UNKNOWN
from bahdanau_tf.text.script import guess_language
from bahdanau_tf.training.files import TrainingFiles

LINES = 5000  # the first lines of a text, from which its language is guessed


def with_languages(
    text: TextOptions, files: TrainingFiles, known: Mapping[str, object]
) -> TextOptions:
    """Fills in source_language, target_language and true_case where None.

    The values are those of the folder, if it has some. Otherwise languages are
    guessed, if the tokenizer has rules for languages, and written to standard
    error; true_case is the default for the source language.

    Args:
        text: The options to complete.
        files: The texts from which languages are guessed.
        known: The settings with which the folder was made; empty for a new one.
    """
    text = dataclasses.replace(
        text,
        source_language=_language("source", text, files.train_source, known),
        target_language=_language("target", text, files.train_target, known),
    )
    if text.true_case is None:
        true_case = known.get("true_case")
        if not isinstance(true_case, bool):
            language = text.source_language or _guess(files.train_source)
            true_case = text.true_cases(language)
        text = dataclasses.replace(text, true_case=true_case)
    return text


def _language(
    side: str, text: TextOptions, path: str, known: Mapping[str, object]
) -> str | None:
    """The language of a side; None if the tokenizer does not use it."""
    name = f"{side}_language"
    for found in (getattr(text, name), known.get(name)):
        if isinstance(found, str):
            return found
    return None if name in text.unused() else _guessed(side, path)


def _guess(path: str) -> str:
    return guess_language(itertools.islice(read_lines(path), LINES))


def _guessed(side: str, path: str) -> str:
    language = _guess(path)
    note = f"guessed from the text; --{side}_language overrides"
    if language == UNKNOWN:
        note = (
            "unknown: text is split by general rules; "
            f"--{side}_language=CODE sets it"
        )
    StatusLine().note(f"{side} language: {language} ({note})")
    return language
