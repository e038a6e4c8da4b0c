"""Writes lines that are all in capitals in ordinary case."""

from __future__ import annotations

import functools

import tensorflow as tf

_NO_SMALL = r"[^\p{Ll}\p{Lt}]*"
_WORD = r"\p{Lu}\p{M}*\p{Lu}"
_CAPITALS = _NO_SMALL.join(["", _WORD, r"[\s\p{Z}]", _WORD, ""])


def true_cased(strings: tf.Tensor) -> tf.Tensor:
    """Writes strings all in capitals as sentences: A BIG DOG. A big dog.

    Such a string has two words of two or more capitals and no small letter.
    All others stay as they are, and so does a string with a letter whose small
    form has another number of bytes, such as the Turkish U+0130: offsets in the
    result are offsets in the original. Names lose their capital, since nothing
    distinguishes them from other words.

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
    # The pattern follows Python's Unicode tables, `lower` TensorFlow's.
    capitals &= tf.strings.length(result) == length
    return tf.where(capitals, result, strings)


@functools.cache
def _even() -> str:
    """Pattern of text that has as many bytes in small letters."""
    uneven = "".join(
        character
        for character in map(chr, range(0x10000))  # beyond, all have four
        if character.isupper()
        and len(character.lower().encode()) != len(character.encode())
    )
    return rf"[^\x00{uneven}]*"  # `lower` drops U+0000
