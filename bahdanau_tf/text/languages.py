"""What the word tokenizer knows of single languages, as data.

The lists are short and our own. Patterns are RE2 and match a pair of words,
the left one, a line break, the right one.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Apostrophe(enum.Enum):
    """Where an apostrophe between two letters is split."""

    BEFORE = "it 's"
    AFTER = "l' eau"
    AROUND = "a ' b"


def _close(closing: str, opening: str, *pairs: str) -> str:
    """Makes a pattern of words that stand close to their neighbours.

    Args:
        closing: Pattern of words that are close to the word before them.
        opening: Pattern of words that are close to the word after them.
        *pairs: Patterns of pairs that are close though neither word is such.

    Returns:
        Pattern of pairs.
    """
    return "|".join([rf".*\n(?:{closing})", rf"(?:{opening})\n.*", *pairs])


_CLOSING = r"[.,;:!?%)\]}»”’…、。」』）！？]|\.\.+"
_OPENING = r"[(\[{«“‘¿¡$£€#「『（]"
_INITIALS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"


@dataclass(frozen=True)
class Language:
    """Rules of one language.

    Attributes:
        apostrophe: Where an apostrophe between two letters is split.
        abbreviations: Words that keep their full stop, separated by blanks.
        numbering: Words that keep their full stop before a number.
        close: Pattern of pairs of words with no blank between them.
        no_break: Pattern of pairs whose blank should not break the line.
        scripts: Whether a change of script ends a word.
    """

    apostrophe: Apostrophe = Apostrophe.AROUND
    abbreviations: str = _INITIALS
    numbering: str = ""
    close: str = _close(_CLOSING, _OPENING)
    no_break: str = ""
    scripts: bool = False


_JAPANESE = r"[\p{Han}\p{Hiragana}\p{Katakana}ー々]"

LANGUAGES = {
    "en": Language(
        apostrophe=Apostrophe.BEFORE,
        abbreviations=_INITIALS
        + " Mr Mrs Ms Messrs Dr Prof Rev Hon St Gen Col Capt Lt Sgt Gov Sen"
        " Rep Jr Sr Inc Ltd Co Corp vs etc",
        numbering="No Nos Art pp",
        close=_close(
            _CLOSING + r"|'\pL.*",
            _OPENING,
            r"’\n(?i:s|t|d|m|ll|re|ve)",
        ),
    ),
    "fr": Language(
        apostrophe=Apostrophe.AFTER,
        abbreviations=_INITIALS + " MM Mme Mlle Dr Me Mgr etc cf env vol",
        numbering="art fig p pp",
        close=_close(r"[.,%)\]}”’…]|\.\.+", r"[(\[{“‘’$£€#]|.*\pL'"),
        no_break=r".*\n[!?:;»]|«\n.*",
    ),
    "it": Language(
        apostrophe=Apostrophe.AFTER,
        close=_close(_CLOSING, _OPENING + r"|’|.*\pL'"),
    ),
    "ja": Language(
        close=_close(f"{_CLOSING}|{_JAPANESE}.*", f"{_OPENING}|.*{_JAPANESE}"),
        scripts=True,
    ),
    "ko": Language(
        close=_close(
            _CLOSING,
            _OPENING,
            r".*\p{Hangul}\n[(（]",
            r".*[\pN\p{Latin}%)）’”」』]\n\p{Hangul}.*",
        ),
        scripts=True,
    ),
}


def language(code: str) -> Language:
    """Returns the rules of a language, general ones for an unlisted code."""
    return LANGUAGES.get(code, Language())
