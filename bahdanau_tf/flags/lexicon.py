"""Learns a lexicon from the attention of a trained model.

For each source word it keeps the target words that attend to it most, in the
pairs of --source and --target; the training pairs suit best. Pairs of more than
50 tokens are left out. The lexicon is written beside the best model of
--model_dir as lexicon.npz, where translate, evaluate and export find it for
--shortlist: they then score only the first words of the vocabulary and those of
the lexicon.
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import Group, check_files, define_strings
from bahdanau_tf.flags.model import define_modules, define_threads

REQUIRED = ("model_dir", "source", "target")


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_strings(
        flags,
        "Files",
        {
            "model_dir": "folder of a trained model with attention",
            "source": "text that the model translates",
            "target": "its translation",
        },
    )
    options: Group = {"flag_values": flags, "module_name": "Lexicon"}
    absl_flags.DEFINE_integer(
        "words",
        10,
        "number of target words for each source word",
        lower_bound=1,
        upper_bound=10_000,
        **options,
    )
    absl_flags.DEFINE_integer(
        "frequent",
        2000,
        "number of first words of the target vocabulary that every sentence "
        "may use, special symbols included, and besides them the bytes of a "
        "sub-word vocabulary; more are slower and closer to the whole "
        "vocabulary",
        lower_bound=1,
        **options,
    )
    define_modules(flags, "Lexicon")
    define_threads(flags, "Lexicon")


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_files(flags, "source", "target")
