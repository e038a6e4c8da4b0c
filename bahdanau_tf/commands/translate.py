"""Translates lines in order; memory does not depend on their number."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import NamedTuple

from absl import flags as absl_flags

from bahdanau_tf.commands.common.json_lines import json_line
from bahdanau_tf.commands.common.lines import check_equal, kept_lines_named, line_pairs, windows
from bahdanau_tf.commands.common.model import load_translator
from bahdanau_tf.flags.shards import Shard
from bahdanau_tf.flags.translate import made_of
from bahdanau_tf.system.lines import count_lines, read_lines, written
from bahdanau_tf.system.terminal import LineCounter
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.long_lines import LinesTranslated, trained_limit, translate_lines
from bahdanau_tf.translation.rescoring import Hypothesis, fields
from bahdanau_tf.translator import Translator

SLOW = 5000  # characters of a line that takes seconds: it is named before
SLOW_LINE = f"more than {SLOW} characters, which takes a while"
PROMPT = "type a sentence and press Enter; Ctrl-D ends"


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    part = _Part.of(flags)
    limit = _Limit.of(flags)
    translator = load_translator(flags)
    _check_prefixes(flags, translator)
    to_lines = _Format.of(flags, translator)
    lines, numbers = part.lines(flags), itertools.count(part.first)
    typed = flags.input is None and sys.stdin.isatty()
    size = 1 if typed else flags.window
    quiet = part.output is None and sys.stdout.isatty()
    with (
        closing(LineCounter(quiet=quiet, first=part.first)) as counter,
        kept_lines_named(part.output, lambda: counter.done),
        written(part.output) as output,
    ):
        part.note(flags)
        if typed:
            counter.note(PROMPT)
        for window in windows(lines, size):
            some = [line for line, _ in window]
            slow = [n for n, line in enumerate(some) if len(line) > SLOW]
            counter.report(SLOW_LINE, slow, at_once=True)
            found = translate_lines(
                translator,
                some,
                limit.tokens,
                flags.split_long,
                flags.batch_size,
                [prefix for _, prefix in window],
            )
            for translation in found.translations:
                output.writelines(to_lines(next(numbers), translation))
            output.flush()
            _report(counter, some, found, limit.text, flags.split_long)
            counter.advance(len(window))
    return 0


def _check_prefixes(flags: absl_flags.FlagValues, translator: Translator) -> None:
    if flags.prefixes is not None and translator.target_text.reverse:
        raise ValueError(
            "--prefixes needs a model that writes the first word first, this "
            "one writes the last word first"
        )


class _Part(NamedTuple):
    """The lines that are translated: all, or those of --shard.

    Attributes:
        output: The file that is written; None for standard output.
        first: How many lines are before them.
        last: The number of the last one; None for all lines.
        made_of: What decides the contents of the part of --shard, by flag.
    """

    output: str | None
    first: int = 0
    last: int | None = None
    made_of: Mapping[str, object] = MappingProxyType({})

    @classmethod
    def of(cls, flags: absl_flags.FlagValues) -> _Part:
        """Counts the lines if there is a shard.

        Raises:
            ValueError: The numbers of lines and prefixes differ.
        """
        if flags.shard is None:
            return cls(flags.output)
        shard = Shard.of(flags.shard)
        total = count_lines(flags.input)
        if flags.prefixes is not None:
            prefixes = count_lines(flags.prefixes)
            check_equal("--prefixes", prefixes, "--input", total)
        return cls(
            shard.file(flags.output),
            *shard.lines(total),
            made_of(flags),
        )

    def note(self, flags: absl_flags.FlagValues) -> None:
        """Writes of what the part is made, once nobody else makes it."""
        if flags.shard is not None:
            Shard.of(flags.shard).note(flags.output, self.made_of)

    def lines(self, flags: absl_flags.FlagValues) -> Iterator[tuple[str, str]]:
        """Each line with the prefix of its translation."""
        some = (self.first, self.last)
        if flags.prefixes is None:
            return ((line, "") for line in read_lines(flags.input, *some))
        return line_pairs(flags, "input", "prefixes", *some)


class _Limit(NamedTuple):
    """The length above which lines are reported or split.

    Attributes:
        tokens: The number of tokens; None for no limit.
        text: What is reported of longer lines.
    """

    tokens: int | None
    text: str

    @classmethod
    def of(cls, flags: absl_flags.FlagValues) -> _Limit:
        """The flag, or the training limits in the folders of the models.

        Raises:
            ValueError: --split_long is given, but no limit is known.
        """
        if (given := flags.max_source_length) is not None:
            return cls(given, f"longer than --max_source_length={given}")
        shortest = trained_limit(flags.model_dir)
        if shortest is None and flags.split_long:
            raise ValueError(
                "--split_long needs --max_source_length: --model_dir does not "
                "contain the length of its training sentences"
            )
        text = f"longer than the {shortest} tokens of training sentences"
        if not flags.split_long:
            text += ", may lose words; see --split_long"
        return cls(shortest, text)


def _report(
    counter: LineCounter,
    lines: Sequence[str],
    found: LinesTranslated,
    long: str,
    split_long: bool,
) -> None:
    """Reports lines that were split, too long, cut off, or left empty."""
    cut = [i for i, t in enumerate(found.translations) if not t.finished]
    nothing = [
        i
        for i, (line, t) in enumerate(zip(lines, found.translations, strict=True))
        if line.strip() and t.finished and not t.text
    ]
    whole = [i for i in found.long if i not in found.split]
    if split_long:
        parts = [i for i in found.long if i in found.split]
        counter.report("translated sentence by sentence", found.split)
        counter.report(f"a sentence is {long}, may lose words", parts)
        long = f"{long}, could not be split, may lose words"
    counter.report(long, whole)
    counter.report("translation cut off at the length limit", cut)
    counter.report("translation is empty", nothing)


class _Format(NamedTuple):
    """Formats a translation as lines.

    Attributes:
        name: "text", "moses" or "json".
        alignments: Whether alignments are written.
        feature: The name of the log-probability in Moses' format.
    """

    name: str
    alignments: bool
    feature: str

    @classmethod
    def of(cls, flags: absl_flags.FlagValues, translator: Translator) -> _Format:
        """Reads the flags; with --n_best "text" becomes "moses".

        Raises:
            ValueError: The model has no attention, which --alignments needs.
        """
        if flags.alignments and not translator.model.has_alignment:
            raise ValueError(
                "--alignments needs a model with attention, this is a "
                f"{type(translator.model).__name__}"
            )
        n_best = flags.format == "text" and flags.n_best > 1
        return cls(
            "moses" if n_best else flags.format,
            flags.alignments,
            f"{type(translator.model).__name__}0=",
        )

    def __call__(self, number: int, translation: Translation) -> Iterator[str]:
        """Yields the lines of sentence `number`, from 0."""
        if self.name == "json":
            yield json_line(translation, self.alignments)
            return
        for one in (translation, *translation.alternatives):
            links = (one.pharaoh,) if self.alignments else ()
            if self.name == "text":
                # Without links the text is the whole line.
                yield (fields(one.line, *links) if links else one.line) + "\n"
                return
            feature = f"{self.feature} {one.log_prob:.4f}"
            line = Hypothesis(number, one.line, feature, one.score, links)
            yield f"{line}\n"
