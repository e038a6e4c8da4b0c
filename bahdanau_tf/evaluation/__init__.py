"""Scores of translations and of alignments."""

from bahdanau_tf.evaluation.alignments import (
    Estimate as Estimate,
    Links as Links,
    alignment_error_rate as alignment_error_rate,
    diagonal_links as diagonal_links,
    format_pharaoh as format_pharaoh,
    hard_links as hard_links,
    ibm_model_1 as ibm_model_1,
    mean_entropy as mean_entropy,
    parse_pharaoh as parse_pharaoh,
    read_gold as read_gold,
    read_pharaoh as read_pharaoh,
    score_alignments as score_alignments,
    write_pharaoh as write_pharaoh,
)
from bahdanau_tf.evaluation.scores import (
    METRICS as METRICS,
    Comparison as Comparison,
    Score as Score,
    ScoreOptions as ScoreOptions,
    bleu as bleu,
    bleu_tokenizer as bleu_tokenizer,
    chrf as chrf,
    compare as compare,
    right_answers as right_answers,
    score_corpus as score_corpus,
)
from bahdanau_tf.evaluation.subsets import (
    LengthBin as LengthBin,
    References as References,
    bin_title as bin_title,
    bleu_by_length as bleu_by_length,
    bleu_by_rank as bleu_by_rank,
    known_sentences as known_sentences,
    length_bins as length_bins,
    length_rows as length_rows,
    select as select,
    without_unknown_words as without_unknown_words,
)
from bahdanau_tf.evaluation.tables import Table as Table
from bahdanau_tf.text.script import (
    has_blanks as has_blanks,
    is_tokenized as is_tokenized,
    script as script,
)
