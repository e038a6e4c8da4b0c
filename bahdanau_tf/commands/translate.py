"""Translates lines in order; empty lines stay empty.

Reads --input or standard input and writes --output or standard output; memory does not grow with
the number of lines. Lines whose translation was cut off at the length limit are reported on
standard error.

Lines whose translation may be wrong are named on standard error, by reason: a number is missing,
characters are unknown, a phrase is repeated, or the model is less sure than of nearly all of its
dev text. --format=json has `doubts`, the reasons, and `confidence`, the share of the dev text's
translations of similar lengths that are less likely.

--format=text writes one line for each line. With --n_best, or --format=moses, each hypothesis has a
line in Moses' format: sentence number from 0 ||| translation ||| log-probability ||| score. For
each line, --format=json writes an object with source, text, score, log_prob, finished, truncated
(also true if only the start of the line was read) and, with --n_best, alternatives.

--mbr takes the hypothesis that agrees most with all others of the beam, so it needs a large
--beam_size; its score is the mean agreement, from 0 to 100. With --sampling the others are the
--n_best draws, of which --format=text writes only the best.

--alignments adds ||| and the hard alignment to each line, as source-target token numbers from 0 as
in 0-0 1-2; in JSON also the tokens, where they begin and end, and the soft alignment: a row for
each target token and a column for each source token, both including the end symbol. source_spans
and target_spans count characters, source_offsets and target_offsets bytes of UTF-8.

Where ||| separates fields, a ||| in a translation is written as &#124;&#124;&#124;, as in Moses;
rescore undoes this.

--prefixes names a file with a line for each line of the input: the first words of its translation,
or nothing. With a word model the last word of a prefix must be complete; with a sub-word model it
may be continued.

--terms names a file of terms, such as "newspaper, tab, quotidien". A term is matched as whole
words, with its case; where a sentence begins, also with a capital. Of terms that overlap the
longest counts. Translations that lack a term are counted with the others that may be wrong.

--shard=i/n translates the i-th of n parts of --input, for jobs on several processes or machines.
With --output=out it writes out-i-of-n; joined in the order of their names, the n files are the
translation of the whole. A file exists only once it is complete, and the command then leaves it as
it is: if a job was killed, run the same command again. A file that was made from other lines, by
another model or with other flags is refused.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from absl import flags as absl_flags

from bahdanau_tf.commands import files, flags as common
from bahdanau_tf.data.parallel import is_table
from bahdanau_tf.options.fields import option
from bahdanau_tf.options.training import packaged
from bahdanau_tf.system.files import (
    checksum,
    found_directory,
    newest_export,
    read_object,
    write_atomically,
)
from bahdanau_tf.system.lines import count_lines, read_lines, read_pairs, written
from bahdanau_tf.system.terminal import SHOWN, LineCounter, amount

if TYPE_CHECKING:
    from bahdanau_tf.translation import Translation
    from bahdanau_tf.translation.markup import MarkedLines
    from bahdanau_tf.translation.protocol import StringTranslator

# Flags that change no line.
HARMLESS = ("output", "shard", "threads", "batch_size", "window", "flagfile", "help", "traceback")
SLOW = 5000  # characters of a line that takes seconds: it is reported first
PER_TOKEN = 64  # characters of a line that are read, for each token that the model can use
SLOW_LINE = f"more than {SLOW:,} characters; this will take a while"
PROMPT = "type a line and press Enter; Ctrl-D ends"


@dataclass(frozen=True)
class _Files(common.Memory):
    input: str | None = option("text to translate, or the first column of FILE.tsv; may be .gz")
    prefixes: str | None = option(
        "the first words of each translation, one line each, which may be empty; may be .gz"
    )
    terms: str | None = option(
        "lines of a source term, a tab and the target term that the translation has where the "
        "source has it; needs a model with attention"
    )
    output: str | None = option(f"file for the translations; {common.WRITTEN}")
    shard: str | None = option(
        "i/n: the i-th of n parts of --input, from 1; -i-of-n is added to the name of --output"
    )


@dataclass(frozen=True)
class _Lines(common.Batches):
    format: Literal["text", "moses", "json"] = option(
        "text, Moses' n-best list, or one JSON object per line", "text"
    )
    alignments: bool = option("whether to write the alignment of each translation", False)
    split_sentences: bool | None = option(
        "whether a line of several sentences is translated sentence by sentence, of which the "
        "first gets the prefix; default: yes, if nearly all lines that the model learned from are "
        "single sentences and there are no --prefixes"
    )
    markup: bool = option(
        "whether tags of HTML and XML, and placeholders such as %s, {0} and &amp;, are taken out "
        "before the search and put back by attention; those of --prefixes are left out",
        False,
    )


GROUPS = (common.MODEL, common.SEARCH, common.Group(_Files), common.Group(_Lines))


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    common.check_model(flags, also_in_onnx=True)
    read = common.check_files(flags, "input", "prefixes", "dictionary", "terms", "memory")
    if flags.memory:
        common.refuse(flags, ["markup", "terms"], "with --memory")
    for name in ("sampling", "mbr"):
        if flags[name].value:
            common.refuse(flags, ["terms"], f"with --{name}")
    if flags.shard is None:
        common.check_output("output", flags.output, read)
        return
    shard = Shard.of(flags.shard)
    common.require(flags, "input", "output")
    if not os.path.isfile(flags.input):
        raise ValueError(
            f"--input is {flags.input}, wanted a file: with --shard it is read more than once"
        )
    common.check_output("output", shard.file(flags.output), read)


class Shard(NamedTuple):
    """One of several parts of a text, whose numbers of lines differ by 1."""

    number: int  # which part, from 1
    parts: int  # how many there are

    @classmethod
    def of(cls, text: str) -> Shard:
        """Reads "i/n", with i from 1 to n."""
        match = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"--shard is {text!r}, wanted i/n with i from 1 to n, such as 1/8")
        return cls(int(match[1]), int(match[2]))

    def lines(self, total: int) -> tuple[int, int]:
        """The numbers of lines before this part and up to its end, of `total`."""
        return total * (self.number - 1) // self.parts, total * self.number // self.parts

    def file(self, path: str) -> str:
        """The file of this part of `path`; parts sort by name."""
        ending = ".gz" if Path(path).suffix == ".gz" else ""
        number = str(self.number).zfill(len(str(self.parts)))
        return f"{path.removesuffix(ending)}-{number}-of-{self.parts}{ending}"


def _note(part: str) -> Path:
    """The hidden file beside that of a part, written before it: what the part is made of."""
    return Path(part).with_name(f".{Path(part).name}.json")


def already_done(flags: absl_flags.FlagValues) -> str | None:
    """A sentence if an earlier run has written the part of --shard, of the same lines and flags."""
    part = None if flags.shard is None else Shard.of(flags.shard).file(flags.output)
    if part is None or not os.path.isfile(part):
        return None
    if _note(part).is_file():  # an earlier version wrote none
        before, now = read_object(_note(part)), made_of(flags)
        others = [f"--{name}" for name in {**now, **before} if before.get(name) != now.get(name)]
        if others:
            raise ValueError(
                f"--shard: {part} was made with another {' and another '.join(others)}; remove "
                "it, or name another --output"
            )
    return f"{part} is complete; remove it to translate this part again"


def made_of(flags: absl_flags.FlagValues) -> dict[str, object]:
    """What the contents of the part of --shard depend on, by flag."""
    values = {n: flags[n].value for n in flags if n not in HARMLESS}
    for name in ("input", "prefixes"):
        if (path := flags[name].value) is not None:
            digest = hashlib.sha256()
            for line in read_lines(path, *Shard.of(flags.shard).lines(count_lines(path))):
                digest.update(f"{line}\n".encode())
            values[name] = digest.hexdigest()
    for name in ("dictionary", "terms", "memory"):
        if path := flags[name].value:
            values[name] = checksum(Path(path).read_bytes())
    values["model_dir"] = [*map(_model_checksum, flags.model_dir)]
    return values


def _model_checksum(folder: str) -> str:
    """The SHA-256 of the files of the model that is loaded from a folder."""
    best = packaged(folder) or found_directory(Path(folder, "best"))
    model = best if best.is_dir() else newest_export(folder)
    files = sorted(path for path in model.rglob("*") if path.is_file())
    parts = [f"{path.relative_to(model)} {checksum(path.read_bytes())}\n" for path in files]
    return checksum("".join(parts).encode())


def needs_tensorflow(flags: absl_flags.FlagValues) -> bool:
    """Whether the model runs in TensorFlow."""
    return not common.is_in_onnx(flags)


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    from bahdanau_tf.translation.markup import MarkedLines
    from bahdanau_tf.translation.sentence_splitting import has_several
    from bahdanau_tf.translation.terms import Glossary, find_terms

    part, terms, markup = _Part.of(flags), {}, None
    if flags.terms is not None:
        terms = read_pairs(flags.terms, "terms", "a source term, a tab and a target term")
    translator = files.load_either(flags)
    if flags.split_sentences is None:
        is_split = flags.prefixes is None and translator.habits.singly
        flags["split_sentences"].value = is_split
    if flags.markup:
        before = part._replace(first=0, last=part.first).lines(flags) if part.first else ()
        lines = (line for line, _ in before)
        markup = MarkedLines(lines, bool(flags.mbr), flags.split_sentences)
    most = PER_TOKEN * (translator.habits.longest or flags.max_length)
    are_slow = flags.split_sentences or most > SLOW
    for name in ("prefixes", "terms"):
        if flags[name].value is not None and translator.target_text.reverse:
            raise ValueError(
                f"--{name} needs a model that writes the first word first; this one writes the "
                "last word first"
            )
    to_lines, numbers = _formatter(flags, translator), itertools.count(part.first)
    several, doubtful, unused, glossary = 0, 0, {*terms}, Glossary(terms)
    typed = flags.input is None and sys.stdin.isatty()
    quiet = part.output is None and sys.stdout.isatty()
    with (
        closing(LineCounter(quiet=quiet, first=part.first)) as counter,
        files.kept_lines_named(part.output, lambda: counter.done),
        written(part.output) as output,
    ):
        if part.output is not None and part.made_of:  # no other process writes it now
            write_atomically(_note(part.output), json.dumps(part.made_of).encode())
        if typed:
            counter.note(PROMPT)
        for window in files.windows(part.lines(flags), 1 if typed else flags.window):
            sources, prefixes = map(list, zip(*window, strict=True))
            unused -= {x.term for line in sources if unused for x in find_terms(line, glossary)}
            slow = [n for n, line in enumerate(sources) if are_slow and len(line) > SLOW]
            counter.report(SLOW_LINE, slow, at_once=True)
            translations = _translated(flags, translator, markup, sources, prefixes, terms, most)
            for place, translation in enumerate(translations):
                output.writelines(to_lines(next(numbers), translation))
                for remark in _remarks(translation, typed):
                    counter.report(remark, [place])
                doubtful += bool(translation.doubts)
            output.flush()
            several += sum(map(has_several, sources)) if flags.split_sentences else 0
            counter.advance(len(window))
        if not typed:
            _sum_up(counter, doubtful, several, unused)


def _sum_up(counter: LineCounter, doubtful: int, several: int, unused: Collection[str]) -> None:
    """Says how many lines may be wrong, or were split, and the terms that occur in none."""
    lines = amount(counter.done, "line")
    if doubtful:
        counter.note(f"{doubtful:,} of {lines} may be wrong; --format=json has the doubts of each")
    if several:
        counter.note(
            f"{several:,} of {lines}: several sentences, each translated by itself; "
            "--nosplit_sentences translates such lines as a whole"
        )
    if unused:
        some = ", ".join(sorted(unused)[:SHOWN]) + ", ..." * (len(unused) > SHOWN)
        counter.note(f"{amount(len(unused), 'term')} in no line: {some}")


class _Part(NamedTuple):
    """The lines that are translated: all, or those of --shard."""

    output: str | None  # the file that is written; None for standard output
    first: int = 0  # how many lines are before them
    last: int | None = None  # the number of the last one; None for all lines
    made_of: Mapping[str, object] | None = None  # what the part of --shard depends on

    @classmethod
    def of(cls, flags: absl_flags.FlagValues) -> _Part:
        """Counts the lines if there is a shard."""
        if flags.shard is None:
            return cls(flags.output)
        shard, total = Shard.of(flags.shard), count_lines(flags.input)
        if flags.prefixes is not None:
            files.check_count("--prefixes", count_lines(flags.prefixes), total, "--input")
        return cls(shard.file(flags.output), *shard.lines(total), made_of(flags))

    def lines(self, flags: absl_flags.FlagValues) -> Iterator[tuple[str, str]]:
        """Each line, of a table its first cell, with the prefix of its translation."""
        pairs: Iterable[tuple[str, str]]
        if flags.prefixes is None:
            pairs = ((line, "") for line in read_lines(flags.input, self.first, self.last))
        else:
            pairs = files.line_pairs(flags, "input", "prefixes", self.first, self.last)
        end = "\t" if flags.input is not None and is_table(flags.input) else "\n"
        return ((line.partition(end)[0], prefix) for line, prefix in pairs)


def _translated(
    flags: absl_flags.FlagValues,
    translator: StringTranslator,
    markup: MarkedLines | None,
    lines: list[str],
    prefixes: list[str],
    terms: Mapping[str, str],
    most: int,
) -> Iterable[Translation]:
    """The translations of some lines, in order; at most so many characters of each are read."""
    from bahdanau_tf.translation.memory import in_use
    from bahdanau_tf.translation.sentence_splitting import translate_lines

    def translate(lines: Sequence[str], prefixes: Sequence[str] | None) -> list[Translation]:
        starts = [line[:most] for line in lines]
        rows = translator.translate(
            starts,
            batch_size=flags.batch_size,
            prefixes=prefixes,
            split_sentences=False,
            terms=terms,
            mbr=flags.mbr,
        )
        return [_of_whole(line, row) for line, row in zip(lines, rows, strict=True)]

    def run(lines: Sequence[str], prefixes: Sequence[str] | None) -> Iterable[Translation]:
        if flags.split_sentences:
            weights, is_mean = flags.alignments or flags.markup, bool(flags.mbr)
            memory = in_use(translator.memory, translator.decoding, flags.markup, terms)
            colon = translator.habits.target.colon
            return translate_lines(translate, lines, prefixes, weights, is_mean, memory, colon)
        return translate(lines, prefixes)

    whole = run if markup is None else partial(markup, run)
    return whole(lines, prefixes if any(prefixes) else None)


def _of_whole(line: str, row: Translation) -> Translation:
    """The translation of a line, of which perhaps only the start was read."""
    from bahdanau_tf.translation.result import Doubt

    if row.source == line:
        return row
    alternatives = [_of_whole(line, other) for other in row.alternatives]
    doubts = (*dict.fromkeys((*row.doubts, Doubt("cut"))),)
    return replace(row, source=line, alternatives=alternatives, cut=True, doubts=doubts)


def _remarks(translation: Translation, typed: bool) -> Iterator[str]:
    """What to report of a line: that its translation was cut off or is empty, and doubts.

    Of a line that was `typed`, these have details.
    """
    from bahdanau_tf.translation.result import REASONS

    if translation.cut:
        yield "only its start was translated"
    if not translation.finished:
        yield "translation cut off at the length limit"
    elif translation.source.strip() and not translation.text:
        yield "translation is empty"
    doubts = [x for x in translation.doubts if x.kind != "cut"]
    yield from dict.fromkeys(str(x) if typed else REASONS[x.kind][1] for x in doubts)


def _formatter(
    flags: absl_flags.FlagValues, translator: StringTranslator
) -> Callable[[int, Translation], Iterator[str]]:
    """A function that yields the lines of a sentence, by its number from 0."""
    from bahdanau_tf.translation.rescoring import Hypothesis, fields

    name = translator.model_name
    for flag in ("alignments", "markup", "terms"):
        if flags[flag].value and not translator.has_alignment:
            raise ValueError(f"--{flag} needs a model with attention; this is a {name}")

    def to_lines(number: int, translation: Translation) -> Iterator[str]:
        if flags.format == "json":
            yield files.json_line(translation, flags.alignments, flags.n_best > 1)
            return
        for hypothesis in (translation, *translation.alternatives):
            links = (hypothesis.pharaoh,) if flags.alignments else ()
            if flags.format == "text" and (flags.n_best == 1 or (flags.mbr and flags.sampling)):
                # Without links the text is the whole line.
                yield (fields(hypothesis.line, *links) if links else hypothesis.line) + "\n"
                return
            feature = f"{name}0= {hypothesis.log_prob:.4f}"
            line = Hypothesis(number, hypothesis.line, feature, hypothesis.score, links)
            yield f"{line}\n"

    return to_lines
