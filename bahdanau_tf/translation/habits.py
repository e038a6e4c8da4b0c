"""Habits: what a model is used to, and what makes its other translations doubtful.

A model translates everything, and its score alone does not tell a good translation from a bad one:
it depends on the length. So a training keeps the scores of the dev text's translations, and
`Translation.confidence` says how many of those of a similar length scored lower.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain

import numpy as np

from bahdanau_tf.text.copied import CODE, numbers
from bahdanau_tf.text.languages import LANGUAGES, Language, language
from bahdanau_tf.text.word_pairs import CALENDAR
from bahdanau_tf.translation import doubts
from bahdanau_tf.translation.result import Doubt, Translation
from bahdanau_tf.translation.sentence_splitting import has_several, unframed

QUANTILES = 21  # of the scores of translations of similar lengths
SHARES = np.linspace(0, 1, QUANTILES)
GROUPS, MEMBERS = 4, 50  # at most so many groups of lengths, with at least so many translations
RARE = 0.02  # of the dev text's sentences have a larger share of new words
SEEN = 5  # pairs of a training that have a word, at least, so that it has counterparts
FREQUENT = 0.01  # of the pairs have the word, at most
COUNTERPARTS = 4  # of a word, at most; each is in at least `TOGETHER` pairs that have the word,
TOGETHER = 3
OWN = 0.2  # and these are by so much a larger share of those with it than of all pairs
EXCEPTIONS = 1 / 15  # of the pairs that have the word, at most, have no counterpart,
RARELY = 3e-5  # nor more of all pairs
COMMON = 20  # pairs of a training that have a word, at least, so that it is known to be a word
CHANGED = 0.5  # of the pairs with a number lose it: it is not expected in a translation
NEARLY = 0.8  # of the months and days of a training have a known counterpart, at least
SEVERAL = 0.03  # of the sources of a training are several sentences: a model knows such
NEW = 0.1  # of the pairs of a training, at most, have a word that no other pair has
KEPT = 0.4  # at least so many of the names that a training has once stand on both sides
ENDED = 0.98  # of the pairs whose source ends with a mark: so do their targets
BETWEEN_NAMES = re.compile(f"[ {''.join(x.between_names for x in LANGUAGES.values())}]")
TWO_WORDS = re.compile(r"(?<=[\w,] )([^\W\d_]+) (?=([^\W\d_]+))")  # behind the first one


@dataclass(frozen=True)
class Habits:
    """What a model is used to: the lengths of its training, the scores of its dev text.

    Attributes:
        longest: The longest source of the training in tokens, without the end symbol; None if there
            was no limit, or if it is unknown.
        longest_words: The same in words between spaces.
        lengths: The longest translation of each group of lengths, end symbol included; the last
            group also has all longer ones.
        scores: For each group the quantiles of log p(y | x) / |y|, from 0 to 1.
        split: The largest usual share of the words of a source, as `new_words` counts, that are of
            several tokens.
        vocabulary: The words of the training's sources in lower case, also without apostrophes,
            with spaces between them; None if it is unknown.
        often_new: Whether many pairs of the training have a word that no other has, so that one
            that `vocabulary` lacks is no doubt.
        kept: The words in lower case that some pair of the training has on both sides, with spaces
            between them; None if new ones are frequent, or if it is unknown.
        translated: The names that are in the source of some pair of the training and not in its
            target. If this is the rule, all that the training has, or None if a model does not
            keep others. None also if it is unknown.
        capitals: The words that sources of the training mostly write with a capital, also behind
            the first word, as they are written most; and such pairs of words that are not, as
            New_York. None if it is unknown.
        begins: Whether most sources of the training begin with a capital.
        replaced: The words that at least `COMMON` sources of the training have in lower case, and
            no pair on both sides, in any case.
        counterparts: For a word or a number of the source the few words of which nearly every pair
            of the training has one, with spaces between them.
        spellings: How targets spell the names that are sources alone, in letters without case, as
            トム for tom.
        changed: "number" and "code", if most pairs of the training that have one change it, as a
            date becomes 2026-11-29.
        copies: Whether texts without letters, such as 12:30, are kept as they are: few pairs of the
            training have none, and nearly all of these keep them.
        singly: Whether nearly all sources of the training are single sentences, not framed, so that
            others are to be split; False if it is unknown.
        stops: Which of `CLAUSE` sources of the training end with; None if it is unknown.
        ends: Whether targets of the training end with a mark, such as a full stop, if their
            sources do.
        languages: The codes of the source's language and the target's, such as en; "" if unknown.
        is_short: Whether texts are short strings, such as words and their pronunciation; numbers,
            names and words in them are no reason for doubts.
    """

    longest: int | None = None
    longest_words: int | None = None
    lengths: Sequence[int] = ()
    scores: Sequence[Sequence[float]] = ()
    split: float | None = None
    vocabulary: str | None = None
    often_new: bool = False
    kept: str | None = None
    translated: str | None = None
    capitals: str | None = None
    begins: bool = False
    replaced: str = ""
    counterparts: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, str] = field(default_factory=dict)
    changed: Sequence[str] = ()
    copies: bool = False
    singly: bool = False
    stops: str | None = None
    ends: bool = False
    languages: Sequence[str] = ()
    is_short: bool = False

    @property
    def target(self) -> Language:
        """The rules of the target's language."""
        return language((*self.languages, "", "")[1])

    @classmethod
    def read(cls, value: object) -> Habits:
        """Those that a file has; raises a ValueError or a TypeError if they cannot be meant."""
        if not isinstance(value, dict):
            raise ValueError(f"habits is {value!r}, wanted an object")
        habits = cls(**value)
        shape = np.shape(habits.scores)
        if shape != (len(habits.lengths), QUANTILES) and len(habits.lengths):
            raise ValueError(
                f"habits has scores of shape {shape}, wanted {QUANTILES} for each length"
            )
        return habits

    @classmethod
    def joined(cls, members: Sequence[Habits]) -> Habits:
        """Those of an ensemble: its lengths are those that all members know, its scores its own."""
        longest = min((x.longest for x in members if x.longest), default=None)
        words = min((x.longest_words for x in members if x.longest_words), default=None)
        vocabulary, kept, translated, capitals = (
            reduce(_together, (getattr(x, name) for x in members))
            for name in ("vocabulary", "kept", "translated", "capitals")
        )
        first = members[0]
        counterparts = {
            word: " ".join({y: y for x in members for y in x.counterparts[word].split()})
            for word in first.counterparts
            if all(word in x.counterparts for x in members)
        }
        return cls(
            longest,
            words,
            vocabulary=vocabulary,
            often_new=any(x.often_new for x in members),
            kept=kept,
            translated=translated,
            capitals=capitals,
            begins=all(x.begins for x in members),
            replaced=first.replaced,
            counterparts=counterparts,
            spellings=first.spellings,
            changed=first.changed,
            copies=all(x.copies for x in members),
            singly=all(x.singly for x in members),
            stops=first.stops,
            ends=all(x.ends for x in members),
            languages=first.languages,
            is_short=first.is_short,
        )

    def after(self, earlier: Habits) -> Habits:
        """Those of a model that was trained before on another text, with `earlier` ones.

        Its scores are the earlier ones, until it has translated a dev text.
        """
        kept = _together(earlier.kept, self.kept)
        replaced = {*earlier.replaced.split(), *self.replaced.split()} - {*(kept or "").split()}
        stops = self.stops is not None and earlier.stops is not None
        return replace(
            self,
            longest=_larger(earlier.longest, self.longest),
            longest_words=_larger(earlier.longest_words, self.longest_words),
            lengths=earlier.lengths,
            scores=earlier.scores,
            split=earlier.split,
            vocabulary=_together(earlier.vocabulary, self.vocabulary),
            often_new=self.often_new or earlier.often_new,
            kept=kept,
            translated=_together(earlier.translated, self.translated),
            capitals=_together(earlier.capitals, self.capitals),
            begins=self.begins and earlier.begins,
            replaced=" ".join(sorted(replaced)),
            counterparts={**earlier.counterparts, **self.counterparts},
            spellings={**earlier.spellings, **self.spellings},
            copies=self.copies and earlier.copies,
            singly=self.singly and earlier.singly,
            stops=f"{earlier.stops}{self.stops}" if stops else None,
            ends=self.ends and earlier.ends,
        )

    @classmethod
    def of_pairs(cls, pairs: Sequence[tuple[str, str]], keeps_names: bool = False) -> Habits:
        """What pairs of a training keep and translate.

        `keeps_names`: whether a model learns to keep the names that the pairs lack, even if the
        targets spell all others in another script.
        """
        kept, names, lost = Counter[str](), Counter[str](), Counter[str]()
        read, stay = Counter[str](), set[str]()
        sources = [doubts.plain_words(source) for source, _ in pairs]
        for words, (source, target) in zip(sources, pairs, strict=True):
            after = doubts.plain_words(target)
            kept.update(doubts.same_words(words, after))
            read.update({*words})
            stay.update(word.lower() for word in {*words}.intersection(after))
            if own := {*doubts.names_of(source)}:
                names.update(own)
                lost.update(doubts.missing_names(source, target))
        known = Counter(x.lower() for words in sources for x in words)
        known.update(
            x.lower() for x, _ in pairs if "'" in x for x in doubts.plain_words(x.replace("'", ""))
        )
        new = [word for word, times in names.items() if times == 1]
        stops = Counter(source[-1:] for source, _ in pairs if source[-1:] in {*doubts.CLAUSE})
        ended = [
            bool(doubts.END.search(target)) for source, target in pairs if doubts.END.search(source)
        ]
        if sum(word not in lost for word in new) >= KEPT * max(len(new), 1):
            translated: str | None = " ".join(sorted(lost))
        else:
            latin = sum(any(map(str.isascii, doubts.words_of(target))) for _, target in pairs)
            every = {x for x in read if x[0].isupper() and x.lower() not in read}
            is_known = keeps_names and 2 * latin < len(pairs)
            translated = " ".join(sorted(every.union(names))) if is_known else None
        return cls(
            vocabulary=" ".join(sorted(known)),
            often_new=[*known.values()].count(1) > NEW * len(pairs),
            kept=" ".join(sorted(kept)) if [*kept.values()].count(1) <= RARE * len(pairs) else None,
            translated=translated,
            capitals=_capitals([source for source, _ in pairs], sources, names, read),
            begins=2 * sum(source[:1].isupper() for source, _ in pairs) > len(pairs),
            replaced=" ".join(
                sorted(x for x, n in read.items() if n >= COMMON and x.islower() and x not in stay)
            ),
            counterparts=counterparts_of(
                pairs, [[*words, *map(str.lower, words[:1])] for words in sources]
            ),
            spellings=_spellings(pairs, read),
            changed=_changed(pairs),
            copies=_copies(pairs),
            singly=sum(map(_has_more, (source for source, _ in pairs))) < SEVERAL * len(pairs),
            stops="".join(x for x, n in sorted(stops.items()) if n >= SEEN),
            ends=bool(ended) and sum(ended) >= ENDED * len(ended),
        )

    def measured(
        self, log_probs: Sequence[float], lengths: Sequence[int], split: Sequence[float] = (1.0,)
    ) -> Habits:
        """Those of a model that translated a dev text so; `lengths` count the end symbol.

        `split` are the sentences' shares of words in several tokens.
        """
        count = min(GROUPS, max(1, len(lengths) // MEMBERS))
        edges = np.unique(np.quantile(lengths, np.arange(1, count + 1) / count, method="lower"))
        groups = np.searchsorted(edges, lengths)
        means = np.array(log_probs) / np.array(lengths)
        scores = [np.quantile(means[groups == i], SHARES).round(4) for i in range(len(edges))]
        return replace(
            self,
            lengths=edges.tolist(),
            scores=[x.tolist() for x in scores],
            split=float(np.quantile(split, 1 - RARE).round(4)),
        )

    def judged(self, translation: Translation, usual: Collection[str]) -> Translation:
        """A translation with confidence and doubts, as its alternatives.

        `usual` are the characters of the source tokenizer's vocabulary.
        """
        confidence = self._confidence(translation)
        return replace(
            translation,
            confidence=confidence,
            alternatives=[self.judged(other, usual) for other in translation.alternatives],
            doubts=(*translation.doubts, *self._doubts(translation, confidence, usual)),
        )

    def _confidence(self, x: Translation) -> float | None:
        """The share of the dev text's translations that are less likely, of similar lengths."""
        if not (self.lengths and (x.tokens or x.source_tokens)):
            return None
        length = max(len(x.tokens) + x.finished, 1)
        group = min(bisect_left(self.lengths, length), len(self.lengths) - 1)
        return float(np.interp(x.log_prob / length, self.scores[group], SHARES))

    def _doubts(
        self, x: Translation, confidence: float | None, usual: Collection[str]
    ) -> Iterator[Doubt]:
        if strange := doubts.unread_characters(x.source, x.text, usual):
            yield Doubt("characters", strange[: doubts.SHOWN])
        if not self.is_short:
            yield from self._doubts_of_words(x, confidence)
        if x.truncated:
            yield Doubt("cut")
        times = doubts.REPEATS if self.is_short else doubts.TWICE
        if (phrase := doubts.repeated_phrase(x.text, times)) and not doubts.repeated_phrase(
            x.source, times
        ):
            yield Doubt("repeated", phrase)
        if self.longest is not None and len(x.source_tokens) > self.longest:
            yield Doubt("long", str(self.longest))
        if confidence is not None and confidence < doubts.UNLIKELY:
            yield Doubt("unlikely", f"{1 - doubts.UNLIKELY:.0%}")

    def _doubts_of_words(self, x: Translation, confidence: float | None) -> Iterator[Doubt]:
        """Those of the words, numbers, names and signs of a sentence."""
        sides = x.source, x.text
        before, after = map(doubts.plain_words, sides)
        is_sure = confidence is not None and confidence > doubts.UNSURE
        strange, share = doubts.new_words(x)
        is_strange = self.split is not None and not is_sure and share > self.split
        if words := [*self._unread(before, after), *(strange if is_strange else [])]:
            yield Doubt("words", ", ".join([*dict.fromkeys(words)][: doubts.PHRASE]))
        has_numbers = "number" not in self.changed and bool(numbers(x.source))
        missing = doubts.missing_numbers(*sides) if has_numbers else []
        first = [word.lower() for word in before[:1] if word not in self.counterparts]
        lost = self._lost((*first, *before, *missing), x.text)
        yield from (Doubt("number", y) for y in missing if len(y) > 1 or y in lost)
        added = doubts.missing_numbers(x.text, x.source) if has_numbers else []
        yield from (Doubt("added", y) for y in added)
        names = doubts.new_in(doubts.missing_names(*sides), self.translated)
        yield from (Doubt("name", name) for name in names)
        yield from (Doubt("dropped", word) for word in lost if word not in (*missing, *names))
        words = doubts.new_in(doubts.same_words(before, after), self.kept)
        words += [
            y for y in doubts.first_kept(before, after) if f" {y.lower()} " in f" {self.replaced} "
        ]
        yield from (Doubt("untranslated", word) for word in words)
        codes = [] if "code" in self.changed else CODE.findall(x.source)
        yield from (Doubt("code", code) for code in codes if code not in x.text)
        new = [code for code in CODE.findall(x.text) if code not in x.source] if codes else []
        yield from (Doubt("code", y) for y in new if not any(y.startswith(f"{z}-") for z in codes))
        last = x.source.rstrip()[-1:]
        if self.stops is not None and last in {*doubts.CLAUSE} - {*self.stops}:
            yield Doubt("fragment", last)
        if doubts.marks_alone(x.text) and not doubts.marks_alone(x.source):
            yield Doubt("marks")
        if self.ends and not x.truncated:
            if doubts.END.search(x.source) and not doubts.END.search(x.text):
                yield Doubt("end")
            if shares := doubts.fewer_sentences(*sides):
                yield Doubt("sentences", shares)
        yield from (Doubt("repeated", name) for name in doubts.doubled_names(before, after))

    def _unread(self, before: Sequence[str], after: Sequence[str]) -> list[str]:
        """The words of a source that the training never had and the translation does not have."""
        own, kept = (*map(str.lower, before[:1]), *before[1:]), {*map(str.lower, after)}
        words = [x for x in own if x == x.lower() and len(x) > 1 and x not in kept]
        return [] if self.often_new else doubts.new_in(words, self.vocabulary)

    def _lost(self, words: Iterable[str], text: str) -> list[str]:
        """The words of a source that have counterparts, none of which is in its translation."""
        table = self.counterparts
        if not (those := [x for x in dict.fromkeys(words) if x in table]):
            return []
        after = doubts.target_words(text)
        return [x for x in those if not after & {*table[x].split()}]


def _together(first: str | None, second: str | None) -> str | None:
    """The words of two strings, each once; None if one is unknown."""
    if first is None or second is None:
        return None
    return " ".join(sorted({*first.split(), *second.split()}))


def _larger(first: int | None, second: int | None) -> int | None:
    """The larger one of two limits; None if there is none on one side."""
    return max(first, second) if first and second else None


def _spellings(pairs: Iterable[tuple[str, str]], read: Collection[str]) -> dict[str, str]:
    """The names that are sources alone, as `Habits` has them; `read` are the words of sources."""
    found: dict[str, str] = {}
    for pair in pairs:
        names, parts = (BETWEEN_NAMES.split(text.strip()) for text in pair)
        are_names = len(names) == len(parts) and all(x.isalpha() and x.istitle() for x in names)
        if are_names and all(x.isalpha() and x.lower() == x.upper() for x in parts):
            found.update(zip(names, parts, strict=True))
    return {x.lower(): part for x, part in found.items() if x.lower() not in read}


def _changed(pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The kinds that most pairs change, as `Habits` has them."""
    rows = {
        "number": [
            bool(doubts.missing_numbers(x, y) or doubts.missing_numbers(y, x))
            for x, y in pairs
            if numbers(x)
        ],
        "code": [any(x not in y for x in codes) for z, y in pairs if (codes := CODE.findall(z))],
    }
    return tuple(x for x, lost in rows.items() if sum(lost) > CHANGED * max(len(lost), SEEN))


def _capitals(
    sources: Sequence[str], words: Sequence[Sequence[str]], names: Counter[str], read: Counter[str]
) -> str:
    """The words with capitals, as `Habits` has them.

    So many sources have one behind the first word, more than have it in lower case, as `read` says.
    """
    inner = chain.from_iterable({*row[1:]} for row in words)
    times = names + Counter(x for x in inner if x.isupper() or x[1:] != x[1:].lower())
    usual = {word.lower(): word for word, _ in reversed(times.most_common())}
    total = Counter[str]()
    for word, count in times.items():
        total[word.lower()] += count
    found = {small: word for small, word in usual.items() if total[small] > read[small]}
    pairs = Counter(pair for source in sources for pair in TWO_WORDS.findall(source))
    both = [x for x, n in pairs.items() if x[0].istitle() and x[1].istitle() and n >= TOGETHER]
    both = [(a, b) for a, b in both if pairs[a, b] > pairs[a.lower(), b.lower()]]
    more = {f"{a}_{b}" for a, b in both if not {a.lower(), b.lower()} <= found.keys()}
    return " ".join(sorted({*found.values(), *more}))


def _has_more(source: str) -> bool:
    """Whether a source is not a single sentence, or one in quotation marks or brackets."""
    return has_several(source) or unframed(source)[2] != ""


def _copies(pairs: Sequence[tuple[str, str]]) -> bool:
    """Whether few pairs have a source without letters, and nearly all of these keep it."""
    rows = [
        ["".join(unicodedata.normalize("NFKC", x).split()) for x in pair]
        for pair in pairs
        if doubts.is_wordless(pair[0])
    ]
    same = sum(source == target for source, target in rows)
    return len(rows) <= RARE * len(pairs) and same >= NEARLY * len(rows)


def counterparts_of(
    pairs: Sequence[tuple[str, str]], words: Sequence[Sequence[str]]
) -> dict[str, str]:
    """The counterparts of the sources' words and digits, as `Habits` has them.

    Those of digits are looked for among the pairs that have one: `heures` is frequent there.
    """
    targets = [doubts.target_words(target) for _, target in pairs]
    digits = zip(({*doubts.lone_digits(source)} for source, _ in pairs), targets, strict=True)
    read = [*zip(map(set, words), targets, strict=True)]
    both = (read, [x for x in digits if x[0]])
    table = {x: y for part in both for x, y in _counterparts(part, len(pairs)).items()}
    return dict(sorted({**_dates(read), **table}.items()))


def _dates(pairs: Sequence[tuple[set[str], set[str]]]) -> dict[str, str]:
    """Those of the months and days, of which many are too rare to count, as most of them have.

    A language may have several words for one. May, which is mostly none, has no counterpart.
    """
    ways = [[doubts.target_words(word) for word in row] for row in CALENDAR]
    ways = [[x - set[str]().union("月월曜日星期") for x in row] for row in ways]
    row = max(CALENDAR, key=lambda row: sum(len(before.intersection(row)) for before, _ in pairs))
    seen = [(at, y) for before, y in pairs for at, word in enumerate(row) if word in before]
    used = [way for way in ways if sum(bool(way[at] & y) for at, y in seen) > len(seen) / 9]
    found: dict[int, list[bool]] = defaultdict(list)
    for at, y in seen:
        found[at].append(any(way[at] & y for way in used))
    others = {at for at, x in found.items() if 2 * sum(x) <= len(x)}
    dates = [x for at, row in found.items() if at not in others for x in row]
    if sum(dates) < NEARLY * max(len(dates), 10 * SEEN):
        return {}
    known = {at: set[str]().union(*(way[at] for way in used)) for at in range(len(row))}
    return {row[at]: " ".join(sorted(x)) for at, x in known.items() if x and at not in others}


def _counterparts(pairs: Sequence[tuple[set[str], set[str]]], count: int) -> dict[str, str]:
    """Those of the words of some pairs, among `count` pairs.

    One after the other, the word that is in most of the pairs left, weighted by how much it is
    their own.
    """
    rows: dict[str, list[set[str]]] = defaultdict(list)
    for source, target in pairs:
        for word in source:
            rows[word].append(target)
    times = Counter(chain.from_iterable(target for _, target in pairs))
    table = {}
    for word, left in rows.items():
        if not SEEN <= len(left) <= FREQUENT * count:
            continue
        share, exceptions = len(left) / len(pairs), min(EXCEPTIONS * len(left), RARELY * count)
        together = Counter(chain.from_iterable(left))
        own = {x: n / times[x] - share for x, n in together.items() if n >= TOGETHER}
        own = {x: more for x, more in own.items() if more >= OWN}
        chosen: list[str] = []
        while own and len(left) > exceptions and len(chosen) < COUNTERPARTS:
            best = max(own, key=lambda x: (own[x] * sum(x in target for target in left), x))
            del own[best]
            chosen.append(best)
            left = [target for target in left if best not in target]
        if len(left) <= exceptions:
            table[word] = " ".join(chosen)
    return table
