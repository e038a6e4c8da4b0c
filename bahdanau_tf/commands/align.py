"""Aligns given translations word by word: a line of links for each pair.

The model reads each line of --source with its translation in --target, and
links each target token to the source token with the largest weight. Links are
written to --output or standard output as source-target token numbers from 0,
as in 0-0 1-2 (Pharaoh's format); a pair with an empty side gets an empty line.

Tokens are those of the model: words and punctuation, or sub-words.
--format=json writes one object per line, with the tokens, their byte offsets in
the texts and the soft alignment, as `translate --format=json --alignments`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from absl import flags as absl_flags

from bahdanau_tf.commands import files, flags as common
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.lines import written
from bahdanau_tf.system.terminal import LineCounter


@dataclass(frozen=True)
class _Files(OptionGroup):
    source: str | None = option("text that the model translates; may be .gz", required=True)
    target: str | None = option("its translation; may be .gz", required=True)
    output: str | None = option(f"file for the links; {common.WRITTEN}")


@dataclass(frozen=True)
class _Lines(common.Batches):
    format: Literal["text", "json"] = option("links, or one JSON object per line", "text")


GROUPS = (common.MODEL, common.Group(_Files), common.Group(_Lines))


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    common.check_model(flags)
    read = common.check_files(flags, "source", "target")
    common.check_output("output", flags.output, read)


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    translator = files.load_translator(flags)
    translator.align([], [])  # refuses a model without attention
    pairs = files.line_pairs(flags, "source", "target")
    with (
        closing(LineCounter()) as counter,
        files.kept_lines_named(flags.output, lambda: counter.done, "alignment"),
        written(flags.output) as output,
    ):
        for window in files.windows(pairs, flags.window):
            sources, targets = map(list, zip(*window, strict=True))
            aligned = translator.align(sources, targets, flags.batch_size)
            for pair in aligned:
                is_json = flags.format == "json"
                output.write(files.json_line(pair, True) if is_json else f"{pair.pharaoh}\n")
            output.flush()
            one_sided = [
                n for n, x in enumerate(aligned) if bool(x.tokens) != bool(x.source_tokens)
            ]
            counter.report("words on one side only", one_sided)
            counter.advance(len(window))
