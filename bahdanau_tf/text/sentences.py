"""Splits a line into sentences; no character is lost."""

from __future__ import annotations

import re

from bahdanau_tf.text.languages import LANGUAGES

# A missed end does less harm than a wrong one, so the abbreviations of all languages count in
# every language.
ABBREVIATIONS = frozenset(" ".join(rules.abbreviations for rules in LANGUAGES.values()).split())
NUMBERING = frozenset(" ".join(rules.numbering for rules in LANGUAGES.values()).split())
_MARKS = ".!?…‥؟।"  # they end a sentence only before a space
_WIDE_MARKS = "。！？｡"  # they end a sentence before anything
CANDIDATE = re.compile(
    # Marks within these brackets do not end a sentence of the line.
    "「[^「」]{0,200}」|『[^『』]{0,200}』|（[^（）]{0,200}）|"
    # From the first of several marks; else a long row takes time squared.
    rf"(?<![{re.escape(_MARKS)}])(?P<mark>[{re.escape(_MARKS)}]+)"
    r"[\"'”’»›)\]}]*(?:[ \u00a0\u202f][»”])?(?=\s)\s+|"
    rf"(?P<wide>[{_WIDE_MARKS}]+)\s*"
)
_LOOK_BACK = 40  # characters before a mark that are examined


def split_sentences(text: str) -> list[str]:
    """Splits a text after each sentence.

    A sentence ends with a mark such as . ! ? … before a space, or with 。！？. It does not end
    before a lower-case letter, after an abbreviation or an initial, or within 「」. Joined, the
    sentences are `text`.

    Example:
        >>> split_sentences("Mr. Li left. Did he?")
        ['Mr. Li left. ', 'Did he?']
    """
    sentences = []
    start = 0
    for match in CANDIDATE.finditer(text):
        before = text[max(start, match.start() - _LOOK_BACK) : match.start()]
        after = text[match.end() : match.end() + 1]
        if match["wide"] or (match["mark"] and _is_end(before, match["mark"], after)):
            sentences.append(text[start : match.end()])
            start = match.end()
    return [*sentences, text[start:]] if start < len(text) else sentences


def ends_wide(text: str) -> bool:
    """Whether a text ends with a mark that no space follows, such as 。."""
    return text.endswith(tuple(_WIDE_MARKS))


def _is_end(before: str, mark: str, after: str) -> bool:
    """Whether a mark ends a sentence, given the text before and after it."""
    has_words = any(character.isalnum() for character in before)
    if not has_words or after.islower() or (after and after in _MARKS):
        return False
    if mark != ".":
        return True
    word = re.split(r"[\s(\[{\"'“‘«’]", before)[-1]
    initial = len(word) == 1 and word.isupper()
    acronym = "." in word and not word[-1].isdecimal()
    item = before.strip().isdecimal()  # "1. Introduction"
    numbered = word in NUMBERING and after.isdecimal()
    return not (initial or acronym or item or numbered or word in ABBREVIATIONS)
