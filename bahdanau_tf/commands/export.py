"""Makes a SavedModel of the best model; one that equals it is published."""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.commands.common.model import load_translator
from bahdanau_tf.serving import Limits, examine, publish, written
from bahdanau_tf.system.terminal import StatusLine


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    limits = Limits(flags.max_source_length, flags.max_target_length)
    translator = load_translator(flags)
    if flags.half_weights:
        translator.halve_weights()
    with written(translator.graph, flags.export_dir, limits) as folder:
        StatusLine().note("written, and compared with the model now")
        report = examine(translator.graph, folder, limits)
        differences = [f"Differs: {one}" for one in report.differences]
        for said in (*report.facts, *differences):
            StatusLine().note(said)
        if report.differences:
            return 1
        print(publish(folder, flags.export_dir))
    return 0
