"""Synthetic pairs: pairs of the text with other numbers and names on both sides.

A text has most numbers and names a few times, so that a model learns these by heart, and not to
copy one that it has never read. In a pair that has the same ones on both sides they can be replaced
by others, drawn anew in each epoch. So can a name that one side spells in Katakana or Hangul, which
for an unknown name nobody knows: it keeps its letters. What stands between quotes on both sides
becomes a name, too, and so does a noun if there are such names. A number in words becomes one in
digits, a number with its noun, such as 20 dollars, a price or a measure, and a month another one.
Some pairs are a single word and its translation, and some are two or three sentences, which texts
of sentences seldom have. Where both sides are read by characters, a synthetic pair is a number or
some signs, the same on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from unicodedata import category

import numpy as np

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options.recipe import Batching
from bahdanau_tf.text.copied import (
    PATTERNS,
    QUOTED,
    UNITS,
    kept,
    kept_by_pairs,
    spelled_names,
    spellings,
    with_names,
)
from bahdanau_tf.text.script import gap_behind
from bahdanau_tf.text.subwords import SPACE
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.text.word_pairs import (
    CURRENCIES,
    Places,
    another_date,
    dates,
    numerals,
    places_of,
    prices,
    quantities,
    same_numbers,
    word_pairs,
)

LOOKED_AT = 200_000  # pairs of a larger text that are looked through, evenly spread
_APOSTROPHE, _TITLED = re.compile(r"(\w+)['’](\w+)"), re.compile(r"[^\W\d_][\w'’]*")
CARELESS = (1, 2, 3, 4, 5, 6, 7, 10, 14, 16)  # ways to be `careless`
_WORD, _LAST_MARK = re.compile(r"\w+"), re.compile(r"(?<=\w)\s*[.!?。！？]+$")
_COMMA = re.compile(r"(?<=[^\W\d_]), (?=[^\W\d_])")  # not between numbers
DIGITS, CAPITALS = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HALF_WIDTH = str.maketrans("０１２３４５６７８９", DIGITS)  # a Japanese text has both
ENDINGS = ("com", "org", "net", "fr", "co.kr", "jp", "edu", "io")
SYMBOLS = [*range(0x2600, 0x2700), *range(0x1F300, 0x1F650)]  # sun to hands; sub-words of bytes
SIGNS = [x for x in (*range(0x21, 0xC0), *range(0x2010, 0x2050)) if category(chr(x))[0] in "PS"]
FILES = ("txt", "pdf", "csv", "py", "jpg", "html", "zip", "docx", "png", "json")


class SyntheticPairs:
    """Draws synthetic pairs of a corpus.

    A new name has pieces that the tokenizers of both sides have (of Latin letters, if there are
    any, otherwise of others, otherwise single letters), or words. What is drawn depends
    on the seed, the epoch and the place in it, and NumPy's `RandomState` never changes, so that a
    stream that resumes draws the same.
    """

    def __init__(
        self, corpus: ParallelCorpus, texts: Sequence[Tokenizer], batching: Batching
    ) -> None:
        self._corpus, self._batching = corpus, batching
        self._is_synthetic = lru_cache(maxsize=1)(self._places)
        self._are_spelled = {text.kind for text in texts} == {"char"}
        shared = set.intersection(*map(_syllables, texts))
        latin = {x for x in shared if x.isascii()}
        self._syllables = sorted(latin or shared or CAPITALS.lower())
        rows = corpus.spread(LOOKED_AT)
        self._rows, self._names, self._spellings = [corpus.rows], set[str](), dict[str, str]()
        self._words: list[tuple[str, str]] = []
        self._nouns: dict[str, str] = {}
        if not self._are_spelled:
            pairs = [(x.decode(), y.decode()) for x, y in zip(*self._lines(rows), strict=True)]
            words, self._names = kept_by_pairs(pairs)
            self._spellings = spellings(pairs)
            for names, pair in zip(words["names"], pairs, strict=True):
                names += spelled_names(*pair, self._spellings)
            self._words = word_pairs(pairs)
            self._nouns = dict(self._words)
            found = [[*map(bool, self._found(*pair))] for pair in pairs]
            has_words = [*zip(*found, strict=True)]
            self._rows += _by_kind(rows, pairs, words, has_words)

    def read(
        self, epoch: int, places: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, list[bytes], list[bytes]]:
        """The pairs of lines `rows` at some places of an epoch, synthetic ones in place of some.

        Digits of full width are read as others.

        Returns the numbers of the lines that they are made of, and both sides.
        """
        rows, draws = rows.copy(), {}
        for i in np.flatnonzero(self._is_synthetic(epoch)[places]).tolist():
            draws[i] = np.random.RandomState([self._batching.seed, epoch, places[i]])
            # A pair that has something to renew, or any for a symbol.
            kind = self._rows[draws[i].randint(len(self._rows))]
            rows[i] = kind[draws[i].randint(len(kind))]
        source, target = self._lines(rows)
        for i, random in draws.items():
            source[i], target[i] = self._renewed(source[i], target[i], random)
        return rows, source, target

    def _lines(self, rows: np.ndarray) -> tuple[list[bytes], list[bytes]]:
        """Both sides of lines, with ordinary digits, so that a model copies them."""
        source, target = self._corpus.read(rows)
        if self._are_spelled:
            return source, target
        return [*map(_half_width, source)], [*map(_half_width, target)]

    def _places(self, epoch: int) -> np.ndarray:
        """bool [pairs]: the places of an epoch that get a synthetic pair."""
        count = len(self._corpus)
        if not self._are_spelled and len(self._rows) == 1:
            return np.zeros(count, bool)
        random = np.random.RandomState([self._batching.seed, epoch, count])
        places: np.ndarray = random.random_sample(count) < self._batching.synthetic_pairs
        return places

    def _renewed(
        self, source: bytes, target: bytes, random: np.random.RandomState
    ) -> tuple[bytes, bytes]:
        """The pair with other numbers or names, sometimes with others behind it, or a word."""
        if self._are_spelled:
            signs = self._signs(random).encode()
            return signs, signs
        if self._words and random.randint(8) == 0:
            x, y = self._words[random.randint(len(self._words))]
            if random.randint(2) == 0:
                x, y = x.capitalize(), y[0].upper() + y[1:]
            return x.encode(), y.encode()
        x, y = self._with_others(source.decode(), target.decode(), random)
        places = random.randint(len(self._corpus), size=max(random.randint(8) - 5, 0))
        for other, translation in zip(*self._lines(self._corpus.rows[places]), strict=True):
            x += gap_behind(x) + other.decode()
            y += gap_behind(y) + translation.decode()
        return x.encode(), y.encode()

    def _with_others(self, x: str, y: str, random: np.random.RandomState) -> tuple[str, str]:
        """The pair with other numbers, quantities, names, quotes or a noun, or with a symbol."""
        in_words, counted, dated, priced, _ = self._found(x, y)
        new = [(at, [_price(random)] * 2) for at in priced]
        if not new and random.randint(2):
            new = [(at, [_whole(random, 1)] * 2) for at in in_words]
            new += [(at, [_quantity(random)] * 2) for at in counted]
            new += [(at, _date(x, y, at, random.randint(84))) for at in dated]
        if new:
            return _with_at(x, y, *new[random.randint(len(new))])
        is_quoted = _quotes_once(x, y) and random.randint(2) == 0
        if is_quoted:
            name = self._name(random)
            x, y = (QUOTED.sub(lambda old: old[1] + name + old[3], text) for text in (x, y))
        others = {
            "numbers": {old: self._number(random, old) for old in kept("numbers", x, y)},
            "names": {old: self._name(random) for old in kept("names", x, y, self._names)},
        }
        spelled = {old: self._name(random) for old in spelled_names(x, y, self._spellings)}
        others["names"] |= spelled
        if spelled:
            y = with_names(y, {self._spellings[old]: name for old, name in spelled.items()})
        for kind, words in others.items():
            x, y = (PATTERNS[kind].sub(partial(_other, words), text) for text in (x, y))
        is_new = is_quoted or any(others.values())
        if not is_new and random.randint(2) and (places := self._noun_places(x, y)):
            return _with_at(x, y, places[random.randint(len(places))], [self._name(random)] * 2)
        if random.randint(8) == 0 or not is_new:
            symbol = chr(random.choice(SYMBOLS))
            x = careless(x.encode(), y.encode(), 2 * random.randint(2)).decode()
            x, y = f"{x} {symbol}", f"{y} {symbol}"
        return x, y

    def _found(self, x: str, y: str) -> tuple[list[Places], ...]:
        """Where a pair has numbers in words or with nouns, dates, prices, and nouns for names."""
        numbers = same_numbers(x, y)
        return (
            numerals(x, y, numbers),
            quantities(x, y, numbers, self._nouns),
            dates(x, y),
            prices(x, y, numbers, self._nouns),
            self._noun_places(x, y),
        )

    def _noun_places(self, x: str, y: str) -> list[Places]:
        """Where a pair has a noun that a name may replace, if names keep their letters."""
        return places_of(self._nouns, x, y) if self._spellings else []

    def _signs(self, random: np.random.RandomState) -> str:
        """A number or a few signs, as a line of short strings."""
        sign = chr(random.choice(SIGNS))
        return _one_of(
            random,
            lambda: sign * random.randint(1, 4),
            lambda: _drawn(random, DIGITS, 1, 4),
            lambda: self._number(random, "1"),
            lambda: _drawn(random, DIGITS, 1, 3) + sign,
        )

    def _number(self, random: np.random.RandomState, old: str) -> str:
        """A number like the old one, or another number, decimal, price, time, date or version."""
        whole = _whole(random, 6)
        day, month, year = random.randint([1, 1, 1900], [29, 13, 2100])
        return _one_of(
            random,
            *[lambda: _alike(random, old)] * 10,
            *[lambda: whole + _drawn(random, DIGITS)] * 5,
            lambda: f"{whole[:3]}.{random.randint(100):02d}",
            lambda: f"{whole[:2]}.{random.randint(10)}",
            lambda: f"{int(whole):,}",
            lambda: _price(random),
            lambda: f"{whole[:2]}%",
            lambda: f"{random.randint(1, 24)}:{random.randint(60):02d}",
            lambda: f"{day}/{month}/{year}",
            lambda: f"{year}-{month:02d}-{day:02d}",
            lambda: f"{random.randint(30)}.{month}.{day}",
        )

    def _name(self, random: np.random.RandomState) -> str:
        """A name of one or two words, capitals, a code, a file, an address or a placeholder.

        Half have a word of the text, as report.pdf and Lena Brown.
        """
        word, small, other = (self._word(random) for _ in range(3))
        small, ending = small.lower(), ENDINGS[random.randint(len(ENDINGS))]
        if self._words and random.randint(2):
            small = self._words[random.randint(len(self._words))][0]
        capitals = _drawn(random, CAPITALS, 2, 5)
        return _one_of(
            random,
            *[lambda: word] * 5,
            *[lambda: f"{word} {other}"] * 2,
            *[lambda: f"{word} {small.capitalize()}"] * 2,
            lambda: f"{word}-{other}",
            lambda: capitals,
            lambda: f"{capitals}-{_drawn(random, DIGITS, 2, 5)}",
            lambda: f"{_drawn(random, CAPITALS)}{_drawn(random, DIGITS, 1, 4)}",
            lambda: f"{small}{random.choice(['', '_', '-'])}{other.lower()}.{random.choice(FILES)}",
            lambda: f"{small}.{random.choice(FILES)}",
            lambda: f"{small}{_drawn(random, DIGITS, 1, 4)}",
            lambda: f"{small}@{other.lower()}.{ending}",
            lambda: f"{random.choice(['www.', 'https://', 'https://www.'])}{small}.{ending}",
            lambda: f"https://{small}.{ending}/{other.lower()}/{_drawn(random, DIGITS, 0, 3)}",
            lambda: random.choice(["%s", "%d", f"{{{small}}}", f"${{{small}}}", f"%({small})s"]),
        )

    def _word(self, random: np.random.RandomState) -> str:
        """A capitalized word of up to three syllables."""
        places = random.randint(len(self._syllables), size=random.randint(2, 4))
        return "".join(self._syllables[place] for place in places).capitalize()


def careless(source: bytes, target: bytes, how: int) -> bytes:
    """A source without its capitals (1), its last mark (2), its apostrophes (4), or several.

    Or as a title, In Which Each Word Has A Capital (8), or without spaces behind its commas (16).
    Words that the target has, too, such as names and file names, stay as they are.

    Args:
        source, target: A pair.
        how: The sum of these numbers.
    """
    text, other = source.decode(), target.decode()
    stay = {*_WORD.findall(other), *_TITLED.findall(other)}
    if how & 4:
        text = _APOSTROPHE.sub(lambda x: x[0] if x[0] in stay else x[1] + x[2], text)
    if how & 2:
        text = _LAST_MARK.sub("", text)
    if how & 1:
        text = _WORD.sub(lambda x: x[0] if x[0] in stay else x[0].lower(), text)
    if how & 16:
        text = _COMMA.sub(",", text)
    if how & 8:
        text = _TITLED.sub(lambda x: x[0] if x[0] in stay else x[0][0].upper() + x[0][1:], text)
    return text.encode()


def _by_kind(
    rows: np.ndarray,
    pairs: Sequence[tuple[str, str]],
    words: Mapping[str, list[list[str]]],
    has_words: Sequence[Sequence[bool]],
) -> list[np.ndarray]:
    """The lines of pairs that have something to renew, a kind as often as it is to be drawn.

    A third of the names are drawn from pairs that have one behind the first word: most names begin
    a sentence, and a model would take each first word for one.
    """
    with_numbers, named = ([bool(x) for x in words[kind]] for kind in PATTERNS)
    inner = [
        any(not source.startswith(name) for name in names)
        for names, (source, _) in zip(words["names"], pairs, strict=True)
    ]
    quoted = [_quotes_once(*pair) for pair in pairs]
    all_kinds = [*[with_numbers] * 2, *[named] * 2, inner, quoted, *has_words]
    kinds = [rows[np.array(kind)] for kind in all_kinds]
    return [kind for kind in kinds if kind.size]


def _quotes_once(source: str, target: str) -> bool:
    return all(len(QUOTED.findall(text)) == 1 for text in (source, target))


def _date(x: str, y: str, places: Places, number: int) -> list[str]:
    """Another month or day for that of each side."""
    return [another_date(text[slice(*at)], number) for text, at in zip((x, y), places, strict=True)]


def _with_at(x: str, y: str, places: Places, new: Sequence[str]) -> tuple[str, str]:
    """A pair with something else at a place of each side."""
    (start, end), (other, last) = places
    return x[:start] + new[0] + x[end:], y[:other] + new[1] + y[last:]


def _half_width(line: bytes) -> bytes:
    """A line with ordinary digits in place of those of full width."""
    return line.decode().translate(HALF_WIDTH).encode() if b"\xef\xbc" in line else line


def _syllables(text: Tokenizer) -> set[str]:
    """The short pieces of letters that may be capitals, in lower case."""
    pieces = (word.lstrip(SPACE.decode()).lower() for word in text.words)
    return {x for x in pieces if 2 <= len(x) <= 4 and x.isalpha() and x.islower()}


def _other(others: Mapping[str, str], old: re.Match[str]) -> str:
    return others.get(old[0], old[0])


def _alike(random: np.random.RandomState, number: str) -> str:
    """Other digits for those of a number, so that a year remains one, and a day; 0 stays first."""
    first = number[0] if number[0] == "0" else _drawn(random, DIGITS[1:])
    return first + re.sub("[0-9]", lambda _: _drawn(random, DIGITS), number[1:])


def _quantity(random: np.random.RandomState) -> str:
    """A price, a measure or a percentage."""
    whole, unit = _whole(random, 2), random.choice(UNITS)
    return _one_of(
        random,
        *[lambda: _price(random)] * 2,
        lambda: f"{whole} {unit}",
        lambda: f"{whole}.{_drawn(random, DIGITS, 1, 2)} {unit}",
        lambda: f"{whole[:2]}%",
    )


def _price(random: np.random.RandomState) -> str:
    """A sign and a number, as whole as not."""
    cents = f".{_drawn(random, DIGITS, 2, 2)}" if random.randint(2) else ""
    return f"{random.choice([*CURRENCIES])}{_whole(random, 3)}{cents}"


def _whole(random: np.random.RandomState, most: int) -> str:
    """A whole number of one digit and up to so many more."""
    return _drawn(random, DIGITS[1:]) + _drawn(random, DIGITS, 0, most)


def _drawn(random: np.random.RandomState, letters: str, least: int = 1, most: int = 1) -> str:
    """Some letters, each as probable as any other."""
    count = random.randint(least, most + 1)
    return "".join(letters[place] for place in random.randint(len(letters), size=count))


def _one_of(random: np.random.RandomState, *makers: Callable[[], str]) -> str:
    return makers[random.randint(len(makers))]()
