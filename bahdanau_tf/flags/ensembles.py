"""Scores single models and ensembles: Table 1 of Sutskever et al. 2014.

--reversed names models of one kind, with different seeds, that read the source
from its last word to its first (in the paper, deep LSTMs); --forward one that
reads it as it is. Rows with more models than there are say "not run".
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import check_files
from bahdanau_tf.flags.fields import define_fields
from bahdanau_tf.flags.fields import define_strings
from bahdanau_tf.flags.model import MODEL
from bahdanau_tf.flags.model import SEARCH
from bahdanau_tf.flags.model import check_search
from bahdanau_tf.flags.model import define_average
from bahdanau_tf.flags.scores import define_tokenize
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import SAMPLING

REQUIRED = ("source", "reference")


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    for name, text in (
        ("forward", "folder of a model that reads the source as it is"),
        ("reversed", "folders of models, with commas between"),
    ):
        absl_flags.DEFINE_list(
            name, [], text, flag_values=flags, module_name=MODEL
        )
    define_average(flags)
    define_strings(
        flags,
        "Files",
        {
            "source": "text to translate",
            "reference": "its translation by hand",
        },
    )
    define_tokenize(flags)
    # Each row has its beam, and is scored by its best translations.
    without = ("beam_size", "n_best", *SAMPLING)
    define_fields(flags, SEARCH, Decoding, without)


def check(flags: absl_flags.FlagValues) -> None:
    """Refuses what can be seen to be wrong before a model is loaded."""
    if not flags.forward and not flags.reversed:
        raise ValueError("--forward or --reversed is missing")
    for name in ("forward", "reversed"):
        if "" in getattr(flags, name):
            raise ValueError(f"--{name} is empty, or has an empty part")
    check_files(flags, "source", "reference")
    check_search(flags)
