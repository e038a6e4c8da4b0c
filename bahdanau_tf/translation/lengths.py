"""Lengths of sentences in the units that models count."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.text.protocol import Tokenizer


def token_lengths(text: Tokenizer, lines: Sequence[str]) -> list[int]:
    """Tokens of each line, the end symbol not counted, as training counts."""
    rows = text.tokenize(tf.constant(lines, tf.string))
    lengths: list[int] = (rows.row_lengths() - 1).numpy().tolist()
    return lengths


def source_lengths(
    texts: Sequence[Tokenizer], sources: Sequence[str]
) -> tuple[list[int], str]:
    """The length of each source, and its unit in words.

    Lengths are in tokens of the first tokenizer that has words, so that they
    are the same for all systems; else in sub-words of the first tokenizer, by
    which the training of its model counted; without one in words between
    blanks.

    Args:
        texts: The tokenizer of the source of each model.
        sources: The sentences.
    """
    for text in texts:
        if isinstance(text, WordTokenizer):
            return token_lengths(text, sources), "tokens"
    if texts:
        return token_lengths(texts[0], sources), "sub-words"
    return [len(source.split()) for source in sources], "words between blanks"
