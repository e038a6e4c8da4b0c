"""Writes the best model of --model_dir as a SavedModel for TensorFlow Serving.

The SavedModel takes strings and returns strings; beam search is inside, with
the beam size and penalties given here. It is then reloaded in a new process and
compared with the model; what is found goes to standard error, the folder to
standard output. The exit code is 1 if there is a difference.
"""

from __future__ import annotations

import dataclasses
import sys

from absl import flags as absl_flags

from bahdanau_tf.commands.model import define_model_flags
from bahdanau_tf.commands.model import define_search_flags
from bahdanau_tf.commands.model import load_translator
from bahdanau_tf.serving import Limits
from bahdanau_tf.serving import examine


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model_flags(flags)
    define_search_flags(flags)
    absl_flags.DEFINE_string(
        "export_dir",
        None,
        "base folder; the model goes to a numbered folder in it",
        flag_values=flags,
    )
    absl_flags.DEFINE_integer(
        "max_source_length",
        Limits.max_source_length,
        "tokens read of a sentence, end symbol included; the rest is cut",
        flag_values=flags,
    )
    absl_flags.DEFINE_integer(
        "max_target_length",
        Limits.max_target_length,
        "tokens of the longest translation, end symbol included",
        flag_values=flags,
    )
    absl_flags.DEFINE_bool(
        "half_weights",
        False,
        "whether weights are rounded to float16 and take half the room",
        flag_values=flags,
    )


def run(flags: absl_flags.FlagValues) -> int:
    """Exports."""
    if flags.export_dir is None:
        raise ValueError("--export_dir is missing")
    limits = Limits(flags.max_source_length, flags.max_target_length)
    translator = load_translator(flags)
    if flags.half_weights:
        translator.halve_weights()
    version = translator.export(flags.export_dir, **dataclasses.asdict(limits))
    print(version)
    report = examine(translator, version, limits)
    for fact in report.facts:
        print(fact, file=sys.stderr)
    for difference in report.differences:
        print(f"Differs: {difference}", file=sys.stderr)
    return 1 if report.differences else 0
