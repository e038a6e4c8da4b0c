"""Which quotation marks open, where the same mark opens and closes."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.text.languages import Language
from bahdanau_tf.text.rows import after
from bahdanau_tf.text.rows import before
from bahdanau_tf.text.rows import is_first


class Quotes(NamedTuple):
    """Quotation marks among the words of all rows, one after another.

    Attributes:
        is_mark: bool [N], whether the word is such a mark.
        opens: bool [N], whether it is a mark that opens.
        expected: bool [N], whether the rule expects it to open, given the
            marks before it.
    """

    is_mark: tf.Tensor
    opens: tf.Tensor
    expected: tf.Tensor

    @classmethod
    def that_stand(
        cls,
        words: tf.Tensor,
        blanks: tf.Tensor,
        close: tf.Tensor,
        rows: tf.Tensor,
        language: Language,
    ) -> Quotes:
        """Finds the marks of a text, whose blanks are known.

        A mark opens after a blank, a bracket or the begin of its row.

        Args:
            words: string [N].
            blanks: bool [N], whether the text has a blank before the word.
            close: bool [N], whether the language's rule puts no blank between
                the word and the one before it, apart from quotation marks.
            rows: int32 [N], the row of each word, ascending.
            language: The rules.
        """
        if not language.quotes:
            return cls._by_turns(words, rows)
        is_mark = tf.strings.regex_full_match(words, language.quotes)
        places, must_open, must_close, new_row = _at(is_mark, close, rows)
        opens = must_open | tf.gather(blanks, places)
        opened = before(opens, False) & ~new_row
        expected = must_open | ~(must_close | opened)
        return cls(
            is_mark,
            _scattered(opens, places, is_mark),
            _scattered(expected, places, is_mark),
        )

    @classmethod
    def that_are_signed(
        cls,
        words: tf.Tensor,
        joined: tf.Tensor,
        apart: tf.Tensor,
        close: tf.Tensor,
        rows: tf.Tensor,
        language: Language,
    ) -> Quotes:
        """Finds the marks of signed words; unsigned marks follow the rule.

        Args:
            words: string [N], with the signs removed.
            joined: bool [N], whether the word's sign forbids a blank before it.
            apart: bool [N], whether its sign demands one.
            close: As in `that_stand`.
            rows: As in `that_stand`.
            language: As in `that_stand`.
        """
        if not language.quotes:
            return cls._by_turns(words, rows)
        is_mark = tf.strings.regex_full_match(words, language.quotes)
        places, must_open, must_close, new_row = _at(is_mark, close, rows)
        joined, apart = tf.gather(joined, places), tf.gather(apart, places)
        settled = joined | apart | must_open | must_close | new_row
        opens = ~joined & (apart | must_open | ~must_close)
        # The marks after a settled one alternate.
        number = tf.range(tf.size(places, places.dtype))
        last = tf.cumsum(tf.cast(settled, tf.int32)) - 1
        last = tf.gather(tf.where(settled)[:, 0], last)
        opens = tf.gather(opens, last) == ((number - last) % 2 == 0)
        opens = _scattered(opens, places, is_mark)
        return cls(is_mark, opens, opens)

    @classmethod
    def _by_turns(cls, words: tf.Tensor, rows: tf.Tensor) -> Quotes:
        """Version 1 of the rules: straight marks open and close in turn."""
        is_mark = words == '"'
        count = tf.cumsum(tf.cast(is_mark, tf.int32), exclusive=True)
        count -= tf.gather(tf.math.segment_min(count, rows), rows)
        opens = is_mark & (count % 2 == 0)
        return cls(is_mark, opens, opens)


def _at(
    is_mark: tf.Tensor, close: tf.Tensor, rows: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """The positions of the marks, and what is certain about each.

    Returns:
        int64 [M], the positions; bool [M], whether the mark must open (at the
        begin of a row, after a bracket); bool [M], whether it otherwise must
        close (at the end of a row, before a full stop or the like); bool [M],
        whether it is the first mark of its row.
    """
    places = tf.where(is_mark)[:, 0]
    must_open = tf.gather(is_first(rows) | close, places)
    must_close = tf.gather(after(is_first(rows) | close, True), places)
    return places, must_open, must_close, is_first(tf.gather(rows, places))


def _scattered(
    values: tf.Tensor, places: tf.Tensor, is_mark: tf.Tensor
) -> tf.Tensor:
    none = tf.zeros_like(is_mark)
    return tf.tensor_scatter_nd_update(none, places[:, None], values)
