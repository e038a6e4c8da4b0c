"""The tables of Bahdanau et al. 2015, and a table of significance.

Every model aligns the sentences with the references, not with its own
translations, so that all systems are compared on the same words.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from pathlib import Path

import numpy as np

from bahdanau_tf.evaluation import (
    LengthBin,
    Links,
    Table,
    alignment_error_rate,
    length_rows,
    mean_entropy,
)
from bahdanau_tf.evaluation.tables import NOT_RUN, NOTHING, Cell
from bahdanau_tf.plotting import plot_alignment, plot_bleu_by_length
from bahdanau_tf.report import paper
from bahdanau_tf.report.paper import Picture, Section
from bahdanau_tf.report.results import OUTSIDE, Corpus, Results, System
from bahdanau_tf.report.trainings import Record, last_evaluation
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.lengths import token_lengths
from bahdanau_tf.translation.saved import trained_length, trained_words
from bahdanau_tf.translator import Translator

SAMPLE = 1000  # number of training sentences whose likelihood is computed
_UNKNOWN = "not recorded"


def beside_the_paper(
    systems: Sequence[System],
    cells: Callable[[System], Sequence[Cell]],
    count: int,
    theirs: Mapping[str, Sequence[Cell]],
) -> list[list[Cell]]:
    """Rows of systems, followed by the paper's own figures.

    Args:
        systems: The systems.
        cells: Gives the cells of a system.
        count: The number of these cells.
        theirs: The paper's systems with their figures. They come first, with
            "not run" for those to which no system corresponds.
    """
    rows: list[list[Cell]] = []
    for name, figures in theirs.items():
        ours = [one for one in systems if one.counterpart == name]
        found = [[one.name, *cells(one)] for one in ours]
        for row in found or [[f"for {name}", *[NOT_RUN] * count]]:
            rows.append([*row, name, *figures])
    others = [one for one in systems if one.counterpart not in theirs]
    empty = [NOTHING] * (1 + len(next(iter(theirs.values()))))
    return rows + [[one.name, *cells(one), *empty] for one in others]


def translation_quality(results: Results) -> Table:
    """Table 1: BLEU of all sentences, and of those without unknown words."""
    known, references = results.known, results.references
    signatures = {}

    def cells(system: System) -> list[Cell]:
        n_bootstrap = results.scoring.n_bootstrap
        whole = references.bleu(system.texts, n_bootstrap=n_bootstrap)
        part = references.bleu(system.known_texts, known) if any(known) else None
        signs = references.chrf(system.texts)
        for one in (part or whole, signs):
            signatures[one.name] = one.signature
        some = part.score if part else NOT_RUN
        return [whole.score, whole.margin, some, signs.score]

    whole, part = "BLEU, all", "BLEU, no unknown words"
    theirs = [paper.MARK + head for head in ("system", whole, part)]
    rows = beside_the_paper(results.systems, cells, 4, paper.BLEU)
    return Table(
        "table1",
        "Table 1. BLEU on all sentences, and on those without unknown words",
        ["system", whole, "± (95 %)", part, "chrF2, all", *theirs],
        rows,
        [
            f"{len(known)} sentences, {sum(known)} of them without words that "
            "are unknown to a model, in source or reference; there [UNK] was "
            "forbidden. ± is half the width of the 95 % bootstrap interval of "
            "BLEU on all.",
            *(f"{name}: {found}" for name, found in signatures.items()),
        ],
    )


def significance(results: Results) -> Table:
    """p of each difference in BLEU, by the paired bootstrap test."""
    systems, samples = results.systems, results.scoring.n_bootstrap
    rows: list[list[Cell]] = [[one.name, *[NOTHING] * len(systems)] for one in systems]
    for place in range(len(systems) - 1):
        found = results.p_values(systems[place:])
        for other, p in enumerate(found[1:], place + 1):
            rows[place][other + 1] = rows[other][place + 1] = f"{p:.4f}"
    return Table(
        "significance",
        "p of the difference in BLEU between two systems",
        ["", *(one.name for one in systems)],
        rows,
        [
            f"Paired bootstrap resampling (Koehn 2004), {samples} samples of "
            "all sentences: the probability of a difference as large as this "
            f"by chance. {1 / (samples + 1):.4f} is the smallest value that so "
            "many samples can give."
        ],
    )


def training_table(results: Results, train: Corpus | None, dev: Corpus | None) -> Table:
    """Table 2: duration of the trainings, and likelihoods.

    Likelihoods are those of the dev set, and of the first training pairs that
    are no longer than a system's limit. Outside systems have no row.
    """
    heads = paper.TRAINING_HEADS
    rows = beside_the_paper(
        [one for one in results.systems if one.translator],
        lambda system: _training(system, train, dev),
        len(heads),
        paper.TRAINING,
    )
    return Table(
        "table2",
        "Table 2. Training",
        ["system", *heads, *(paper.MARK + h for h in ("system", *heads))],
        rows,
        [
            "NLL: negative log-likelihood of a sentence in nats, the mean over "
            "sentences. Train NLL is that of training sentences within the "
            f"system's length limit, {SAMPLE} at most; dev NLL that of the "
            "whole dev set. Updates and epochs are those of the last "
            "evaluation; an epoch is a pass over the whole corpus, including "
            "sentences that a system leaves out, but not with --token_budget."
        ],
    )


def _training(system: System, train: Corpus | None, dev: Corpus | None) -> list[Cell]:
    model, folder = system.translator, system.model_dir
    if model is None or folder is None:
        raise ValueError(f"training_table: {system.name} is not a trained model")
    last, record = last_evaluation(folder), Record.read(folder)
    # A report's own record lacks the time of a training that it did not end.
    seconds = max(record.seconds, last.get("seconds") or 0.0) or None
    device = record.device or last.get("device", _UNKNOWN)
    is_stopped = bool(record.device) and not record.is_over
    return [
        last.get("step", _UNKNOWN),
        last.get("epoch", _UNKNOWN),
        _UNKNOWN if seconds is None else seconds / 3600,
        device + " (not trained out)" * is_stopped,
        _nll(model, _learned(model, folder, train)),
        _nll(model, dev),
    ]


def _learned(model: Translator, folder: Path, corpus: Corpus | None) -> Corpus | None:
    """The first pairs on which a model was trained."""
    if corpus is None:
        return None
    sources, references = corpus[:2]
    longest = trained_length(folder) or float("inf")
    most_words = trained_words(folder) or float("inf")
    rows = zip(
        sources,
        references,
        token_lengths(model.source_text, sources),
        token_lengths(model.target_text, references),
        strict=True,
    )
    kept = [
        (source, target)
        for source, target, *lengths in rows
        if source and target and max(lengths) <= longest
        # Only words of the source are counted.
        if len(source.split()) <= most_words
    ][:SAMPLE]
    return Corpus(*zip(*kept, strict=True)) if kept else None


def _nll(translator: Translator, corpus: Corpus | None) -> Cell:
    """Mean of -log p(y | x) over the sentences."""
    if corpus is None or not corpus.sources:
        return NOT_RUN
    scored = translator.score(corpus.sources, corpus.references)
    return -sum(one.log_prob for one in scored) / len(scored)


def long_sentences(results: Results, chosen: Sequence[int]) -> Table:
    """Table 3: some long sentences with all their translations."""
    test = results.test
    columns = [("reference", test.references)]
    columns += [(one.name, one.texts) for one in results.systems]
    rows: list[list[Cell]] = []
    for count, number in enumerate(chosen, 1):
        rows.append([count, "source", test.sources[number]])
        rows += [[NOTHING, name, texts[number]] for name, texts in columns]
    said = "Drawn with a fixed seed among the sentences over 30 words."
    if not chosen:
        said = "The test set has no sentence over 30 words."
    title = "Table 3. Long sentences side by side"
    return Table("table3", title, ["", "", "text"], rows, [said])


SEED = 1409
LONGEST_SHOWN = 50  # words


def choose(lengths: Sequence[int], known: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Draws sentences for Figure 3 and for Table 3, with a fixed seed.

    As in the paper they are, for Figure 3, (a) any sentence, here of up to
    LONGEST_SHOWN words, so that its picture can be read, and (b) to (d)
    sentences of 10 to 20 words without unknown words; for Table 3, sentences of
    more than 30 words.
    """
    drawn = random.Random(SEED)
    every = range(len(lengths))
    first = drawn.choice([place for place in every if lengths[place] <= LONGEST_SHOWN] or every)
    fitting, long = [], []
    for place, length in enumerate(lengths):
        if known[place] and 10 <= length <= 20 and place != first:
            fitting.append(place)
        if length > 30:
            long.append(place)
    others, three = (drawn.sample(places, min(3, len(places))) for places in (fitting, long))
    return [first, *others], sorted(three)


def figure_2(results: Results, folder: Path) -> Section:
    """BLEU by sentence length, with bootstrap intervals; writes a PNG."""
    n_bootstrap = results.scoring.n_bootstrap
    curves = {
        one.name: results.references.by_length(one.texts, results.lengths, n_bootstrap)
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
    return Section(title, [said], pictures, data={"figure3": [*map(_matrix, shown)]})


def _matrix(translation: Translation) -> dict[str, object]:
    weights = translation.weights
    return {
        "source_tokens": translation.source_tokens,
        "tokens": translation.tokens,
        "weights": [] if weights is None else weights.round(4).tolist(),
    }


def alignment_table(results: Results) -> Table:
    """Error rates and entropy of the alignments of each model."""
    rows: list[list[Cell]] = []
    for one in results.systems:
        cells: list[Cell] = ["no attention", *[NOTHING] * 6]
        if one.aligner:
            short = results.as_in_training(one)
            cells = _quality(one.aligner, results.test, short)
        if one.kind != OUTSIDE:
            rows.append([one.name, *cells])
    return Table(
        "alignments",
        "Error rates and entropy of alignments",
        [
            "system",
            "alignment error rate, all",
            "the diagonal's, all",
            "error rate, as long as in training",
            "the diagonal's, as long as in training",
            "entropy of α, nats",
            "of equal weights",
            "source words looked at",
        ],
        rows,
        [
            "Each model is given the reference word by word; a link goes from "
            "a target word to the source word with the largest weight. Error "
            "rates are from 0, the best, to 1. The diagonal is a baseline that "
            "looks at no word: it links each target word to the source word at "
            "the same relative position. The rates “as long as in training” "
            "are those of the sentences no longer than the system's training "
            "sentences. The entropy is the mean over target words, that of the "
            "diagonal is 0; its exponential is the number of source words "
            "that share the weight."
        ],
    )


def _quality(translator: Translator, corpus: Corpus, short: Sequence[bool] | None) -> list[Cell]:
    """Error rates of all pairs, and of those as long as in training; entropy.

    There are no error rates for models of sub-words, since gold links are
    between words.
    """
    aligned = translator.align(corpus.sources, corpus.references)
    # A side's end symbol is no word.
    words = [x.weights[:-1, :-1] for x in aligned if x.weights is not None]
    entropy = mean_entropy(words)
    equal = mean_entropy([np.ones_like(one) for one in words])
    gold = corpus.alignments
    rates: list[Cell] = ["no gold"] * 4
    texts = (translator.source_text, translator.target_text)
    if gold and all(isinstance(text, WordTokenizer) for text in texts):
        rates = [*_error_rates(aligned, gold), NOTHING, NOTHING]
        if any(short := short or ()):
            rates[2:] = _error_rates([*compress(aligned, short)], [*compress(gold, short)])
    return [*rates, entropy, equal, math.exp(entropy)]


def _error_rates(aligned: Sequence[Translation], gold: Sequence[Links]) -> list[Cell]:
    """AER of the model's links, and of the diagonal."""
    found = [one.hard_alignment for one in aligned]
    drawn = [one.diagonal_alignment for one in aligned]
    return [alignment_error_rate(links, gold) for links in (found, drawn)]
