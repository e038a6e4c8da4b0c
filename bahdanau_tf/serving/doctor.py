"""The doctor reloads an export in a new process and compares its outputs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from bahdanau_tf.options import Decoding
from bahdanau_tf.serving import comparison
from bahdanau_tf.serving.elsewhere import Answers
from bahdanau_tf.serving.elsewhere import Outputs
from bahdanau_tf.serving.elsewhere import answers
from bahdanau_tf.serving.limits import LimitedGraph
from bahdanau_tf.serving.limits import Limits
from bahdanau_tf.serving.limits import n_best_of
from bahdanau_tf.serving.nodes import count_nodes
from bahdanau_tf.serving.operations import TEXT_OPS
from bahdanau_tf.serving.operations import operations
from bahdanau_tf.serving.requests import Request
from bahdanau_tf.serving.requests import probes
from bahdanau_tf.serving.requests import request
from bahdanau_tf.serving.requests import sentences
from bahdanau_tf.serving.warmup import has_serving_api
from bahdanau_tf.serving.warmup import read_warmup
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.translation import Scored
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation import TranslationGraph
from bahdanau_tf.translation.sentences import score
from bahdanau_tf.translation.sentences import translate

TIMED_ROWS = (1, 32)
TIMED_WORDS = 20


@dataclass(frozen=True)
class Report:
    """The result of `examine`.

    Attributes:
        facts: What is known about the export, one sentence each.
        differences: Differences from the translator in memory, one sentence
            each; empty for a correct export.
    """

    facts: list[str]
    differences: list[str]


def examine(
    graph: TranslationGraph, version: str | os.PathLike[str], limits: Limits
) -> Report:
    """Reloads an export and compares it with the translator in memory.

    A copy of it is loaded in a new process that imports only tensorflow and
    tensorflow_text. There each signature is called with usual and unusual rows,
    with no rows, and with the warm-up requests.

    Args:
        graph: The translator that was exported.
        version: The folder that `export` returned, or `written` gave.
        limits: The limits that were given to it.
    """
    version = Path(version)
    served = LimitedGraph(graph, limits)
    wanted = _Wanted.of(graph, served, n_best_of(graph, limits))
    names = ["greedy", "n_best", "score", "serving_default"]
    if wanted.completed:
        names.insert(0, "complete")
    if wanted.has_alignment:
        names.insert(0, "align")
    compared = [request(name, wanted.texts, wanted.targets) for name in names]
    empty = [request(name, [], []) for name in names]
    warmup = read_warmup(version)
    asked = [*compared, *empty, *warmup]
    timed = _timed(graph.source_text, wanted.texts)
    try:
        found = answers(version, asked, timed)
    except ValueError as error:
        return Report([], [str(error)])
    differences = [
        f"{one.signature}: {what}"
        for one, outputs in zip(asked, found.outputs, strict=True)
        for what in comparison.form(outputs, len(one.inputs["text"]))
    ]
    if found.signatures != names:
        differences.append(f"the signatures are {found.signatures}")
    gradients = count_nodes(version).gradients
    if gradients:
        differences.append(
            f"{gradients} nodes compute gradients, which no server calls"
        )
    if not differences:
        differences = [
            f"{name}: {what}"
            for name, outputs in zip(names, found.outputs, strict=False)
            for what in wanted.differ(name, outputs)
        ]
    facts = _facts(version, found, len(wanted.texts), served)
    return Report(facts, differences)


@dataclass(frozen=True)
class _Wanted:
    """The outputs of the translator in memory for the probes.

    Attributes:
        texts: The rows.
        targets: A target for each row: the translation for `score`, the prefix
            for `complete`.
        best: For each row the n best translations.
        first: The same, or with sampling the only one of a single draw.
        greedy: For each row the one found by greedy search.
        completed: As `first`, beginning with the target of the row; empty if
            the target tokenizer is reversed.
        scored: For each row the score of its target.
        cut: Whether each row is cut.
        ids_cut: The same, where no word is copied.
        target_cut: Whether each target is cut.
        word_cut: Whether a word of each target is cut when it is copied.
    """

    texts: list[bytes]
    targets: list[bytes]
    best: list[list[Translation]]
    first: list[list[Translation]]
    greedy: list[list[Translation]]
    completed: list[list[Translation]]
    scored: list[Scored]
    cut: np.ndarray
    ids_cut: np.ndarray
    target_cut: np.ndarray
    word_cut: np.ndarray

    @classmethod
    def of(
        cls, graph: TranslationGraph, served: LimitedGraph, n_best: int
    ) -> _Wanted:
        texts = probes(graph.source_text)
        targets = probes(graph.target_text)[::-1]
        many = replace(served.decoding, n_best=n_best)
        # One draw is not the first of many; of a beam, others may be as good.
        single = replace(many, n_best=1) if many.sampling else many

        def found(
            decoding: Decoding, prefixes: list[bytes] | None = None
        ) -> list[list[Translation]]:
            translations = translate(served, texts, decoding, prefixes=prefixes)
            return [[one, *one.alternatives] for one in translations]

        target_text = served.target_text
        turned = target_text.reverse
        best = found(many)
        return cls(
            texts=texts,
            targets=targets,
            best=best,
            first=found(single) if single != many else best,
            greedy=found(many.greedy()),
            completed=[] if turned else found(single, targets),
            scored=score(served, texts, targets),
            cut=served.is_cut(tf.constant(texts)).numpy(),
            ids_cut=served.read_ids(tf.constant(texts))[1].numpy(),
            target_cut=target_text.is_cut(tf.constant(targets)).numpy(),
            word_cut=target_text.cuts_words(tf.constant(targets)).numpy(),
        )

    @property
    def has_alignment(self) -> bool:
        return any(row[0].weights is not None for row in self.best)

    def differ(self, signature: str, outputs: Outputs) -> Iterator[str]:
        if signature == "score":
            cut = self.ids_cut | self.target_cut
            return comparison.scores(outputs, self.scored, cut)
        if signature == "complete":
            cut = self.cut | self.target_cut | self.word_cut
            return comparison.translations(outputs, self.completed, cut)
        if signature == "greedy":
            return comparison.translations(outputs, self.greedy, self.cut)
        if signature == "n_best":
            return comparison.n_best(outputs, self.best, self.cut)
        if signature == "align":
            return comparison.align(outputs, self.first, self.cut, self.texts)
        return comparison.translations(outputs, self.first, self.cut)


def _timed(text: Tokenizer, rows: Sequence[bytes]) -> list[Request]:
    """Requests to time: one row, many rows, and the longest row."""
    words = sentences(text, [TIMED_WORDS] * max(TIMED_ROWS))
    return [
        Request("serving_default", {"text": chosen})
        for chosen in (
            *(words[:count] for count in TIMED_ROWS),
            [max(rows, key=len)],
        )
    ]


def _facts(
    version: Path, answers: Answers, rows: int, served: LimitedGraph
) -> list[str]:
    size = sum(p.stat().st_size for p in version.rglob("*") if p.is_file())
    found = operations(version)
    nodes = count_nodes(version)
    text_ops = sorted(TEXT_OPS.intersection(found))
    facts = [
        f"Size: {size / 1e6:.1f} MB.",
        f"Signatures: {', '.join(answers.signatures)}.",
        f"Limits: it reads {served.source_texts[0].max_length} tokens of a "
        f"text and writes {served.decoding.max_length}, end symbols included.",
        f"Ops: {len(found)} kinds, of TensorFlow Text "
        f"{', '.join(text_ops) or 'none'}.",
        f"Nodes: {nodes.total}; of signatures, what they share counted for "
        "each: "
        + ", ".join(f"{name} {n}" for name, n in nodes.signatures.items())
        + ".",
        f"Loaded in {answers.load_seconds:.2f} s by a new process with "
        "tensorflow and tensorflow_text only.",
    ]
    labels = [f"{n} rows of {TIMED_WORDS} words" for n in TIMED_ROWS]
    labels[0] = f"1 row of {TIMED_WORDS} words"
    for label, (first, *warm) in zip(
        [*labels, "1 row of a megabyte"], answers.timed, strict=True
    ):
        facts.append(
            f"serving_default, {label}: {first:.3f} s at first, "
            f"{sorted(warm)[len(warm) // 2]:.3f} s when warm."
        )
    facts.append(
        f"Compared with the model, by each signature: {rows} texts, among them "
        "empty, very long and malformed ones."
    )
    records = len(read_warmup(version))
    facts.append(
        f"Warm-up records: {records}, replayed."
        if has_serving_api()
        else "Warm-up records: none, as tensorflow-serving-api is not "
        "installed (pip install 'bahdanau_tf[serving]')."
    )
    return facts
