"""Makes a SavedModel of the best model; one that equals it is published."""

from __future__ import annotations

import sys

from absl import flags as absl_flags

from bahdanau_tf.commands.common.model import load_translator
from bahdanau_tf.progress import StatusLine
from bahdanau_tf.serving import Limits
from bahdanau_tf.serving import examine
from bahdanau_tf.serving import publish
from bahdanau_tf.serving import written


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    limits = Limits(flags.max_source_length, flags.max_target_length)
    translator = load_translator(flags)
    if flags.half_weights:
        translator.halve_weights()
    with written(translator.graph, flags.export_dir, limits) as folder:
        StatusLine().note("written, and compared with the model now")
        report = examine(translator.graph, folder, limits)
        for fact in report.facts:
            print(fact, file=sys.stderr)
        for difference in report.differences:
            print(f"Differs: {difference}", file=sys.stderr)
        if report.differences:
            return 1
        print(publish(folder, flags.export_dir))
    return 0
