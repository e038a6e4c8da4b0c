"""The table of alignments: their error rates and their entropy.

Every model aligns the sentences with the references, not with its own
translations, so that all systems are compared on the same words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
import tensorflow as tf

from bahdanau_tf.evaluation import Links
from bahdanau_tf.evaluation import alignment_error_rate
from bahdanau_tf.evaluation.alignments import diagonal_links
from bahdanau_tf.evaluation.alignments import hard_links
from bahdanau_tf.evaluation.alignments import mean_entropy
from bahdanau_tf.report.document import NOTHING
from bahdanau_tf.report.document import Cell
from bahdanau_tf.report.document import Table
from bahdanau_tf.report.results import OUTSIDE
from bahdanau_tf.report.results import Corpus
from bahdanau_tf.report.results import Results
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.translator import Translator


def alignment_table(results: Results) -> Table:
    """Error rates and entropy of the alignments of each model."""
    rows: list[list[Cell]] = []
    for one in results.systems:
        cells: list[Cell] = ["no attention", *[NOTHING] * 5]
        if one.aligner:
            short = results.as_in_training(one)
            cells = _quality(one.aligner, results.test, short)
        if one.kind != OUTSIDE:
            rows.append([one.name, *cells])
    return Table(
        "alignments",
        "Alignments beside the gold ones",
        [
            "system",
            "alignment error rate, all",
            "the diagonal's, all",
            "error rate, as long as in training",
            "the diagonal's, as long as in training",
            "entropy of α, nats",
            "source words looked at",
        ],
        rows,
        [
            "Each model is given the reference word by word; a link goes from "
            "a target word to the source word with the largest weight. Error "
            "rates are from 0, the best, to 1. The diagonal is a baseline that "
            "looks at no word: it links each target word to the source word at "
            "the same relative position. The rates “as long as in training” "
            "are those of the sentences no longer than the system's training "
            "sentences. The entropy is the mean over target words; its "
            "exponential is the number of source words that share the weight."
        ],
    )


def _quality(
    translator: Translator, corpus: Corpus, short: Sequence[bool] | None
) -> list[Cell]:
    """Error rates of all pairs, and of those as long as in training; entropy.

    There are no error rates for models of sub-words, since gold links are
    between words.
    """
    weights = align(translator, corpus.sources, corpus.references)
    entropy, gold = mean_entropy(weights), corpus.alignments
    rates: list[Cell] = ["no gold"] * 4
    texts = (translator.source_text, translator.target_text)
    if gold and all(isinstance(text, WordTokenizer) for text in texts):
        rates = [*_error_rates(weights, gold), NOTHING, NOTHING]
        if any(short := short or ()):
            rates[2:] = _error_rates(
                [*compress(weights, short)], [*compress(gold, short)]
            )
    return [*rates, entropy, math.exp(entropy)]


def _error_rates(
    weights: Sequence[np.ndarray], gold: Sequence[Links]
) -> list[Cell]:
    """AER of the model's links, and of the diagonal."""
    found = [hard_links(one) for one in weights]
    drawn = [diagonal_links(*one.shape) for one in weights]
    return [alignment_error_rate(links, gold) for links in (found, drawn)]


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
        lambda source, target: translator.model.features(
            {"source": source, "target": target}
        )[1],
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
