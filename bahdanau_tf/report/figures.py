"""The figures of a report, and the choice of example sentences."""

from __future__ import annotations

import random
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path

from bahdanau_tf.evaluation import LengthBin
from bahdanau_tf.evaluation import Table
from bahdanau_tf.evaluation import length_rows
from bahdanau_tf.experiments.results import Results
from bahdanau_tf.plotting import plot_alignment
from bahdanau_tf.plotting import plot_bleu_by_length
from bahdanau_tf.report.document import Picture
from bahdanau_tf.report.document import Section
from bahdanau_tf.translation import Translation

SEED = 1409
LONGEST_SHOWN = 50  # words


def choose(
    lengths: Sequence[int], known: Sequence[bool]
) -> tuple[list[int], list[int]]:
    """Draws sentences for Figure 3 and for Table 3, with a fixed seed.

    As in the paper they are, for Figure 3, (a) any sentence, here of up to
    LONGEST_SHOWN words, so that its picture can be read, and (b) to (d)
    sentences of 10 to 20 words without unknown words; for Table 3, sentences of
    more than 30 words.
    """
    drawn = random.Random(SEED)
    every = range(len(lengths))
    first = drawn.choice(
        [place for place in every if lengths[place] <= LONGEST_SHOWN] or every
    )
    fitting, long = [], []
    for place, length in enumerate(lengths):
        if known[place] and 10 <= length <= 20 and place != first:
            fitting.append(place)
        if length > 30:
            long.append(place)
    others, three = (
        drawn.sample(places, min(3, len(places))) for places in (fitting, long)
    )
    return [first, *others], sorted(three)


def figure_2(results: Results, folder: Path) -> Section:
    """BLEU by sentence length, with bootstrap intervals; writes a PNG."""
    n_bootstrap = results.scoring.n_bootstrap
    curves = {
        one.name: results.references.by_length(
            one.texts, results.lengths, n_bootstrap
        )
        for one in results.systems
    }
    path = folder / "figure2.png"
    plot_bleu_by_length(curves, path)
    title = (
        f"BLEU by source length in {results.unit}; bands are 95 % bootstrap "
        "intervals, points stand in the middle of their ten lengths, those of "
        "all longer sentences behind the last"
    )
    points = {name: [*map(_point, bins)] for name, bins in curves.items()}
    return Section(
        "Figure 2. BLEU by sentence length",
        pictures=[Picture(path, title)],
        tables=[_curve_table(curves, results.unit)],
        data={"figure2": points},
    )


def _point(one: LengthBin) -> dict[str, object]:
    known = ("shortest", "longest", "sentences")
    return {name: getattr(one, name) for name in known} | {
        "bleu": one.score.score,
        "interval": one.score.interval,
        "signature": one.score.signature,
    }


def _curve_table(curves: Mapping[str, list[LengthBin]], unit: str) -> Table:
    titles, rows = length_rows(curves)
    return Table(
        "figure2",
        "The points of Figure 2",
        [f"source length, {unit}", *titles],
        rows,
        [
            "± is half the width of the 95 % bootstrap interval. The paper's "
            "Figure 2, on other data: RNNsearch-50 shows no drop at 50 words "
            "and more, RNNencdec falls steeply."
        ],
    )


def figure_3(results: Results, chosen: Sequence[int], folder: Path) -> Section:
    """Alignments of the system that corresponds to RNNsearch-50 in the paper.

    It is the one with attention whose training had the highest limit of length.
    Chosen sentences with an empty translation are not drawn.
    """
    title = "Figure 3. Alignments"
    able = [one for one in results.systems if one.aligner]
    if not able:
        said = "Not run: no model has any."
        return Section(title, [said], data={"figure3": []})
    system = max(able, key=lambda one: one.max_length or 0)
    shown = [system.translations[place] for place in chosen]
    pictures = []
    for letter, one in zip("abcd", shown, strict=False):
        if one.tokens:
            path = folder / f"figure3{letter}.png"
            plot_alignment(one.source_tokens, one.tokens, one.weights, path)
            text = f"({letter}) {one.source} → {one.text}"
            pictures.append(Picture(path, text))
    said = (
        f"Soft alignments of {system.name}, 0 black and 1 white, source on "
        "top, output at the side. By the paper's rule (a) is any sentence "
        f"(here of up to {LONGEST_SHOWN} words), and the others are drawn at "
        "random, with a fixed seed, among those of 10 to 20 words without "
        "unknown words."
    )
    if not pictures:
        said = f"Not drawn: {system.name} wrote nothing for those chosen."
    return Section(
        title, [said], pictures, data={"figure3": [*map(_matrix, shown)]}
    )


def _matrix(translation: Translation) -> dict[str, object]:
    weights = translation.weights
    return {
        "source_tokens": translation.source_tokens,
        "tokens": translation.tokens,
        "weights": [] if weights is None else weights.round(4).tolist(),
    }
