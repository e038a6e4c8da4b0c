"""Blanks between words: by a rule of the language, with signs for exceptions.

A word before which the rule is wrong carries a sign (`JOINED` or `APART`).
"""

from __future__ import annotations

import tensorflow as tf

from bahdanau_tf.text.characters import APART
from bahdanau_tf.text.characters import JOINED
from bahdanau_tf.text.languages import Language
from bahdanau_tf.text.quotes import Quotes
from bahdanau_tf.text.rows import before
from bahdanau_tf.text.rows import is_first

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def blanks_by_rule(
    words: tf.Tensor, blanks: tf.Tensor, rows: tf.Tensor, language: Language
) -> tf.Tensor:
    """Tells before which words the language's rule puts a blank.

    Args:
        words: string [N], the words of all rows, one after another, unsigned.
        blanks: bool [N], whether the text has a blank before the word; the
            rule for quotation marks depends on it.
        rows: int32 [N], the row of each word, ascending.
        language: The rules.

    Returns:
        bool [N]; True at the first word of a row.
    """
    close = tf.strings.regex_full_match(_pairs(words), language.close)
    quotes = Quotes.that_stand(words, blanks, close, rows, language)
    return _blanks(words, close, quotes, rows, language)


def _blanks(
    words: tf.Tensor,
    close: tf.Tensor,
    quotes: Quotes,
    rows: tf.Tensor,
    language: Language,
) -> tf.Tensor:
    close |= quotes.is_mark & ~quotes.expected
    close |= before(quotes.opens, False)
    if language.suffixes:
        suffix = tf.strings.regex_full_match(words, language.suffixes)
        close |= suffix & before(quotes.is_mark & ~quotes.opens, False)
    return ~close | is_first(rows)


def sign(words: tf.Tensor, blanks: tf.Tensor, ruled: tf.Tensor) -> tf.Tensor:
    """Puts a sign before each word where the rule is wrong.

    Args:
        words: string [N].
        blanks: bool [N], whether the text has a blank before the word.
        ruled: bool [N], whether the rule puts one there.

    Returns:
        string [N].
    """
    signed = tf.where(blanks, APART, JOINED) + words
    return tf.where(blanks == ruled, words, signed)


def unsign(words: tf.Tensor) -> tf.Tensor:
    """Removes the signs; a word that consists of a sign alone stays."""
    return tf.strings.regex_replace(
        words, f"^[{JOINED}{APART}](.)", r"\1", replace_global=False
    )


def between(
    words: tf.Tensor, rows: tf.Tensor, language: Language, no_break: bool
) -> tf.Tensor:
    """Returns what is written before each word: a blank or nothing.

    Args:
        words: string [N], the words of all rows, with or without signs.
        rows: int32 [N], the row of each word, ascending.
        language: The rules.
        no_break: Whether blanks may be no-break blanks.

    Returns:
        string [N]; nothing at the first word of a row.
    """
    plain = unsign(words)
    joined = tf.strings.regex_full_match(words, f"{JOINED}.+")
    apart = tf.strings.regex_full_match(words, f"{APART}.+")
    pairs = _pairs(plain)
    close = tf.strings.regex_full_match(pairs, language.close)
    quotes = Quotes.that_are_signed(plain, joined, apart, close, rows, language)
    ruled = _blanks(plain, close, quotes, rows, language)
    blank = (ruled & ~joined) | apart
    space = tf.constant(" ")
    if no_break:
        held = tf.strings.regex_full_match(pairs, language.no_break)
        space = tf.where(held, NO_BREAK_SPACE, space)
    return tf.where(blank & ~is_first(rows), space, "")


def _pairs(words: tf.Tensor) -> tf.Tensor:
    """Each word after its predecessor, with a line break between: [N]."""
    return before(words, "") + "\n" + words
