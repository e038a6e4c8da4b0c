"""The references of a test set, and scores by them of all its sentences or some."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, Protocol

import numpy as np

from bahdanau_tf.evaluation.scores import (
    METRICS,
    Comparison,
    Score,
    ScoreOptions,
    as_scored,
    bleu_metric,
    check_counts,
    compare,
    score_corpus,
)
from bahdanau_tf.evaluation.tables import Cell
from bahdanau_tf.text.copied import PATTERNS, kept_by_pairs

Mask = Sequence[bool]


def without_unknown_words(
    *sides: tuple[Iterable[Iterable[Any]], Callable[[Any], bool]],
) -> list[bool]:
    """Finds the sentences that have no unknown word on any side.

    Args:
        *sides: pairs of tokenized sentences and a function that returns whether a word is known,
            such as `set(words).__contains__`. For the paper's "No UNK" the sides are source and
            reference.

    Returns:
        A mask for `select`.

    Raises:
        ValueError: the numbers of sentences differ.
    """
    masks = [[all(map(is_known, words)) for words in sentences] for sentences, is_known in sides]
    check_counts("without_unknown_words", {f"side {i}": x for i, x in enumerate(masks, start=1)})
    return [*map(all, zip(*masks, strict=True))]


class _Text(Protocol):
    unk_id: int

    def ids(self, lines: Sequence[str]) -> list[list[int]]: ...


class _Translator(Protocol):
    """As `bahdanau_tf.Translator`."""

    @property
    def source_texts(self) -> Sequence[_Text]: ...

    @property
    def target_text(self) -> _Text: ...


def known_sentences(
    translators: Sequence[_Translator], sources: Sequence[str], references: Sequence[str]
) -> list[bool]:
    """Finds the sentences that have only words that all models know.

    Args:
        translators: Objects with the tokenizers of each model, as `source_texts` and `target_text`.
        sources: The source sentences.
        references: Their translations, whose words are also checked.

    Returns:
        A mask for `select`.
    """
    sides = [(text, sources) for translator in translators for text in translator.source_texts]
    sides += [(translator.target_text, references) for translator in translators]
    ids = [(text.ids(lines), partial(operator.ne, text.unk_id)) for text, lines in sides]
    return without_unknown_words(*ids) if ids else [True] * len(sources)


def select(mask: Mask, *columns: Sequence[Any]) -> list[list[Any]]:
    """Takes the sentences where the mask is True out of each column.

    Raises:
        ValueError: A column and the mask have different lengths.
    """
    named = {f"column {i}": column for i, column in enumerate(columns, start=1)}
    check_counts("select", {"mask": mask, **named})
    return [[*compress(column, mask)] for column in columns]


LONGEST = 60  # longer sentences are one bin, as in the paper's Figure 2


@dataclass(frozen=True)
class LengthBin:
    """The score of the sentences with `shortest` to `longest` words, or more if it `is_open`."""

    shortest: int
    longest: int
    sentences: int
    score: Score
    is_open: bool = False


def bleu_by_length(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    source_lengths: Sequence[int],
    *,
    width: int = 10,
    metric: str = "bleu",
    n_bootstrap: int = 1000,
    **options: Any,
) -> list[LengthBin]:
    """Computes BLEU for each bin of source length, as in the paper's Figure 2.

    Args:
        hypotheses, references: As in `bleu`.
        source_lengths: Number of words of each source sentence.
        width: Lengths per bin: 1 to `width`, `width` + 1 to twice that, and so on. An empty
            sentence is in the first bin.
        metric: A name in `METRICS`, for another score than BLEU.
        n_bootstrap: Number of samples for intervals, as in `ScoreOptions`.
        **options: The other fields of `ScoreOptions`, as in `bleu`.

    Returns:
        The bins that hold sentences, shortest first.

    Raises:
        ValueError: As in `bleu`; or `width` is less than 1.
    """
    if width < 1:
        raise ValueError(f"bleu_by_length: width is {width}, wanted 1 or more")
    columns = {"hypotheses": hypotheses, "references": references}
    check_counts("bleu_by_length", {**columns, "source lengths": source_lengths})
    how = ScoreOptions(n_bootstrap=n_bootstrap, **options)
    places = [max(length - 1, 0) // width for length in source_lengths]
    bins = []
    for place in sorted(set(places)):
        ours, theirs = select([other == place for other in places], hypotheses, references)
        score = score_corpus(metric, ours, theirs, how)
        first = place * width + 1
        bins.append(LengthBin(first, first + width - 1, len(ours), score))
    return bins


def length_bins(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    lengths: Sequence[int],
    *,
    n_bootstrap: int = 0,
    **options: Any,
) -> list[LengthBin]:
    """`bleu_by_length` of the sentences of 1 to 10 words, of 11 to 20, ..., over 60."""
    lengths = [min(length, LONGEST + 1) for length in lengths]
    bins = bleu_by_length(hypotheses, references, lengths, n_bootstrap=n_bootstrap, **options)
    return [replace(x, is_open=x.shortest > LONGEST) for x in bins]


def bin_title(lengths: LengthBin) -> str:
    """The title of a bin: "1-10", ">60"."""
    if lengths.is_open:
        return f">{lengths.shortest - 1}"
    return f"{lengths.shortest}-{lengths.longest}"


def length_rows(curves: Mapping[str, Sequence[LengthBin]]) -> tuple[list[str], list[list[Cell]]]:
    """A table of BLEU by length, from the bins of each system.

    Returns:
        The titles of the bins, and the rows below: the number of sentences, then the scores of
        each system.
    """
    bins = next(iter(curves.values()), [])
    rows: list[list[Cell]] = [["sentences", *(lengths.sentences for lengths in bins)]]
    rows += [[name, *(x.score.brief for x in points)] for name, points in curves.items()]
    return [*map(bin_title, bins)], rows


def bleu_by_rank(
    hypotheses: Sequence[str],
    references: Sequence[str],
    ranks: Sequence[float],
    *,
    count: int = 6,
    **options: Any,
) -> list[LengthBin]:
    """Computes BLEU of sentences sorted by the rank of their words.

    Args:
        hypotheses, references: As in `bleu`.
        ranks: The mean frequency rank of each sentence's words; sentences of the same rank keep
            their order.
        count: Largest number of bins. All have the same number of sentences, except the last one,
            which may have fewer.
        **options: As in `bleu_by_length`.

    Returns:
        The bins, sentences with the most frequent words first; `shortest` and `longest` are places
        among the sorted sentences, from 1.

    Raises:
        ValueError: As in `bleu`; or `count` is less than 1.
    """
    if count < 1:
        raise ValueError(f"bleu_by_rank: count is {count}, wanted 1 or more")
    columns = {"hypotheses": hypotheses, "references": references}
    check_counts("bleu_by_rank", {**columns, "ranks": ranks})
    places = (np.argsort(np.argsort(ranks, kind="stable")) + 1).tolist()
    width = max(-(-len(ranks) // count), 1)
    return bleu_by_length(hypotheses, references, places, width=width, **options)


@dataclass(frozen=True)
class Copied:
    """The share, in percent, of the numbers or names that were copied, of how many."""

    share: float
    count: int
    sentences: int  # that have such

    def __str__(self) -> str:
        return f"{self.share:.1f} % of {self.count:,}"


@dataclass(frozen=True)
class References:
    """The reference translations of a test set.

    Translations of it are a string for each of its sentences; a mask as for `select` says which of
    them count. `tokenize`, `lowercase` and `nfc` are those of `ScoreOptions`. `answers`, as of
    `right_answers`, are for metrics that take any of them; lines without answers do not count.
    """

    lines: Sequence[str]
    tokenize: str = "13a"
    lowercase: bool = False
    nfc: bool = True
    answers: Sequence[Sequence[str]] | None = None

    def score(
        self, metric: str, texts: Sequence[str], where: Mask | None = None, n_bootstrap: int = 0
    ) -> Score:
        """The score of a metric, by its name in `METRICS`."""
        (texts,), lines = self._where(where, [texts], metric)
        how = ScoreOptions(n_bootstrap=n_bootstrap, **self._options)
        return score_corpus(metric, texts, lines, how)

    def count(self, metric: str, where: Mask | None = None) -> int:
        """The number of lines that count."""
        return len(self._where(where, [], metric)[1])

    def bleu(self, texts: Sequence[str], where: Mask | None = None, n_bootstrap: int = 0) -> Score:
        """BLEU, as of the function `bleu`."""
        return self.score("bleu", texts, where, n_bootstrap)

    def chrf(self, texts: Sequence[str]) -> Score:
        """chrF2, as of the function `chrf`."""
        return self.score("chrf", texts)

    def compare(
        self,
        systems: Mapping[str, Sequence[str]],
        where: Mask | None = None,
        n_bootstrap: int = 1000,
        metric: str = "bleu",
    ) -> list[Comparison]:
        """Compares systems, as the function `compare`."""
        columns, lines = self._where(where, [*systems.values()], metric)
        texts = dict(zip(systems, columns, strict=True))
        return compare(texts, lines, metric=metric, n_bootstrap=n_bootstrap, **self._options)

    def by_length(
        self,
        texts: Sequence[str],
        lengths: Sequence[int],
        n_bootstrap: int = 0,
        metric: str = "bleu",
    ) -> list[LengthBin]:
        """Scores by source length, as of the function `length_bins`."""
        (texts, lengths), lines = self._where(None, [texts, lengths], metric)
        return length_bins(
            texts, lines, lengths, n_bootstrap=n_bootstrap, metric=metric, **self._options
        )

    def by_rank(
        self, texts: Sequence[str], ranks: Sequence[float], n_bootstrap: int = 0
    ) -> list[LengthBin]:
        """BLEU by rarity of words, as of the function `bleu_by_rank`."""
        return bleu_by_rank(texts, self.lines, ranks, n_bootstrap=n_bootstrap, **self._options)

    def copied(self, texts: Sequence[str], sources: Sequence[str]) -> dict[str, Copied]:
        """The share of numbers and of names that translations have, if there are any.

        Counts those that the reference has from the source.
        """
        sources, lines, texts = (as_scored(x, self.nfc) for x in (sources, self.lines, texts))
        words, _ = kept_by_pairs(zip(sources, lines, strict=True))
        shares = {}
        for kind, pattern in PATTERNS.items():
            rows = words[kind]
            if count := sum(map(len, rows)):
                found = map(pattern.findall, texts)
                present = sum(len({*x} & {*y}) for x, y in zip(rows, found, strict=True))
                shares[kind] = Copied(100 * present / count, count, sum(map(bool, rows)))
        return shares

    def oracle(self, lists: Sequence[Sequence[str]]) -> list[str]:
        """The text of each n-best list with the best BLEU of its own."""
        metric = bleu_metric(ScoreOptions(**self._options), effective_order=True, force=True)

        def score(text: str, reference: str) -> float:
            text, reference = as_scored([text, reference], self.nfc)
            return metric.sentence_score(text, [reference]).score

        return [
            max(texts, key=lambda text: score(text, reference))
            for texts, reference in zip(lists, self.lines, strict=True)
        ]

    @property
    def _options(self) -> dict[str, Any]:
        """The fields of `ScoreOptions` that all its scores share."""
        return {"tokenize": self.tokenize, "lowercase": self.lowercase, "nfc": self.nfc}

    def _where(
        self, where: Mask | None, columns: Sequence[Sequence[Any]], metric: str
    ) -> tuple[list[Sequence[Any]], Sequence[str | Sequence[str]]]:
        lines: Sequence[str | Sequence[str]] = self.lines
        if metric in METRICS and METRICS[metric].takes_any and self.answers is not None:
            lines = self.answers
            counts = [bool(answers) for answers in lines]
            where = [x and y for x, y in zip(where or counts, counts, strict=True)]
        if where is None:
            return [*columns], lines
        *chosen, lines = select(where, *columns, lines)
        return [*chosen], lines
