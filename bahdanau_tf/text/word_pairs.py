"""Words and their translations, learned from pairs of sentences: `cat` is `chat`, or 猫.

A text has few lines of a single word, so a model makes a sentence of one. The translation of a word
is what stands in the targets of nearly all pairs that have the word, and in few others: its Dice
coefficient 2 n(x, y) / (n(x) + n(y)) is large, where n counts pairs (Dice 1945).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from sys import intern

from bahdanau_tf.text.copied import PATTERNS
from bahdanau_tf.text.script import HAN, HIRAGANA, KATAKANA

# Words between spaces, which may have apostrophes, and runs of Chinese characters or Katakana, of
# which the first are several words. Hiragana are mostly endings and particles.
_LETTERS = f"(?:(?![{HAN}{HIRAGANA}{KATAKANA}])[^\\W\\d_])+"
_WORD = re.compile(f"(?P<han>[{HAN}]+)|[{KATAKANA}]+|{_LETTERS}(?:'{_LETTERS})*")
_WHOLE = re.compile(f"[{HAN}]+|[{KATAKANA}]+|{_LETTERS}(?:-{_LETTERS})*")  # l'eau has eau
_AFTER_KATAKANA = re.compile(f"[{KATAKANA}]([{HIRAGANA}])")
Span = tuple[int, int]  # where a word starts and ends
Places = tuple[Span, Span]  # on each side of a pair
SEEN = 10  # pairs of a text have the word, at least,
FREQUENT = 0.02  # and at most this share of them
LOOKED_AT = 200  # of these pairs, evenly spread
DICE = 0.5
NEARLY = 0.8  # of the best coefficient: a longer run of characters that has it is more of a word
LONGEST = 4  # characters of a word
NOUN = 0.6  # of what follows the characters of a noun also follows Katakana
USUAL = 0.02  # of what follows Katakana, at least, is usual there
# Two, three and so on. A word counts only if the other side has the same number, so French "dos", a
# back, does no harm.
NUMERALS = {
    word: str(number)
    for words in (
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
        "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn",
        "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
        "due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici",
        "두 세 네 다섯 여섯 일곱 여덟 아홉 열",
        "二 三 四 五 六 七 八 九 十",
    )
    for number, word in enumerate(words.split(), 2)
}
_HAN_DIGITS = "〇一二三四五六七八九十百千万"
_SPACED = "|".join(x for x in NUMERALS if x not in _HAN_DIGITS)
# The months and the days of the week from Monday, a language in a row.
CALENDAR = [
    row.split()
    for row in (
        "January February March April May June July August September October November December "
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre "
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember "
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre "
        "lunes martes miércoles jueves viernes sábado domingo",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
        "dicembre lunedì martedì mercoledì giovedì venerdì sabato domenica",
        "1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月 月曜 火曜 水曜 木曜 金曜 土曜 日曜",
        "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月 "
        "星期一 星期二 星期三 星期四 星期五 星期六 星期日",
        "1월 2월 3월 4월 5월 6월 7월 8월 9월 10월 11월 12월 "
        "월요일 화요일 수요일 목요일 금요일 토요일 일요일",
    )
]
_ROWS = Counter(word for row in CALENDAR for word in row)
# August, which two languages have, is not known to be of one.
_PLACES = {x: (row, at) for row in CALENDAR for at, x in enumerate(row) if _ROWS[x] == 1}
_NAMED = "|".join(x for x in _PLACES if x[0].isascii() and x[0].isalpha())
_DATE = re.compile(
    f"(?<![\\d{_HAN_DIGITS}])(?:[0-9]+[月월]|[{_HAN_DIGITS}]+月)|[月火水木金土日]曜|星期.|.요일|"
    f"(?<![\\w'’-])(?:{_NAMED})(?![\\w-])"
)
CURRENCIES = {"$": "dollars", "€": "euros", "£": "pounds"}
_NUMBER = re.compile(
    f"{PATTERNS['numbers'].pattern}|(?<![{_HAN_DIGITS}])[二三四五六七八九十](?![{_HAN_DIGITS}])|"
    f"(?<![\\w'’-])(?:{_SPACED})(?![\\w'’-])",
    re.IGNORECASE,
)


def word_pairs(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The words of the sources that have a translation, in lower case, with it.

    Sources without spaces between words have none. A Japanese word is a noun, which particles
    follow as they follow Katakana; verbs and adjectives have endings.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, (source, _) in enumerate(pairs):
        for word in {*source.split()}:
            bare = word.strip("\"'.,;:!?()“”")
            if bare.isalpha() and bare.islower() and bare[0].islower():  # 猫cat is in lower case
                places[bare].append(place)
    targets = [(*map(intern, _words(target)),) for _, target in pairs]  # small in memory
    times = {x: len(at) for x, at in places.items() if SEEN <= len(at) <= FREQUENT * len(pairs)}
    near: dict[str, dict[str, float]] = {}
    for word, count in times.items():
        some = places[word][:: -(-count // LOOKED_AT)]
        seen = Counter(y for place in some for y in targets[place])
        near[word] = {
            y: n * count / len(some) for y, n in seen.items() if n >= DICE / 2 * len(some)
        }
    wanted = {y for row in near.values() for y in row}
    totals = Counter(y for target in targets for y in wanted.intersection(target))
    dice = {
        word: {y: 2 * n / (times[word] + totals[y]) for y, n in row.items()}
        for word, row in near.items()
    }
    best = {word: y for word, row in dice.items() if (y := _best(row)) is not None}
    nouns = _nouns({*best.values()}, [target for _, target in pairs])
    own: dict[str, float] = defaultdict(float)
    for row in dice.values():
        for y, x in row.items():
            own[y] = max(own[y], x)
    return sorted((word, y) for word, y in best.items() if y in nouns and dice[word][y] == own[y])


def places_of(words: Mapping[str, str], source: str, target: str) -> list[Places]:
    """Where words of a table and their translations stand in a pair, once on each side."""
    before = {x: at for x, at in _once(source).items() if x in words} if words else {}
    after = _once(target) if before else {}
    return [(at, after[words[x]]) for x, at in before.items() if words[x] in after]


def same_numbers(source: str, target: str) -> list[Places]:
    """Where a pair has the same number, once on each side, in digits or in words."""

    def digits(word: str) -> str:
        return NUMERALS.get(word.lower(), word)

    before = _once(source, _NUMBER, digits)
    after = _once(target, _NUMBER, digits) if before else {}
    return [(at, after[number]) for number, at in before.items() if number in after]


def numerals(source: str, target: str, numbers: Sequence[Places]) -> list[Places]:
    """Which of the `same_numbers` are in words on one side or both: two and deux, two and 2.

    十分 begins with a ten in Japanese and in Chinese, but means enough.
    """
    return [
        (at, other)
        for at, other in numbers
        if not (source[at[0]].isdecimal() and target[other[0]].isdecimal())
        and not (source[at[0]] == target[other[0]] and source[at[0]] in _HAN_DIGITS)
    ]


def quantities(
    source: str, target: str, numbers: Sequence[Places], words: Mapping[str, str]
) -> list[Places]:
    """Which of the `same_numbers` have a noun, by a table of words: 20 dollars, 20ドル."""
    nouns = places_of(words, source, target) if numbers else []
    return [
        ((at[0], noun[1]), (other[0], its[1]))
        for at, other in numbers
        for noun, its in nouns
        if other[1] <= its[0] and target[other[1] : its[0]] in (" ", "")
        if source[at[1] : noun[0]] == " "
    ]


def prices(
    source: str, target: str, numbers: Sequence[Places], words: Mapping[str, str]
) -> list[Places]:
    """Which are prices in another form: $20, and 20 $ or, by a table of words, 20ドル."""
    places = []
    for (start, end), (other, last) in numbers:
        sign = source[start - 1 : start]
        if sign in CURRENCIES and target[other - 1 : other] != sign:
            noun = words.get(CURRENCIES[sign], sign)
            if behind := re.match(rf"\s?(?:{re.escape(sign)}|{re.escape(noun)})", target[last:]):
                places.append(((start - 1, end), (other, last + behind.end())))
    return places


def dates(source: str, target: str) -> list[Places]:
    """Where a pair has the same month or day, once on each side: October and octobre, or 10月."""

    def place(word: str) -> str:
        return str(_PLACES.get(word, (CALENDAR[0], word))[1])

    before = _once(source, _DATE, place)
    after = _once(target, _DATE, place) if before else {}
    return [(at, after[x]) for x, at in before.items() if x in after and x.isdecimal()]


def another_date(word: str, number: int) -> str:
    """A month or day, by any number, in the language of another month or day."""
    row, at = _PLACES[word]
    return row[number % 12 if at < 12 else 12 + number % 7]


def _once(
    text: str, pattern: re.Pattern[str] = _WHOLE, meaning: Callable[[str], str] = str
) -> dict[str, Span]:
    """The words of a text that it has once, and where they start and end."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for match in pattern.finditer(text):
        spans[meaning(match[0])].append(match.span())
    return {word: at[0] for word, at in spans.items() if len(at) == 1}


def _words(text: str) -> set[str]:
    """What may be a word of a target; first words are in lower case, too."""
    words = set[str]()
    for match in _WORD.finditer(text.replace("’", "'")):
        run = match[0]
        if match["han"] is None:
            run = run if match.start() else run.lower()
            words |= {run, *run.split("'")}
        else:
            ends = range(1, len(run) + 1)
            words |= {run[i:j] for j in ends for i in range(max(j - LONGEST, 0), j)}
    return words


def _best(dice: dict[str, float]) -> str | None:
    """The word with the largest coefficient, or a longer one that has it."""
    if not dice:
        return None
    first = max(dice, key=lambda y: (dice[y], len(y), y))
    least = NEARLY * dice[first]
    longer = [y for y, x in dice.items() if y.isalpha() and first in y and x >= least]
    best = max([first, *longer], key=lambda y: (len(y), dice[y], y))
    return best if dice[first] >= DICE else None


def _nouns(words: set[str], targets: Sequence[str]) -> set[str]:
    """The words that are not the stem of a Japanese verb or adjective."""
    particles = Counter(x for target in targets for x in _AFTER_KATAKANA.findall(target))
    usual = {x for x, n in particles.items() if n >= USUAL * particles.total()}
    if not usual:
        return words
    follows, ends = Counter[str](), Counter[str]()
    pattern = re.compile(f"[{HAN}]{{1,{LONGEST}}}(?=([{HIRAGANA}]))")
    for target in targets:
        for match in pattern.finditer(target):
            for start in range(len(match[0])):
                if (word := match[0][start:]) in words:
                    follows[word] += 1
                    ends[word] += match[1] in usual
    return {word for word in words if ends[word] >= NOUN * follows[word]}
