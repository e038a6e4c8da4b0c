"""A tokenizer with more words."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from bahdanau_tf.text import blanks
from bahdanau_tf.text.tokenizer import WordTokenizer
from bahdanau_tf.text.vocabulary import SPECIAL
from bahdanau_tf.text.vocabulary import Vocabulary


def with_added_words(
    tokenizer: WordTokenizer,
    files: Iterable[str | os.PathLike[str]],
    most: int,
) -> WordTokenizer:
    """Adds the most frequent unknown words of text files.

    Args:
        tokenizer: The tokenizer, which stays as it is.
        files: UTF-8 text, one sentence per line.
        most: Largest number of words to add.

    Returns:
        A tokenizer in which all known words keep their ids.
    """
    sentences = tokenizer.sentences(files)
    counts = Counter(itertools.chain.from_iterable(sentences))
    order = sorted(counts, key=lambda word: (-counts[word], word))
    signed = tf.constant(order, tf.string)
    known = {*tokenizer.vocabulary.tokens}
    plain = [word.decode() for word in blanks.unsign(signed).numpy()]
    unknown = [
        word
        for word, bare in zip(order, plain, strict=True)
        if not known & {word, bare} and word not in SPECIAL
    ]
    vocabulary = Vocabulary([*tokenizer.vocabulary.tokens, *unknown[:most]])
    options: Any = tokenizer.settings()["config"]
    return WordTokenizer(vocabulary, **options)
