"""Aligns given translations word by word: a line of links for each pair.

The model is given each line of --target beside that of --source, and looks
for each target token at the source token with the largest weight. --output or
standard output gets source-target token numbers from 0, as in 0-0 1-2 (the
form of Pharaoh); an empty line where a side has no words.

Tokens are those of the model: of a model of words these and punctuation, of
one of sub-words pieces. --format=json has them, with their bytes in the texts
and the soft alignment: an object a line, as of `translate --alignments`.
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import check_files
from bahdanau_tf.flags.fields import check_output
from bahdanau_tf.flags.fields import define_strings
from bahdanau_tf.flags.lines import LINES
from bahdanau_tf.flags.lines import define_batches
from bahdanau_tf.flags.model import check_model
from bahdanau_tf.flags.model import define_model

REQUIRED = ("model_dir", "source", "target")


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model(flags)
    define_strings(
        flags,
        "Files",
        {
            "source": "text that the model translates; a .gz too",
            "target": "its translation; a .gz too",
            "output": "where the links go; a .gz too. Until the end it is "
            "called .part",
        },
    )
    absl_flags.DEFINE_enum(
        "format",
        "text",
        ["text", "json"],
        "links, or a JSON object a line",
        flag_values=flags,
        module_name=LINES,
    )
    define_batches(flags)


def check(flags: absl_flags.FlagValues) -> None:
    """Refuses what can be seen to be wrong before a model is loaded."""
    check_model(flags)
    check_files(flags, "source", "target")
    check_output("output", flags.output)
