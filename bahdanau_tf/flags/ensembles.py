"""Scores single models and ensembles: Table 1 of Sutskever et al. 2014.

--reversed names models of one kind, with different seeds, that read the source
from its last word to its first (in the paper, deep LSTMs); --forward names a
model that reads it from left to right. Rows that need more models than are
given show "not run".
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import check_files, check_open, define_fields, define_strings
from bahdanau_tf.flags.model import (
    MODEL,
    SEARCH,
    check_folders,
    check_search,
    define_average,
    define_modules,
)
from bahdanau_tf.flags.scores import define_bleu
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import SAMPLING

REQUIRED = ("source", "reference")


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    for name, text in (
        ("forward", "folders of models that read the source as it is written"),
        ("reversed", "folders of models that read the source reversed"),
    ):
        absl_flags.DEFINE_list(
            name,
            [],
            f"{text}, separated by commas",
            flag_values=flags,
            module_name=MODEL,
        )
    define_modules(flags, MODEL)
    define_average(flags)
    define_strings(
        flags,
        "Files",
        {
            "source": "text to translate",
            "reference": "its reference translation",
        },
    )
    define_bleu(flags)
    # Each row sets its own beam size, and only the best translations count.
    without = ("beam_size", "n_best", *SAMPLING)
    define_fields(flags, SEARCH, Decoding, without)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    if not flags.forward and not flags.reversed:
        raise ValueError("--forward or --reversed is missing")
    for name in ("forward", "reversed"):
        check_folders(name, getattr(flags, name))
    check_open("stdout", "standard output")
    check_files(flags, "source", "reference")
    check_search(flags)
