"""The doctor reloads an export in a new process and compares its outputs.

Scores are equal if they differ by at most 1e-4 (relative for scores beyond 1). Translations must be
the same, unless the scores of the competing hypotheses are equal in this sense.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bahdanau_tf.serving import requests
from bahdanau_tf.serving.export import TEXT_OPS, has_serving_api, operations, read_warmup
from bahdanau_tf.serving.limits import LimitedGraph, Limits, n_best_of
from bahdanau_tf.serving.requests import Answers, Outputs, Request, request
from bahdanau_tf.serving.saved_model import count_nodes
from bahdanau_tf.text.rows import replaced_offsets
from bahdanau_tf.translation import Scored, Translation, TranslationGraph
from bahdanau_tf.translation.graph import ABSENT
from bahdanau_tf.translation.running import score, translate

Wanted = Sequence[Sequence[Translation]]
TOLERANCE = 1e-4


def form(outputs: Outputs, rows: int) -> Iterator[str]:
    """Yields what a server would not accept in the outputs for `rows` rows."""
    for name, value in outputs.items():
        if value.ndim < 1 or len(value) != rows:
            yield f"{name} has shape {value.shape} for {rows} rows"
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            yield f"{name} has a value that is not finite"
        if name.endswith("_bytes"):
            yield f"{name} would be written as base64"


def translations(outputs: Outputs, wanted: Wanted, cut: np.ndarray) -> Iterator[str]:
    """Yields differences of outputs of `serving_default`, `greedy` or `complete`.

    `wanted` are the hypotheses of the translator in memory for each row, best first; `cut` is
    whether a row exceeds the limits.
    """
    for row, hypotheses in enumerate(wanted):
        text, score = outputs["translation"][row], outputs["score"][row]
        if not _close(score, hypotheses[0].score):
            yield f"row {row}: score {score}, not {hypotheses[0].score}"
        match = _best_as(hypotheses, text)
        if match is None:
            yield f"row {row}: {text!r}, not {hypotheses[0].text!r}"
        else:
            yield from _ends(_of_row(outputs, row), match, cut[row], row)


def n_best(outputs: Outputs, wanted: Wanted, cut: np.ndarray) -> Iterator[str]:
    """Compares outputs of `n_best`; as `translations`."""
    first = {
        "translation": outputs["translations"][:, 0],
        "score": outputs["scores"][:, 0],
        "finished": outputs["finished"][:, 0],
        "truncated": outputs["truncated"],
    }
    yield from translations(first, wanted, cut)
    count = outputs["scores"].shape[1]
    missing = Translation("", score=ABSENT, finished=False)
    for row, hypotheses in enumerate(wanted):
        ranked = [*hypotheses, *[missing] * (count - len(hypotheses))]
        for n, total in enumerate(outputs["scores"][row]):
            text = outputs["translations"][row, n]
            finished = outputs["finished"][row, n]
            if not _close(total, ranked[n].score):
                yield f"row {row}, {n}: score {total}, not {ranked[n].score}"
            # Hypotheses that tie with the last may be missing from the list.
            elif not _close(total, ranked[-1].score) and not any(
                (rival.text.encode(), rival.finished) == (text, finished)
                and _close(total, rival.score)
                for rival in ranked
            ):
                yield (
                    f"row {row}, {n}: {text!r}, finished {finished}, not "
                    f"{ranked[n].text!r}, {ranked[n].finished}"
                )


def align(
    outputs: Outputs, wanted: Wanted, cut: np.ndarray, texts: Sequence[bytes]
) -> Iterator[str]:
    """Compares outputs of `align` for texts; as `translations`."""
    # The offsets of the export are those in the bytes that it was sent.
    data = tf.constant(texts)
    both = tf.unstack(tf.cast(outputs["source_offsets"], tf.int32), axis=-1)
    moved = [replaced_offsets(data, tf.RaggedTensor.from_tensor(x)).to_tensor() for x in both]
    outputs = {**outputs, "source_offsets": tf.stack(moved, -1).numpy()}
    for row, hypotheses in enumerate(wanted):
        row_outputs = _of_row(outputs, row)
        match = _best_as(hypotheses, row_outputs["translation"])
        if match is None:
            yield f"row {row}: {row_outputs['translation']!r}"
            continue
        yield from _ends(row_outputs, match, cut[row], row)
        for side, tokens, offsets in (
            ("source", match.source_tokens, match.source_offsets),
            ("target", match.tokens, match.target_offsets),
        ):
            count = len(tokens)
            served_tokens = [token.decode() for token in row_outputs[f"{side}_tokens"][:count]]
            if served_tokens != tokens:
                yield f"row {row}: {side} tokens {served_tokens}, not {tokens}"
            if row_outputs[f"{side}_offsets"][:count].tolist() != [list(pair) for pair in offsets]:
                yield f"row {row}: {side}_offsets differ"
        yield from _weights(row_outputs, match, row)


def scores(outputs: Outputs, wanted: Sequence[Scored], cut: np.ndarray) -> Iterator[str]:
    """Compares outputs of `score`; as `translations`."""
    for row, scored in enumerate(wanted):
        log_prob, length = outputs["log_prob"][row], outputs["length"][row]
        if not _close(log_prob, scored.log_prob):
            yield f"row {row}: log_prob {log_prob}, not {scored.log_prob}"
        if length != len(scored.token_log_probs):
            yield f"row {row}: length {length}"
        if outputs["truncated"][row] != cut[row]:
            yield f"row {row}: truncated is {outputs['truncated'][row]}"


def _of_row(outputs: Outputs, row: int) -> dict[str, Any]:
    return {name: value[row] for name, value in outputs.items()}


def _ends(outputs: Outputs, match: Translation, cut: bool, row: int) -> Iterator[str]:
    if outputs["finished"] != match.finished:
        yield f"row {row}: finished is {outputs['finished']}"
    if outputs["truncated"] != (cut or not match.finished):
        yield f"row {row}: truncated is {outputs['truncated']}"


def _weights(outputs: Outputs, match: Translation, row: int) -> Iterator[str]:
    wanted = np.zeros_like(outputs["weights"])
    weights = np.zeros((0, 1)) if match.weights is None else match.weights
    height, width = weights.shape
    wanted[:height, :width] = weights
    if not np.allclose(outputs["weights"], wanted, atol=TOLERANCE):
        yield f"row {row}: weights differ"
    if (outputs["target_length"], outputs["source_length"]) != (height, width):
        yield f"row {row}: lengths differ from those of the weights"


def _best_as(hypotheses: Sequence[Translation], text: bytes) -> Translation | None:
    """The hypothesis with that text, if its score equals the best one's."""
    best = hypotheses[0].score
    equal = (x for x in hypotheses if _close(x.score, best) and x.text.encode() == text)
    return next(equal, None)


def _close(score: float, other: float) -> bool:
    return abs(score - other) <= TOLERANCE * max(1.0, abs(other))


TIMED_ROWS = (1, 32)
TIMED_WORDS = 20


@dataclass(frozen=True)
class Report:
    """The result of `examine`: sentences."""

    facts: list[str]  # about the export
    differences: list[str]  # from the translator in memory; empty for a correct export


def examine(graph: TranslationGraph, version: str | os.PathLike[str], limits: Limits) -> Report:
    """Reloads an export and compares it with the translator in memory.

    A copy of it is loaded in a new process that imports only tensorflow and tensorflow_text. There
    each signature is called with usual and unusual rows, with no rows, and with the warm-up
    requests. The arguments are those of `export`, and the folder that it returned.
    """
    version = Path(version)
    served = LimitedGraph(graph, limits)
    texts, targets = requests.probes(graph.source_text), requests.probes(graph.target_text)[::-1]
    comparisons = _comparisons(served, n_best_of(graph, limits), texts, targets)
    names = sorted(comparisons)
    compared = [request(name, texts, targets) for name in names]
    empty = [request(name, [], []) for name in names]
    asked = [*compared, *empty, *read_warmup(version)]
    # Requests to time: a row, many rows, and the longest row.
    words = requests.sentences(graph.source_text, [TIMED_WORDS] * max(TIMED_ROWS))
    inputs = [*(words[:count] for count in TIMED_ROWS), [max(texts, key=len)]]
    timed = [Request("serving_default", {"text": rows}) for rows in inputs]
    try:
        replies = requests.answers(version, asked, timed)
    except ValueError as error:
        return Report([], [str(error)])
    differences = [
        f"{query.signature}: {what}"
        for query, outputs in zip(asked, replies.outputs, strict=True)
        for what in form(outputs, len(query.inputs["text"]))
    ]
    if replies.signatures != names:
        differences.append(f"the signatures are {replies.signatures}")
    if gradients := count_nodes(version).gradients:
        differences.append(f"{gradients} nodes compute gradients, which no server calls")
    if not differences:
        differences = [
            f"{name}: {what}"
            for name, outputs in zip(names, replies.outputs, strict=False)
            for what in comparisons[name](outputs)
        ]
    return Report(_facts(version, replies, len(texts), served), differences)


def _comparisons(
    served: LimitedGraph, count: int, texts: list[bytes], targets: list[bytes]
) -> dict[str, Callable[[Outputs], Iterator[str]]]:
    """For each signature how its outputs for `texts` differ from those of the graph in memory.

    The targets are the translations for `score` and the prefixes for `complete`; `count` is N of
    `n_best`.
    """
    many = replace(served.decoding, n_best=count)
    # One draw is not the first of many; of a beam, others may be as good.
    single = replace(many, n_best=1) if many.sampling else many

    def hypotheses(rows: Iterable[Translation]) -> list[list[Translation]]:
        return [[best, *best.alternatives] for best in rows]

    cut = served.is_cut(tf.constant(texts)).numpy()
    ids_cut = served.read_ids(tf.constant(texts))[1].numpy()  # where no word is copied
    read = served.target_text.read_words(tf.constant(targets))
    target_cut, word_cut = read.cut.numpy(), read.word_cut.numpy()
    best = hypotheses(translate(served, texts, many))
    first = hypotheses(translate(served, texts, single)) if single != many else best
    greedy = hypotheses(translate(served, texts, many.greedy()))
    comparisons: dict[str, Callable[[Outputs], Iterator[str]]] = {
        "greedy": partial(translations, wanted=greedy, cut=cut),
        "n_best": partial(n_best, wanted=best, cut=cut),
        "score": partial(scores, wanted=score(served, texts, targets), cut=ids_cut | target_cut),
        "serving_default": partial(translations, wanted=first, cut=cut),
    }
    if served.model.has_alignment:
        comparisons["align"] = partial(align, wanted=first, cut=cut, texts=texts)
    if not served.target_text.reverse:
        completed = hypotheses(translate(served, texts, single, prefixes=targets))
        cut = cut | target_cut | word_cut
        comparisons["complete"] = partial(translations, wanted=completed, cut=cut)
    return comparisons


def _facts(version: Path, answers: Answers, rows: int, served: LimitedGraph) -> list[str]:
    size = sum(p.stat().st_size for p in version.rglob("*") if p.is_file())
    ops = operations(version)
    nodes = count_nodes(version)
    text_ops = sorted(TEXT_OPS.intersection(ops))
    facts = [
        f"Size: {size / 1e6:.1f} MB.",
        f"Signatures: {', '.join(answers.signatures)}.",
        f"Limits: it reads {served.source_texts[0].max_length} tokens of a "
        f"text and writes {served.decoding.max_length}, end symbols included.",
        f"Ops: {len(ops)} kinds, of TensorFlow Text {', '.join(text_ops) or 'none'}.",
        f"Nodes: {nodes.total}; of signatures, what they share counted for "
        "each: " + ", ".join(f"{name} {n}" for name, n in nodes.signatures.items()) + ".",
        f"Loaded in {answers.load_seconds:.2f} s by a new process with "
        "tensorflow and tensorflow_text only.",
    ]
    labels = [f"{n} rows of {TIMED_WORDS} words" for n in TIMED_ROWS]
    labels[0] = f"1 row of {TIMED_WORDS} words"
    for label, (first, *warm) in zip([*labels, "1 row of a megabyte"], answers.timed, strict=True):
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
        "installed (pip install tensorflow-serving-api)."
    )
    return facts
