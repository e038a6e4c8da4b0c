"""Scores a model, and other systems' output, against references.

With --model_dir the lines of --source are translated. Each
--hypotheses=NAME=FILE, which may be repeated, is another system's output. BLEU
and chrF are sacreBLEU's, printed with signatures. Unless --tokenize is given,
BLEU uses the tokenizer that fits the script of the references: 13a for text
with blanks between words, zh for Chinese, ja-mecab for Japanese if it is
installed, none for other text without blanks that is tokenized, and char for
Japanese without ja-mecab, for Thai and for other scripts without blanks.

Several systems make a table: BLEU with the margin of its 95 % bootstrap
interval, chrF2, and p, the probability of a difference from the first row as
large as this by chance (paired bootstrap). With --source there is BLEU by
source length, in tokens of the model or, without one, words between spaces;
with a model also BLEU of the sentences that have no word unknown to it, in
source or reference. The paper forbids unknown words there: --unknown=forbid.
"""

from __future__ import annotations

import os

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import (
    check_apart,
    check_file,
    check_files,
    check_open,
    check_output,
    define_strings,
    refuse,
)
from bahdanau_tf.flags.model import check_model, define_model, define_search, refuse_without_model
from bahdanau_tf.flags.scores import define_scores

REQUIRED = ("reference",)


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model(flags)
    define_search(flags, without=("n_best",))
    define_strings(
        flags,
        "Files",
        {
            "source": "text to translate",
            "reference": "its reference translation",
            "output": "file for the model's translations; may be .gz; it has "
            "the ending .part until it is complete",
        },
    )
    absl_flags.DEFINE_multi_string(
        "hypotheses",
        None,
        "another system's translations, as FILE or NAME=FILE; may be repeated",
        flag_values=flags,
        module_name="Files",
    )
    define_scores(flags)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_open("stdout", "standard output")
    read = check_files(flags, "source", "reference", "dictionary")
    if flags.source is None and not flags.hypotheses:
        raise ValueError("--source (with --model_dir) or --hypotheses is missing")
    if flags.source is None and flags.model_dir:
        raise ValueError("--source is missing, the text for --model_dir")
    for given in flags.hypotheses or []:
        _, path = name_and_path(given)
        check_file("hypotheses", path)
        read.append(("--hypotheses", path))
    check_output("output", flags.output, read)
    if flags.source is not None:
        text = ("--source", flags.source)
        check_apart("--reference", flags.reference, [text])
    if flags.model_dir or not flags.hypotheses:
        check_model(flags)
        return
    refuse(flags, ["output"], "without --model_dir")
    refuse_without_model(flags)


def name_and_path(given: str) -> tuple[str, str]:
    """Reads NAME=FILE, or FILE, which may exist with a = in its name."""
    name, equals, path = given.partition("=")
    if equals and name and not os.path.exists(given):
        return name, path
    return os.path.basename(given), given
