"""How many pairs of a text are short enough to be trained on."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from bahdanau_tf.data.parallel import CHUNK, ParallelCorpus
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.text.tokenizer import Tokenizer

SAMPLE = 20_000  # pairs that are looked at; all of a text that has no more
MOST = 0.9  # the share of the pairs for which a limit is advised


def longer_sides(
    corpus: ParallelCorpus, source_text: Tokenizer, target_text: Tokenizer
) -> np.ndarray:
    """int64 [pairs]: the tokens of the longer side, 0 if a side has none.

    Of a large text it is a sample, evenly spread. The end symbol does not
    count.
    """
    rows = corpus.rows[:: -(-len(corpus) // SAMPLE)]
    lengths = []
    for first in range(0, len(rows), CHUNK):
        sides = corpus.read(rows[first : first + CHUNK])
        source, target = (
            text.tokenize(tf.constant(lines)).row_lengths().numpy() - 1
            for text, lines in zip((source_text, target_text), sides, strict=True)
        )
        longer = np.maximum(source, target)
        lengths.append(np.where(np.minimum(source, target) > 0, longer, 0))
    return np.concatenate(lengths)


def fitting(lengths: np.ndarray, pairs: int, max_length: int) -> str:
    """Says how many pairs fit, and what to do if many do not.

    Args:
        lengths: Those of `longer_sides`.
        pairs: Number of pairs of the text.
        max_length: As in `Batching`.
    """
    fit = int(np.count_nonzero((lengths > 0) & (lengths <= max_length)))
    count = f"{fit:,}"
    if len(lengths) < pairs:
        count = f"about {100 * fit / len(lengths):.1f} %"
    verb = "has" if count == "1" else "have"
    return (
        f"{count} of {amount(pairs, 'sentence pair')} {verb} 1 to "
        f"{max_length} tokens on both sides{advice(lengths, max_length)}"
    )


def advice(lengths: np.ndarray, max_length: int) -> str:
    """What helps if many pairs are too long, after "; "; "" if few are."""
    most = int(np.quantile(lengths, MOST, method="higher"))
    if most <= max_length:
        return ""
    return (
        f"; --max_length={-(-most // 10) * 10} holds {100 * MOST:.0f} % of "
        "the pairs but takes more memory and time; it is better to give a "
        "sentence in each line, not a paragraph"
    )
