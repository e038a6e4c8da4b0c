"""Compares systems in a table of scores, with a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bahdanau_tf.evaluation import References, Table, length_rows
from bahdanau_tf.evaluation.tables import Cell
from bahdanau_tf.system.terminal import printable

Column = Sequence[Cell]  # title, number of sentences, a cell for each system


class TestSet(NamedTuple):
    """The test set, and the systems' translations of it.

    Attributes:
        systems: Translations by the name of the system.
        references: The reference translations.
        lengths: The length of each source; empty if unknown.
        unit: What the lengths count.
        known: Whether each sentence has no unknown words; empty if unknown.
    """

    systems: dict[str, list[str]]
    references: References
    lengths: list[int]
    unit: str
    known: list[bool]

    def table(self, columns: Sequence[Column]) -> Table:
        """A table of the numbers of sentences and a row for each system."""
        names = ["", "sentences", *self.systems]
        heads, *rows = zip(names, *columns, strict=True)
        return Table("scores", "", [str(head) for head in heads], rows)


def compared(test: TestSet) -> list[Column]:
    """BLEU, chrF2 and p of all sentences; prints their signatures."""
    rows = test.references.compare(test.systems)
    chrf = [*map(test.references.chrf, test.systems.values())]
    print(f"BLEU|{rows[0].score.signature}")
    print(f"chrF2|{chrf[0].signature}")
    first = printable(rows[0].system)
    print(f"p of the BLEU: paired bootstrap against {first}")
    p = ["" if r.p_value is None else f"{r.p_value:.4f}" for r in rows]
    count = len(test.references.lines)
    return [
        ["BLEU", count, *(row.score.brief for row in rows)],
        ["p", count, *p],
        ["chrF2", count, *(one.score for one in chrf)],
    ]


def by_subset(test: TestSet) -> list[Column]:
    """BLEU without unknown words, and by length."""
    columns: list[Column] = []
    references, systems = test.references, test.systems
    if any(test.known):
        part = (references.bleu(x, test.known) for x in systems.values())
        scores = (one.score for one in part)
        columns.append(["no unknown", sum(test.known), *scores])
    if test.lengths:
        titles, rows = length_rows(
            {name: references.by_length(lines, test.lengths) for name, lines in systems.items()}
        )
        columns += zip(titles, *(row[1:] for row in rows), strict=True)
    return columns
