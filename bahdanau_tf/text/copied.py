"""What a translation keeps as it is: numbers, names and placeholders."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from bahdanau_tf.text.script import HANGUL, KATAKANA

# Signs between digits belong to a number, as in 9:45, 3.50, 1.2.3 and 2026-11-28. A name begins
# with a capital, and may be joined, as O'Neil and Jean-Luc.
_LETTER = "[A-Za-z0-9À-ÖØ-öø-ɏ]"  # other scripts join them to words of their own
PATTERNS = {
    "numbers": re.compile(rf"(?<!{_LETTER})[0-9]+(?:[.,:/-][0-9]+)*(?!{_LETTER})"),
    "names": re.compile(
        rf"(?<!{_LETTER})[A-ZÀ-ÖØ-Þ](?:{_LETTER}*(?:['’-]{_LETTER}+)+|{_LETTER}+)(?!{_LETTER})"
    ),
}
# Placeholders of programs and entities: %s, %(name)d, %1$s, %1, {0}, {x:>8}, {{x}}, ${x}, &amp;
PLACEHOLDER = re.compile(
    r"(?<![0-9])%(?:%|(?:\([^()\s]+\)|[0-9]+\$)?[-+#0]*(?:[1-9][0-9]*)?(?:\.[0-9]+)?(?:hh?|ll?|[Lqjzt])?"
    r"[diouxXeEfFgGcrsa@]|L?[0-9]{1,2})|[$#]?\{\{[^{}]*\}\}|[$#]?\{[^{}\s]*\}|"
    r"&(?:#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);"
)
# Addresses, file names and codes, which no language changes: a@b.org, x.com/y, a_1.csv, B52, AB-12
_SIGN = "[A-Za-z0-9_/@:.%+=&?#~-]"
CODE = re.compile(
    rf"(?<!{_SIGN})(?={_SIGN}*(?:@[A-Za-z0-9]|[A-Za-z0-9]_[A-Za-z0-9]|://|[a-z]{{2}}\.[a-z]{{2}}|"
    rf"[A-Z]-?[0-9]|[a-z][0-9])){_SIGN}*[A-Za-z0-9_/]"
)
UNITS = ("km/h", "km", "m", "cm", "mm", "kg", "g", "ml", "°C", "GB", "MB")  # in all languages
UNIT = re.compile(rf"(?<=[0-9]) ?(?:{'|'.join(UNITS)})(?!{_LETTER})")
DIGIT = re.compile(rf"(?<!{_LETTER})[0-9](?!{_LETTER})")  # by itself, not as in 4th
# Digits with single separators between them; the groups of a thousand are one number.
DIGITS = re.compile(r"[0-9]+(?:[.,:'’/\s-][0-9]+)*")
THOUSANDS = re.compile(r"[0-9]{1,3}(?:([.,'’\s])[0-9]{3})(?:\1[0-9]{3})*")
# What stands between quotes, and these: "no", « no », “no”, 「no」
_UNQUOTED = '[^"“”«»「」『』]'
QUOTED = re.compile(
    rf'(["“«「『]\s*)((?!\s){_UNQUOTED}(?:{_UNQUOTED}*(?!\s){_UNQUOTED})?)(\s*["”»」』])'
)
# Words that can be the sound of a name: トム, 톰. In Korean a particle may follow in the same word.
_SPELLED = re.compile(f"[{KATAKANA}]+|[{HANGUL}]+")
_BEFORE_FIRST = re.compile(r"\W*")
MOSTLY = 0.8  # of the pairs that have a name must have its spelling
OWN = 0.5  # of the pairs that have a spelling must have its name
LONGEST = 40  # letters of a spelling


def kept(kind: str, source: str, target: str, names: Collection[str] = ()) -> list[str]:
    """The numbers or names that stand on both sides, in the order of the source.

    The first word of a sentence has a capital, too: it is a name if it is one of `names`, or if the
    same word stands behind the first one on the other side.
    """
    return [word for word, sure in _shared(kind, source, target).items() if sure or word in names]


def kept_by_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, list[list[str]]], set[str]]:
    """The numbers and the names that each pair of a text keeps, and all names, read once.

    A word that is surely a name in one pair is one at the start of any other.
    """
    shared: dict[str, list[dict[str, bool]]] = {kind: [] for kind in PATTERNS}
    for pair in pairs:
        for kind, rows in shared.items():
            rows.append(_shared(kind, *pair))
    names = {word for row in shared["names"] for word, sure in row.items() if sure}
    words = {
        kind: [[word for word, sure in row.items() if sure or word in names] for row in rows]
        for kind, rows in shared.items()
    }
    return words, names


def _shared(kind: str, source: str, target: str) -> dict[str, bool]:
    """The words of a kind that stand on both sides, and whether this alone makes them of it."""
    before, first = _words(kind, source)
    if not before:
        return {}
    after, other = _words(kind, target)
    inner, both = {*before[len(first) :], *after[len(other) :]}, {*before}.intersection(after)
    return {word: kind == "numbers" or word in inner for word in before if word in both}


def _words(kind: str, text: str) -> tuple[list[str], list[str]]:
    """The numbers or names of a text, and the one that begins it, if there is one."""
    matches = [*PATTERNS[kind].finditer(text)]
    if not matches:
        return [], []
    start = _BEFORE_FIRST.match(text)
    is_first = start is not None and matches[0].start() == start.end()
    words = [match[0] for match in matches]
    return words, words[: int(is_first)]


def spellings(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The names of the sources that the targets spell in Katakana or Hangul: Tom is トム.

    A spelling is how words begin in nearly all pairs that have the name, and mostly in these. Of
    several it is the longest, and of equally long ones always the same.
    """
    seen, inner, spelled = Counter[str](), set[str](), Counter[str]()
    together: dict[str, Counter[str]] = defaultdict(Counter)
    for source, target in pairs:
        if runs := _SPELLED.findall(target):
            starts = {run[:end] for run in runs for end in range(1, min(len(run), LONGEST) + 1)}
            spelled.update(starts)
            words, first = _words("names", source)
            inner.update(words[len(first) :])
            for name in {*words}:
                seen[name] += 1
                together[name].update(starts)
    table = {
        name: [x for x, n in starts.items() if n >= max(MOSTLY * seen[name], OWN * spelled[x])]
        for name, starts in together.items()
        if seen[name] > 1 and name in inner and name.isalpha()  # neither Why nor Tom's
    }
    return {
        name: max(starts, key=lambda start: (len(start), start))
        for name, starts in table.items()
        if starts
    }


def spelled_names(source: str, target: str, table: Mapping[str, str]) -> list[str]:
    """The names of a source whose spelling, by a table, begins a word of its target.

    If it is that of two of them, as of Panama Canal, it is not known whose it is.
    """
    names = [name for name in dict.fromkeys(PATTERNS["names"].findall(source)) if name in table]
    count = Counter(table[name] for name in names)
    starts = {x for x in count if any(run.startswith(x) for run in _SPELLED.findall(target))}
    return [name for name in names if table[name] in starts and count[table[name]] == 1]


def with_names(target: str, names: Mapping[str, str]) -> str:
    """A target with other names in place of spellings, each behind a space; particles stay."""

    def renamed(match: re.Match[str]) -> str:
        run = match[0].lstrip("・ ")
        start = max((x for x in names if run.startswith(x)), key=len, default=None)
        if start is None:
            return match[0]
        return f" {names[start]}" + (run[len(start) :] if "가" <= run[0] <= "힣" else "")

    return re.sub(f"[・ ]?(?:{_SPELLED.pattern})", renamed, target).strip()


def numbers(text: str) -> list[str]:
    """The numbers of a text, by their digits: 9:45 is 9 and 45, and 14,000 is 14000."""
    all_digits: list[str] = []
    for match in DIGITS.finditer(unicodedata.normalize("NFKC", text)):
        digits = re.findall(r"\d+", match[0])
        all_digits += ["".join(digits)] if THOUSANDS.fullmatch(match[0]) else digits
    return all_digits
