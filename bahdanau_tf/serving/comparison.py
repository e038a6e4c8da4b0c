"""Compares the outputs of a served translator with those of one in memory.

Scores are equal if they differ by at most 1e-4 (relative for scores beyond 1).
Translations must be the same, unless the scores of the competing hypotheses are
equal in this sense.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bahdanau_tf.search.selections import ABSENT
from bahdanau_tf.serving.elsewhere import Outputs
from bahdanau_tf.text.rows import replaced_offsets
from bahdanau_tf.translation import Scored
from bahdanau_tf.translation import Translation

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


def translations(
    outputs: Outputs, wanted: Sequence[Sequence[Translation]], cut: np.ndarray
) -> Iterator[str]:
    """Compares outputs of `serving_default`, `greedy` or `complete`.

    Args:
        outputs: The outputs of the signature.
        wanted: For each row the hypotheses of the translator in memory, best
            first.
        cut: For each row whether it exceeds the limits.

    Yields:
        A sentence for each difference.
    """
    for row, hypotheses in enumerate(wanted):
        text, score = outputs["translation"][row], outputs["score"][row]
        if not _close(score, hypotheses[0].score):
            yield f"row {row}: score {score}, not {hypotheses[0].score}"
        match = _best_as(hypotheses, text)
        if match is None:
            yield f"row {row}: {text!r}, not {hypotheses[0].text!r}"
        else:
            found = {name: value[row] for name, value in outputs.items()}
            yield from _ends(found, match, cut[row], row)


def n_best(
    outputs: Outputs, wanted: Sequence[Sequence[Translation]], cut: np.ndarray
) -> Iterator[str]:
    """Compares outputs of `n_best`; as `translations`."""
    first = {
        "translation": outputs["translations"][:, 0],
        "score": outputs["scores"][:, 0],
        "finished": outputs["finished"][:, 0],
        "truncated": outputs["truncated"],
    }
    yield from translations(first, wanted, cut)
    count = outputs["scores"].shape[1]
    for row, hypotheses in enumerate(wanted):
        missing = [Translation("", score=ABSENT, finished=False)]
        missing *= count - len(hypotheses)
        ranked = [*hypotheses, *missing]
        for n, score in enumerate(outputs["scores"][row]):
            text = outputs["translations"][row, n]
            finished = outputs["finished"][row, n]
            if not _close(score, ranked[n].score):
                yield f"row {row}, {n}: score {score}, not {ranked[n].score}"
            # Hypotheses that tie with the last may be missing from the list.
            elif not _close(score, ranked[-1].score) and not any(
                (one.text.encode(), one.finished) == (text, finished)
                and _close(score, one.score)
                for one in ranked
            ):
                yield (
                    f"row {row}, {n}: {text!r}, finished {finished}, not "
                    f"{ranked[n].text!r}, {ranked[n].finished}"
                )


def align(
    outputs: Outputs,
    wanted: Sequence[Sequence[Translation]],
    cut: np.ndarray,
    texts: Sequence[bytes],
) -> Iterator[str]:
    """Compares outputs of `align` for texts; as `translations`."""
    # The export tells places in the bytes that it was given.
    data = tf.constant(texts)
    both = tf.unstack(tf.cast(outputs["source_offsets"], tf.int32), axis=-1)
    moved = [
        replaced_offsets(data, tf.RaggedTensor.from_tensor(one)).to_tensor()
        for one in both
    ]
    outputs = {**outputs, "source_offsets": tf.stack(moved, -1).numpy()}
    for row, hypotheses in enumerate(wanted):
        found = {name: value[row] for name, value in outputs.items()}
        match = _best_as(hypotheses, found["translation"])
        if match is None:
            yield f"row {row}: {found['translation']!r}"
            continue
        yield from _ends(found, match, cut[row], row)
        for side, tokens, offsets in (
            ("source", match.source_tokens, match.source_offsets),
            ("target", match.tokens, match.target_offsets),
        ):
            count = len(tokens)
            given = [one.decode() for one in found[f"{side}_tokens"][:count]]
            if given != tokens:
                yield f"row {row}: {side} tokens {given}, not {tokens}"
            if found[f"{side}_offsets"][:count].tolist() != [
                list(pair) for pair in offsets
            ]:
                yield f"row {row}: {side}_offsets differ"
        yield from _weights(found, match, row)


def scores(
    outputs: Outputs, wanted: Sequence[Scored], cut: np.ndarray
) -> Iterator[str]:
    """Compares outputs of `score`; as `translations`."""
    for row, one in enumerate(wanted):
        found = {name: value[row] for name, value in outputs.items()}
        if not _close(found["log_prob"], one.log_prob):
            yield (
                f"row {row}: log_prob {found['log_prob']}, not {one.log_prob}"
            )
        if found["length"] != len(one.token_log_probs):
            yield f"row {row}: length {found['length']}"
        if found["truncated"] != cut[row]:
            yield f"row {row}: truncated is {found['truncated']}"


def _ends(
    found: Outputs, match: Translation, cut: bool, row: int
) -> Iterator[str]:
    if found["finished"] != match.finished:
        yield f"row {row}: finished is {found['finished']}"
    if found["truncated"] != (cut or not match.finished):
        yield f"row {row}: truncated is {found['truncated']}"


def _weights(found: Outputs, match: Translation, row: int) -> Iterator[str]:
    wanted = np.zeros_like(found["weights"])
    weights = np.zeros((0, 1)) if match.weights is None else match.weights
    height, width = weights.shape
    wanted[:height, :width] = weights
    if not np.allclose(found["weights"], wanted, atol=TOLERANCE):
        yield f"row {row}: weights differ"
    if (found["target_length"], found["source_length"]) != (height, width):
        yield f"row {row}: lengths differ from those of the weights"


def _best_as(
    hypotheses: Sequence[Translation], text: bytes
) -> Translation | None:
    """The hypothesis with that text, if its score equals the best one's."""
    for one in hypotheses:
        near = _close(one.score, hypotheses[0].score)
        if near and one.text.encode() == text:
            return one
    return None


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= TOLERANCE * max(1.0, abs(other))
