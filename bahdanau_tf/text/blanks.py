"""Whether there is a blank between two words: the rule, and its exceptions."""

from __future__ import annotations

import tensorflow as tf

from bahdanau_tf.text.characters import APART
from bahdanau_tf.text.characters import JOINED
from bahdanau_tf.text.languages import Language
from bahdanau_tf.text.rows import before

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def blanks_by_rule(
    words: tf.Tensor, rows: tf.Tensor, language: Language
) -> tf.Tensor:
    """Says before which words the language's rule puts a blank.

    Args:
        words: string [N], words of all rows, one after another, unsigned.
        rows: int32 [N], the row of each, ascending.
        language: The rules.

    Returns:
        bool [N]; True at the first word of a row.
    """
    close = tf.strings.regex_full_match(_pairs(words), language.close)
    # A straight quotation mark opens and closes by turns within its row.
    quote = words == '"'
    count = tf.cumsum(tf.cast(quote, tf.int32), exclusive=True)
    count -= tf.gather(tf.math.segment_min(count, rows), rows)
    opens = quote & (count % 2 == 0)
    close |= (quote & ~opens) | before(opens, False)
    return ~close | is_first(rows)


def sign(words: tf.Tensor, blanks: tf.Tensor, ruled: tf.Tensor) -> tf.Tensor:
    """Puts a sign before the words where the rule is wrong.

    Args:
        words: string [N].
        blanks: bool [N], whether a blank is before the word.
        ruled: bool [N], whether there is one by the rule.

    Returns:
        string [N].
    """
    signed = tf.where(blanks, APART, JOINED) + words
    return tf.where(blanks == ruled, words, signed)


def unsign(words: tf.Tensor) -> tf.Tensor:
    """Takes the sign away; a sign that is a whole word stays."""
    return tf.strings.regex_replace(
        words, f"^[{JOINED}{APART}](.)", r"\1", replace_global=False
    )


def between(
    words: tf.Tensor, rows: tf.Tensor, language: Language, no_break: bool
) -> tf.Tensor:
    """Says what is written before each word.

    Args:
        words: string [N], words of all rows, with or without signs.
        rows: int32 [N], the row of each, ascending.
        language: The rules.
        no_break: Whether blanks may be no-break blanks.

    Returns:
        string [N], a blank or nothing; nothing at the first word of a row.
    """
    plain = unsign(words)
    joined = tf.strings.regex_full_match(words, f"{JOINED}.+")
    apart = tf.strings.regex_full_match(words, f"{APART}.+")
    blank = (blanks_by_rule(plain, rows, language) & ~joined) | apart
    space = tf.constant(" ")
    if no_break:
        held = tf.strings.regex_full_match(_pairs(plain), language.no_break)
        space = tf.where(held, NO_BREAK_SPACE, space)
    return tf.where(blank & ~is_first(rows), space, "")


def is_first(rows: tf.Tensor) -> tf.Tensor:
    """Says which words are the first of their row: bool [N]."""
    return rows != before(rows, -1)


def _pairs(words: tf.Tensor) -> tf.Tensor:
    """Writes each word after the one before it, with a line break between."""
    return before(words, "") + "\n" + words
