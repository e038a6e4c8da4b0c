"""Scores of translations and of alignments."""

from __future__ import annotations

from bahdanau_tf.evaluation.alignments import Links
from bahdanau_tf.evaluation.alignments import alignment_error_rate
from bahdanau_tf.evaluation.alignments import diagonal_links
from bahdanau_tf.evaluation.alignments import format_pharaoh
from bahdanau_tf.evaluation.alignments import hard_links
from bahdanau_tf.evaluation.alignments import mean_entropy
from bahdanau_tf.evaluation.alignments import parse_pharaoh
from bahdanau_tf.evaluation.alignments import read_pharaoh
from bahdanau_tf.evaluation.alignments import write_pharaoh
from bahdanau_tf.evaluation.measure import bleu_tokenizer
from bahdanau_tf.evaluation.measure import has_blanks
from bahdanau_tf.evaluation.measure import is_tokenized
from bahdanau_tf.evaluation.measure import script
from bahdanau_tf.evaluation.references import References
from bahdanau_tf.evaluation.scores import Comparison
from bahdanau_tf.evaluation.scores import Score
from bahdanau_tf.evaluation.scores import bleu
from bahdanau_tf.evaluation.scores import chrf
from bahdanau_tf.evaluation.scores import compare
from bahdanau_tf.evaluation.subsets import LengthBin
from bahdanau_tf.evaluation.subsets import bin_title
from bahdanau_tf.evaluation.subsets import bleu_by_length
from bahdanau_tf.evaluation.subsets import bleu_by_rank
from bahdanau_tf.evaluation.subsets import known_sentences
from bahdanau_tf.evaluation.subsets import length_bins
from bahdanau_tf.evaluation.subsets import length_rows
from bahdanau_tf.evaluation.subsets import select
from bahdanau_tf.evaluation.subsets import without_unknown_words
from bahdanau_tf.evaluation.tables import Table

__all__ = [
    "Comparison",
    "LengthBin",
    "Links",
    "References",
    "Score",
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
    "script",
    "select",
    "without_unknown_words",
    "write_pharaoh",
]
