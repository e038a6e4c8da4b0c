"""Ranks n-best lists of any system again with a model.

Reads lists in Moses' format from --input or standard input,

    sentence number from 0 ||| hypothesis ||| features ||| score

and writes them, best first, to --output or standard output, with the model's
log p(y | x) as an additional feature and (1 - w) score + w log p as score. The
model reads sources and hypotheses as they are: they should look like the text
it was trained on.

w is --weight; with --dev_source, --dev_input and --dev_reference it is the one
of 0, 0.01, ..., 1 with the best BLEU on these, counted by --tokenize.
"""

from __future__ import annotations

import math

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import Group, check_files, check_output, define_strings, refuse
from bahdanau_tf.flags.model import check_model, define_model
from bahdanau_tf.flags.scores import define_scores

REQUIRED = ("model_dir", "source")
_DEV = ("dev_source", "dev_input", "dev_reference")


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model(flags)
    define_strings(
        flags,
        "Files",
        {
            "source": "the sentences that the lists translate",
            "input": "n-best lists; may be .gz",
            "output": "file for the ranked lists; may be .gz; it has the "
            "ending .part until it is complete",
            "dev_source": "sentences on which the weight is chosen",
            "dev_input": "their n-best lists",
            "dev_reference": "their reference translations",
        },
    )
    options: Group = {"flag_values": flags, "module_name": "Lists"}
    absl_flags.DEFINE_float(
        "weight",
        None,
        "weight of the model's score; default 0.5, the plain average, or chosen on the dev set",
        lower_bound=0,
        upper_bound=1,
        **options,
    )
    absl_flags.DEFINE_enum(
        "format",
        "moses",
        ["moses", "text"],
        "lists in Moses' format, or only the best hypothesis of each sentence",
        **options,
    )
    define_scores(flags)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    given = [name for name in _DEV if flags[name].value is not None]
    if given and len(given) < len(_DEV):
        missing = ", ".join(f"--{name}" for name in _DEV if name not in given)
        raise ValueError(f"--{given[0]} is given, but {missing} missing")
    if given and flags.weight is not None:
        raise ValueError(f"--weight and --{given[0]}: wanted one of them")
    if flags.weight is not None and math.isnan(flags.weight):
        raise ValueError("--weight is nan, wanted 0 to 1")
    if not given:
        refuse(flags, ["tokenize", "ignore_case", "nfc"], "without --dev_reference")
    check_model(flags)
    read = check_files(flags, "source", "input", *_DEV)
    check_output("output", flags.output, read)
