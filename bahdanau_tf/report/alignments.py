"""The table of alignments: their error rates and their entropy.

Every model aligns the sentences with the references, not with its own
translations, so that all systems are compared on the same words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress

import numpy as np

from bahdanau_tf.evaluation import Links
from bahdanau_tf.evaluation import Table
from bahdanau_tf.evaluation import alignment_error_rate
from bahdanau_tf.evaluation import mean_entropy
from bahdanau_tf.evaluation.tables import NOTHING
from bahdanau_tf.evaluation.tables import Cell
from bahdanau_tf.experiments.results import OUTSIDE
from bahdanau_tf.experiments.results import Corpus
from bahdanau_tf.experiments.results import Results
from bahdanau_tf.text import WordTokenizer
from bahdanau_tf.translation import Translation
from bahdanau_tf.translator import Translator


def alignment_table(results: Results) -> Table:
    """Error rates and entropy of the alignments of each model."""
    rows: list[list[Cell]] = []
    for one in results.systems:
        cells: list[Cell] = ["no attention", *[NOTHING] * 6]
        if one.aligner:
            short = results.as_in_training(one)
            cells = _quality(one.aligner, results.test, short)
        if one.kind != OUTSIDE:
            rows.append([one.name, *cells])
    return Table(
        "alignments",
        "Error rates and entropy of alignments",
        [
            "system",
            "alignment error rate, all",
            "the diagonal's, all",
            "error rate, as long as in training",
            "the diagonal's, as long as in training",
            "entropy of α, nats",
            "of equal weights",
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
            "sentences. The entropy is the mean over target words, that of the "
            "diagonal is 0; its exponential is the number of source words "
            "that share the weight."
        ],
    )


def _quality(
    translator: Translator, corpus: Corpus, short: Sequence[bool] | None
) -> list[Cell]:
    """Error rates of all pairs, and of those as long as in training; entropy.

    There are no error rates for models of sub-words, since gold links are
    between words.
    """
    aligned = translator.align(corpus.sources, corpus.references)
    # A side's end symbol is no word.
    words = [x.weights[:-1, :-1] for x in aligned if x.weights is not None]
    entropy = mean_entropy(words)
    equal = mean_entropy([np.ones_like(one) for one in words])
    gold = corpus.alignments
    rates: list[Cell] = ["no gold"] * 4
    texts = (translator.source_text, translator.target_text)
    if gold and all(isinstance(text, WordTokenizer) for text in texts):
        rates = [*_error_rates(aligned, gold), NOTHING, NOTHING]
        if any(short := short or ()):
            rates[2:] = _error_rates(
                [*compress(aligned, short)], [*compress(gold, short)]
            )
    return [*rates, entropy, equal, math.exp(entropy)]


def _error_rates(
    aligned: Sequence[Translation], gold: Sequence[Links]
) -> list[Cell]:
    """AER of the model's links, and of the diagonal."""
    found = [one.hard_alignment for one in aligned]
    drawn = [one.diagonal_alignment for one in aligned]
    return [alignment_error_rate(links, gold) for links in (found, drawn)]
