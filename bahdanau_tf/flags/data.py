"""Lists the public corpora that can be had, or gets one of them.

bahdanau-tf data list
bahdanau-tf data get NAME

After `get` the folder NAME in --data_dir has a file SPLIT.LANGUAGE for each
side of each split, such as train.en; `bahdanau-tf train --data_dir=.../NAME`
finds them. A download that broke off goes on when the command is run again. A
file fetched by hand is used if it lies in --data_dir.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import define_strings
from bahdanau_tf.flags.train import DATA_VARIABLE

TAKES_ARGUMENTS = True


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    text = (
        "folder in which those of the corpora are made; the environment "
        f"variable {DATA_VARIABLE} says the same; else the current folder"
    )
    define_strings(flags, "Files", {"data_dir": text})


def check(flags: absl_flags.FlagValues, arguments: Sequence[str]) -> None:
    """Refuses what is neither to list nor to get."""
    del flags
    if list(arguments) != ["list"] and [*arguments[:-1]] != ["get"]:
        raise ValueError(
            f"{' '.join(arguments) or 'nothing'} given, wanted list, or get "
            "and a name"
        )
