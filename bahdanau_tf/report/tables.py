"""The tables of Bahdanau et al. 2015, and a table of significance."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path

from bahdanau_tf.evaluation import Table
from bahdanau_tf.evaluation.tables import NOT_RUN
from bahdanau_tf.evaluation.tables import NOTHING
from bahdanau_tf.evaluation.tables import Cell
from bahdanau_tf.experiments.results import Corpus
from bahdanau_tf.experiments.results import Results
from bahdanau_tf.experiments.results import System
from bahdanau_tf.experiments.trainings import Record
from bahdanau_tf.experiments.trainings import last_evaluation
from bahdanau_tf.report import paper
from bahdanau_tf.translation.lengths import token_lengths
from bahdanau_tf.translation.saved import trained_length
from bahdanau_tf.translation.saved import trained_words
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
        part = (
            references.bleu(system.known_texts, known) if any(known) else None
        )
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
    rows: list[list[Cell]] = [
        [one.name, *[NOTHING] * len(systems)] for one in systems
    ]
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


def training_table(
    results: Results, train: Corpus | None, dev: Corpus | None
) -> Table:
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


def _training(
    system: System, train: Corpus | None, dev: Corpus | None
) -> list[Cell]:
    model, folder = system.translator, system.model_dir
    if model is None or folder is None:
        raise ValueError(
            f"training_table: {system.name} is not a trained model"
        )
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


def _learned(
    model: Translator, folder: Path, corpus: Corpus | None
) -> Corpus | None:
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
