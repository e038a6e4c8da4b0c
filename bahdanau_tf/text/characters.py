"""The kind of each Unicode character, as tensors."""

from __future__ import annotations

import enum
import functools
import itertools
import unicodedata
from typing import Literal

import numpy as np
import tensorflow as tf

NormalForm = Literal["NFC", "NFKC"] | None

JOINED = "\N{HALFWIDTH BLACK SQUARE}"
APART = "\N{OPEN BOX}"

# Characters without ink and width that only control line breaks and direction.
# The joiners U+200C and U+200D are not among them: they make other words.
INVISIBLE = (
    "\N{SOFT HYPHEN}\N{ARABIC LETTER MARK}\N{MONGOLIAN VOWEL SEPARATOR}"
    "\N{ZERO WIDTH SPACE}\N{LEFT-TO-RIGHT MARK}\N{RIGHT-TO-LEFT MARK}"
    "\u202a\u202b\u202c\u202d\u202e"  # embeddings and overrides of direction
    "\N{WORD JOINER}\u2066\u2067\u2068\u2069"  # isolates
    "\N{ZERO WIDTH NO-BREAK SPACE}"  # the byte order mark
)


class Kind(enum.IntEnum):
    """Kinds of characters, as the rules of word splitting distinguish them."""

    BLANK = 0
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
_SCRIPTS = {
    "CJK": Kind.HAN,
    "HIRAGANA": Kind.HIRAGANA,
    "KATAKANA": Kind.KATAKANA,
    "HANGUL": Kind.HANGUL,
}


def _kind(character: str, category: str) -> Kind:
    if character in _NAMED:
        return _NAMED[character]
    if category[0] == "M":
        return Kind.MARK
    if category == "Nd":
        return Kind.DIGIT
    if category[0] == "L" or category == "Nl":
        if character.islower():
            return Kind.LOWER
        script = unicodedata.name(character, "").split(" ", 1)[0]
        return _SCRIPTS.get(script, Kind.LETTER)
    return Kind.BLANK if character.isspace() else Kind.SYMBOL


def _kind_of_normal_form(character: str, form: NormalForm) -> Kind:
    """The kind of the normalised character."""
    category = unicodedata.category(character)
    if category in ("Cn", "Co", "Cs"):  # most of them: not assigned
        return Kind.SYMBOL
    normal = unicodedata.normalize(form, character) if form else character
    if normal == character:
        return _kind(character, category)
    kinds = [_kind(part, unicodedata.category(part)) for part in normal]
    if len(kinds) > 1 and set(kinds) == {Kind.DOT}:
        return Kind.DOTS
    mixed = len(set(kinds) - {Kind.MARK}) > 1
    spacing = Kind.BLANK in kinds and Kind.MARK in kinds  # as in U+00A8
    return Kind.SYMBOL if mixed or spacing else kinds[0]


@functools.lru_cache(maxsize=4)
def _pages(form: NormalForm, invisible: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns a page number for each 256 characters, and the distinct pages."""
    # Outside these two ranges no character is assigned (Unicode 17).
    kinds = np.full(0x110000, Kind.SYMBOL, np.int32)
    for code in itertools.chain(range(0x33500), range(0xE0000, 0xE0200)):
        kinds[code] = _kind_of_normal_form(chr(code), form)
    if invisible:
        kinds[[ord(character) for character in INVISIBLE]] = Kind.INVISIBLE
    numbers: dict[bytes, int] = {}  # of the pages; faster than np.unique
    page_of = [
        numbers.setdefault(page.tobytes(), len(numbers))
        for page in kinds.reshape(-1, 256)
    ]
    pages = np.frombuffer(b"".join(numbers), kinds.dtype).reshape(-1, 256)
    return np.array(page_of, np.int32), pages


class Characters(tf.Module):
    """The kind of every character, in two small tables.

    Args:
        form: Normal form to which the text will be converted, or None; a
            character has the kind of its normal form.
        invisible: Whether invisible characters are `Kind.INVISIBLE`; if not,
            `Kind.SYMBOL`.
    """

    def __init__(self, form: NormalForm, invisible: bool) -> None:
        super().__init__()
        page_of, pages = _pages(form, invisible)
        self._page_of = tf.constant(page_of)
        self._pages = tf.constant(pages)

    def kinds(self, codes: tf.Tensor) -> tf.Tensor:
        """Looks code points up: int32 [N] -> int32 [N]."""
        page = tf.gather(self._page_of, codes // 256)
        return tf.gather_nd(self._pages, tf.stack([page, codes % 256], 1))
