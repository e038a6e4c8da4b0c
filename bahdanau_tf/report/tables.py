"""The tables of a report, as data: what a page or a file makes of them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from typing import Any

from bahdanau_tf.evaluation import Score
from bahdanau_tf.evaluation import bleu
from bahdanau_tf.evaluation import chrf
from bahdanau_tf.evaluation import compare
from bahdanau_tf.report import paper
from bahdanau_tf.report.alignments import AlignmentQuality
from bahdanau_tf.report.systems import OUTSIDE
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.systems import Measured

NOT_RUN = None
NOTHING = ""
Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: Of its file.
        title: What it shows.
        columns: Heads; those that begin with `paper.MARK` hold the papers'
            own figures.
        rows: Cells; `NOT_RUN` says "not run", `NOTHING` stays empty.
        notes: What one must know to read it.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)

    def as_csv(self) -> str:
        """The table as comma-separated values."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([[shown(cell) for cell in row] for row in self.rows])
        return text.getvalue()

    def as_json(self) -> dict[str, Any]:
        """The table for `json.dumps`."""
        return {
            "title": self.title,
            "columns": [*self.columns],
            "rows": self.rows,
            "notes": self.notes,
        }


def shown(cell: Cell) -> str:
    """A cell as it is written."""
    if cell is None:
        return "not run"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


def translation_quality(
    systems: Sequence[Measured],
    test: Corpus,
    known: Sequence[bool],
    how: Mapping[str, Any],
    n_bootstrap: int,
) -> Table:
    """Table 1: BLEU of all sentences, and of those without unknown words.

    The paper's systems come first, "not run" where none stands for them.

    Args:
        systems: What was measured.
        test: The test set.
        known: Which of its sentences have no unknown words.
        how: `tokenize` and `lowercase` of `bleu`.
        n_bootstrap: Samples for the intervals.
    """
    some = [
        line for line, kept in zip(test.references, known, strict=True) if kept
    ]
    signatures: dict[str, str] = {}

    def cells(system: Measured) -> list[Cell]:
        scores: list[Score | None] = [
            bleu(system.texts, test.references, n_bootstrap=n_bootstrap, **how),
            bleu(system.known_texts, some, **how) if some else None,
            chrf(system.texts, test.references, lowercase=how["lowercase"]),
        ]
        signatures.update({s.name: s.signature for s in scores if s})
        margin = scores[0].margin if scores[0] else None
        values = [NOT_RUN if s is None else s.score for s in scores]
        return [values[0], margin, values[1], values[2]]

    rows: list[list[Cell]] = []
    for name, figures in paper.BLEU.items():
        ours = [one for one in systems if one.counterpart == name]
        for one in ours:
            rows.append([one.name, *cells(one), name, *figures])
        if not ours:
            rows.append([f"for {name}", *[NOT_RUN] * 4, name, *figures])
    for one in systems:
        if one.counterpart not in paper.BLEU:
            rows.append([one.name, *cells(one), *[NOTHING] * 3])
    return Table(
        "table1",
        "Table 1. BLEU on all sentences, and on those without unknown words",
        [
            "system",
            "BLEU, all",
            "± (95 %)",
            "BLEU, no unknown words",
            "chrF2, all",
            f"{paper.MARK}system",
            f"{paper.MARK}BLEU, all",
            f"{paper.MARK}BLEU, no unknown words",
        ],
        rows,
        [
            f"{len(test.sources)} sentences, {len(some)} of them without words "
            "that are unknown to a model, in source or reference; there [UNK] "
            "was forbidden. ± is half the width of the 95 % bootstrap interval "
            "of BLEU on all.",
            *(f"{name}: {found}" for name, found in signatures.items()),
        ],
    )


def significance(
    systems: Sequence[Measured],
    references: Sequence[str],
    how: Mapping[str, Any],
    n_bootstrap: int,
) -> Table:
    """How likely each distance in BLEU is chance: paired bootstrap.

    Args:
        systems: What was measured.
        references: Translations by hand.
        how: `tokenize` and `lowercase` of `bleu`.
        n_bootstrap: Samples.
    """
    rows: list[list[Cell]] = [
        [one.name, *[NOTHING] * len(systems)] for one in systems
    ]
    for place in range(len(systems) - 1):
        found = compare(
            {one.name: one.texts for one in systems[place:]},
            references,
            n_bootstrap=n_bootstrap,
            **how,
        )
        for distance, one in enumerate(found[1:], 1):
            p = f"{one.p_value:.4f}"
            rows[place][place + distance + 1] = p
            rows[place + distance][place + 1] = p
    return Table(
        "significance",
        "p of the difference in BLEU between two systems",
        ["", *(one.name for one in systems)],
        rows,
        [
            f"Paired bootstrap resampling (Koehn 2004), {n_bootstrap} samples "
            "of all sentences: how likely a distance as large as this is by "
            f"chance. {1 / (n_bootstrap + 1):.4f} is the least that so many "
            "samples can show."
        ],
    )


def long_sentences(
    systems: Sequence[Measured], test: Corpus, chosen: Sequence[int]
) -> Table:
    """Table 3: long sentences and their translations side by side.

    Args:
        systems: What was measured.
        test: The test set.
        chosen: Which sentences.
    """
    rows: list[list[Cell]] = []
    for count, number in enumerate(chosen, 1):
        rows.append([count, "source", test.sources[number]])
        rows.append([NOTHING, "reference", test.references[number]])
        rows += [[NOTHING, one.name, one.texts[number]] for one in systems]
    return Table(
        "table3",
        "Table 3. Long sentences side by side",
        ["", "", "text"],
        rows,
        [
            "Drawn with a fixed seed among the sentences over 30 words."
            if chosen
            else "The test set has no sentence over 30 words."
        ],
    )


def alignment_table(
    qualities: Mapping[str, AlignmentQuality], systems: Sequence[Measured]
) -> Table:
    """How good and how sharp the alignments are.

    Args:
        qualities: `AlignmentQuality` by the system's name.
        systems: What was measured.
    """
    rows: list[list[Cell]] = []
    for one in systems:
        if one.kind == OUTSIDE:
            continue
        if one.name in qualities:
            quality = qualities[one.name]
            rates: list[Cell] = ["no gold"] * 4
            if quality.all is not None:
                rates = [*quality.all, *(quality.short or [NOTHING] * 2)]
            entropy = quality.entropy
            rows.append([one.name, *rates, entropy, math.exp(entropy)])
        else:
            rows.append([one.name, "no attention", *[NOTHING] * 5])
    return Table(
        "alignments",
        "Alignments beside the gold ones",
        [
            "system",
            "alignment error rate, all",
            "the diagonal's, all",
            "error rate, as long as in training",
            "the diagonal's, as long as in training",
            "entropy of α, nats",
            "source words looked at",
        ],
        rows,
        [
            "Each model is given the reference word by word; a link goes from "
            "a target word to the source word with the largest weight. Error "
            "rates are from 0, the best, to 1. The diagonal is a baseline that "
            "looks at no word: it links each target word to the source word at "
            "the same share of the sentence's length. The rates as long as in "
            "training are those of the sentences no longer than those that "
            "the system has learned from. The entropy is the mean over target "
            "words; its exponential says how many source words share the "
            "weight."
        ],
    )
