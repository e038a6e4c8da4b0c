"""Translates lines, in order: blank lines stay blank.

Reads --input or standard input, writes --output or standard output, in memory
that does not grow with the number of lines. Lines that the model could not
translate to their end are named on standard error.

--format=text writes a line for each line. With --n_best, or by --format=moses,
each hypothesis has a line, as Moses writes them: sentence number from 0 |||
translation ||| log-probability ||| score. --format=json writes for each line
an object with source, text, score, log_prob, finished and, with --n_best,
alternatives.

--alignments adds to the text ||| and the hard alignment, source-target token
numbers from 0 as in 0-0 1-2; in JSON also the tokens, their bytes in the
source, and the soft alignment: a row for each target token, a column for each
source token, both with the end symbol.

--prefixes names a file with a line for each line of the input: what its
translation must begin with, or nothing. The last word there is a whole word
for a model of words; for one of sub-words it may go on.
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import Group
from bahdanau_tf.flags.fields import check_files
from bahdanau_tf.flags.fields import check_output
from bahdanau_tf.flags.fields import define_strings
from bahdanau_tf.flags.lines import LINES
from bahdanau_tf.flags.lines import define_batches
from bahdanau_tf.flags.model import check_model
from bahdanau_tf.flags.model import define_model
from bahdanau_tf.flags.model import define_search

REQUIRED = ("model_dir",)


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model(flags)
    define_search(flags)
    define_strings(
        flags,
        "Files",
        {
            "input": "text to translate; a .gz too",
            "prefixes": "for each line of it what the translation begins with, "
            "or nothing; a .gz too",
            "output": "where the translations go; a .gz too. Until the end "
            "it is called .part",
        },
    )
    options: Group = {"flag_values": flags, "module_name": LINES}
    absl_flags.DEFINE_enum(
        "format",
        "text",
        ["text", "moses", "json"],
        "text, Moses' n-best list, or a JSON object a line",
        **options,
    )
    absl_flags.DEFINE_bool(
        "alignments",
        False,
        "whether to write which source token each target token stands for",
        **options,
    )
    define_batches(flags)
    absl_flags.DEFINE_integer(
        "max_source_length",
        None,
        "name longer lines on standard error; in tokens of the model; if not "
        "given, the longest source in its training, where its folder says",
        lower_bound=1,
        **options,
    )
    absl_flags.DEFINE_bool(
        "split_long",
        False,
        "whether lines longer than --max_source_length, or than its default, "
        "are translated sentence by sentence",
        **options,
    )


def check(flags: absl_flags.FlagValues) -> None:
    """Refuses what can be seen to be wrong before a model is loaded."""
    check_model(flags)
    check_files(flags, "input", "prefixes", "dictionary")
    check_output("output", flags.output)
