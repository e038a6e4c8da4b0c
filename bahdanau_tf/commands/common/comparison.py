"""Systems beside one another: a table of scores, a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

from bahdanau_tf import evaluation


class TestSet(NamedTuple):
    """What systems are compared on.

    Attributes:
        systems: Translations by the name of the system.
        references: Those by hand.
        lengths: Tokens or words of each source; empty if not known.
        unit: Which of the two.
        known: Which sentences have no unknown words; empty if not known.
    """

    systems: dict[str, list[str]]
    references: list[str]
    lengths: list[int]
    unit: str
    known: list[bool]


class Column(NamedTuple):
    """A column of the table.

    Attributes:
        title: What was measured.
        sentences: On how many sentences.
        cells: For each system.
    """

    title: str
    sentences: int
    cells: list[str]


def compared(test: TestSet, how: dict[str, Any]) -> list[Column]:
    """BLEU, chrF2 and p of all sentences; prints how they were computed."""
    rows = evaluation.compare(test.systems, test.references, **how)
    chrf = [
        evaluation.chrf(lines, test.references, lowercase=how["lowercase"])
        for lines in test.systems.values()
    ]
    print(f"BLEU|{rows[0].score.signature}")
    print(f"chrF2|{chrf[0].signature}")
    print(f"p of the BLEU: paired bootstrap against {rows[0].system}")
    bleu = [f"{r.score.score:.2f} ± {r.score.margin:.2f}" for r in rows]
    p = ["" if r.p_value is None else f"{r.p_value:.4f}" for r in rows]
    count = len(test.references)
    return [
        Column("BLEU", count, bleu),
        Column("p", count, p),
        Column("chrF2", count, [f"{score.score:.2f}" for score in chrf]),
    ]


def by_subset(test: TestSet, how: dict[str, Any]) -> list[Column]:
    """BLEU without unknown words, and by length."""
    columns = []
    if any(test.known):
        cells = [
            evaluation.bleu(
                *evaluation.select(test.known, lines, test.references), **how
            )
            for lines in test.systems.values()
        ]
        columns.append(_column("no unknown", sum(test.known), cells))
    if test.lengths:
        by_system = [
            evaluation.length_bins(lines, test.references, test.lengths, **how)
            for lines in test.systems.values()
        ]
        for bins in zip(*by_system, strict=True):
            scores = [one.score for one in bins]
            first = bins[0]
            columns.append(
                _column(evaluation.bin_title(first), first.sentences, scores)
            )
    return columns


def _column(
    title: str, sentences: int, scores: Sequence[evaluation.Score]
) -> Column:
    return Column(title, sentences, [f"{s.score:.2f}" for s in scores])


def print_table(systems: Sequence[str], columns: Sequence[Column]) -> None:
    """Prints a row for each system under the number of sentences."""
    texts = [["", "sentences", *systems]]
    texts += [[c.title, str(c.sentences), *c.cells] for c in columns]
    widths = [max(map(len, column)) for column in texts]
    for row in zip(*texts, strict=True):
        name, *cells = (
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join([name, *cells]).rstrip())
