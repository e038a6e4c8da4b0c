"""Tables of Sutskever et al. 2014: single LSTMs, ensembles, rescoring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf.evaluation import LengthBin, Table, length_rows
from bahdanau_tf.evaluation.subsets import by_rank
from bahdanau_tf.evaluation.tables import NOT_RUN, NOTHING, Cell
from bahdanau_tf.plotting import plot_bleu_by_length, plot_vectors
from bahdanau_tf.report import paper
from bahdanau_tf.report.paper import Picture, Section
from bahdanau_tf.report.results import (
    MIXED,
    Corpus,
    Members,
    Results,
    joined,
    name_of,
    translate_rows,
)
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.translation.lengths import (
    counting_text,
    in_a_plane,
    mean_ranks,
    nearest,
    sentence_vectors,
)
from bahdanau_tf.translation.rescoring import Hypothesis, NBest, combine, score_nbest
from bahdanau_tf.translator import Translator

_NBEST = 12


class Baseline(NamedTuple):
    """Another system's n-best lists of the test set.

    Attributes:
        name: The name of the system.
        lists: A list for each sentence; it may be empty.
    """

    name: str
    lists: Sequence[NBest]


_PAPER_BLEU = f"{paper.MARK}BLEU"


def lstm_members(results: Results) -> dict[str, list[Translator]]:
    """The LSTMs by kind: "forward", "reversed", and one of each as `MIXED`.

    An ensemble needs one target vocabulary: LSTMs with another one than the
    first are left out.
    """
    members: dict[str, list[Translator]] = {"forward": [], "reversed": []}
    settings = None
    for one in results.of_kind("LSTM"):
        if one.translator is None:
            continue
        own = one.translator.target_text.settings()
        settings = settings or own
        if own == settings:
            members[one.kind.split()[1]].append(one.translator)
    pair = [one[0] for one in members.values() if one]
    return {**members, MIXED: pair if len(pair) > 1 else []}


def ensemble_table(results: Results, members: Members) -> Table:
    """Table 1 of Sutskever et al., and an ensemble of both directions."""
    short = results.as_in_training(*results.of_kind("LSTM"))
    wanted = [*paper.ENSEMBLES, (MIXED, 2, 12)]
    sources, decoding = results.test.sources, results.scoring.decoding
    rows: list[list[Cell]] = []
    for row, lines in translate_rows(wanted, members, sources, decoding):
        ours: list[Cell] = [NOT_RUN, NOT_RUN]
        if lines is not None:
            ours = [results.references.bleu(lines).score, NOTHING]
            if any(short or ()):
                ours[1] = results.references.bleu(lines, short).score
        theirs = paper.ENSEMBLES.get(row, NOTHING)
        rows.append([name_of(*row), *ours, theirs])
    said = "No limit of the LSTMs' training sentences is known."
    if not any(members.values()):
        said = "No LSTM was run."
    elif short is not None:
        said = (
            f"{sum(short)} of {len(short)} sentences are no longer than the "
            "LSTMs' training sentences."
        )
    return Table(
        "ensembles",
        "Single LSTMs and ensembles, after Table 1 of Sutskever et al. 2014",
        ["", "BLEU, all", "BLEU, as long as in training", _PAPER_BLEU],
        rows,
        [f"{said} An ensemble of 2 mixed is a forward and a reversed model."],
    )


def rescoring_table(results: Results, members: Members, baseline: Baseline | None = None) -> Table:
    """Table 2 of Sutskever et al.: rescored n-best lists of another system.

    Without a baseline the lists are those of the RNNencdec that was trained on
    the longest sentences.
    """
    baseline = baseline or _own_baseline(results)
    lists: Sequence[NBest] = ()
    first = "Baseline"
    said = "No RNNencdec was run, whose lists are rescored here."
    if baseline:
        lists = baseline.lists
        first = f"Baseline: {baseline.name}"
        most = max(len(nbest.hypotheses) for nbest in lists)
        said = f"Our lists are of the baseline, with up to {most} hypotheses."

    def cell(texts: Iterable[str]) -> Cell:
        return results.references.bleu([*texts]).score if lists else NOT_RUN

    best = cell(_first(nbest.hypotheses) for nbest in lists)
    rows: list[list[Cell]] = [[first, best, paper.RESCORING_BASELINE]]
    for kind, size in [*paper.RESCORING, (MIXED, 2)]:
        scorer = joined(members, kind, size) if lists else None
        ours = cell(_rescored(scorer, lists)) if scorer else NOT_RUN
        theirs = paper.RESCORING.get((kind, size), NOTHING)
        rows.append([f"Rescored: {name_of(kind, size).lower()}", ours, theirs])
    texts = [[one.text for one in n.hypotheses] or [""] for n in lists]
    oracle = cell(results.references.oracle(texts) if lists else ())
    rows.append(["Oracle", oracle, paper.RESCORING_ORACLE])
    return Table(
        "rescoring",
        "n-best lists rescored, after Table 2 of Sutskever et al. 2014",
        ["", "BLEU, all", _PAPER_BLEU],
        rows,
        [
            f"{said} The paper's are the 1000 best of a phrase-based system. "
            "The score is the plain average of both systems' log p. The "
            "oracle takes from each list the hypothesis with the best BLEU, "
            "which no rescoring can know; the paper gives its own as about 45."
        ],
    )


def _own_baseline(results: Results) -> Baseline | None:
    """The n-best lists of an RNNencdec, if there is one.

    A list has an empty hypothesis if it has no other.
    """
    encdecs = [one for one in results.of_kind("RNNencdec") if one.translator]
    best = max(encdecs, key=lambda one: one.max_length or 0, default=None)
    if best is None or best.translator is None:
        return None
    lists = _lists(best.translator, results)
    return Baseline(f"{best.name}, beam size {_NBEST}", lists)


def _lists(translator: Translator, results: Results) -> list[NBest]:
    decoding = results.scoring.decoding
    decoding = replace(decoding, beam_size=_NBEST, n_best=_NBEST)
    lists: list[NBest] = []
    for best in translator.translate(results.test.sources, decoding):
        hypotheses = [
            Hypothesis(len(lists), one.text, "", one.log_prob) for one in (best, *best.alternatives)
        ]
        lists.append(NBest(best.source, hypotheses))
    return lists


def _rescored(scorer: Translator, lists: Sequence[NBest]) -> Iterator[str]:
    for nbest, log_probs in score_nbest(scorer, lists):
        yield _first(combine(nbest.hypotheses, log_probs))


def _first(hypotheses: Sequence[Hypothesis]) -> str:
    """The text of the best hypothesis; "" if there is none."""
    return hypotheses[0].text if hypotheses else ""


Phrases = Sequence[Sequence[str]]  # groups of sentences of similar meaning
_TITLE = "Sentence vectors, after Figure 2 of Sutskever et al. 2014"
_SHOWN = (
    "What the decoder of {name} gets of a sentence, projected on the two "
    "principal components of the sentences in each picture. The sentences of a "
    "group have one sign. Where groups differ in the order of their words "
    "alone, a bag of words could not tell them apart."
)


def vectors_figure(results: Results, phrases: Sequence[Phrases], folder: Path) -> Section:
    """Draws sentences as the first LSTM keeps them, else an RNNencdec.

    Args:
        results: The systems.
        phrases: The groups of sentences of each picture.
        folder: Gets a PNG for each picture.
    """
    able = [*results.of_kind("LSTM"), *results.of_kind("RNNencdec")]
    named = ((one.name, one.translator) for one in able if one.translator)
    found = next(named, None)
    if not phrases:
        return Section(_TITLE, ["Not run: no sentences were given for it."])
    if found is None:
        said = "Not run: no system keeps a sentence in one vector."
        return Section(_TITLE, [said])
    name, translator = found
    drawn = [
        _drawn(translator, groups, folder / f"vectors{number}.png")
        for number, groups in enumerate(phrases, 1)
    ]
    pictures, data = zip(*drawn, strict=True)
    said = _SHOWN.format(name=name)
    return Section(_TITLE, [said], pictures, data={"vectors": data})


def _drawn(
    translator: Translator, groups: Phrases, path: Path
) -> tuple[Picture, list[dict[str, object]]]:
    """Draws a picture; returns it and its data."""
    texts = [text for group in groups for text in group]
    numbers = [n for n, group in enumerate(groups) for _ in group]
    vectors = sentence_vectors(translator.model, translator.source_text, texts)
    points, share = in_a_plane(vectors)
    plot_vectors(points, texts, numbers, path)
    others = nearest(vectors)
    own = sum(numbers[other] == number for number, other in zip(numbers, others, strict=True))
    title = (
        f"{100 * share:.0f} % of the variance is in the plane; {own} of "
        f"{len(texts)} sentences have their nearest in the whole space in "
        "their own group"
    )
    data = [
        {"text": text, "group": number, "point": point}
        for text, number, point in zip(texts, numbers, points.round(4).tolist(), strict=True)
    ]
    return Picture(path, title), data


_RARITY = "BLEU by rarity of words, after Figure 3 of Sutskever et al. 2014"
_RANK = (
    "Sentences are sorted by the mean frequency rank of their source words, "
    "which is the id of a word; unknown words come last. Sub-words are counted "
    "in the training pairs that the report reads. The parts have as many "
    "sentences as each other, but for the last. The paper's curve falls only "
    "for the rarest words. Its curve by length is Figure 2."
)
_UNCOUNTED = "Not run: sub-words are ranked by their counts in training pairs, and none were given."


def rarity_figure(results: Results, train: Corpus | None, folder: Path) -> Section:
    """BLEU of sentences sorted by the rank of their words; writes a PNG."""
    models = (one.translator for one in results.systems)
    text = counting_text([one.source_text for one in models if one])
    if text is None:
        return Section(_RARITY, ["Not run: no system has a vocabulary."])
    learned = train.sources if train else []
    if not learned and not isinstance(text, WordTokenizer):
        return Section(_RARITY, [_UNCOUNTED])
    ranks = mean_ranks(text, results.test.sources, learned)
    curves = {
        one.name: results.references.by_rank(one.texts, ranks, results.scoring.n_bootstrap)
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
    return Section(_RARITY, [_RANK], [Picture(path, title)], [table])


def _titles(bins: Sequence[LengthBin], ranks: Sequence[float]) -> list[str]:
    """The smallest and largest rank of each bin: "12.3-40.1"."""
    ordered = [ranks[number] for number in by_rank(ranks)]
    ends = [(one.shortest - 1, one.shortest + one.sentences - 2) for one in bins]
    return ["-".join(_brief(ordered[place]) for place in some) for some in ends]


def _brief(rank: float) -> str:
    return f"{rank:.0f}" if rank >= 100 else f"{rank:.1f}"
