"""The script, the language and the spaces of a text.

Guesses are meant for thousands of lines of one language; a single sentence may be too short.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

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
# Least share of such letters in a text of these scripts. It is low because the same text takes
# several times as many letters in an alphabet.
_SHARE = 0.25
_KANA_SHARE = 0.05  # least share of kana in Japanese; Chinese has almost none
_WORD_LENGTH = 6  # fewer letters between spaces, on average: the text is tokenized


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
    text has, too.
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
    """First word of a letter's name; "KATAKANA" for half-width forms, too."""
    wide = unicodedata.normalize("NFKC", letter)[0]
    return re.split("[- ]", unicodedata.name(wide, ""))[0]


def _pairs(table: str) -> dict[str, str]:
    """A table in one line: "name value, name value"."""
    return dict(pair.split() for pair in table.split(", "))


UNKNOWN = "und"  # ISO 639-2 for a language that could not be determined

# Languages recognized by their script alone; keys are Unicode's names.
BY_SCRIPT = _pairs(
    "ARMENIAN hy, BENGALI bn, DEVANAGARI hi, ETHIOPIC am, GEORGIAN ka, GREEK el, GUJARATI gu, "
    "GURMUKHI pa, HEBREW he, KANNADA kn, KHMER km, LAO lo, MALAYALAM ml, MYANMAR my, "
    "ORIYA or, SINHALA si, TAMIL ta, TELUGU te, THAI th, TIBETAN bo"
)

# Very frequent short words ("small words") of each language.
BY_WORDS = {
    "ARABIC": {
        "ar": "في من على أن إلى ما لا هذا هذه التي الذي عن مع كان هو ذلك",
        "fa": "و در به از که را این است با آن برای می یک تا هم خود",
        "ur": "کے میں کی ہے اور سے کا کو ہیں نے پر یہ اس کہ تھا",
    },
    "CYRILLIC": {
        "be": "і у не на што з да ў гэта як але ён па для былі яго за",
        "bg": "и на да се в е от за не с че са по като това ще си",
        "ru": "и в не на что с он я а как то это по к но из у за от все",
        "sr": "и је у се на да су за од не то што као који са али би",
        "uk": "і в не на що з та до у це як за але він від про для є був",
    },
    "LATIN": {
        "az": "və bir bu da də ki ilə üçün çox daha olan olaraq o var",
        "ca": "de la i el a que en els les un una per del al és amb no es dels",
        "cs": "a se na v je to že s z do o i ve si ale jako by po pro za jsou",
        "da": "og at det i en på er som for af med den til ikke et har de der",
        "de": "der die und in den von zu das mit sich des auf für ist im dem "
        "nicht ein eine als auch es an aus er ich sie",
        "en": "the of and to in a is that for it was on with as are be this by "
        "at from have not you he his they we i",
        "es": "de la que el en y a los se del las un por con no una su para es al lo como más pero",
        "et": "ja on ei et see oli ka mis kui ta ning aga oma ma siis",
        "fi": "ja on ei se että oli hän mutta ovat kun myös joka niin hänen minä sen tai jos",
        "fr": "de la le et les des en un une du que est dans qui pour pas il "
        "au sur ce par l d qu je ne se elle",
        "hr": "i je u se na da su za od s ne to što kao koji o ali bi sam",
        "hu": "a az és hogy nem is egy volt meg ez de van csak már mint el ha",
        "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada ada juga saya ke adalah",
        "it": "di e il la che in un a per è una non sono con del si da dei le "
        "della i al ha gli l lo nel",
        "nl": "de het een van en in is dat op te zijn met voor niet aan er om "
        "die ook als bij ze hij maar ik",
        "no": "og å det i en på er som for av med den til ikke et har de jeg",
        "pl": "w i na z się nie do to że jest o jak po co ale od za przez są",
        "pt": "de a o que e do da em um para com não uma os no se na por mais "
        "as dos como ao ele das",
        "ro": "de și în a la cu o pe nu este din care să mai pentru un că se",
        "sk": "a sa na v je to že s z do o i vo si ale ako by po pre za sú",
        "sv": "och att det i en på är som för av med den till inte ett har de",
        "tr": "ve bir bu da de için ile ne çok o var daha gibi olarak en olan",
        "vi": "và của là có không được trong cho một những các người này với",
    },
}
# Letters that only one of these languages has.
BY_LETTERS = _pairs(
    "az ə, be ў, cs ěřů, de ß, es ñ, hu őű, pl ł, ro șțţ, sk ĺľŕ, sr ћђ, tr ğı, uk ґєї"
)
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
    language has count, too.
    """
    letters: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for line in lines:
        line = unicodedata.normalize("NFKC", line[:LONGEST]).lower()
        letters.update(line)
        words.update(_WORD.findall(line))
    script = _script(letters)
    if script in BY_WORDS:
        return _by_words(words, BY_WORDS[script])
    return BY_SCRIPT.get(script, script if script.islower() else UNKNOWN)


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


def _by_words(words: Counter[str], languages: dict[str, str]) -> str:
    """The language whose small words are the most frequent, if clearly so."""
    counts = {
        code: [words[word] for word in small.split() if word in words]
        for code, small in languages.items()
    }
    second, first = sorted(counts, key=lambda code: sum(counts[code]))[-2:]
    clear = (
        len(counts[first]) >= KINDS
        and sum(counts[first]) >= SMALL_WORDS * words.total()
        and sum(counts[first]) >= LEAD * sum(counts[second])
    )
    return first if clear else _by_own_words(words, languages)


def _by_own_words(words: Counter[str], languages: dict[str, str]) -> str:
    """The language of words that no other has, or that have its own letters.

    A word with a letter of another language counts against a language.
    """
    kinds = Counter(word for small in languages.values() for word in small.split())
    lettered = {
        code: {word for word in words if not letters.isdisjoint(word)}
        for code in languages
        for letters in [set(BY_LETTERS.get(code, ""))]
    }
    foreign: set[str] = set().union(*lettered.values())
    sums, own = {}, {}
    for code, small in languages.items():
        own_words = lettered[code] | set(small.split())
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
