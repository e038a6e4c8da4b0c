"""Figure 3 of Sutskever et al. 2014, right: BLEU by rarity of words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bahdanau_tf.evaluation import LengthBin
from bahdanau_tf.evaluation import Table
from bahdanau_tf.evaluation import length_rows
from bahdanau_tf.evaluation.subsets import by_rank
from bahdanau_tf.experiments.results import Corpus
from bahdanau_tf.experiments.results import Results
from bahdanau_tf.plotting import plot_bleu_by_length
from bahdanau_tf.report.document import Picture
from bahdanau_tf.report.document import Section
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.translation.lengths import counting_text
from bahdanau_tf.translation.lengths import mean_ranks

_TITLE = "BLEU by rarity of words, after Figure 3 of Sutskever et al. 2014"
_RANK = (
    "Sentences are sorted by the mean frequency rank of their source words, "
    "which is the id of a word; unknown words come last. Sub-words are counted "
    "in the training pairs that the report reads. The parts have as many "
    "sentences as each other, but for the last. The paper's curve falls only "
    "for the rarest words. Its curve by length is Figure 2."
)
_UNCOUNTED = (
    "Not run: sub-words are ranked by their counts in training pairs, and none "
    "were given."
)


def rarity_figure(
    results: Results, train: Corpus | None, folder: Path
) -> Section:
    """BLEU of sentences sorted by the rank of their words; writes a PNG."""
    models = (one.translator for one in results.systems)
    text = counting_text([one.source_text for one in models if one])
    if text is None:
        return Section(_TITLE, ["Not run: no system has a vocabulary."])
    learned = train.sources if train else []
    if not learned and not isinstance(text, WordTokenizer):
        return Section(_TITLE, [_UNCOUNTED])
    ranks = mean_ranks(text, results.test.sources, learned)
    curves = {
        one.name: results.references.by_rank(
            one.texts, ranks, results.scoring.n_bootstrap
        )
        for one in results.systems
    }
    path = folder / "rarity.png"
    label = "Test sentences sorted by the mean frequency rank of their words"
    plot_bleu_by_length(curves, path, label=label)
    bins = next(iter(curves.values()))
    _, rows = length_rows(curves)
    table = Table(
        "rarity",
        "The points of the figure",
        ["mean rank of the words", *_titles(bins, ranks)],
        rows,
        ["± is half the width of the 95 % bootstrap interval."],
    )
    title = "bands are 95 % bootstrap intervals"
    return Section(_TITLE, [_RANK], [Picture(path, title)], [table])


def _titles(bins: Sequence[LengthBin], ranks: Sequence[float]) -> list[str]:
    """The smallest and largest rank of each bin: "12.3-40.1"."""
    ordered = [ranks[number] for number in by_rank(ranks)]
    ends = [
        (one.shortest - 1, one.shortest + one.sentences - 2) for one in bins
    ]
    return ["-".join(_brief(ordered[place]) for place in some) for some in ends]


def _brief(rank: float) -> str:
    return f"{rank:.0f}" if rank >= 100 else f"{rank:.1f}"
