"""Spaces between words: by a rule of the language, with signs for exceptions.

A word before which the rule is wrong carries a sign (`JOINED` or `APART`). Functions take the
words of all rows, one after another: string [N], and their rows, int32 [N], ascending.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.text.languages import Language
from bahdanau_tf.text.rows import after, before, is_first
from bahdanau_tf.text.splitting import APART, JOINED


class Quotes(NamedTuple):
    """Quotation marks among the words of all rows, bool [N] each."""

    is_mark: tf.Tensor
    opens: tf.Tensor  # whether it is a mark that opens
    expected: tf.Tensor  # whether the rule expects it to open, given the marks before it

    @classmethod
    def that_stand(
        cls, words: tf.Tensor, spaces: tf.Tensor, close: tf.Tensor, rows: tf.Tensor, rules: Language
    ) -> Quotes:
        """The marks of a text with these spaces before its words.

        A mark opens after a space, a bracket or the start of its row. `close` says where the rule
        puts no space before a word, apart from quotation marks.
        """
        if not rules.quotes:
            return cls._by_turns(words, rows)
        is_mark = tf.strings.regex_full_match(words, rules.quotes)
        places, must_open, must_close, new_row = _at(is_mark, close, rows)
        opens = must_open | tf.gather(spaces, places)
        opened = before(opens, False) & ~new_row
        expected = must_open | ~(must_close | opened)
        return cls(is_mark, _placed(opens, places, is_mark), _placed(expected, places, is_mark))

    @classmethod
    def that_are_signed(
        cls,
        words: tf.Tensor,
        joined: tf.Tensor,
        apart: tf.Tensor,
        close: tf.Tensor,
        rows: tf.Tensor,
        rules: Language,
    ) -> Quotes:
        """The marks of signed words, without their signs; unsigned marks follow the rule.

        The sign of a `joined` word forbids a space before it, that of an `apart` one demands it.
        """
        if not rules.quotes:
            return cls._by_turns(words, rows)
        is_mark = tf.strings.regex_full_match(words, rules.quotes)
        places, must_open, must_close, new_row = _at(is_mark, close, rows)
        joined, apart = tf.gather(joined, places), tf.gather(apart, places)
        settled = joined | apart | must_open | must_close | new_row
        opens = ~joined & (apart | must_open | ~must_close)
        # The marks after a settled one alternate.
        number = tf.range(tf.size(places, places.dtype))
        last = tf.cumsum(tf.cast(settled, tf.int32)) - 1
        last = tf.gather(tf.where(settled)[:, 0], last)
        opens = tf.gather(opens, last) == ((number - last) % 2 == 0)
        opens = _placed(opens, places, is_mark)
        return cls(is_mark, opens, opens)

    @classmethod
    def _by_turns(cls, words: tf.Tensor, rows: tf.Tensor) -> Quotes:
        """Version 1 of the rules: straight marks open and close in turn."""
        is_mark = words == '"'
        count = tf.cumsum(tf.cast(is_mark, tf.int32), exclusive=True)
        count -= tf.gather(tf.math.segment_min(count, rows), rows)
        opens = is_mark & (count % 2 == 0)
        return cls(is_mark, opens, opens)


def _at(is_mark: tf.Tensor, close: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """The positions of the marks, int64 [M], and what is certain about each.

    Three bool [M]: whether the mark must open (at the start of a row, after a bracket); whether it
    otherwise must close (at the end of a row, before a full stop or the like); whether it is the
    first mark of its row.
    """
    places = tf.where(is_mark)[:, 0]
    must_open = tf.gather(is_first(rows) | close, places)
    must_close = tf.gather(after(is_first(rows) | close, True), places)
    return places, must_open, must_close, is_first(tf.gather(rows, places))


def _placed(values: tf.Tensor, places: tf.Tensor, is_mark: tf.Tensor) -> tf.Tensor:
    none = tf.zeros_like(is_mark)
    return tf.tensor_scatter_nd_update(none, places[:, None], values)


def by_rule(words: tf.Tensor, spaces: tf.Tensor, rows: tf.Tensor, rules: Language) -> tf.Tensor:
    """Before which unsigned words the rule puts a space: bool [N]; True at the first of a row.

    The rule for quotation marks depends on the spaces of the text, bool [N].
    """
    close = tf.strings.regex_full_match(_pairs(words), rules.close)
    quotes = Quotes.that_stand(words, spaces, close, rows, rules)
    return _spaces(words, close, quotes, rows, rules)


def _spaces(
    words: tf.Tensor, close: tf.Tensor, quotes: Quotes, rows: tf.Tensor, rules: Language
) -> tf.Tensor:
    close |= quotes.is_mark & ~quotes.expected
    close |= before(quotes.opens, False)
    if rules.suffixes:
        suffix = tf.strings.regex_full_match(words, rules.suffixes)
        close |= suffix & before(quotes.is_mark & ~quotes.opens, False)
    return ~close | is_first(rows)


def sign(words: tf.Tensor, spaces: tf.Tensor, ruled: tf.Tensor) -> tf.Tensor:
    """Puts a sign before each word where the text has a space, and the rule none, or vice versa."""
    signed = tf.where(spaces, APART, JOINED) + words
    return tf.where(spaces == ruled, words, signed)


def unsign(words: tf.Tensor) -> tf.Tensor:
    """Removes the signs; a word that consists of a sign alone stays."""
    return tf.strings.regex_replace(words, f"^[{JOINED}{APART}](.)", r"\1", replace_global=False)


def between(words: tf.Tensor, rows: tf.Tensor, rules: Language, no_break: bool) -> tf.Tensor:
    """What is written before each word, signed or not: a space or nothing, string [N].

    With `no_break`, spaces may be no-break spaces.
    """
    plain = unsign(words)
    joined = tf.strings.regex_full_match(words, f"{JOINED}.+")
    apart = tf.strings.regex_full_match(words, f"{APART}.+")
    pairs = _pairs(plain)
    close = tf.strings.regex_full_match(pairs, rules.close)
    quotes = Quotes.that_are_signed(plain, joined, apart, close, rows, rules)
    ruled = _spaces(plain, close, quotes, rows, rules)
    character = tf.constant(" ")
    if no_break:
        held = tf.strings.regex_full_match(pairs, rules.no_break)
        character = tf.where(held, "\N{NO-BREAK SPACE}", character)
    return tf.where(((ruled & ~joined) | apart) & ~is_first(rows), character, "")


def _pairs(words: tf.Tensor) -> tf.Tensor:
    """Each word after its predecessor, with a line break between: [N]."""
    return before(words, "") + "\n" + words
