"""Table 2: what the trainings took, and how well the models fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bahdanau_tf.report import paper
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.report.systems import Measured
from bahdanau_tf.report.systems import token_lengths
from bahdanau_tf.report.tables import NOT_RUN
from bahdanau_tf.report.tables import NOTHING
from bahdanau_tf.report.tables import Cell
from bahdanau_tf.report.tables import Table
from bahdanau_tf.report.trainings import read_record
from bahdanau_tf.translator import Translator

SAMPLE = 1000  # training sentences looked at
_UNKNOWN = "not recorded"


def training_table(
    systems: Sequence[Measured], train: Corpus | None, dev: Corpus | None
) -> Table:
    """Table 2 of the paper: updates, epochs, hours, device, NLL.

    Args:
        systems: What was measured.
        train: Training pairs, or None; of the first of them that are no
            longer than a system's limit, its likelihood is computed.
        dev: Dev pairs, or None.
    """
    rows: list[list[Cell]] = []
    for name, figures in paper.TRAINING.items():
        ours = [one for one in systems if one.counterpart == name]
        theirs: list[Cell] = [name, *figures]
        rows += [[*_row(one, train, dev), *theirs] for one in ours]
        if not ours:
            rows.append([f"for {name}", *[NOT_RUN] * 6, *theirs])
    for one in systems:
        if one.counterpart not in paper.TRAINING and one.translator:
            rows.append([*_row(one, train, dev), *[NOTHING] * 7])
    heads = ["updates", "epochs", "hours", "device", "train NLL", "dev NLL"]
    return Table(
        "table2",
        "Table 2. Training",
        [
            "system",
            *heads,
            f"{paper.MARK}system",
            *(paper.MARK + head for head in heads),
        ],
        rows,
        [
            "NLL: negative log-likelihood of a sentence in nats, the mean over "
            "sentences. Train NLL is that of training sentences no longer "
            f"than the system was trained on, {SAMPLE} at most; dev NLL that "
            "of the whole dev set. Updates and epochs are those of the last "
            "evaluation; an epoch is a pass over the whole corpus, whatever a "
            "system leaves out."
        ],
    )


def _row(
    system: Measured, train: Corpus | None, dev: Corpus | None
) -> list[Cell]:
    if system.translator is None or system.model_dir is None:
        raise ValueError(f"training_table: {system.name} is no trained model")
    last = _last_evaluation(system.model_dir)
    record = read_record(system.model_dir)
    seconds = record.seconds or last.get("seconds")
    device = record.device or last.get("device", _UNKNOWN)
    is_stopped = bool(record.device) and not record.is_over
    if train is not None:
        train = _short_enough(system, system.translator, train)
    return [
        system.name,
        last.get("step", _UNKNOWN),
        last.get("epoch", _UNKNOWN),
        _UNKNOWN if seconds is None else seconds / 3600,
        device + " (not trained out)" * is_stopped,
        _nll(system.translator, train),
        _nll(system.translator, dev),
    ]


def _last_evaluation(model_dir: Path) -> dict[str, Any]:
    """The last line of the training's log; empty where there is none."""
    path = model_dir / "log.jsonl"
    lines = path.read_text("utf-8").split("\n") if path.is_file() else []
    written = [line for line in lines if line]
    return json.loads(written[-1]) if written else {}


def _short_enough(
    system: Measured, translator: Translator, corpus: Corpus
) -> Corpus | None:
    """The first pairs that the system has seen in training."""
    longest = system.max_length or float("inf")
    rows = zip(
        *corpus[:2],
        token_lengths(translator.source_text, corpus.sources),
        token_lengths(translator.target_text, corpus.references),
        strict=True,
    )
    kept = [
        (source, target)
        for source, target, *lengths in rows
        if source and target and max(lengths) <= longest
    ][:SAMPLE]
    return Corpus(*zip(*kept, strict=True)) if kept else None


def _nll(translator: Translator, corpus: Corpus | None) -> Cell:
    """Mean of -log p(y | x) over the sentences."""
    if corpus is None:
        return NOT_RUN
    scored = translator.score(corpus.sources, corpus.references)
    return -sum(one.log_prob for one in scored) / len(scored)
