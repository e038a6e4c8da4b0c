"""The tables and figures of Bahdanau et al. 2015, and a test of its claim.

The claim is that RNNsearch stays flat where RNNencdec falls: on long sentences.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, compress, islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bahdanau_tf.evaluation import Score, Table, alignment_error_rate, length_rows, mean_entropy
from bahdanau_tf.evaluation.alignments import Estimate, bootstrap
from bahdanau_tf.evaluation.tables import NOT_RUN, NOTHING, Cell
from bahdanau_tf.options.training import FILE, read_options
from bahdanau_tf.plotting import plot_bleu_by_length
from bahdanau_tf.report import paper
from bahdanau_tf.report.paper import Finding, Picture, Section
from bahdanau_tf.report.results import OUTSIDE, Corpus, Results, System
from bahdanau_tf.system.ranges import as_flag
from bahdanau_tf.training.processes import Record, last_evaluation
from bahdanau_tf.translation.protocol import token_lengths
from bahdanau_tf.translator import Translator

SAMPLE = 1000  # number of training pairs whose likelihood is computed
SEED = 1409
LONGEST_SHOWN = 50  # words of a sentence in Figure 3
_UNKNOWN = "not recorded"


def beside_the_paper(
    systems: Sequence[System],
    cells: Callable[[System], Sequence[Cell]],
    count: int,
    theirs: Mapping[str, Sequence[Cell]],
) -> list[list[Cell]]:
    """Rows of systems, each with `count` cells, then the paper's figures, `theirs`.

    The paper's systems come first, with "not run" for those without a counterpart.
    """
    rows: list[list[Cell]] = []
    for name, figures in theirs.items():
        ours = [[each.name, *cells(each)] for each in systems if each.counterpart == name]
        for row in ours or [[f"for {name}", *[NOT_RUN] * count]]:
            rows.append([*row, name, *figures])
    others = [each for each in systems if each.counterpart not in theirs]
    empty = [NOTHING] * (1 + len(next(iter(theirs.values()))))
    return rows + [[each.name, *cells(each), *empty] for each in others]


def translation_quality(results: Results) -> Table:
    """Table 1: BLEU of all sentences, and of those without unknown words."""
    is_known, references = results.is_known, results.references
    signatures = {}

    def cells(system: System) -> list[Cell]:
        bleu = references.bleu(system.texts, n_bootstrap=results.scoring.n_bootstrap)
        known_bleu = references.bleu(system.known_texts, is_known) if any(is_known) else None
        chrf = references.chrf(system.texts)
        for score in (known_bleu or bleu, chrf):
            signatures[score.name] = score.signature
        return [bleu.score, bleu.margin, known_bleu.score if known_bleu else NOT_RUN, chrf.score]

    heads = "BLEU, all", "BLEU, no unknown words"
    theirs = [paper.MARK + head for head in ("system", *heads)]
    return Table(
        "table1",
        "Table 1. BLEU on all sentences, and on those without unknown words",
        ["system", heads[0], "± (95 %)", heads[1], "chrF2, all", *theirs],
        beside_the_paper(results.systems, cells, 4, paper.BLEU),
        [
            f"{len(is_known)} sentences, {sum(is_known)} of them without words that are unknown "
            "to a model, in source or reference; there [UNK] was forbidden. ± is half the width "
            "of the 95 % bootstrap interval of BLEU on all.",
            *(f"{name}: {signature}" for name, signature in signatures.items()),
            *_forms(results.systems),
        ],
    )


_FORM = ("step_order", "tokenizer", "optimizer", "initialization")


def _forms(systems: Sequence[System]) -> list[str]:
    """How the systems were trained, those that were trained alike together."""
    alike: dict[str, list[str]] = {}
    for system in systems:
        path = system.model_dir and system.model_dir / FILE
        if path and path.is_file():
            options = read_options(path)
            form = " ".join(as_flag(name, options[name]) for name in _FORM if name in options)
            alike.setdefault(form, []).append(system.name)
    return [f"Trained with {form}: {', '.join(names)}." for form, names in alike.items()]


def significance(results: Results) -> Table:
    """p of each difference in BLEU, by the paired bootstrap test."""
    systems, samples = results.systems, results.scoring.n_bootstrap
    rows: list[list[Cell]] = [[each.name, *[NOTHING] * len(systems)] for each in systems]
    for first in range(len(systems) - 1):
        p_values = results.p_values(systems[first:])[1:]
        for second, p in enumerate(p_values, first + 1):
            rows[first][second + 1] = rows[second][first + 1] = f"{p:.4f}"
    return Table(
        "significance",
        "p of the difference in BLEU between two systems",
        ["", *(each.name for each in systems)],
        rows,
        [
            f"Paired bootstrap resampling (Koehn 2004), {samples} samples of all sentences: the "
            f"probability of a difference as large as this by chance. {1 / (samples + 1):.4f} is "
            "the smallest possible value with this number of samples."
        ],
    )


def training_table(results: Results, train: Corpus | None, dev: Corpus | None) -> Table:
    """Table 2: duration of the trainings, and likelihoods; outside systems have no row."""
    heads = paper.TRAINING_HEADS
    systems = [each for each in results.systems if each.translator]
    cells = partial(_training, train=train, dev=dev)
    return Table(
        "table2",
        "Table 2. Training",
        ["system", *heads, *(paper.MARK + h for h in ("system", *heads))],
        beside_the_paper(systems, cells, len(heads), paper.TRAINING),
        [
            "NLL: negative log-likelihood of a sentence in nats, the mean over sentences. Train "
            f"NLL is that of training sentences within the system's length limit, {SAMPLE} at "
            "most; dev NLL that of the whole dev set. Updates and epochs are those of the last "
            "evaluation; an epoch is a pass over the whole corpus, including sentences that a "
            "system leaves out, except with --token_budget."
        ],
    )


def _training(system: System, train: Corpus | None, dev: Corpus | None) -> list[Cell]:
    model, folder = system.translator, system.model_dir
    if model is None or folder is None:
        raise ValueError(f"training_table: {system.name} is not a trained model")
    last, record = last_evaluation(folder), Record.read(folder)
    # A report's own record lacks the time of a killed training.
    seconds = max(record.seconds, last.get("seconds") or 0.0) or None
    device = record.device or last.get("device", _UNKNOWN)
    is_stopped = bool(record.device) and not record.is_over
    return [
        last.get("step", _UNKNOWN),
        last.get("epoch", _UNKNOWN),
        _UNKNOWN if seconds is None else seconds / 3600,
        device + " (not finished)" * is_stopped,
        _nll(model, _training_pairs(model, train)),
        _nll(model, dev),
    ]


def _training_pairs(model: Translator, corpus: Corpus | None) -> Corpus | None:
    """The first pairs on which a model was trained."""
    if corpus is None:
        return None
    sides = corpus[:2]
    longest = model.habits.longest or math.inf
    most_words = model.habits.longest_words or math.inf  # of the source
    lengths = map(token_lengths, (model.source_text, model.target_text), sides)
    pairs = [
        (source, target)
        for source, target, *tokens in zip(*sides, *lengths, strict=True)
        if source and target and max(tokens) <= longest and len(source.split()) <= most_words
    ][:SAMPLE]
    return Corpus(*zip(*pairs, strict=True)) if pairs else None


def _nll(translator: Translator, corpus: Corpus | None) -> Cell:
    """Mean of -log p(y | x) over the sentences."""
    if corpus is None or not corpus.sources:
        return NOT_RUN
    scores = translator.score(corpus.sources, corpus.references)
    return -sum(score.log_prob for score in scores) / len(scores)


def long_sentences(results: Results, chosen: Sequence[int]) -> Table:
    """Table 3: some long sentences with all their translations."""
    test = results.test
    columns = [("reference", test.references)]
    columns += [(each.name, each.texts) for each in results.systems]
    rows: list[list[Cell]] = []
    for count, number in enumerate(chosen, 1):
        rows.append([count, "source", test.sources[number]])
        rows += [[NOTHING, name, texts[number]] for name, texts in columns]
    note = "Drawn with a fixed seed from the sentences of more than 30 words."
    if not chosen:
        note = "The test set has no sentence of more than 30 words."
    title = "Table 3. Long sentences side by side"
    return Table("table3", title, ["", "", "text"], rows, [note])


def choose(lengths: Sequence[int], is_known: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Draws sentences for Figure 3 and for Table 3, with a fixed seed.

    As in the paper, Figure 3 has (a) any sentence, here a short one for a readable picture, and (b)
    to (d) sentences of 10 to 20 words without unknown words; Table 3 has sentences of more than 30
    words.
    """
    chance = random.Random(SEED)
    every = range(len(lengths))
    first = chance.choice([n for n in every if lengths[n] <= LONGEST_SHOWN] or every)
    short = [n for n in every if is_known[n] and 10 <= lengths[n] <= 20 and n != first]
    long = [n for n in every if lengths[n] > 30]
    others, three = (chance.sample(numbers, min(3, len(numbers))) for numbers in (short, long))
    return [first, *others], sorted(three)


def figure_2(results: Results, folder: Path) -> Section:
    """BLEU by sentence length, with bootstrap intervals; writes a PNG."""
    n_bootstrap = results.scoring.n_bootstrap
    curves = {
        each.name: results.references.by_length(each.texts, results.lengths, n_bootstrap)
        for each in results.systems
    }
    path = folder / "figure2.png"
    plot_bleu_by_length(curves, path)
    title = (
        f"BLEU by source length in {results.unit}; bands are 95 % bootstrap intervals, points are "
        "in the middle of their ten lengths, those of all longer sentences after the last"
    )
    points = {
        name: [
            {field: getattr(part, field) for field in ("shortest", "longest", "sentences")}
            | {"bleu": part.score.score}
            | {field: getattr(part.score, field) for field in ("interval", "signature")}
            for part in bins
        ]
        for name, bins in curves.items()
    }
    titles, rows = length_rows(curves)
    table = Table(
        "figure2",
        "The points of Figure 2",
        [f"source length, {results.unit}", *titles],
        rows,
        [
            "± is half the width of the 95 % bootstrap interval. The paper's Figure 2, on other "
            "data: RNNsearch-50 shows no drop at 50 words and more, RNNencdec falls steeply."
        ],
    )
    return Section(
        "Figure 2. BLEU by sentence length",
        pictures=[Picture(path, title)],
        tables=[table],
        data={"figure2": points},
    )


def figure_3(results: Results, chosen: Sequence[int], folder: Path) -> Section:
    """Alignments of the system with attention that was trained on the longest sentences."""
    title = "Figure 3. Alignments"
    aligners = [each for each in results.systems if each.aligner]
    if not aligners:
        return Section(title, ["Not run: no model has attention."], data={"figure3": []})
    system = max(aligners, key=lambda each: each.max_length or 0)
    shown = [system.translations[number] for number in chosen]
    pictures = []
    for letter, translation in zip("abcd", shown, strict=False):
        if translation.tokens:
            path = folder / f"figure3{letter}.png"
            translation.plot(path)
            pictures.append(Picture(path, f"({letter}) {translation.source} → {translation.text}"))
    text = (
        f"Soft alignments of {system.name}, 0 black and 1 white, source on top, output at the "
        f"side. By the paper's rule (a) is any sentence (here of up to {LONGEST_SHOWN} words), and "
        "the others are drawn at random, with a fixed seed, from those of 10 to 20 words without "
        "unknown words."
    )
    if not pictures:
        text = f"Not drawn: {system.name} wrote nothing for the chosen sentences."
    matrices = [
        {
            "source_tokens": each.source_tokens,
            "tokens": each.tokens,
            "weights": [] if each.weights is None else each.weights.round(4).tolist(),
        }
        for each in shown
    ]
    return Section(title, [text], pictures, data={"figure3": matrices})


def alignment_table(results: Results) -> Table:
    """Error rates and entropy of the alignments of each model.

    Every model aligns the sentences with the references, not with its own translations, so that all
    systems are compared on the same words.
    """
    rows: list[list[Cell]] = []
    for system in results.systems:
        cells: list[Cell] = ["no attention", *[NOTHING] * 6]
        if system.aligner:
            cells = _quality(system.aligner, results.test, results.as_in_training(system))
        if system.kind != OUTSIDE:
            rows.append([system.name, *cells])
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
            "source words attended to",
        ],
        rows,
        [
            "Each model is given the reference word by word; a link goes from a target word to the "
            "source word with the largest weight. Error rates are from 0, the best, to 1. The "
            "diagonal is a baseline that ignores the words: it links each target word to the "
            "source word at the same relative position. The rates “as long as in training” are "
            "those of the sentences no longer than the system's training sentences. The entropy is "
            "the mean over target words, that of the diagonal is 0; its exponential is the number "
            "of source words that share the weight."
        ],
    )


def _quality(translator: Translator, corpus: Corpus, short: Sequence[bool] | None) -> list[Cell]:
    """Error rates of all pairs, and of those as long as in training; entropy.

    There are no error rates for models of sub-words, since gold links are between words.
    """
    aligned = translator.align(corpus.sources, corpus.references)
    # Without the end symbols.
    weights = [each.weights[:-1, :-1] for each in aligned if each.weights is not None]
    entropy = mean_entropy(weights)
    equal = mean_entropy([np.ones_like(matrix) for matrix in weights])
    gold = corpus.alignments
    rates: list[Cell] = ["no gold"] * 4
    if gold and translator.source_text.are_words and translator.target_text.are_words:
        both = [x.hard_alignment for x in aligned], [x.diagonal_alignment for x in aligned]
        rates = [alignment_error_rate(links, gold) for links in both]
        if any(short := short or ()):
            some = [*compress(gold, short)]
            rates += [alignment_error_rate([*compress(links, short)], some) for links in both]
        rates += [NOTHING] * (4 - len(rates))
    return [*rates, entropy, equal, math.exp(entropy)]


class Erasure(NamedTuple):
    """How much log p(y | x) falls without a word of x, in nats; means over sentences."""

    most: Estimate  # without the word that has most attention, summed over the target words
    random: Estimate  # the mean over all words
    least: Estimate
    correlation: Estimate  # Spearman's, of attention and fall over the words of a sentence


def erasure(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], n_bootstrap: int = 1000
) -> Erasure:
    """Removes each word between spaces, in turn, and compares what it changes with attention.

    Args:
        translator: A translator with attention.
        sources: The sentences x; those of fewer than two words do not count.
        targets: Their translations y, such as the translator's own.
        n_bootstrap: Number of bootstrap samples of the sentences.

    Raises:
        ValueError: The numbers of sentences differ, none is long enough, or the model has no
            attention.
    """
    aligned = translator.align(sources, targets)
    words = [pair.source.split() for pair in aligned]
    shorter = [[" ".join(x[:j] + x[j + 1 :]) for j in range(len(x))] for x in words]
    again = [pair.text for pair, lines in zip(aligned, shorter, strict=True) for _ in lines]
    scores = iter(translator.score([*chain(*shorter)], again))
    rows = []
    for pair, lines in zip(aligned, shorter, strict=True):
        falls = np.array([pair.log_prob - each.log_prob for each in islice(scores, len(lines))])
        weights = pair.word_weights
        if min(len(falls) - 1, len(weights)) > 0:
            attention = weights.sum(axis=0)
            most, least = falls[attention.argmax()], falls[attention.argmin()]
            rows.append([most, falls.mean(), least, rank_correlation(attention, falls)])
    table = np.reshape(rows, [-1, 4])
    return Erasure(*bootstrap("erasure", table, lambda x: (x / len(rows)).tolist(), n_bootstrap))


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's ρ, with mean ranks of equal values; 0 if all values of x or of y are equal."""
    # Of each value how many others are smaller, less how many are larger: a centred rank.
    ranks = [np.sign(np.subtract.outer(z, z)).sum(axis=1) for z in (x, y)]
    norms = np.prod([np.linalg.norm(rank) for rank in ranks])
    return float(np.dot(*ranks) / norms) if norms else 0.0


def erasure_table(results: Results) -> Table:
    """`erasure` of each model with attention, on its own translations."""
    sources, samples = results.test.sources[:SAMPLE], results.scoring.n_bootstrap
    return Table(
        "erasure",
        "What a translation loses without a source word",
        ["system", "most attended", "random", "least attended", "rank correlation"],
        [
            [each.name, *map(str, erasure(each.aligner, sources, each.texts[:SAMPLE], samples))]
            for each in results.systems
            if each.aligner
            and any(x.split()[1:] and y.split() for x, y in zip(sources, each.texts, strict=False))
        ],
        [
            "How much the log-probability of a system's own translation falls, in nats, without "
            "one word of the source: that with most attention in all, a random one, that with "
            "least; and Spearman's rank correlation of attention and fall over a sentence's words. "
            f"Means over the first {len(sources)} sentences, of two words or more; ± is half the "
            "width of the 95 % bootstrap interval."
        ],
    )


class Bounds(NamedTuple):
    """RNNsearch keeps `flat` of its BLEU on short sentences, RNNencdec less than `fallen`."""

    flat: float
    fallen: float


WITHIN = Bounds(0.85, 0.85)  # lengths that occur in training
BEYOND = Bounds(0.75, 0.5)
ENOUGH = 10  # least number of sentences of each kind
RULE = (
    "A pair that was trained on sentences of up to L words is tested twice on long sentences: of "
    "more than 3/5 L and up to L words, and of more than L, longer than any in training; short "
    "ones have more than 1/5 L and up to 3/5 L. “Yes” means that RNNsearch keeps at least "
    f"{WITHIN.flat:.0%} of its BLEU on the former, or {BEYOND.flat:.0%} on the latter, that "
    f"RNNencdec keeps less than {WITHIN.fallen:.0%}, or {BEYOND.fallen:.0%}, and that RNNsearch is "
    "significantly better there (paired bootstrap, p below 0.05). ± is half the width of the 95 % "
    "bootstrap interval. An RNNsearch that was trained on shorter sentences than an RNNencdec, as "
    "the paper's RNNsearch-30 and RNNencdec-50, is to be significantly better on all sentences."
)


def findings(results: Results) -> list[Finding]:
    """Tests the claim by `RULE` on each RNNsearch and RNNencdec of the same limit of length."""
    pairs = [*product(results.of_kind("RNNsearch"), results.of_kind("RNNencdec"))]
    tests = [
        finding
        for search, encdec in pairs
        if search.max_length == encdec.max_length
        for finding in _of_pair(results, (search, encdec))
    ]
    tests += [
        _on_all(results, search, encdec)
        for search, encdec in pairs
        if (search.max_length or math.inf) < (encdec.max_length or 0)
    ]
    text = "There is no RNNsearch with an RNNencdec trained on sentences of the same length."
    return tests or [Finding(None, text)]


def _on_all(results: Results, search: System, encdec: System) -> Finding:
    """Whether RNNsearch is better on all sentences, though its training sentences were shorter."""
    ours, theirs = (results.references.bleu(each.texts).score for each in (search, encdec))
    _, p = results.p_values((search, encdec))
    is_shown = ours > theirs and p < 0.05
    verdict = "is better" if is_shown else "unlike in the paper, is not clearly better"
    return Finding(
        is_shown,
        f"{search.name}, trained on sentences of up to {search.max_length} words, {verdict} than "
        f"{encdec.name}, trained on up to {encdec.max_length}. On all sentences they have BLEU "
        f"{ours:.2f} and {theirs:.2f}; p = {p:.4f}.",
    )


def _of_pair(results: Results, pair: tuple[System, System]) -> Iterator[Finding]:
    names = " and ".join(system.name for system in pair)
    limit = pair[0].max_length
    if not limit:
        text = "the longest length of their training sentences is unknown."
        yield Finding(None, f"{names}: {text}")
        return
    first, middle = limit // 5, 3 * limit // 5
    short = [first < n <= middle for n in results.lengths]
    for least, most, bounds, words in (
        (middle, limit, WITHIN, f"{middle + 1} to {limit} words"),
        (limit, math.inf, BEYOND, f"more than {limit} words"),
    ):
        long = [least < n <= most for n in results.lengths]
        is_shown, text = _test(results, pair, (short, long), bounds)
        against = f"{words} against those of {first + 1} to {middle}"
        yield Finding(is_shown, f"{names}, sentences of {against}: {text}")


def _test(
    results: Results,
    pair: tuple[System, System],
    masks: tuple[Sequence[bool], Sequence[bool]],
    bounds: Bounds,
) -> Finding:
    """Tests the claim for a pair, comparing long sentences with short ones."""
    short, long = map(sum, masks)
    if min(short, long) < ENOUGH:
        text = f"the test set has {short} such short and {long} long sentences; the test needs"
        return Finding(None, f"{text} {ENOUGH} of each.")
    search, encdec = pair
    scores = [
        [results.references.bleu(each.texts, mask, results.scoring.n_bootstrap) for mask in masks]
        for each in pair
    ]
    kept = [_kept(*both) for both in scores]
    (search_kept, search_margin), (encdec_kept, encdec_margin) = kept
    _, p = results.p_values(pair, masks[1])
    against = {
        f"{search.name} does not stay flat": search_kept < bounds.flat,
        f"{encdec.name} does not fall": encdec_kept >= bounds.fallen,
        f"{search.name} is not clearly better on long sentences": (
            scores[0][1].score <= scores[1][1].score or p >= 0.05
        ),
    }
    reasons = [reason for reason, holds in against.items() if holds]
    verdict = "RNNsearch stays flat where RNNencdec falls"
    if reasons:
        verdict = "unlike in the paper, " + ", and ".join(reasons)
    is_near = abs(search_kept - bounds.flat) < search_margin
    if is_near or abs(encdec_kept - bounds.fallen) < encdec_margin:
        verdict += " (but an interval contains the bound, so another test set might disagree)"
    figures = "; ".join(
        f"{each.name} has BLEU {short.score:.2f} on short sentences and {long.score:.2f} on long "
        f"ones, and so keeps {100 * share:.0f} ± {100 * margin:.0f} %"
        for each, (short, long), (share, margin) in zip(pair, scores, kept, strict=True)
    )
    text = f"{verdict}. {figures}. The difference on long sentences has p = {p:.4f}."
    return Finding(not reasons, text)


def _kept(short: Score, long: Score) -> tuple[float, float]:
    """The share that is kept, and half the width of its 95 % interval.

    To first order the relative errors of both scores, which are independent, add up as squares.
    """
    if not short.score:
        return 0.0, 0.0
    share = long.score / short.score
    margins = [(score.margin or 0.0) / short.score for score in (long, short)]
    return share, math.hypot(margins[0], share * margins[1])
