"""The script, the language and the spaces of a text.

Guesses are meant for thousands of lines of one language; a single sentence may be too short.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

# Scripts that are written without spaces between words, by the first words of their letters'
# Unicode names. Korean has spaces.
_UNSPACED = {
    "kana": ("HIRAGANA", "KATAKANA"),
    "han": ("CJK", "IDEOGRAPHIC", "BOPOMOFO"),
    "other": ("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "TAI", "NEW", "JAVANESE", "BALINESE"),
}
_BY_LANGUAGE = {
    **dict.fromkeys(("zh", "yue", "cmn"), "han"),
    **dict.fromkeys(("ja", "jpn"), "kana"),
    **dict.fromkeys(("th", "lo", "km", "my", "bo", "dz"), "other"),
}
# Signs that mean the same.
ALIKE = (
    tuple("'\u2019\u2018\u201b\u02bc\u2032"),
    tuple('"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb'),
    tuple("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"),
    ("...", "\u2026"),
)
SIGNS = [x for row in ALIKE for x in row if len(x) == 1]
# Letters, as ranges in a class of a regular expression.
HAN = "々\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
HIRAGANA = "ぁ-ゖゝ-ゟ"
KATAKANA = "ァ-ヺー-ヿ"
HANGUL = "가-힣"
# A Chinese or Japanese letter or sign, which has no space beside it.
WIDE = "[\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f]"
# Characters without ink and width that only control line breaks and direction. The joiners U+200C
# and U+200D are not among them: they make other words.
INVISIBLE = (
    "\N{SOFT HYPHEN}\N{ARABIC LETTER MARK}\N{MONGOLIAN VOWEL SEPARATOR}"
    "\N{ZERO WIDTH SPACE}\N{LEFT-TO-RIGHT MARK}\N{RIGHT-TO-LEFT MARK}"
    "\u202a\u202b\u202c\u202d\u202e"  # embeddings and overrides of direction
    "\N{WORD JOINER}\u2066\u2067\u2068\u2069"  # isolates
    "\N{ZERO WIDTH NO-BREAK SPACE}"  # the byte order mark
)
# Least share of such letters in a text of these scripts. It is low because the same text takes
# several times as many letters in an alphabet.
_SHARE = 0.25
_KANA_SHARE = 0.05  # least share of kana in Japanese; Chinese has almost none
_WORD_LENGTH = 6  # fewer letters between spaces, on average: the text is tokenized


def assigned() -> Iterator[str]:
    """All characters, but not those that Unicode 17 does not assign; no private ones."""
    codes = itertools.chain(range(0x33500), range(0xE0000, 0xE0200))  # there are none elsewhere
    return (x for x in map(chr, codes) if unicodedata.category(x) not in ("Cn", "Co", "Cs"))


def gap_behind(text: str) -> str:
    """What stands between a sentence and the next one: a space, or nothing behind a wide sign."""
    return "" if re.match(WIDE, text[-1:]) else " "


def has_blanks(sentences: Sequence[str]) -> bool:
    """Whether spaces separate the words of a text.

    They do in most scripts. In text of another script, such as Chinese or Thai, they do if it is
    tokenized: it has a space after every few letters.
    """
    return not unspaced_script(sentences) or is_tokenized(sentences)


def script(sentences: Sequence[str]) -> str:
    """The script in which a text is written, by its letters.

    It is the first word of Unicode's names of most of the letters, in lower case: "latin",
    "cyrillic", "hangul"; "kana" for Japanese and "han" for Chinese; "" without letters.
    """
    unspaced = unspaced_script(sentences)
    if unspaced in ("kana", "han"):
        return unspaced
    names = _names(_letters(sentences))
    return names.most_common(1)[0][0].lower() if names else ""


def is_tokenized(sentences: Sequence[str]) -> bool:
    """Whether spaces separate all words and punctuation of a text.

    In most scripts a full stop then stands alone; text of a script without spaces has a space
    after every few letters, not counting spaces beside punctuation and other scripts, which plain
    text also has.
    """
    if not unspaced_script(sentences):
        ends = [line.split()[-1] for line in sentences if line.strip()]
        stops = [word for word in ends if _is_punctuation(word[-1])]
        alone = sum(all(map(_is_punctuation, word)) for word in stops)
        return 2 * alone > len(stops)
    unspaced = {name for names in _UNSPACED.values() for name in names}
    inside = {x: count for x, count in _letters(sentences).items() if _name(x) in unspaced}
    if not inside:
        return False
    letter = f"[{re.escape(''.join(inside))}]"
    between = re.compile(rf"(?<={letter})\s+(?={letter})")
    spaces = sum(len(between.findall(line)) for line in sentences)
    base = sum(count for x, count in inside.items() if unicodedata.category(x)[0] != "M")
    return base < _WORD_LENGTH * spaces


def unspaced_script(sentences: Sequence[str], language: str = "") -> str:
    """The script of a text without spaces between words: "kana", "han", "other", else "".

    The language's code, such as "ja" or "zh-TW", decides where the script fits several languages,
    and where there are no letters.
    """
    by_language = _BY_LANGUAGE.get(re.split("[-_]", language.lower())[0], "")
    names = _names(_letters(sentences))
    if not names:
        return by_language
    kana, han, other = (sum(names[name] for name in own) for own in _UNSPACED.values())
    if kana + han + other < _SHARE * names.total():
        return ""
    if other > kana + han:
        return "other"
    is_japanese = kana > _KANA_SHARE * (kana + han) or by_language == "kana"
    return "kana" if is_japanese else "han"


def _is_punctuation(letter: str) -> bool:
    return unicodedata.category(letter)[0] == "P"


def _letters(sentences: Sequence[str]) -> Counter[str]:
    counts = Counter("".join(sentences))
    return Counter({x: n for x, n in counts.items() if unicodedata.category(x)[0] in "LM"})


def _names(letters: Counter[str]) -> Counter[str]:
    """How many letters each script has, by the first words of their names."""
    names: Counter[str] = Counter()
    for letter, count in letters.items():
        names[_name(letter)] += count
    return names


def _name(letter: str) -> str:
    """First word of a letter's name; also "KATAKANA" for half-width forms."""
    wide = unicodedata.normalize("NFKC", letter)[0]
    return re.split("[- ]", unicodedata.name(wide, ""))[0]


UNKNOWN = "und"  # ISO 639-2 for a language that could not be determined


class _Traits(NamedTuple):
    """What is typical of a language among those of its script."""

    letters: str  # those that no other has
    words: list[str]  # very frequent short words ("small words")


@functools.cache
def _languages() -> dict[str, dict[str, _Traits]]:
    """The languages of each script, by Unicode's name of it and by code, from languages.tsv."""
    table = files("bahdanau_tf.text").joinpath("languages.tsv").read_text("utf-8")
    by_script: dict[str, dict[str, _Traits]] = {}
    for row in table.split("\n")[1:-1]:
        script, code, letters, words, *_ = (*row.split("\t"), "", "")
        by_script.setdefault(script, {})[code] = _Traits(letters, words.split())
    return by_script


LONGEST = 500  # only so many characters of a line count, so that none dominates
SMALL_WORDS = 0.1  # least share of small words among all words
KINDS = 5  # least number of different small words
LEAD = 1.05  # least ratio of small words to those of the second language
# With fewer different small words, as in a text of few words, the text must have words that only
# one language has ("own words"), and a larger lead.
CLEAR_LEAD = 2.0
OWN_WORDS = 0.02  # least share of own words among all words
FEWEST = 5  # least number of own words
OWN_LENGTH = 3  # letters; shorter words occur in many languages

_WORD = re.compile(r"[^\W\d_]+")


def guess_language(lines: Iterable[str]) -> str:
    """Guesses the language of some thousand lines: its ISO 639-1 code; "und" if unclear.

    The script with the most letters decides, if only one language uses it: Han with kana is
    Japanese, Han without kana is Chinese. Among the languages of one script the one whose small
    words are the most frequent is chosen; if the text has few of them, letters that only one
    language has also count.
    """
    letters: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for line in lines:
        line = unicodedata.normalize("NFKC", line[:LONGEST]).lower()
        letters.update(line)
        words.update(_WORD.findall(line))
    script = _script(letters)
    of_script = _languages().get(script, {})
    if len(of_script) > 1:
        return _by_words(words, of_script)
    return min(of_script, default=script if script.islower() else UNKNOWN)


def swapped_sides(sources: Iterable[str], languages: Sequence[str]) -> str:
    """Says that sources are in the language that a model translates into; "" if they are not.

    `languages` are those of the model, source and target, "" if unknown.
    """
    if len({*languages} - {""}) < 2 or guess_language(sources) != languages[1]:
        return ""
    return (
        "the source's language is {1}, and the model translates from {0} to {1}; are the sides "
        "swapped?".format(*languages)
    )


def _script(letters: Counter[str]) -> str:
    """The script of most letters; for East Asian ones "ja", "ko" or "zh".

    A letter of any other script counts twice as much as a Latin one: Latin names and terms occur
    in texts of all scripts.
    """
    scripts = _names(Counter({x: n for x, n in letters.items() if x.isalpha()}))
    for name in scripts:
        scripts[name] *= 1 if name == "LATIN" else 2
    han = scripts.pop("CJK", 0)
    kana = scripts.pop("HIRAGANA", 0) + scripts.pop("KATAKANA", 0)
    hangul = scripts.pop("HANGUL", 0)
    scripts["zh"] = han + kana + hangul
    script, most = scripts.most_common(1)[0]
    if 2 * most <= scripts.total():
        return UNKNOWN
    if script == "zh" and 10 * max(kana, hangul) > most:
        return "ja" if kana > hangul else "ko"
    return script


def _by_words(words: Counter[str], languages: dict[str, _Traits]) -> str:
    """The language whose small words are the most frequent, if clearly so."""
    counts = {
        code: [words[word] for word in traits.words if word in words]
        for code, traits in languages.items()
    }
    second, first = sorted(counts, key=lambda code: sum(counts[code]))[-2:]
    clear = (
        len(counts[first]) >= KINDS
        and sum(counts[first]) >= SMALL_WORDS * words.total()
        and sum(counts[first]) >= LEAD * sum(counts[second])
    )
    return first if clear else _by_own_words(words, languages)


def _by_own_words(words: Counter[str], languages: dict[str, _Traits]) -> str:
    """The language of words that no other has, or that have its own letters.

    A word with a letter of another language counts against a language.
    """
    kinds = Counter(word for traits in languages.values() for word in traits.words)
    lettered = {
        code: {word for word in words if not {*traits.letters}.isdisjoint(word)}
        for code, traits in languages.items()
    }
    foreign: set[str] = set().union(*lettered.values())
    sums, own = {}, {}
    for code, traits in languages.items():
        own_words = lettered[code] | {*traits.words}
        against = sum(words[word] for word in foreign - own_words)
        sums[code] = sum(words[word] for word in own_words) - against
        own[code] = sum(
            words[word]
            for word in own_words
            if word in lettered[code] or (kinds[word] == 1 and len(word) >= OWN_LENGTH)
        )
    second, first = sorted(sums, key=lambda code: sums[code])[-2:]
    clear = (
        own[first] >= max(FEWEST, OWN_WORDS * words.total())
        and sums[first] >= SMALL_WORDS * words.total()
        and sums[first] >= CLEAR_LEAD * sums[second]
    )
    return first if clear else UNKNOWN
