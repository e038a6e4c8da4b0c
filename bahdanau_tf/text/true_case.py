"""Lines that are all in capitals, read as if they were not."""

from __future__ import annotations

import functools
import sys

import tensorflow as tf

_NO_SMALL = r"[^\p{Ll}\p{Lt}]*"
_WORD = r"\p{Lu}\p{M}*\p{Lu}"
_CAPITALS = _NO_SMALL.join(["", _WORD, r"[\s\p{Z}]", _WORD, ""])


def true_cased(strings: tf.Tensor) -> tf.Tensor:
    """Writes what is all in capitals as a sentence: A BIG DOG. A big dog.

    That is a line with two words of two capitals or more and without a small
    letter. All others are as they were, and so is one with a letter whose
    small form takes another number of bytes, such as the Turkish U+0130:
    offsets in the result are offsets in the string that came. Names lose
    their capital, nothing tells them from other words.

    Args:
        strings: string [B].

    Returns:
        string [B], each of as many bytes as before.
    """
    begin = tf.strings.regex_replace(
        strings, r"(?s)^([^\pL\pN]*\pL?).*$", r"\1", replace_global=False
    )
    length = tf.strings.length(strings)
    rest = tf.strings.substr(strings, tf.strings.length(begin), length)
    result = begin + tf.strings.lower(rest, "utf-8")
    capitals = tf.strings.regex_full_match(strings, _CAPITALS)
    capitals &= tf.strings.regex_full_match(strings, _even())
    # The pattern is of Python's Unicode, small letters of TensorFlow's.
    capitals &= tf.strings.length(result) == length
    return tf.where(capitals, result, strings)


@functools.cache
def _even() -> str:
    """Pattern of text whose small letters take the bytes of its capitals."""
    uneven = "".join(
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if character.isupper()
        and len(character.lower().encode()) != len(character.encode())
    )
    return rf"[^\x00{uneven}]*"  # U+0000 would be dropped
