"""Rules of single languages, most of them for the word tokenizer, as data.

Patterns are RE2 and match a pair of words: the left one, a line break, the right one.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, replace

RULES = 2  # version of the rules, which a saved tokenizer names


class Apostrophe(enum.Enum):
    """Where an apostrophe between two letters is split."""

    BEFORE = "it 's"
    AFTER = "l' eau"
    AROUND = "a ' b"


def _close(closing: str, opening: str, *pairs: str) -> str:
    """A pattern of pairs of words without a space between them.

    There is none before `closing` words, after `opening` ones, at a slash, and in other `pairs`.
    """
    return "|".join([rf".*\n(?:{closing}|/)", rf"(?:{opening}|/)\n.*", *pairs])


_CLOSING = r"[.,;:!?%)\]}»”’…、。」』）！？]|\.\.+"
_OPENING = r"[(\[{«“‘¿¡$£€#「『（]"
_INITIALS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"


@dataclass(frozen=True)
class Language:
    """Rules of one language."""

    apostrophe: Apostrophe = Apostrophe.AROUND  # where one between two letters is split
    abbreviations: str = _INITIALS  # words that keep their full stop, separated by spaces
    numbering: str = ""  # words that keep their full stop before a number
    close: str = _close(_CLOSING, _OPENING + "|[„‚]")  # pairs of words with no space between them
    no_break: str = ""  # pairs whose space should not break the line
    scripts: bool = False  # whether a change of script ends a word
    quotes: str = '"'  # quotation marks that both open and close
    suffixes: str = ""  # words without a space after such a closing mark
    colon: str = ":"  # behind a word
    between_names: str = " "  # of a person


_JAPANESE = r"[\p{Han}\p{Hiragana}\p{Katakana}ー々]"

# „Wort“ and ‚Wort‘; »Wort« in books, «Wort» in Switzerland.
_GERMAN = Language(close=_close(r"[.,;:!?%)\]}“”‘…]|\.\.+", r"[(\[{„‚$£€#]"), quotes='["»«]')

# Korean particles and endings that follow a bracket or a foreign word directly.
_PARTICLES = (
    "[은는이가을를의에와과로도만인란들고며씩측]|(?:으로|에게|에서|까지|부터|처럼|보다)[는도의]?|"
    "에[는도]|[와과]의|으?로[는도서]|이?(?:라|란|며|다|었|였).*|인|일|들[은이을의].*"
)


LANGUAGES = {
    "en": Language(
        apostrophe=Apostrophe.BEFORE,
        abbreviations=_INITIALS + " Mr Mrs Ms Messrs Dr Prof Rev Hon St Gen Col Capt Lt Sgt Gov Sen"
        " Rep Jr Sr Inc Ltd Co Corp vs etc",
        numbering="No Nos Art pp",
        close=_close(_CLOSING + r"|'\pL.*", _OPENING, r"’\n(?i:s|t|d|m|ll|re|ve)"),
    ),
    "fr": Language(
        apostrophe=Apostrophe.AFTER,
        abbreviations=_INITIALS + " MM Mme Mlle Dr Me Mgr etc cf env vol",
        numbering="art fig p pp",
        close=_close(r"[.,%)\]}”’…]|\.\.+", r"[(\[{“‘’$£€#]|.*\pL'"),
        no_break=r".*\n[!?:;»]|«\n.*",
        colon=" :",
    ),
    "it": Language(apostrophe=Apostrophe.AFTER, close=_close(_CLOSING, _OPENING + r"|’|.*\pL'")),
    "ja": Language(
        close=_close(f"{_CLOSING}|{_JAPANESE}.*", f"{_OPENING}|.*{_JAPANESE}"),
        scripts=True,
        colon="：",
        between_names="・",
    ),
    "zh": Language(colon="："),
    "ko": Language(
        close=_close(
            _CLOSING + "|~",
            _OPENING + "|~",
            r".*\p{Hangul}\n[(（]",
            r".*[\pN%]\n\p{Hangul}.*",
            rf".*[\p{{Latin}})）’”」』]\n(?:{_PARTICLES})",
            r".*[\p{Hangul}\p{Latin}]\n\p{Han}",
            r".*\p{Han}\n\p{Hangul}.*",
        ),
        scripts=True,
        suffixes=_PARTICLES,
    ),
    "de": replace(
        _GERMAN,
        abbreviations=_INITIALS
        + " Dr Prof Hr Fr Nr Str St bzw ca evtl ggf inkl usw vgl zzgl Abs Art"
        " Bd Hrsg Jh Mio Mrd Tel Jan Feb Aug Sept Okt Nov Dez",
    ),
    **dict.fromkeys(("cs", "hr", "sk", "sl"), _GERMAN),
    "es": Language(abbreviations=_INITIALS + " Sr Sra Srta Dr Dra D Dña Ud Uds etc pág"),
    "pt": Language(abbreviations=_INITIALS + " Sr Sra Srta Dr Dra Exmo Exma etc pág"),
    # ”Ord” and »Ord».
    **dict.fromkeys(
        ("fi", "sv"), Language(close=_close(re.sub("[”»]", "", _CLOSING), _OPENING), quotes='["”»]')
    ),
    # »Ord« in books, «Ord» in Norway.
    **dict.fromkeys(
        ("da", "nb", "nn", "no"),
        Language(
            close=_close(_CLOSING.replace("»", ""), _OPENING.replace("«", "„")), quotes='["»«]'
        ),
    ),
}


def language(code: str) -> Language:
    """The rules of an ISO 639-1 code; general ones if it is not listed."""
    return LANGUAGES.get(code, Language())
