"""Splits text into words by Moses' rules, applied to kinds of characters, and joins them."""

from __future__ import annotations

import enum
import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.text.languages import Apostrophe, Language
from bahdanau_tf.text.rows import after, before, is_first, row_ids
from bahdanau_tf.text.script import INVISIBLE, assigned

NormalForm = Literal["NFC", "NFKC"] | None

JOINED = "\N{HALFWIDTH BLACK SQUARE}"
APART = "\N{OPEN BOX}"


class Kind(enum.IntEnum):
    """Kinds of characters, as the rules of word splitting distinguish them."""

    SPACE = 0
    SYMBOL = 1  # a word of its own
    LONER = 2  # a symbol to which marks are not attached
    DOT = 3
    DOTS = 4
    COMMA = 5
    APOSTROPHE = 6
    INNER = 7  # hyphen, grave: never ends a word
    MARK = 8  # belongs to the character before it
    DIGIT = 9
    LOWER = 10
    LETTER = 11
    HAN = 12
    HIRAGANA = 13
    KATAKANA = 14
    HANGUL = 15
    INVISIBLE = 16


_NAMED = {
    ".": Kind.DOT,
    ",": Kind.COMMA,
    "'": Kind.APOSTROPHE,
    "-": Kind.INNER,
    "`": Kind.INNER,
    "\0": Kind.LONER,
    JOINED: Kind.LONER,
    APART: Kind.LONER,
    "\N{ZERO WIDTH NON-JOINER}": Kind.MARK,
    "\N{ZERO WIDTH JOINER}": Kind.MARK,
    "\N{KATAKANA-HIRAGANA PROLONGED SOUND MARK}": Kind.MARK,
    "\N{HALFWIDTH KATAKANA-HIRAGANA PROLONGED SOUND MARK}": Kind.MARK,
    "\N{IDEOGRAPHIC ITERATION MARK}": Kind.HAN,
}
_SCRIPTS = {kind.name: kind for kind in (Kind.HIRAGANA, Kind.KATAKANA, Kind.HANGUL)}
_SCRIPTS["CJK"] = Kind.HAN


def _kind(character: str) -> Kind:
    if character in _NAMED:
        return _NAMED[character]
    category = unicodedata.category(character)
    if category[0] == "M":
        return Kind.MARK
    if category == "Nd":
        return Kind.DIGIT
    if category[0] == "L" or category == "Nl":
        if character.islower():
            return Kind.LOWER
        script = unicodedata.name(character, "").split(" ", 1)[0]
        return _SCRIPTS.get(script, Kind.LETTER)
    return Kind.SPACE if character.isspace() else Kind.SYMBOL


def _kind_of_normal_form(character: str, form: NormalForm) -> Kind:
    """The kind of the normalized character."""
    normal = unicodedata.normalize(form, character) if form else character
    kinds = [*map(_kind, normal)]
    if len(kinds) > 1 and set(kinds) == {Kind.DOT}:
        return Kind.DOTS
    mixed = len(set(kinds) - {Kind.MARK}) > 1
    spacing = Kind.SPACE in kinds and Kind.MARK in kinds  # as in U+00A8
    return Kind.SYMBOL if mixed or spacing else kinds[0]


@functools.lru_cache(maxsize=4)
def _pages(form: NormalForm) -> tuple[np.ndarray, np.ndarray]:
    """A page number for each 256 characters, and the distinct pages.

    Invisible characters are `Kind.INVISIBLE`.
    """
    kinds = np.full(0x110000, Kind.SYMBOL, np.int32)
    for character in assigned():
        kinds[ord(character)] = _kind_of_normal_form(character, form)
    kinds[[ord(character) for character in INVISIBLE]] = Kind.INVISIBLE
    numbers: dict[bytes, int] = {}  # of the pages; faster than np.unique
    page_of = [numbers.setdefault(page.tobytes(), len(numbers)) for page in kinds.reshape(-1, 256)]
    pages = np.frombuffer(b"".join(numbers), kinds.dtype).reshape(-1, 256)
    return np.array(page_of, np.int32), pages


_EDGE = -1  # "kind" before the first character of a row and after the last


class _Text(NamedTuple):
    """Base characters of a batch and the kinds of their neighbours, int32 [N] each."""

    codes: tf.Tensor
    kinds: tf.Tensor
    left: tf.Tensor  # of the character before; `SPACE` after a space
    right: tf.Tensor  # of the character after; `SPACE` before a space
    next: tf.Tensor  # of the next character that is not a space

    @classmethod
    def read(cls, codes: tf.Tensor, kinds: tf.Tensor, rows: tf.Tensor, spaced: tf.Tensor) -> _Text:
        """Finds the neighbours; each of several dots in a row is `DOTS`."""
        kinds = tf.where(kinds == Kind.MARK, int(Kind.LETTER), kinds)
        dot = _is(kinds, Kind.DOT, Kind.DOTS)
        second = dot & ~spaced & before(dot, False)
        many = second | after(second, False)
        kinds = tf.where(many, int(Kind.DOTS), kinds)

        new_row = is_first(rows)
        left = tf.where(spaced, int(Kind.SPACE), before(kinds, _EDGE))
        left = tf.where(new_row, _EDGE, left)
        following = tf.where(after(new_row, True), _EDGE, after(kinds, _EDGE))
        space = after(spaced, True) & (following != _EDGE)
        right = tf.where(space, int(Kind.SPACE), following)
        return cls(codes, kinds, left, right, following)


class Words(NamedTuple):
    """The words of all strings of a batch, one after another."""

    codes: tf.RaggedTensor  # int32 [N, (C)], the code points of each word
    rows: tf.Tensor  # int32 [N], index of the word's string
    starts: tf.Tensor  # int32 [N], offset in bytes of the word in its string
    ends: tf.Tensor  # int32 [N], that of the word's end
    spaces: tf.Tensor  # bool [N], whether a space or the start of the string is before it
    count: tf.Tensor  # int64, the number of strings

    def in_rows(self, values: tf.Tensor) -> tf.RaggedTensor:
        """Groups values of the words, [N], by strings: ragged [B, (T)]."""
        rows = tf.cast(self.rows, tf.int64)
        return tf.RaggedTensor.from_value_rowids(values, rows, self.count, validate=False)


@functools.lru_cache(maxsize=16)
def splitter(form: NormalForm, language: Language) -> Callable[[tf.Tensor], Words]:
    """`split` of string [B] as a graph, which is traced once, since it is large.

    The words will be converted to the normal form, if any.
    """
    # A tf.function would be traced again in every loop that calls it.
    with tf.init_scope():
        tables = [tf.constant(table) for table in _pages(form)]
        # Of its own, as it is the same for all languages.
        read = tf.function(lambda strings: read_characters(strings, *tables), autograph=False)
        function: Callable[[tf.Tensor], Words] = tf.function(
            lambda strings: split(read(strings), language),
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        ).get_concrete_function()
    return function


class _Read(NamedTuple):
    """The visible characters of a batch of strings, one after another."""

    codes: tf.Tensor  # int32 [N], as in `Words`, like the following
    rows: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    after_space: tf.Tensor  # bool [N], whether a space or the start of the string is before
    bases: tf.Tensor  # int32 [M], the places of base characters among them
    text: _Text  # these base characters
    count: tf.Tensor  # int64, the number of strings


def read_characters(strings: tf.Tensor, page_of: tf.Tensor, pages: tf.Tensor) -> _Read:
    """Reads strings of any bytes as code points, without spaces and invisible characters.

    The tables are those of `_pages`.
    """
    # A character ends where the next starts; the line break follows the last.
    codes, offsets = tf.strings.unicode_decode_with_offsets(
        strings + "\n", "UTF-8", errors="replace"
    )
    rows = tf.cast(row_ids(codes), tf.int32)
    codes, starts = codes.flat_values, tf.cast(offsets.flat_values, tf.int32)
    ends = tf.concat([starts[1:], starts[:1]], 0)
    page = tf.gather(page_of, codes // 256)
    kinds = tf.gather_nd(pages, tf.stack([page, codes % 256], 1))
    visible = kinds != Kind.INVISIBLE
    codes, starts, ends, rows, kinds = _masked(visible, codes, starts, ends, rows, kinds)
    ink = kinds != Kind.SPACE
    codes, starts, ends, rows, kinds, after_space = _masked(
        ink, codes, starts, ends, rows, kinds, before(~ink, True)
    )
    homeless = after_space | (before(kinds, Kind.LONER) == Kind.LONER)
    is_base = (kinds != Kind.MARK) | homeless
    bases = tf.cast(tf.where(is_base)[:, 0], tf.int32)
    text = _Text.read(
        tf.gather(codes, bases),
        tf.gather(kinds, bases),
        tf.gather(rows, bases),
        tf.gather(after_space, bases),
    )
    count = tf.size(strings, tf.int64)
    return _Read(codes, rows, starts, ends, after_space, bases, text, count)


def split(read: _Read, language: Language) -> Words:
    """Splits strings into words; the rules examine base characters and their neighbours."""
    (first,) = _masked(_first_of_words(read.text, language), read.bases)
    last = after(first, tf.size(read.codes)) - 1
    return Words(
        tf.RaggedTensor.from_row_starts(read.codes, first, validate=False),
        tf.gather(read.rows, first),
        tf.gather(read.starts, first),
        tf.gather(read.ends, last),
        tf.gather(read.after_space, first),
        read.count,
    )


def _masked(mask: tf.Tensor, *values: tf.Tensor) -> list[tf.Tensor]:
    # Of `tf.boolean_mask` each would have some twenty operations.
    places = tf.where(mask)[:, 0]
    return [tf.gather(x, places) for x in values]


def _first_of_words(text: _Text, language: Language) -> tf.Tensor:
    """Whether each base character starts a word: bool [N]."""
    alone = _is(text.kinds, Kind.SYMBOL, Kind.LONER)
    many = text.kinds == Kind.DOTS
    first = _is(text.left, _EDGE, Kind.SPACE, Kind.SYMBOL, Kind.LONER) | alone
    first |= (text.left == Kind.DOTS) != many
    # A comma is a word, except within a number.
    number = _is(text.left, Kind.DIGIT, _EDGE) & (text.right == Kind.DIGIT)
    comma = (text.kinds == Kind.COMMA) & ~number
    first |= comma | before(comma, False)
    split_before, split_after = _splits_apostrophe(text, language.apostrophe)
    first |= split_before | before(split_after, False)
    if language.scripts:
        # A word ends where Han, kana or Hangul starts or ends.
        script, script_left = (tf.maximum(x, int(Kind.LETTER)) for x in (text.kinds, text.left))
        inside = (text.kinds >= Kind.DIGIT) & (text.left >= Kind.DIGIT)
        first |= inside & (script != script_left)
    first |= _splits_full_stop(text, first, language)
    # Moses makes two words of a full stop and an apostrophe that end a line.
    last_quote = (text.kinds == Kind.APOSTROPHE) & (text.right == _EDGE)
    last_quote &= text.left == Kind.DOT
    return first | last_quote | after(last_quote, False)


def _splits_apostrophe(text: _Text, place: Apostrophe) -> tuple[tf.Tensor, tf.Tensor]:
    """For each character, whether a word starts there, and after it."""
    apostrophe = text.kinds == Kind.APOSTROPHE
    if place is Apostrophe.AROUND:
        return apostrophe, apostrophe
    apostrophe &= (text.left != _EDGE) & (text.right != _EDGE)
    letter_right = _is_letter(text.right)
    inside = apostrophe & _is_letter(text.left) & letter_right
    around = apostrophe & ~inside
    # Moses' next match starts after the second letter: rock 'n'roll.
    inside &= ~before(before(inside, False), False)
    if place is Apostrophe.AFTER:
        return around, around | inside
    number = apostrophe & (text.left == Kind.DIGIT)
    decade = number & (after(text.codes, 0) == ord("s"))
    around &= ~(number & letter_right)
    return around | inside | decade, around


def _splits_full_stop(text: _Text, first: tf.Tensor, language: Language) -> tf.Tensor:
    """A full stop at a word's end is a word, except after abbreviations."""
    word = tf.cumsum(tf.cast(first, tf.int32)) - 1
    dot = text.kinds == Kind.DOT
    counted = tf.cast(tf.stack([dot, _is_letter(text.kinds)], 1), tf.int32)
    count = tf.gather(tf.math.segment_sum(counted, word), word)
    acronym = (count[:, 0] > 1) & (count[:, 1] > 0)
    stop = dot & ~first & after(first, True)
    stop &= ~acronym & (text.next != Kind.LOWER)
    # Only the words of the remaining full stops are encoded and looked up.
    stops = tf.cast(tf.where(stop)[:, 0], tf.int32)
    starts = tf.cast(tf.where(first)[:, 0], tf.int32)
    starts = tf.gather(starts, tf.gather(word, stops))
    codes = tf.gather(text.codes, tf.ragged.range(starts, stops))
    stems = tf.strings.unicode_encode(codes, "UTF-8")
    keeps = _matches(stems, language.abbreviations) | (
        _matches(stems, language.numbering) & (tf.gather(text.next, stops) == Kind.DIGIT)
    )
    return tf.tensor_scatter_nd_update(stop, stops[:, None], ~keeps)


def _matches(words: tf.Tensor, listed: str) -> tf.Tensor:
    """Whether each word is in a list, whose words are separated by spaces."""
    pattern = "|".join(re.escape(word) for word in listed.split())
    return (words != "") & tf.strings.regex_full_match(words, pattern)


def _is(kinds: tf.Tensor, *wanted: int) -> tf.Tensor:
    return tf.reduce_any([kinds == kind for kind in wanted], 0)


def _is_letter(kinds: tf.Tensor) -> tf.Tensor:
    return kinds >= Kind.LOWER


# Spaces between words: by a rule of the language, with signs for exceptions. A word before which
# the rule is wrong carries a sign (`JOINED` or `APART`). These functions take the words of all
# rows, one after another: string [N], and their rows, int32 [N], ascending.


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
        is_mark, places, must_open, must_close, new_row = _marks(words, close, rows, rules)
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
        is_mark, places, must_open, must_close, new_row = _marks(words, close, rows, rules)
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


def _marks(
    words: tf.Tensor, close: tf.Tensor, rows: tf.Tensor, rules: Language
) -> tuple[tf.Tensor, ...]:
    """Which words are marks, bool [N]; their positions, int64 [M]; what is certain about each.

    The last are three bool [M]: whether the mark must open (at the start of a row, after a
    bracket); whether it otherwise must close (at the end of a row, before a full stop or the like);
    whether it is the first mark of its row.
    """
    is_mark = tf.strings.regex_full_match(words, rules.quotes)
    places = tf.where(is_mark)[:, 0]
    must_open = tf.gather(is_first(rows) | close, places)
    must_close = tf.gather(after(is_first(rows) | close, True), places)
    return is_mark, places, must_open, must_close, is_first(tf.gather(rows, places))


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
