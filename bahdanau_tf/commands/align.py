"""Aligns given translations; memory does not depend on their number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from absl import flags as absl_flags

from bahdanau_tf.commands.common.json_lines import json_line
from bahdanau_tf.commands.common.lines import kept_lines_named, line_pairs, windows
from bahdanau_tf.commands.common.model import load_translator
from bahdanau_tf.system.lines import written
from bahdanau_tf.system.terminal import LineCounter
from bahdanau_tf.translation import Translation


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    translator = load_translator(flags)
    translator.align([], [])  # refuses a model without attention
    pairs = line_pairs(flags, "source", "target")
    with (
        closing(LineCounter()) as counter,
        kept_lines_named(flags.output, lambda: counter.done, "alignment"),
        written(flags.output) as output,
    ):
        for window in windows(pairs, flags.window):
            sources, targets = map(list, zip(*window, strict=True))
            found = translator.align(sources, targets, flags.batch_size)
            output.writelines(_lines(found, flags.format))
            output.flush()
            counter.report("words on one side only", _one_sided(found))
            counter.advance(len(window))
    return 0


def _lines(found: list[Translation], form: str) -> Iterator[str]:
    for one in found:
        yield json_line(one, True) if form == "json" else f"{one.pharaoh}\n"


def _one_sided(found: list[Translation]) -> list[int]:
    return [place for place, one in enumerate(found) if bool(one.tokens) != bool(one.source_tokens)]
