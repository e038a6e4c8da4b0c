"""Tables of Sutskever et al. 2014: single LSTMs, ensembles, rescoring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.evaluation import Table, length_rows
from bahdanau_tf.evaluation.tables import NOT_RUN, NOTHING, Cell
from bahdanau_tf.plotting import plot_bleu_by_length, plot_vectors
from bahdanau_tf.report import paper
from bahdanau_tf.report.paper import Picture, Section
from bahdanau_tf.report.results import (
    MIXED,
    Corpus,
    Members,
    Results,
    as_one,
    name_of,
    translate_rows,
)
from bahdanau_tf.translation.graph import padded
from bahdanau_tf.translation.protocol import Text, counting_text
from bahdanau_tf.translation.rescoring import Hypothesis, NBest, combine, perplexity, score_nbest
from bahdanau_tf.translator import Translator

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NBEST = 12


class Baseline(NamedTuple):
    """Another system's name, and its n-best list of each test sentence, maybe empty."""

    name: str
    lists: Sequence[NBest]


_PAPER_BLEU = f"{paper.MARK}BLEU"


def lstm_members(results: Results) -> dict[str, list[Translator]]:
    """The LSTMs by kind: "forward", "reversed", and one of each as `MIXED`.

    An ensemble needs one target vocabulary: LSTMs whose vocabulary differs from the first one's are
    left out.
    """
    members: dict[str, list[Translator]] = {"forward": [], "reversed": []}
    settings = None
    for system in results.of_kind("LSTM"):
        if model := system.translator:
            settings = settings or model.target_text.settings()
            if model.target_text.settings() == settings:
                members[system.kind.split()[1]].append(model)
    return {**members, MIXED: [lstms[0] for lstms in members.values() if all(members.values())]}


def ensemble_table(results: Results, members: Members) -> Table:
    """Table 1 of Sutskever et al., and an ensemble of both directions."""
    short = results.as_in_training(*results.of_kind("LSTM"))
    ensembles = [*paper.ENSEMBLES, (MIXED, 2, 12)]
    sources, decoding = results.test.sources, results.scoring.decoding
    rows: list[list[Cell]] = []
    for row, lines in translate_rows(ensembles, members, sources, decoding):
        kind, is_single = row[0], row[1] == 1
        ours: list[Cell] = [NOT_RUN, NOT_RUN, NOT_RUN if is_single else NOTHING]
        if lines is not None:
            ours[:2] = [results.references.bleu(lines).score, NOTHING]
            if any(short or ()):
                ours[1] = results.references.bleu(lines, short).score
            if is_single:
                ours[2] = perplexity(members[kind][0].score(*results.test[:2]))
        theirs = paper.ENSEMBLES.get(row, NOTHING), paper.PERPLEXITY.get(kind * is_single, NOTHING)
        rows.append([name_of(*row), *ours, *theirs])
    note = "The longest length of the LSTMs' training sentences is unknown."
    if not any(members.values()):
        note = "No LSTM was run."
    elif short is not None:
        note = (
            f"{sum(short)} of {len(short)} sentences are no longer than the "
            "LSTMs' training sentences."
        )
    return Table(
        "ensembles",
        "Single LSTMs and ensembles, after Table 1 of Sutskever et al. 2014",
        [
            *("", "BLEU, all", "BLEU, as long as in training", "perplexity"),
            *(_PAPER_BLEU, f"{paper.MARK}perplexity"),
        ],
        rows,
        [
            f"{note} An ensemble of 2 mixed is a forward and a reversed model. Perplexity is that "
            "of the references by token, end symbols included."
        ],
    )


def rescoring_table(results: Results, members: Members, baseline: Baseline | None = None) -> Table:
    """Table 2 of Sutskever et al.: rescored n-best lists of another system.

    Without a baseline the lists are those of the RNNencdec that was trained on the longest
    sentences.
    """
    baseline = baseline or _own_baseline(results)
    lists: Sequence[NBest] = ()
    head = "Baseline"
    note = "No RNNencdec was run, whose lists would be rescored here."
    if baseline:
        lists = baseline.lists
        head = f"Baseline: {baseline.name}"
        most = max(len(nbest.hypotheses) for nbest in lists)
        note = f"Our lists are the baseline's, with up to {most} hypotheses."

    def cell(texts: Iterable[str]) -> Cell:
        return results.references.bleu([*texts]).score if lists else NOT_RUN

    best = cell(_first(nbest.hypotheses) for nbest in lists)
    rows: list[list[Cell]] = [[head, best, paper.RESCORING_BASELINE]]
    for kind, size in [*paper.RESCORING, (MIXED, 2)]:
        scorer = as_one(members, kind, size) if lists else None
        ours: Cell = NOT_RUN
        if scorer:
            rescored = score_nbest(scorer, lists)
            ours = cell(_first(combine(nbest.hypotheses, logs)) for nbest, logs in rescored)
        theirs = paper.RESCORING.get((kind, size), NOTHING)
        rows.append([f"Rescored: {name_of(kind, size).lower()}", ours, theirs])
    texts = [[each.text for each in nbest.hypotheses] or [""] for nbest in lists]
    oracle = cell(results.references.oracle(texts) if lists else ())
    rows.append(["Oracle", oracle, paper.RESCORING_ORACLE])
    return Table(
        "rescoring",
        "n-best lists rescored, after Table 2 of Sutskever et al. 2014",
        ["", "BLEU, all", _PAPER_BLEU],
        rows,
        [
            f"{note} The paper's are the 1000 best of a phrase-based system. The score is the "
            "plain average of both systems' log p. The oracle takes from each list the hypothesis "
            "with the best BLEU, which no rescoring can know; the paper's is about 45."
        ],
    )


def _own_baseline(results: Results) -> Baseline | None:
    """The n-best lists of an RNNencdec, if there is one."""
    encdecs = [each for each in results.of_kind("RNNencdec") if each.translator]
    system = max(encdecs, key=lambda each: each.max_length or 0, default=None)
    if system is None or system.translator is None:
        return None
    decoding = replace(results.scoring.decoding, beam_size=_NBEST, n_best=_NBEST)
    lists = [
        NBest(
            best.source,
            [Hypothesis(n, each.text, "", each.log_prob) for each in (best, *best.alternatives)],
        )
        for n, best in enumerate(
            system.translator.translate(results.test.sources, decoding, split_sentences=False)
        )
    ]
    return Baseline(f"{system.name}, beam size {_NBEST}", lists)


def _first(hypotheses: Sequence[Hypothesis]) -> str:
    """The text of the best hypothesis; "" if there is none."""
    return hypotheses[0].text if hypotheses else ""


Phrases = Sequence[Sequence[str]]  # groups of sentences of similar meaning
_TITLE = "Sentence vectors, after Figure 2 of Sutskever et al. 2014"
_SHOWN = (
    "What the decoder of {name} gets of a sentence, projected on the two principal components of "
    "the sentences in each picture. The sentences of a group have one sign. Where groups differ "
    "only in the order of their words, a bag of words could not distinguish them."
)


def vectors_figure(results: Results, phrases: Sequence[Phrases], folder: Path) -> Section:
    """Draws the sentence vectors of the first LSTM, else of an RNNencdec.

    There is a PNG in `folder` for each picture's groups of sentences.
    """
    systems = [*results.of_kind("LSTM"), *results.of_kind("RNNencdec")]
    models = ((each.name, each.translator) for each in systems if each.translator)
    name, translator = next(models, ("", None))
    if not phrases:
        return Section(_TITLE, ["Not run: no sentences were given for it."])
    if translator is None:
        return Section(_TITLE, ["Not run: no system keeps a sentence in one vector."])
    drawn = [
        _draw(translator, groups, folder / f"vectors{number}.png")
        for number, groups in enumerate(phrases, 1)
    ]
    pictures, data = zip(*drawn, strict=True)
    return Section(_TITLE, [_SHOWN.format(name=name)], pictures, data={"vectors": data})


def _draw(
    translator: Translator, groups: Phrases, path: Path
) -> tuple[Picture, list[dict[str, object]]]:
    """Draws a picture; returns it and its data."""
    texts = [text for group in groups for text in group]
    numbers = [n for n, group in enumerate(groups) for _ in group]
    vectors = sentence_vectors(translator, texts)
    points, share = in_a_plane(vectors)
    plot_vectors(points, texts, numbers, path)
    others = nearest(vectors)
    own = sum(numbers[other] == number for number, other in zip(numbers, others, strict=True))
    title = (
        f"{100 * share:.0f} % of the variance is in the plane; for {own} of {len(texts)} sentences "
        "the nearest one in the whole space is of their own group"
    )
    data = [
        {"text": text, "group": number, "point": point}
        for text, number, point in zip(texts, numbers, points.round(4).tolist(), strict=True)
    ]
    return Picture(path, title), data


def sentence_vectors(translator: Translator, sentences: Sequence[str]) -> NDArray[np.float32]:
    """The fixed vector in which a model keeps each sentence, `[B, d]`.

    It is all that the decoder gets: the first states of all layers, and the context of a model that
    has one. A model with attention keeps no fixed vector and is refused.

    Reference: Sutskever et al. 2014, arXiv 1409.3215, section 3.8.
    """
    model = translator.model
    if model.has_alignment:
        raise ValueError(
            f"sentence_vectors: {type(model).__name__} has attention, wanted a "
            "model that keeps a sentence in one vector"
        )
    ids = padded(translator.source_text.tokenize(tf.constant(sentences, tf.string)))
    rows = [
        tf.cast(x, tf.float32).numpy().reshape([len(sentences), -1])
        for x in tf.nest.flatten(model.encode(ids))
        if x.dtype.is_floating
    ]
    vectors: NDArray[np.float32] = np.concatenate(rows, 1)
    return vectors


def in_a_plane(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
    """Projects vectors `[N, d]` on their two principal components, `[N, 2]`, centred.

    Beside it is the share of the variance that is in it.
    """
    centred = np.asarray(vectors, np.float64) - np.mean(vectors, 0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros([len(vectors), 2])
    points[:, : len(sizes)] = (left * sizes)[:, :2]
    total = float(np.sum(sizes**2))
    return points, float(np.sum(sizes[:2] ** 2)) / total if total else 1.0


def nearest(vectors: NDArray[np.float32]) -> list[int]:
    """The number of the nearest other vector of each, of `[N, d]`."""
    x = np.asarray(vectors, np.float64)
    distances = np.linalg.norm(x[:, None] - x, axis=-1)
    np.fill_diagonal(distances, np.inf)
    return [*map(int, np.argmin(distances, 1))]


_LENGTH = "BLEU by position in order of length, after Figure 3 (left) of Sutskever et al. 2014"
_RARITY = "BLEU by rarity of words, after Figure 3 (right) of Sutskever et al. 2014"
_PARTS = "All parts except the last have the same number of sentences."
_SORTED = f"Sentences are sorted by length. {_PARTS} The paper's curve falls a little at the end."
_RANK = (
    "Sentences are sorted by the mean frequency rank of their source words, which is the id of a "
    "word; unknown words come last. Sub-words are counted in the training pairs that the report "
    f"reads. {_PARTS} The paper's curve falls only for the rarest words."
)
_UNCOUNTED = "Not run: sub-words are ranked by their counts in training pairs, and none were given."


def length_figure(results: Results, folder: Path) -> Section:
    """BLEU of sentences sorted by their length; writes a PNG."""
    label = "Test sentences sorted by their length"
    titles = f"length in {results.unit}", label
    return _sorted(
        results, results.lengths, folder / "sorted.png", Section(_LENGTH, [_SORTED]), titles
    )


def rarity_figure(results: Results, train: Corpus | None, folder: Path) -> Section:
    """BLEU of sentences sorted by the rank of their words; writes a PNG."""
    models = (each.translator for each in results.systems)
    text = counting_text([model.source_text for model in models if model])
    if text is None:
        return Section(_RARITY, ["Not run: no system has a vocabulary."])
    train_sources = train.sources if train else []
    if not train_sources and not text.are_words:
        return Section(_RARITY, [_UNCOUNTED])
    ranks = mean_ranks(text, results.test.sources, train_sources)
    label = "Test sentences sorted by the mean frequency rank of their words"
    titles = "mean rank of the words", label
    return _sorted(results, ranks, folder / "rarity.png", Section(_RARITY, [_RANK]), titles)


def mean_ranks(text: Text, lines: Sequence[str], learned: Sequence[str] = ()) -> list[float]:
    """The mean frequency rank of each line's tokens.

    The rank of a word is its id, since vocabularies are sorted by frequency; an unknown word comes
    after all others. Sub-words are not: single letters, for example, have the last ids. So they are
    counted in `learned`, lines of the training text; those that it does not have come last, in the
    order of their ids. A line without tokens has rank 0.
    """
    rows = text.ids(lines)
    ranks = np.arange(text.vocabulary_size, dtype=np.float64)  # of each id
    if text.are_words:
        ranks[text.unk_id] = text.vocabulary_size
    else:
        ids = [*chain(*text.ids(learned))]
        counts = np.bincount(ids, minlength=text.vocabulary_size)
        ranks[np.argsort(-counts, kind="stable")] = ranks.copy()
    return [float(ranks[ids[:-1]].mean()) if len(ids) > 1 else 0.0 for ids in rows]


def _sorted(
    results: Results, ranks: Sequence[float], path: Path, about: Section, titles: tuple[str, str]
) -> Section:
    """Adds BLEU of sentences sorted by `ranks` to a section; `titles` are of table and picture."""
    curves = {
        each.name: results.references.by_rank(each.texts, ranks, results.scoring.n_bootstrap)
        for each in results.systems
    }
    head, label = titles
    plot_bleu_by_length(curves, path, label=label)
    texts = [f"{x:.{0 if isinstance(x, int) or x >= 100 else 1}f}" for x in sorted(ranks)]
    bins = [texts[part.shortest - 1 :][: part.sentences] for part in next(iter(curves.values()))]
    table = Table(
        path.stem,
        "The points of the figure",
        [head, *(f"{part[0]}-{part[-1]}" for part in bins)],  # as 12.3-40.1
        length_rows(curves)[1],
        ["± is half the width of the 95 % bootstrap interval."],
    )
    picture = Picture(path, "bands are 95 % bootstrap intervals")
    return about._replace(pictures=[picture], tables=[table])
