"""Checks that the word tokenizer can split a training text into words."""

from __future__ import annotations

import itertools

import tensorflow as tf

from bahdanau_tf.evaluation import has_blanks
from bahdanau_tf.options import TextOptions
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.text import Vocabulary
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.text.script import UNKNOWN
from bahdanau_tf.text.vocabulary import SPECIAL
from bahdanau_tf.training.files import TrainingFiles

LINES = 1000  # the first lines of a text, which are checked
LONGEST = 1000  # only so many characters of a line are checked


def check_words(text: TextOptions, files: TrainingFiles) -> None:
    """Raises if the words of a text would be whole sentences.

    The word tokenizer cannot split text without blanks between words, such as
    Chinese or Thai, unless it has rules for the language, as for Japanese.

    Raises:
        ValueError: The message names the file and the flag.
    """
    if text.tokenizer != "word":
        return
    for side in ("source", "target"):
        path = getattr(files, f"train_{side}")
        language = getattr(text, f"{side}_language") or UNKNOWN
        if not _has_words(path, language):
            raise ValueError(
                f"TrainingPlan: tokenizer is 'word', and {path} has no blanks "
                "between words, so that whole sentences would be words; wanted "
                "--tokenizer=unigram or bpe, or blanks between the words"
            )


def _has_words(path: str, language: str) -> bool:
    begin = itertools.islice(read_lines(path), LINES)
    lines = [line[:LONGEST] for line in begin]
    if has_blanks(lines):
        return True
    tokenizer = WordTokenizer(Vocabulary(SPECIAL), language)
    rows = tokenizer.split(tf.constant(lines)).to_list()
    words = ([word.decode() for word in row] for row in rows)
    # Without punctuation: Tibetan has a mark after each syllable.
    return has_blanks(
        [" ".join(x for x in row if any(map(str.isalpha, x))) for row in words]
    )
