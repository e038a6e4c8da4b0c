"""The figures of a report: what is drawn, and which sentences are chosen."""

from __future__ import annotations

import random
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple

from bahdanau_tf.evaluation import LengthBin
from bahdanau_tf.evaluation import bin_title
from bahdanau_tf.evaluation import length_bins
from bahdanau_tf.plotting import plot_alignment
from bahdanau_tf.plotting import plot_bleu_by_length
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.systems import Measured
from bahdanau_tf.report.tables import Table

SEED = 1409
LONG_SENTENCES = 3  # shown side by side
_OVER = 30  # words of a long sentence of Table 3


class Chosen(NamedTuple):
    """Sentences that a report shows.

    Attributes:
        aligned: Of Figure 3: any sentence, then some of 10 to 20 words
            without unknown words.
        long: Of Table 3: sentences over 30 words.
    """

    aligned: list[int]
    long: list[int]


def choose(lengths: Sequence[int], known: Sequence[bool]) -> Chosen:
    """Draws the sentences by the paper's rule, the same for the same test set.

    Figure 3: (a) any sentence; (b) to (d) at random among those of 10 to 20
    words without unknown words.

    Args:
        lengths: Words of each source.
        known: Which sentences have no unknown words.
    """
    drawn = random.Random(SEED)
    fitting = [
        place
        for place, (length, is_known) in enumerate(
            zip(lengths, known, strict=True)
        )
        if is_known and 10 <= length <= 20
    ]
    long = [place for place, length in enumerate(lengths) if length > _OVER]
    any_one = drawn.randrange(len(lengths))
    fitting = [place for place in fitting if place != any_one]
    return Chosen(
        [any_one, *_some(fitting, 3, drawn)],
        sorted(_some(long, LONG_SENTENCES, drawn)),
    )


def _some(places: list[int], count: int, drawn: random.Random) -> list[int]:
    return drawn.sample(places, min(count, len(places)))


def aligner(systems: Sequence[Measured]) -> Measured | None:
    """The system whose alignments are drawn: RNNsearch-50 in the paper.

    It is the one with attention that was trained on the longest sentences.
    """
    able = [one for one in systems if one.has_alignment]
    return max(able, key=lambda one: one.max_length or 0, default=None)


def draw_alignments(
    system: Measured, chosen: Sequence[int], folder: Path
) -> list[tuple[Path, str]]:
    """Figure 3: a PNG for each chosen sentence that has words, and its text."""
    drawn = []
    for letter, place in zip("abcd", chosen, strict=False):
        shown = system.translations[place]
        if not shown.tokens:
            continue
        path = folder / f"figure3{letter}.png"
        plot_alignment(shown.source_tokens, shown.tokens, shown.weights, path)
        drawn.append((path, f"{shown.source} → {shown.text}"))
    return drawn


def curves(
    systems: Sequence[Measured],
    test: Corpus,
    lengths: Sequence[int],
    how: Mapping[str, Any],
    n_bootstrap: int,
) -> dict[str, list[LengthBin]]:
    """Figure 2: BLEU by length for each system, with bootstrap intervals."""
    return {
        one.name: length_bins(
            one.texts,
            test.references,
            lengths,
            n_bootstrap=n_bootstrap,
            **how,
        )
        for one in systems
    }


def draw_curves(found: Mapping[str, list[LengthBin]], folder: Path) -> Path:
    """Figure 2 as a PNG."""
    path = folder / "figure2.png"
    plot_bleu_by_length(found, path)
    return path


def curve_table(found: Mapping[str, list[LengthBin]], unit: str) -> Table:
    """The points of Figure 2 with their intervals."""
    bins = next(iter(found.values()), [])
    rows: list[list[Any]] = [["sentences", *(one.sentences for one in bins)]]
    rows += [
        [
            name,
            *(
                f"{one.score.score:.2f} ± {one.score.margin or 0:.2f}"
                for one in points
            ),
        ]
        for name, points in found.items()
    ]
    return Table(
        "figure2",
        "The points of Figure 2",
        [f"source length, {unit}", *map(bin_title, bins)],
        rows,
        [
            "± is half the width of the 95 % bootstrap interval. The paper's "
            "Figure 2, on other data: RNNsearch-50 shows no drop at 50 words "
            "and more, RNNencdec falls steeply."
        ],
    )
