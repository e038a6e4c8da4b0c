"""Exports the best model as a SavedModel, reloads it and compares both."""

from __future__ import annotations

import dataclasses
import sys

from absl import flags as absl_flags

from bahdanau_tf.commands.common.model import load_translator
from bahdanau_tf.progress import StatusLine
from bahdanau_tf.serving import Limits
from bahdanau_tf.serving import examine


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    limits = Limits(flags.max_source_length, flags.max_target_length)
    translator = load_translator(flags)
    if flags.half_weights:
        translator.halve_weights()
    version = translator.export(flags.export_dir, **dataclasses.asdict(limits))
    StatusLine().note(f"written, and compared with the model now: {version}")
    report = examine(translator.graph, version, limits)
    for fact in report.facts:
        print(fact, file=sys.stderr)
    for difference in report.differences:
        print(f"Differs: {difference}", file=sys.stderr)
    if report.differences:
        return 1
    print(version)
    return 0
