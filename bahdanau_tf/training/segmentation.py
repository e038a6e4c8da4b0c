"""Training text that the word tokenizer cannot cut into words."""

from __future__ import annotations

import itertools

import tensorflow as tf

from bahdanau_tf.evaluation import has_blanks
from bahdanau_tf.options import TextOptions
from bahdanau_tf.text import Vocabulary
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.text.guess import UNKNOWN
from bahdanau_tf.text.vocabulary import SPECIAL
from bahdanau_tf.text_files import read_lines
from bahdanau_tf.training.loop import TrainingFiles

LINES = 1000  # of the begin of a text, to judge by
LONGEST = 1000  # characters of a line that count


def check_words(text: TextOptions, files: TrainingFiles) -> None:
    """Refuses whole sentences as words.

    Of text without blanks between words, such as Chinese or Thai, the word
    tokenizer makes few; rules of a language, as for Japanese, may make more.

    Raises:
        ValueError: It names the file and the flag.
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
    # Marks are left out: Tibetan has one behind each syllable.
    return has_blanks(
        [" ".join(x for x in row if any(map(str.isalpha, x))) for row in words]
    )
