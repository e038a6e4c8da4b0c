"""Aligns given translations word by word: a line of links for each pair.

The model reads each line of --source with its translation in --target, and
links each target token to the source token with the largest weight. Links are
written to --output or standard output as source-target token numbers from 0,
as in 0-0 1-2 (Pharaoh's format); a pair with an empty side gets an empty line.

Tokens are those of the model: words and punctuation, or sub-words.
--format=json writes one object per line, with the tokens, their byte offsets in
the texts and the soft alignment, as `translate --format=json --alignments`.
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import check_files, check_output, define_strings
from bahdanau_tf.flags.lines import LINES, define_batches
from bahdanau_tf.flags.model import check_model, define_model

REQUIRED = ("model_dir", "source", "target")


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model(flags)
    define_strings(
        flags,
        "Files",
        {
            "source": "text that the model translates; may be .gz",
            "target": "its translation; may be .gz",
            "output": "file for the links; may be .gz; it has the ending .part "
            "until it is complete",
        },
    )
    absl_flags.DEFINE_enum(
        "format",
        "text",
        ["text", "json"],
        "links, or one JSON object per line",
        flag_values=flags,
        module_name=LINES,
    )
    define_batches(flags)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_model(flags)
    read = check_files(flags, "source", "target")
    check_output("output", flags.output, read)
