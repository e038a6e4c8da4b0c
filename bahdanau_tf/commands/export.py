"""Writes the best model of --model_dir as a SavedModel for TensorFlow Serving.

The SavedModel takes strings and returns strings; it includes beam search, with
the beam size and penalties given here. It is reloaded in a new process and
compared with the model, before it gets its number, so no server sees one that
differs. The results are written to standard error, the folder to standard
output. If there is a difference, the exit code is 1, and nothing is exported.
"""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.commands.files import load_translator
from bahdanau_tf.commands.flags import (
    Group,
    check_apart_from_models,
    check_files,
    check_folder,
    check_model,
    define_model,
    define_search,
    define_strings,
)
from bahdanau_tf.system.terminal import StatusLine

REQUIRED = ("model_dir", "export_dir")
GROUP = "SavedModel"


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_model(flags)
    define_search(flags)
    text = "base folder; the model is written to a numbered folder in it"
    define_strings(flags, GROUP, {"export_dir": text})
    options: Group = {"flag_values": flags, "module_name": GROUP}
    for name, text in (
        (
            "max_source_length",
            "number of tokens read of a sentence, end symbol included; the rest is cut off",
        ),
        (
            "max_target_length",
            "number of tokens of the longest translation, end symbol included",
        ),
    ):
        absl_flags.DEFINE_integer(name, 128, text, lower_bound=2, upper_bound=10**6, **options)
    absl_flags.DEFINE_bool(
        "half_weights",
        False,
        "whether weights are rounded to float16, which halves the size",
        **options,
    )


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_folder("export_dir", flags.export_dir)
    check_apart_from_models("export_dir", flags.export_dir)
    check_model(flags)
    check_files(flags, "dictionary")


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    from bahdanau_tf.serving import Limits, examine, publish, written

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
