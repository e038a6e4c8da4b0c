"""How good and how sharp alignments are.

The alignment of a sentence and its reference is the model's while it is given
the reference word by word, so that systems are judged on the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.evaluation import Links
from bahdanau_tf.evaluation import alignment_error_rate
from bahdanau_tf.report.systems import Corpus
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.translator import Translator


class ErrorRates(NamedTuple):
    """AER against the gold alignment, and what it takes no model to reach.

    Attributes:
        model: Of the model's links.
        diagonal: Of those of `diagonal_links`.
    """

    model: float
    diagonal: float


class AlignmentQuality(NamedTuple):
    """What the alignments of a model are like.

    Attributes:
        all: Error rates; None without a gold alignment, or where the model
            reads sub-words, which the gold does not know.
        short: Those of the sentences as long as in training; None likewise,
            and where there are none or it is not known which they are.
        entropy: Mean of H(α_i) = -Σ_j α_ij ln α_ij over the target words.
    """

    all: ErrorRates | None
    short: ErrorRates | None
    entropy: float


def alignment_quality(
    translator: Translator, corpus: Corpus, short: Sequence[bool] | None
) -> AlignmentQuality:
    """Judges a model's alignments of given sentence pairs.

    Args:
        translator: A model with attention.
        corpus: The pairs.
        short: Which of them are as long as in training; None if that is not
            known.

    Returns:
        `AlignmentQuality`.

    Raises:
        ValueError: Gold links and pairs differ in number.
    """
    weights = align(translator, corpus.sources, corpus.references)
    entropy = mean_entropy(weights)
    texts = (translator.source_text, translator.target_text)
    by_word = all(isinstance(text, WordTokenizer) for text in texts)
    if corpus.alignments is None or not by_word:
        return AlignmentQuality(None, None, entropy)
    kept = [place for place, is_short in enumerate(short or []) if is_short]
    return AlignmentQuality(
        _error_rates(weights, corpus.alignments),
        _error_rates(
            [weights[place] for place in kept],
            [corpus.alignments[place] for place in kept],
        )
        if kept
        else None,
        entropy,
    )


def _error_rates(
    weights: Sequence[np.ndarray], gold: Sequence[Links]
) -> ErrorRates:
    found = [hard_links(one) for one in weights]
    drawn = [diagonal_links(*one.shape) for one in weights]
    return ErrorRates(
        alignment_error_rate(found, gold), alignment_error_rate(drawn, gold)
    )


def diagonal_links(target_length: int, source_length: int) -> Links:
    """Links word i of T_y to the source word at the same share of T_x.

    That is word ⌊(i + 1/2) T_x / T_y⌋, counted from 0, whatever the words.
    """
    if not source_length:
        return frozenset()
    return frozenset(
        ((2 * i + 1) * source_length // (2 * target_length), i)
        for i in range(target_length)
    )


def hard_links(weights: np.ndarray) -> Links:
    """The source word with the largest weight, for each target word.

    Args:
        weights: α, float [T_y, T_x], end symbols left out.
    """
    if not weights.size:
        return frozenset()
    return frozenset(
        (int(source), target)
        for target, source in enumerate(weights.argmax(axis=1))
    )


def mean_entropy(weights: Sequence[np.ndarray]) -> float:
    """Computes the mean of H(α_i) = -Σ_j α_ij ln α_ij, in nats.

    Args:
        weights: α of each sentence, float [T_y, T_x]; each row is made a
            distribution over the words.
    """
    total = rows = 0.0
    for one in weights:
        alpha = one / np.maximum(one.sum(axis=1, keepdims=True), 1e-30)
        total -= float(np.sum(alpha * np.log(np.maximum(alpha, 1e-30))))
        rows += len(one)
    return total / max(rows, 1.0)


def align(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    batch_size: int = 64,
) -> list[np.ndarray]:
    """Aligns given sentence pairs: α while the model is given the target.

    Args:
        translator: A model with attention.
        sources: The sentences.
        targets: A translation of each.
        batch_size: Pairs at once, like lengths together.

    Returns:
        For each pair float [T_y, T_x] between the tokens, in the order of the
        texts, end symbols left out.
    """
    run = tf.function(
        lambda source, target: (
            translator.model.hidden({"source": source, "target": target})[
                1
            ].weights
        ),
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2,
        autograph=False,
    )
    order = sorted(range(len(sources)), key=lambda place: len(targets[place]))
    found: dict[int, np.ndarray] = {}
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        rows = [
            text.tokenize(tf.constant([lines[place] for place in places]))
            for text, lines in (
                (translator.source_text, sources),
                (translator.target_text, targets),
            )
        ]
        weights = run(*(row.to_tensor() for row in rows)).numpy()
        lengths = [(row.row_lengths() - 1).numpy().tolist() for row in rows]
        for place, one, x, y in zip(places, weights, *lengths, strict=True):
            found[place] = _in_text_order(one[:y, :x], translator)
    return [found[place] for place in range(len(sources))]


def _in_text_order(weights: np.ndarray, translator: Translator) -> Any:
    if translator.source_text.reverse:
        weights = weights[:, ::-1]
    return weights[::-1] if translator.target_text.reverse else weights
