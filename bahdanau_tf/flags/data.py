"""Lists the public corpora, or downloads one of them.

    bahdanau-tf data list
    bahdanau-tf data get NAME

After `get` the folder NAME in --data_dir has a file SPLIT.LANGUAGE for each
side of each split, such as train.en, which `train` is given by name:

    bahdanau-tf train --data_dir=.../NAME --model_dir=model
        --train_source=train.en --train_target=train.fr

A recipe for a corpus names them itself. If a download breaks off, running the
command again continues it. A file that was downloaded by hand is used if it is
in --data_dir.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags as absl_flags

from bahdanau_tf.corpora.public.registry import CORPORA
from bahdanau_tf.flags.fields import define_strings
from bahdanau_tf.flags.train import DATA_VARIABLE

ARGUMENTS = (("list", "get"), tuple(CORPORA))


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    text = (
        "folder in which a folder for the corpus is made; default: the "
        f"environment variable {DATA_VARIABLE}, else the current folder"
    )
    define_strings(flags, "Files", {"data_dir": text})


def check(flags: absl_flags.FlagValues, arguments: Sequence[str]) -> None:
    """Raises unless the arguments are "list", or "get" and a name."""
    del flags
    if list(arguments) != ["list"] and [*arguments[:-1]] != ["get"]:
        said = f"the command is {' '.join(['data', *arguments])!r}"
        raise ValueError(f"{said}, wanted 'data list' or 'data get NAME'")
