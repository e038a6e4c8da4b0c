"""The ensemble and rescoring tables of Sutskever et al. 2014."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bahdanau_tf.evaluation import bleu
from bahdanau_tf.options import Decoding
from bahdanau_tf.report import paper
from bahdanau_tf.report.ensembles import PAPER_ROWS
from bahdanau_tf.report.ensembles import Row
from bahdanau_tf.report.ensembles import joined
from bahdanau_tf.report.ensembles import name_of
from bahdanau_tf.report.ensembles import translate_rows
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.systems import Measured
from bahdanau_tf.report.tables import NOT_RUN
from bahdanau_tf.report.tables import NOTHING
from bahdanau_tf.report.tables import Cell
from bahdanau_tf.report.tables import Table
from bahdanau_tf.translation.rescoring import Hypothesis
from bahdanau_tf.translation.rescoring import NBest
from bahdanau_tf.translation.rescoring import combine
from bahdanau_tf.translation.rescoring import score_nbest
from bahdanau_tf.translator import Translator

MIXED = "mixed"  # a forward and a reversed model together
_NBEST = 12
_PAPER_BLEU = f"{paper.MARK}BLEU"
Members = Mapping[str, Sequence[Translator]]


def lstm_members(systems: Sequence[Measured]) -> dict[str, list[Translator]]:
    """The LSTMs by kind: "forward", "reversed", and one of each as `MIXED`.

    They can stand together only if they write the same words: those that do
    not write the first one's are left out.
    """
    members: dict[str, list[Translator]] = {"forward": [], "reversed": []}
    settings = None
    for one in systems:
        if one.translator is None or not one.kind.startswith("LSTM"):
            continue
        own = one.translator.target_text.settings()
        settings = settings or own
        if own == settings:
            members[one.kind.split()[1]].append(one.translator)
    pair = [one[0] for one in members.values() if one]
    return {**members, MIXED: pair if len(pair) > 1 else []}


def ensemble_table(
    members: Members,
    test: Corpus,
    short: Sequence[bool] | None,
    decoding: Decoding,
    how: Mapping[str, Any],
) -> Table:
    """Table 1 of Sutskever et al., and an ensemble of both directions.

    Args:
        members: From `lstm_members`.
        test: The test set.
        short: Which sentences are no longer than those trained on; None if
            that is not known.
        decoding: How to search but for the beam size.
        how: `tokenize` and `lowercase` of `bleu`.
    """
    rows: list[list[Cell]] = []
    for row, lines in translate_rows(
        [*PAPER_ROWS, Row(MIXED, 2, 12)], members, test.sources, decoding
    ):
        cells: list[Cell] = [NOT_RUN, NOT_RUN]
        if lines is not None:
            cells = _bleu_cells(lines, test.references, short, how)
        rows.append([row.name, *cells, paper.ENSEMBLES.get(row, NOTHING)])
    return Table(
        "ensembles",
        "Single LSTMs and ensembles, after Table 1 of Sutskever et al. 2014",
        ["", "BLEU, all", "BLEU, as long as in training", _PAPER_BLEU],
        rows,
        [
            f"{_lengths_in_words(members, short)} An "
            f"{name_of(MIXED, 2).lower()} is a forward and a reversed model."
        ],
    )


def rescoring_table(
    baseline: Measured | None,
    members: Members,
    test: Corpus,
    decoding: Decoding,
    how: Mapping[str, Any],
) -> Table:
    """Table 2 of Sutskever et al.: another system's n-best lists rescored.

    Args:
        baseline: The system whose lists are taken; None for none.
        members: From `lstm_members`.
        test: The test set.
        decoding: How the baseline searches but for the beam size.
        how: `tokenize` and `lowercase` of `bleu`.
    """
    lists = [] if baseline is None else _lists(baseline, test, decoding)
    rows: list[list[Cell]] = []
    if baseline is not None:
        first = [nbest.hypotheses[0].text for nbest in lists]
        score = bleu(first, test.references, **how).score
        title = f"Baseline: {baseline.name}, beam size {_NBEST}"
        rows.append([title, score, paper.RESCORING_BASELINE])
    else:
        rows.append(["Baseline", NOT_RUN, paper.RESCORING_BASELINE])
    for kind, count in [*paper.RESCORING, (MIXED, 2)]:
        chosen = members.get(kind, ())[:count]
        cell: Cell = NOT_RUN
        if lists and len(chosen) == count:
            texts = [*_rescored(joined(chosen), lists)]
            cell = bleu(texts, test.references, **how).score
        theirs = paper.RESCORING.get((kind, count), NOTHING)
        title = f"Rescored: {name_of(kind, count).lower()}"
        rows.append([title, cell, theirs])
    ours = f"Our lists are the {_NBEST} best of the baseline."
    if baseline is None:
        ours = "No RNNencdec was run, whose lists are rescored here."
    cell = NOT_RUN
    if lists:
        cell = bleu([*_oracle(lists, test, how)], test.references, **how).score
    rows.append(["Oracle", cell, paper.RESCORING_ORACLE])
    return Table(
        "rescoring",
        "n-best lists rescored, after Table 2 of Sutskever et al. 2014",
        ["", "BLEU, all", _PAPER_BLEU],
        rows,
        [
            f"{ours} The paper's are the 1000 best of a phrase-based system. "
            "The score is the plain average of both systems' log p. The "
            "oracle takes from each list the hypothesis with the best BLEU, "
            "which no rescoring can know; the paper gives its own as about 45."
        ],
    )


def _lengths_in_words(members: Members, short: Sequence[bool] | None) -> str:
    """What the column of sentences as long as in training stands on."""
    if not any(members.values()):
        return "No LSTM was run."
    if short is None:
        return "It is not known how long the LSTMs' training sentences were."
    return (
        f"{sum(short)} of {len(short)} sentences are no longer than those "
        "that the LSTMs have learned from."
    )


def _bleu_cells(
    lines: Sequence[str],
    references: Sequence[str],
    short: Sequence[bool] | None,
    how: Mapping[str, Any],
) -> list[Cell]:
    kept = [place for place, is_short in enumerate(short or []) if is_short]
    ours, theirs = (
        [side[place] for place in kept] for side in (lines, references)
    )
    part = bleu(ours, theirs, **how).score if kept else NOTHING
    return [bleu(lines, references, **how).score, part]


def _lists(baseline: Measured, test: Corpus, decoding: Decoding) -> list[NBest]:
    """The baseline's n-best lists; the empty hypothesis where there is none."""
    if baseline.translator is None:
        raise ValueError(f"rescoring_table: {baseline.name} is no model")
    found = baseline.translator.translate(
        test.sources, replace(decoding, beam_size=_NBEST, n_best=_NBEST)
    )
    return [
        NBest(
            best.source,
            [
                Hypothesis(number, one.text, "", one.log_prob)
                for one in (best, *best.alternatives)
            ],
        )
        for number, best in enumerate(found)
    ]


def _rescored(scorer: Translator, lists: Sequence[NBest]) -> Iterator[str]:
    for nbest, log_probs in score_nbest(scorer, lists):
        yield combine(nbest.hypotheses, log_probs)[0].text


def _oracle(
    lists: Sequence[NBest], test: Corpus, how: Mapping[str, Any]
) -> Iterator[str]:
    from sacrebleu.metrics import BLEU

    metric = BLEU(effective_order=True, force=True, **how)
    for nbest, reference in zip(lists, test.references, strict=True):
        yield max(
            (one.text for one in nbest.hypotheses),
            key=lambda text: metric.sentence_score(text, [reference]).score,
        )
