"""Writes the best model of --model_dir as a SavedModel for TensorFlow Serving.

The SavedModel takes strings and returns strings; beam search is inside, with
the beam size and penalties given here.
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.commands.model import define_model_flags
from bahdanau_tf.commands.model import load_translator


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model_flags(flags)
    absl_flags.DEFINE_string(
        "export_dir",
        None,
        "base folder; the model goes to a numbered folder in it",
        flag_values=flags,
    )


def run(flags: absl_flags.FlagValues) -> int:
    """Exports."""
    if flags.export_dir is None:
        raise ValueError("--export_dir is missing")
    print(load_translator(flags).export(flags.export_dir))
    return 0
