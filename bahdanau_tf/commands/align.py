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

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from absl import flags as absl_flags

from bahdanau_tf.commands.files import (
    json_line,
    kept_lines_named,
    line_pairs,
    load_translator,
    windows,
)
from bahdanau_tf.commands.flags import (
    MODEL,
    WRITTEN,
    Batches,
    Group,
    check_files,
    check_model,
    check_output,
)
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.lines import written
from bahdanau_tf.system.terminal import LineCounter

if TYPE_CHECKING:
    from bahdanau_tf.translation import Translation


@dataclass(frozen=True)
class _Files(OptionGroup):
    source: str | None = option("text that the model translates; may be .gz", required=True)
    target: str | None = option("its translation; may be .gz", required=True)
    output: str | None = option(f"file for the links; {WRITTEN}")


@dataclass(frozen=True)
class _Lines(Batches):
    format: Literal["text", "json"] = option("links, or one JSON object per line", "text")


GROUPS = (MODEL, Group(_Files), Group(_Lines))


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_model(flags)
    read = check_files(flags, "source", "target")
    check_output("output", flags.output, read)


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
