"""Where sentences end within a line; no character is ever lost."""

from __future__ import annotations

import re

from bahdanau_tf.text.languages import LANGUAGES

# A missed end costs less than a wrong one: what is an abbreviation in any
# language is one here.
_ABBREVIATIONS = frozenset(
    word for rules in LANGUAGES.values() for word in rules.abbreviations.split()
)
_NUMBERING = frozenset(
    word for rules in LANGUAGES.values() for word in rules.numbering.split()
)
_MARKS = ".!?…‥؟।"  # a blank follows them
_WIDE_MARKS = "。！？｡"  # nothing need follow
_CANDIDATE = re.compile(
    # The marks within quotation marks end no sentence of the line.
    "「[^「」]{,200}」|『[^『』]{,200}』|（[^（）]{,200}）|"
    rf"(?P<mark>[{re.escape(_MARKS)}]+)"
    r"[\"'”’»›)\]}]*(?:[ \u00a0\u202f][»”])?(?=\s)\s+|"
    rf"(?P<wide>[{_WIDE_MARKS}]+)\s*"
)
_LOOK_BACK = 40  # characters; no abbreviation is longer


def split_sentences(text: str) -> list[str]:
    """Splits a text behind its sentences.

    A sentence ends with . ! ? … and the like before a blank, or with 。！？,
    but not before a small letter, after an abbreviation or an initial, or
    within 「」.

    Args:
        text: Any text.

    Returns:
        The sentences, each with the blanks behind it: together they are
        `text`.

    Example:
        >>> split_sentences("Mr. Li left. Did he?")
        ['Mr. Li left. ', 'Did he?']
    """
    sentences = []
    start = 0
    for match in _CANDIDATE.finditer(text):
        before = text[max(start, match.start() - _LOOK_BACK) : match.start()]
        after = text[match.end() : match.end() + 1]
        if match["wide"] or (
            match["mark"] and _is_end(before, match["mark"], after)
        ):
            sentences.append(text[start : match.end()])
            start = match.end()
    return [*sentences, text[start:]] if start < len(text) else sentences


def _is_end(before: str, mark: str, after: str) -> bool:
    """Whether a mark ends a sentence, by its neighbours."""
    has_words = any(character.isalnum() for character in before)
    if not has_words or after.islower() or (after and after in _MARKS):
        return False
    if mark != ".":
        return True
    word = re.split(r"[\s(\[{\"'“‘«’]", before)[-1]
    initial = len(word) == 1 and word.isupper()
    acronym = "." in word and not word[-1].isdecimal()
    item = before.strip().isdecimal()  # "1. Introduction"
    numbered = word in _NUMBERING and after.isdecimal()
    return not (
        initial or acronym or item or numbered or word in _ABBREVIATIONS
    )
