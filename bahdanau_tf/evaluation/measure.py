"""Whether a text has spaces between words, and which words BLEU counts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec

# Scripts that are written without spaces between words, by the first words of
# their letters' Unicode names. Korean has spaces.
_KANA = ("HIRAGANA", "KATAKANA")
_HAN = ("CJK", "IDEOGRAPHIC", "BOPOMOFO")
_OTHERS = (
    *("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "TAI", "NEW"),
    *("JAVANESE", "BALINESE"),
)
_BY_LANGUAGE = {
    **dict.fromkeys(("zh", "yue", "cmn"), _HAN),
    **dict.fromkeys(("ja", "jpn"), _KANA),
    **dict.fromkeys(("th", "lo", "km", "my", "bo", "dz"), _OTHERS),
}
# Least share of such letters in a text of these scripts. It is low because
# the same text takes several times as many letters in an alphabet.
_SHARE = 0.25
_KANA_SHARE = 0.05  # least share of kana in Japanese; Chinese has almost none
_WORD = 6  # a text with fewer letters between spaces, on average, is tokenized


def bleu_tokenizer(language: str, sentences: Sequence[str]) -> str:
    """Chooses the tokenizer with which BLEU counts words.

    The script of the sentences decides, or the language if the script fits
    several languages or there are no letters:

    - "13a" for text with spaces between words;
    - "zh" for Chinese, with or without spaces;
    - "none" for text of another script without spaces that is tokenized: it
      has a space after every few letters;
    - "ja-mecab" for Japanese, if mecab-python3 and ipadic are installed;
    - "char" for Japanese without them, Thai, Lao, Khmer, Burmese, Tibetan and
      other scripts without spaces.

    Nothing is downloaded.

    Args:
        language: Code of the language, such as "ja" or "zh-TW"; "" if it is
            not known.
        sentences: References, or other text of that language.

    Returns:
        The name of a tokenizer of sacreBLEU, for `bleu`.
    """
    letters = _letters(sentences)
    script = _script(language, letters)
    if script == _HAN:
        return "zh"
    if script and _is_tokenized(sentences, letters):
        return "none"
    if script == _KANA and find_spec("MeCab") and find_spec("ipadic"):
        return "ja-mecab"
    return "char" if script else "13a"


def fitting_tokenizer(text: object, references: Sequence[str]) -> str:
    """`bleu_tokenizer` of a system's references.

    Args:
        text: Its target tokenizer, which may know the language; or None.
        references: The reference translations.
    """
    return bleu_tokenizer(getattr(text, "language", ""), references)


def has_blanks(sentences: Sequence[str]) -> bool:
    """Whether spaces separate the words of a text.

    They do in most scripts. In text of another script, such as Chinese or
    Thai, they do if it is tokenized: it has a space after every few letters.

    Args:
        sentences: A part of the text.
    """
    letters = _letters(sentences)
    return not _script("", letters) or _is_tokenized(sentences, letters)


def script(sentences: Sequence[str]) -> str:
    """The script in which a text is written, by its letters.

    Args:
        sentences: A part of the text.

    Returns:
        The first word of the Unicode names of most of the letters, in lower
        case: "latin", "cyrillic", "hangul"; "kana" for Japanese and "han"
        for Chinese; "" without letters.
    """
    letters = _letters(sentences)
    family = _script("", letters)
    if family in (_KANA, _HAN):
        return "kana" if family == _KANA else "han"
    names = _by_name(letters)
    return names.most_common(1)[0][0].lower() if names else ""


def is_tokenized(sentences: Sequence[str]) -> bool:
    """Whether spaces were put between all words and punctuation of a text.

    In most scripts a full stop then stands alone; text of a script without
    spaces has a space after every few letters.

    Args:
        sentences: A part of the text.
    """
    letters = _letters(sentences)
    if _script("", letters):
        return _is_tokenized(sentences, letters)
    ends = [line.split()[-1] for line in sentences if line.strip()]
    stops = [word for word in ends if _is_punctuation(word[-1])]
    alone = sum(all(map(_is_punctuation, word)) for word in stops)
    return 2 * alone > len(stops)


def _is_punctuation(letter: str) -> bool:
    return unicodedata.category(letter)[0] == "P"


def _letters(sentences: Sequence[str]) -> Counter[str]:
    return Counter(
        letter for letter in "".join(sentences) if unicodedata.category(letter)[0] in "LM"
    )


def _script(language: str, letters: Counter[str]) -> tuple[str, ...]:
    """The script of the letters if it has no spaces, otherwise ()."""
    code = re.split("[-_]", language.lower())[0]
    by_language = _BY_LANGUAGE.get(code, ())
    if not letters:
        return by_language
    counts = _by_name(letters)
    kana, han, others = (sum(counts[name] for name in names) for names in (_KANA, _HAN, _OTHERS))
    if kana + han + others < _SHARE * letters.total():
        return ()
    if others > kana + han:
        return _OTHERS
    if kana > _KANA_SHARE * (kana + han) or by_language == _KANA:
        return _KANA
    return _HAN


def _by_name(letters: Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for letter, count in letters.items():
        counts[_name(letter)] += count
    return counts


def _name(letter: str) -> str:
    """The first word of a letter's name; "KATAKANA" for half-width forms, too."""
    wide = unicodedata.normalize("NFKC", letter)[0]
    return re.split("[- ]", unicodedata.name(wide, ""))[0]


def _is_tokenized(sentences: Sequence[str], letters: Counter[str]) -> bool:
    """Whether text of a script without spaces has spaces between its letters.

    Spaces beside punctuation and other scripts are not counted: plain text
    has them, too.
    """
    inside = [x for x in letters if _name(x) in (*_KANA, *_HAN, *_OTHERS)]
    if not inside:
        return False
    letter = f"[{re.escape(''.join(inside))}]"
    between = re.compile(rf"(?<={letter})\s+(?={letter})")
    spaces = sum(len(between.findall(line)) for line in sentences)
    marks = [x for x in inside if unicodedata.category(x)[0] == "M"]
    base = sum(letters[x] for x in inside) - sum(letters[x] for x in marks)
    return base < _WORD * spaces
