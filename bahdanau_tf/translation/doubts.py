"""Doubts: what a translation shows of being wrong, beside its source.

The words, numbers, names and signs that one side has and the other lacks.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence

from bahdanau_tf.text.copied import CODE, DIGIT, DIGITS, PLACEHOLDER, THOUSANDS, UNIT, numbers
from bahdanau_tf.text.script import ALIKE, HAN, HANGUL, HIRAGANA, KATAKANA
from bahdanau_tf.translation.result import Translation, without_spaces
from bahdanau_tf.translation.sentence_splitting import split_sentences

UNLIKELY = 0.05  # below this confidence a translation is doubted
REPEATS = 3  # of a word, or of a part of a short string
TWICE = 2  # repeats of a phrase of several words
PHRASE = 4  # the longest phrase, in words
SHOWN = 10  # strange characters of a text
# 2 p.m. may be 14 h, and 8 p.m. 20時.
HOUR = re.compile(
    r"[0-9] ?(?:[AaPp]\.? ?[Mm]|h(?![a-zà-ÿ])|:[0-9]|heure|Uhr|時|시)|午[前後]|오[전후]|o['’]clock"
)
HALF_A_DAY = {str(hour): str((hour + 12) % 24) for hour in range(24)}
NEW_WORDS = 2  # fewer words in several pieces are usual
UNSURE = 0.1  # above this confidence they are no doubt
_OTHER = r"""[^\s.,;:!?…"'“”‘’«»()\[\]]"""
WORD = re.compile(rf"{_OTHER}(?:\S*{_OTHER})?")  # without the signs beside it
# Words without spaces between them end where the script changes; a Han character is one by itself.
RUNS = f"[{HAN}\U00020000-\U0003ffff]|[{HIRAGANA}]+|[{KATAKANA}ｦ-ﾟ]+|[{HANGUL}]+"
LETTERS = re.compile(rf"{RUNS}|(?:(?!{RUNS})[^\W\d_])+")
SPELLED = re.compile(f"{CODE.pattern}|{PLACEHOLDER.pattern}|{UNIT.pattern}")  # they are no words
ACRONYM = re.compile(r"[^\s.]\.[^\s.]\.\s*$")  # before a name, or at the end of a sentence
# Marks that may end a sentence in a translation.
BREAKS = re.compile("[.!?…‥؟।。！？｡,;:、，；：–—]+")
CLAUSE = ",:;、，：；–—-"  # marks that end no sentence, as in "Dear Tom,"
MONTH = re.compile("[0-9０-９]{1,2}[月월]")  # other languages have a name for it
# Letters or signs, four times in a row, a digit, nine times, or a word on both sides of a particle.
RUN = re.compile(
    r"([^\d\s]{1,4}?)\1{3}|([0-9０-９])\2{8}|"
    rf"(?<![{HAN}])([{HAN}]{{2,}})[のをにがで]\3(?![{HAN}])|"
    rf"(?<![{KATAKANA}])([{KATAKANA}]{{2,}})[のをにがで]\4(?![{KATAKANA}])"
)
QUOTES = "".join(ALIKE[1]).replace("«", "").replace("»", "")
# A mark, perhaps before a quotation mark or an emoji.
END = re.compile("""[.!?…。！？؟।][\\s"'”’»」』)\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]*$""")
PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("«", "»"), ("「", "」"), ("『", "』"))
# For the scripts of a page.
RULES = {
    **{"unlikely": UNLIKELY, "repeats": REPEATS, "twice": TWICE, "phrase": PHRASE, "shown": SHOWN},
    **{"number": DIGITS.pattern, "thousands": THOUSANDS.pattern, "code": CODE.pattern},
    **{"word": WORD.pattern, "letters": RUNS, "run": RUN.pattern, "quotes": QUOTES, "pairs": PAIRS},
    **{
        "new_words": NEW_WORDS,
        "unsure": UNSURE,
        "lone": DIGIT.pattern,
        "month": MONTH.pattern,
        "half_a_day": HALF_A_DAY,
        "hour": HOUR.pattern,
        "spelled": SPELLED.pattern,
        "acronym": ACRONYM.pattern,
        "breaks": BREAKS.pattern,
        "end": END.pattern,
        "clause": CLAUSE,
    },
}


def target_words(text: str) -> set[str]:
    """The words of a translation in lower case, and its numbers; for 14 h also 2."""
    digits = numbers(text)
    hours = [HALF_A_DAY[x] for x in digits if x in HALF_A_DAY]
    return {*words_of(text.lower()), *digits, *(hours if hours and HOUR.search(text) else ())}


def plain_words(text: str) -> list[str]:
    """The words of a text, but not of addresses, file names and placeholders."""
    return words_of(SPELLED.sub(" ", text))


def is_wordless(text: str) -> bool:
    """Whether a text has signs and no letters."""
    return text.strip() != "" and not any(map(str.isalpha, text))


def lone_digits(text: str) -> list[str]:
    """The numbers of a single digit, but not those that are joined to letters."""
    lone = {*DIGIT.findall(unicodedata.normalize("NFKC", text))}
    return [x for x in numbers(text) if x in lone]


def strange_characters(text: str, usual: Collection[str]) -> str:
    """The characters of a text that are not usual, each once; spaces do not count.

    Nor do those that are made of usual ones, such as the letters of Hangul.
    """

    def is_made_of_usual(character: str) -> bool:
        forms = (unicodedata.normalize(x, character) for x in ("NFKC", "NFKD"))
        return any(all(x in usual or x.isspace() for x in form) for form in forms)

    strange = (x for x in dict.fromkeys(text) if not (x in usual or x.isspace()))
    return "".join(x for x in strange if not is_made_of_usual(x))


def unread_characters(source: str, text: str, usual: Collection[str]) -> str:
    """The strange characters of a source, but not those that are carried over.

    These are signs that its translation has, too, and names that it has. Models read composed
    characters.
    """
    source, text = (unicodedata.normalize("NFC", side) for side in (source, text))
    if not strange_characters(source, usual):
        return ""

    def without_name(word: re.Match[str]) -> str:
        is_name = unicodedata.category(word[0][0]) == "Lu" and word[0] in text
        return "" if is_name else word[0]

    strange = strange_characters(WORD.sub(without_name, source), usual)
    return "".join(x for x in strange if x.isalpha() or x not in text)


def new_words(x: Translation) -> tuple[list[str], float]:
    """The words of a source that are of several tokens, and their share of all words.

    Names, numbers and codes do not count. A text of another language has many such words. Of fewer
    than `NEW_WORDS` the share is 0.
    """
    count, words = 0, []
    starts = [start for start, _ in without_spaces(x.source, x.source_spans)]
    for word in WORD.finditer(x.source):
        if word[0].isalpha() and unicodedata.category(word[0][0]) != "Lu":
            count += 1
            first, last = (bisect_left(starts, place) for place in word.span())
            if last - first > 1:
                words.append(word[0])
    return words, len(words) / count if len(words) >= NEW_WORDS else 0.0


def missing_numbers(source: str, text: str) -> list[str]:
    """The numbers of a source that its translation lacks, or has less often.

    2 p.m. may be 14 h, and 3月 March. With the sides swapped, what the translation adds.
    """
    before, after = Counter(numbers(MONTH.sub(" ", source))), Counter(numbers(text))
    added = after - before if HOUR.search(source) or HOUR.search(text) else Counter[str]()
    lone = {*lone_digits(source)}
    return [
        x for x in before - after if (len(x) > 1 or x in lone) and HALF_A_DAY.get(x) not in added
    ]


def new_in(words: Sequence[str], usual: str | None) -> list[str]:
    """The words that are not among those of a string with spaces between them; none for None."""
    spaced = f" {usual} "
    return [] if usual is None else [word for word in words if f" {word} " not in spaced]


def same_words(source: Sequence[str], text: Sequence[str]) -> list[str]:
    """The words in lower case that stand in a source and in its translation, each once."""
    after = {*text}
    both = (word for word in dict.fromkeys(source) if word in after)
    return [word for word in both if word == word.lower() != word.upper()]


def first_kept(source: Sequence[str], text: Sequence[str]) -> list[str]:
    """The first word of a source, if it has a capital and the translation has it, too."""
    return [word for word in source[:1] if word in text and word != word.lower()]


def missing_names(source: str, text: str) -> list[str]:
    """The names of a source that its translation lacks, in any case."""
    after = {word.lower() for word in words_of(text)}
    return [name for name in dict.fromkeys(names_of(source)) if name.lower() not in after]


def doubled_names(source: Sequence[str], text: Sequence[str]) -> list[str]:
    """The words with a capital that a source has, and its translation more often."""
    if not (names := [x for x in text if x[0].isupper() and len(x) > 1]):
        return []
    before = Counter(source)
    return [x for x in Counter(names) - before if x in before]


def names_of(text: str) -> list[str]:
    """The words with one capital, but not those that begin a sentence or follow a quotation mark.

    There are none in a title, most of whose words have one.
    """
    names: list[str] = []
    count = 0
    for sentence in split_sentences(unicodedata.normalize("NFC", text)):
        words = [*LETTERS.finditer(sentence)]
        count += len(words)
        names += [
            word[0]
            for word in words[1:]
            if word[0][0].isupper()
            and word[0][1:].islower()
            and sentence[word.start() - 1] not in f"{QUOTES}«"
            and not ACRONYM.search(sentence[max(word.start() - 9, 0) : word.start()])
        ]
    return names if 2 * len(names) <= count else []


def words_of(text: str) -> list[str]:
    """The words of letters alone."""
    return LETTERS.findall(unicodedata.normalize("NFC", text))


def marks_alone(text: str) -> bool:
    """Whether a quotation mark or a bracket lacks its other one."""
    odd = sum(map(text.count, QUOTES)) % 2 == 1
    return odd or any(text.count(first) != text.count(last) for first, last in PAIRS)


def fewer_sentences(source: str, text: str) -> str:
    """The numbers of sentences, as 1/2, if a translation has fewer of them than its source.

    They may be joined by a comma. Languages quote sentences with different marks.
    """
    before, after = len(split_sentences(source)), len(BREAKS.findall(text))
    is_quoted = any(mark in source for mark in f"{QUOTES}«")
    return f"{after}/{before}" if after < before > 1 and not is_quoted else ""


def repeated_phrase(text: str, times: int = TWICE) -> str:
    """The first word thrice in a row, or phrase so many `times`; "" if there is none."""
    words = [word.lower() for word in WORD.findall(text)]
    for count in range(1, PHRASE + 1):
        repeats = REPEATS if count == 1 else times
        for start in range(len(words) - count * repeats + 1):
            phrase = words[start : start + count]
            if words[start : start + count * repeats] == phrase * repeats:
                return " ".join(phrase)
    run = RUN.search(text)
    return run[0] if run else ""
