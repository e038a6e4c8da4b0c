"""Terms: where the source has one, the translation has what the user wants for it.

Search knows nothing of terms, so every engine has them. A hypothesis that lacks one is continued
anew: its words before those that are aligned with the source term, and then the target term, are
the prefix of another search. This is repeated with the best new hypotheses until one has all terms,
at most twice for each term. If there are several terms, the first translation with all of them in
place of its own words is tried as a prefix, too. The most likely of those that lack the fewest is
the translation.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bahdanau_tf.options import Decoding
from bahdanau_tf.system.ranges import Refusal, named
from bahdanau_tf.translation.batches import Sentences, Work, columns_of, decoded, strings
from bahdanau_tf.translation.doubts import words_of
from bahdanau_tf.translation.markup import goes_on, in_word
from bahdanau_tf.translation.result import Doubt, Translation, without_spaces

WIDTH = 5  # hypotheses of a sentence that are continued
LONGER = re.compile(r"\w+(\s*(?:\w+|\S))")  # the rest of a word, and what follows
ENDS = ".!?…。！？"  # a sentence may begin after these
LETTERS = re.compile(r"[^\W\d_]{2}")  # what a word has, of which a text in capitals has two


class Match(NamedTuple):
    """Where a text has a term."""

    start: int
    end: int
    term: str


class Hypothesis(NamedTuple):
    """A translation, the terms that it lacks, and where the prefix ends that it was made from."""

    translation: Translation
    lacks: Counter[str]
    least: int


def rank(x: Hypothesis) -> tuple[int, bool, float]:
    """The smaller, the better."""
    return x.lacks.total(), not x.translation.finished, -x.translation.score


def check_terms(terms: object, decoding: Decoding, reverse: bool) -> None:
    """Raises a ValueError unless terms are strings and the search can have prefixes."""
    owner = "Translator.translate"
    if not isinstance(terms, Mapping):
        raise Refusal(owner, f"terms is {terms!r}, wanted a dict of source terms and target terms")
    for source, target in terms.items():
        for side, term in {"source": source, "target": target}.items():
            if not isinstance(term, str) or not term.strip():
                wanted = f"wanted a {side} term that is a string and not empty"
                raise Refusal(owner, f"terms has {source!r}: {target!r}, {wanted}")
    if decoding.sampling:
        raise Refusal(owner, f"{named('terms')} and {named('sampling', True)}, wanted one of them")
    if reverse:
        raise Refusal(
            owner,
            "target_text is reversed, so the last word of a translation comes first; wanted no "
            "terms",
        )


def with_terms(work: Work, terms: Mapping[str, str]) -> Work:
    """A function that translates as `work` does, with terms.

    What `work` returns has its doubts. A term is likely to be less likely than what the model would
    say, so a translation with terms has the confidence of the best one without.
    """
    targets = {source.strip(): target.strip() for source, target in terms.items()}
    glossary = Glossary(targets)

    def search(decoding: Decoding, tasks: Sequence[tuple[_Sentence, str]]) -> Iterable[Translation]:
        starts = [start for _, start in tasks]
        sources = [row.source for row, _ in tasks]
        return work(decoding, sources, starts if any(starts) else None)

    def translate(
        decoding: Decoding, sentences: Sentences, prefixes: Sentences | None
    ) -> list[Translation]:
        lists = strings("Translator.translate", columns_of(sentences, prefixes)).values()
        texts = zip(*(map(decoded, column) for column in lists), strict=True)
        rows = [_Sentence(source, "".join(start), targets, glossary) for source, *start in texts]
        plain = [row for row in rows if not row.wanted]
        same = iter(search(decoding, [(row, row.start) for row in plain]))
        wide = replace(decoding, n_best=max(decoding.n_best, min(decoding.beam_size, WIDTH)))
        tasks = [(row, row.start) for row in rows if row.wanted]
        strict = replace(decoding, n_best=1, alpha=0.0)  # unlikely terms make it no longer
        while tasks:
            for whole, how in ((False, wide), (True, strict)):
                part = [(row, start) for row, start in tasks if (start == row.whole) == whole]
                for (row, start), x in zip(part, search(how, part), strict=True):
                    row.add(_penalized(x, decoding.alpha) if whole else x, start)
            some = dict.fromkeys(row for row, _ in tasks)
            tasks = [(row, start) for row in some for start in row.next_starts()]
        return [row.best(decoding.n_best) if row.wanted else next(same) for row in rows]

    return translate


class _Sentence:
    """A sentence with the terms that its translation should have, and its hypotheses."""

    def __init__(
        self, source: str, start: str, targets: Mapping[str, str], glossary: Glossary
    ) -> None:
        self.source, self.start = source, start
        matches = find_terms(source, glossary)
        self.wanted = [match._replace(term=targets[match.term]) for match in matches]
        self._counts = Counter(match.term for match in self.wanted)
        self._glossary = Glossary(self._counts)
        self._words = {word for x in (*matches, *self.wanted) for word in words_of(x.term)}
        self._hypotheses: dict[str, Hypothesis] = {}  # by their texts
        self._latest: list[Hypothesis] = []
        self._searched = {start}
        self._rounds = 0
        self.whole: str | None = None  # a prefix that is a whole translation
        self._plain: Translation | None = None  # without terms

    def add(self, translation: Translation, start: str) -> None:
        """Adds a translation that begins with a prefix, and its alternatives."""
        self._plain = self._plain or translation
        for x in (translation, *translation.alternatives):
            there = find_terms(x.text, self._glossary)
            lacks = self._counts - Counter(match.term for match in there) + self._swapped(x, there)
            doubts = [Doubt("term", term) for term in lacks]
            doubts += [y for y in x.doubts if y.kind != "unlikely" and not self._asks_for(y)]
            doubts += [y for y in self._plain.doubts if y.kind == "unlikely"]
            x = replace(x, alternatives=[], doubts=(*doubts,), confidence=self._plain.confidence)
            own = Hypothesis(x, lacks, len(start.strip()))
            self._hypotheses.setdefault(x.text, own)
            self._latest.append(own)

    def _asks_for(self, doubt: Doubt) -> bool:
        """Whether a term says what is doubted."""
        return doubt.kind in {"untranslated", "dropped"} and doubt.detail in self._words

    def best(self, count: int) -> Translation:
        """The best translation, with the others of so many."""
        first, *others = (x.translation for x in self._ranked()[:count])
        return replace(first, alternatives=others)

    def next_starts(self) -> list[str]:
        """The prefixes of further searches; none if the best hypothesis has all terms."""
        best, self._latest = sorted(self._latest, key=rank)[:WIDTH], []
        self._rounds += 1
        if not self._ranked()[0].lacks or self._rounds > 2 * len(self.wanted):
            return []
        starts = dict.fromkeys(start for x in best if (start := self._start(x)))
        if self._rounds == 1 and len(self.wanted) > 1:
            self.whole = self._replaced(best[0].translation)
            starts |= dict.fromkeys([self.whole] if self.whole else [])
        new = [start for start in starts if start not in self._searched]
        self._searched.update(new)
        return new

    def _ranked(self) -> list[Hypothesis]:
        return sorted(self._hypotheses.values(), key=rank)

    def _swapped(self, x: Translation, there: Sequence[Match]) -> Counter[str]:
        """The terms that stand in one another's places, as far as the alignment tells."""
        pairs = set()
        columns = [(_shares(x, wanted), wanted.term) for wanted in self.wanted]
        for match in there:
            rows = _touched(x.target_spans, match)
            sums = [(shares[rows].sum(), term) for shares, term in columns if shares is not None]
            pairs.add((match.term, max(sums, default=(0.0, match.term))[1]))
        return Counter(a for a, b in pairs if a != b and (b, a) in pairs)

    def _replaced(self, x: Translation) -> str:
        """A translation with all terms in place of its words for them; "" if these overlap."""
        text, end = "", 0
        for first, last, term in sorted(_words_for(x, match) for match in self.wanted):
            if first < max(end, len(self.start.strip())):
                return ""
            before = x.text[:first]
            text += x.text[end:first] + _cased(term, before, x.text[first])
            end = last
        return text + x.text[end:]

    def _start(self, hypothesis: Hypothesis) -> str:
        """A hypothesis up to the first term that it lacks, and this term; "" if there is none."""
        x, lacks, least = hypothesis
        text = x.text
        is_inside = least > len(self.start.strip()) and not _is_border(text, least)
        if is_inside and (longer := LONGER.match(text, least)):
            return text[:least] + longer[1]
        there = {(match.start, match.term) for match in find_terms(text, self._glossary)}
        places = []
        for match in self.wanted:
            shares = _shares(x, match)
            if lacks[match.term] and shares is not None:
                has_own = (_place(x, shares), match.term) in there  # another of the same is missing
                places.append((has_own, _place(x, shares, least), match.term))
        _, place, term = min(places, default=(False, 0, ""))
        before = text[:place]
        term = _cased(term, before, text[place : place + 1])
        gap = " " if in_word(before[-1:]) and in_word(term[:1]) else ""
        return term and f"{before}{gap}{term}"


def _penalized(x: Translation, alpha: float) -> Translation:
    """A translation, found without length penalty, with the score that it has with one."""
    penalty = ((5 + len(x.tokens) + x.finished) / 6) ** alpha
    score = x.log_prob / penalty + x.score - x.log_prob
    return replace(x, score=score, alternatives=[_penalized(y, alpha) for y in x.alternatives])


class Glossary:
    """Terms to find; in `originals` by their text in NFC with single spaces."""

    def __init__(self, terms: Iterable[str]) -> None:
        self.originals = {" ".join(unicodedata.normalize("NFC", x).split()): x for x in terms}
        self.capitals = {x.upper(): x for x in self.originals}
        self.lengths = sorted({*map(len, self.originals)}, reverse=True)


def find_terms(text: str, glossary: Glossary) -> list[Match]:
    """The terms in a text, as whole words and without overlaps; of several the longest.

    Where a sentence begins, a term may begin with a capital, and a text in capitals, of two words
    or more, has terms in capitals. In scripts without spaces any place is the border of a word.
    Canonically equal characters are equal, as are any spaces.
    """
    plain, places = _plain(text)
    is_loud = plain.isupper() and sum(map(bool, map(LETTERS.search, plain.split()))) > 1
    matches: list[Match] = []
    place = 0
    while place < len(plain):
        match = next(_matches_at(plain, place, glossary, is_loud), None)
        if match is not None:
            start, end, term = match
            matches.append(Match(places[start], places[end], glossary.originals[term]))
        place = place + 1 if match is None else match.end
    return matches


def _plain(text: str) -> tuple[str, list[int]]:
    """A text in NFC with single spaces, and where its characters and its end are in the text."""
    plain, places, start = "", [], 0
    for end in range(1, len(text) + 1):
        part, longer = (unicodedata.normalize("NFC", text[start:x]) for x in (end, end + 1))
        after = unicodedata.normalize("NFC", text[end : end + 1])
        is_whole = longer == part + after and not longer.isspace()
        if is_whole or end == len(text):
            written = " " if part.isspace() else part
            plain += written
            places += [start] * len(written)
            start = end
    return plain, [*places, len(text)]


def _matches_at(text: str, place: int, glossary: Glossary, is_loud: bool) -> Iterator[Match]:
    if not _is_border(text, place):
        return
    terms, begins = glossary.originals, text[place].isupper() and _begins_sentence(text, place)
    for end in (place + length for length in glossary.lengths if place + length <= len(text)):
        term = text[place:end]
        if is_loud:
            term = glossary.capitals.get(term, term)
        elif begins and term not in terms:
            term = term[:1].lower() + term[1:]
        if term in terms and _is_border(text, end):
            yield Match(place, end, term)


def _cased(term: str, before: str, replaced: str) -> str:
    """The term with a capital if a sentence begins there, and with one."""
    begins = _begins_sentence(before, len(before)) and replaced.isupper()
    return term[:1].upper() + term[1:] if begins else term


def _is_border(text: str, place: int) -> bool:
    return not (in_word(text[place - 1 : place]) and in_word(text[place : place + 1]))


def _begins_sentence(text: str, place: int) -> bool:
    """Whether a sentence begins at a place."""
    before = (text[i] for i in range(place - 1, -1, -1))
    return next((x for x in before if x in ENDS or x.isalnum()), ".") in ENDS


def _shares(x: Translation, match: Match) -> np.ndarray | None:
    """How much each target token attends to a source term; None if the term was not read."""
    columns = _touched(x.source_spans, match)
    return x.weights[:, columns].sum(axis=1) if columns and x.weights is not None else None


def _touched(spans: Sequence[tuple[int, int]], match: Match) -> list[int]:
    """The tokens that a term has a part of."""
    return [n for n, (start, end) in enumerate(spans) if start < match.end and end > match.start]


def _words_for(x: Translation, match: Match) -> tuple[int, int, str]:
    """Where the words begin and end that attend to a source term most, and the target term."""
    spans = without_spaces(x.text, x.target_spans)
    shares = _shares(x, match)
    if shares is None or not spans:
        return -1, -1, match.term
    first = last = int(shares[: len(spans)].argmax())
    while first > 0 and shares[first - 1] > 0.5:
        first -= 1
    while last + 1 < len(spans) and shares[last + 1] > 0.5:
        last += 1
    start, end = spans[first][0], spans[last][1]
    while goes_on(x.text, start):
        start -= 1
    while goes_on(x.text, end):
        end += 1
    return start, end, match.term


def _place(x: Translation, shares: np.ndarray, least: int = 0) -> int:
    """Where the word begins that attends most, not before `least`."""
    spans = without_spaces(x.text, x.target_spans)
    rows = [n for n, (start, _) in enumerate(spans) if start >= least]
    if not rows:
        return len(x.text)
    place, _ = spans[max(rows, key=shares.__getitem__)]
    while place > least and goes_on(x.text, place):
        place -= 1
    return place
