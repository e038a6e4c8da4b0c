"""Which quotation marks open, where one mark does both."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.text.languages import Language
from bahdanau_tf.text.rows import after
from bahdanau_tf.text.rows import before
from bahdanau_tf.text.rows import is_first


class Quotes(NamedTuple):
    """Which of the words, all rows one after another, are such marks.

    Attributes:
        is_mark: bool [N].
        opens: bool [N], whether it is a mark that opens.
        expected: bool [N], whether the rule expects it to open, given those
            before it.
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
        """Reads them as they stand in a text.

        One opens behind a blank, a bracket or the begin of its row.

        Args:
            words: string [N].
            blanks: bool [N], whether a blank is before the word.
            close: bool [N], whether a pair of words is written close
                whatever it quotes, the word and the one before it.
            rows: int32 [N], the row of each, ascending.
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
        """Reads them off their signs, and by the rule where there is none.

        Args:
            words: string [N], unsigned.
            joined: bool [N], whether the word's sign forbids a blank.
            apart: bool [N], whether its sign asks for one.
            close: As in `that_stand`, and so are the others.
            rows: int32 [N].
            language: The rules.
        """
        if not language.quotes:
            return cls._by_turns(words, rows)
        is_mark = tf.strings.regex_full_match(words, language.quotes)
        places, must_open, must_close, new_row = _at(is_mark, close, rows)
        joined, apart = tf.gather(joined, places), tf.gather(apart, places)
        settled = joined | apart | must_open | must_close | new_row
        opens = ~joined & (apart | must_open | ~must_close)
        # Those behind a settled one turn by turn.
        number = tf.range(tf.size(places))
        last = tf.cumsum(tf.cast(settled, tf.int32)) - 1
        last = tf.gather(tf.boolean_mask(number, settled), last)
        opens = tf.gather(opens, last) == ((number - last) % 2 == 0)
        opens = _scattered(opens, places, is_mark)
        return cls(is_mark, opens, opens)

    @classmethod
    def _by_turns(cls, words: tf.Tensor, rows: tf.Tensor) -> Quotes:
        """The first rules: the straight mark opens and closes by turns."""
        is_mark = words == '"'
        count = tf.cumsum(tf.cast(is_mark, tf.int32), exclusive=True)
        count -= tf.gather(tf.math.segment_min(count, rows), rows)
        opens = is_mark & (count % 2 == 0)
        return cls(is_mark, opens, opens)


def _at(
    is_mark: tf.Tensor, close: tf.Tensor, rows: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """Where the marks are, and what is sure of each.

    Returns:
        int64 [M], the places; bool [M], whether it must open, at the begin of
        a row and behind a bracket; whether it must else close, at the end and
        before a full stop or the like; whether it is the first of its row.
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
