"""Scores of translations and of alignments."""

from __future__ import annotations

from bahdanau_tf.evaluation.alignments import (
    Links,
    alignment_error_rate,
    diagonal_links,
    format_pharaoh,
    hard_links,
    mean_entropy,
    parse_pharaoh,
    read_pharaoh,
    write_pharaoh,
)
from bahdanau_tf.evaluation.scores import (
    METRICS,
    Comparison,
    Score,
    ScoreOptions,
    bleu,
    bleu_tokenizer,
    chrf,
    compare,
    score_corpus,
)
from bahdanau_tf.evaluation.subsets import (
    LengthBin,
    References,
    bin_title,
    bleu_by_length,
    bleu_by_rank,
    known_sentences,
    length_bins,
    length_rows,
    select,
    without_unknown_words,
)
from bahdanau_tf.evaluation.tables import Table
from bahdanau_tf.text.script import has_blanks, is_tokenized, script

__all__ = [
    "METRICS",
    "Comparison",
    "LengthBin",
    "Links",
    "References",
    "Score",
    "ScoreOptions",
    "Table",
    "alignment_error_rate",
    "bin_title",
    "bleu",
    "bleu_by_length",
    "bleu_by_rank",
    "bleu_tokenizer",
    "chrf",
    "compare",
    "diagonal_links",
    "format_pharaoh",
    "hard_links",
    "has_blanks",
    "is_tokenized",
    "known_sentences",
    "length_bins",
    "length_rows",
    "mean_entropy",
    "parse_pharaoh",
    "read_pharaoh",
    "score_corpus",
    "script",
    "select",
    "without_unknown_words",
    "write_pharaoh",
]
