"""Scores a model, and other systems' output, against references.

With --model_dir the lines of --source are translated. Each
--hypotheses=NAME=FILE, which may be repeated, is another system's output. BLEU
and chrF are sacreBLEU's, printed with signatures. Unless --tokenize is given,
BLEU uses the tokenizer that fits the script of the references: 13a for text
with blanks between words, zh for Chinese, ja-mecab for Japanese if it is
installed, none for other text without blanks that is tokenized, and char for
Japanese without ja-mecab, for Thai and for other scripts without blanks.

Several systems make a table: BLEU with the margin of its 95 % bootstrap
interval, chrF2, and p, the probability of a difference from the first row as
large as this by chance (paired bootstrap). With --source there is BLEU by
source length, in tokens of the model or, without one, words between blanks;
with a model also BLEU of the sentences that have no word unknown to it, in
source or reference. The paper forbids unknown words there: --unknown=forbid.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands.files import (
    check_count,
    check_tokenize_flag,
    kept_lines_named,
    load_translator,
    tell_untokenized,
    tokenizer_for,
)
from bahdanau_tf.commands.flags import (
    SCORES,
    WRITTEN,
    Group,
    Model,
    Search,
    check_apart,
    check_file,
    check_files,
    check_model,
    check_open,
    check_output,
    refuse,
    refuse_without_model,
)
from bahdanau_tf.evaluation import References, Table, length_rows
from bahdanau_tf.evaluation.tables import Cell, as_text
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.lines import read_lines, written
from bahdanau_tf.system.terminal import ProgressLine, amount, printable

if TYPE_CHECKING:
    from bahdanau_tf.translation import Translation
    from bahdanau_tf.translator import Translator


@dataclass(frozen=True)
class _Files(OptionGroup):
    source: str | None = option("text to translate")
    reference: str | None = option("its reference translation", required=True)
    output: str | None = option(f"file for the model's translations; {WRITTEN}")
    hypotheses: tuple[str, ...] | None = option(
        "another system's translations, as FILE or NAME=FILE; may be repeated", repeated=True
    )


GROUPS = (
    Group(Model, optional=("model_dir",)),
    Group(Search, without=("n_best",)),
    Group(_Files),
    SCORES,
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    check_open("stdout", "standard output")
    read = check_files(flags, "source", "reference", "dictionary")
    if flags.source is None and not flags.hypotheses:
        raise ValueError("--source (with --model_dir) or --hypotheses is missing")
    if flags.source is None and flags.model_dir:
        raise ValueError("--source is missing, the text for --model_dir")
    for given in flags.hypotheses or []:
        _, path = name_and_path(given)
        check_file("hypotheses", path)
        read.append(("--hypotheses", path))
    check_output("output", flags.output, read)
    if flags.source is not None:
        text = ("--source", flags.source)
        check_apart("--reference", flags.reference, [text])
    if flags.model_dir or not flags.hypotheses:
        check_model(flags)
        return
    refuse(flags, ["output"], "without --model_dir")
    refuse_without_model(flags)


def name_and_path(given: str) -> tuple[str, str]:
    """Reads NAME=FILE, or FILE, which may exist with a = in its name."""
    name, equals, path = given.partition("=")
    if equals and name and not os.path.exists(given):
        return name, path
    return os.path.basename(given), given


MODEL = "model"  # name of the system of --model_dir
WINDOW = 256  # sentences between two reports of progress


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    from bahdanau_tf.translation.lengths import source_lengths

    check_tokenize_flag(flags)
    references = list(read_lines(flags.reference))
    sources = None
    if flags.source is not None:
        sources = list(read_lines(flags.source))
        check_count("--source", sources, references)
    others = _others(flags, references)
    translator = load_translator(flags) if _has_model(flags) else None
    tokenize = tokenizer_for(flags, translator, references)
    if translator is None or sources is None:
        systems, known = others, []
    else:
        found = _translated(translator, sources, flags.output)
        _report_long(found, flags.model_dir or [])
        systems = {MODEL: [one.text for one in found], **others}
        known = evaluation.known_sentences([translator], sources, references)
    texts = [] if translator is None else translator.source_texts
    test = TestSet(
        systems,
        evaluation.References(references, tokenize, flags.ignore_case, flags.nfc),
        *source_lengths(texts, sources or []),
        known,
    )
    if flags.tokenize is None and tokenize == "none":
        tell_untokenized(test.systems)
    _print(test)
    return 0


def _has_model(flags: absl_flags.FlagValues) -> bool:
    """Whether a model translates: if given, or if there are no hypotheses."""
    return bool(flags.model_dir or not flags.hypotheses)


def _others(flags: absl_flags.FlagValues, references: Sequence[str]) -> dict[str, list[str]]:
    """Other systems' translations, by name."""
    systems: dict[str, list[str]] = {}
    taken = {MODEL} if _has_model(flags) else set()
    for given in flags.hypotheses or []:
        name, path = name_and_path(given)
        if name in {*taken, *systems}:
            raise ValueError(
                f"--hypotheses: the name {name!r} is taken, wanted another one, as in NAME=FILE"
            )
        systems[name] = list(read_lines(path))
        check_count(f"--hypotheses={given}", systems[name], references)
    return systems


def _print(test: TestSet) -> None:

    if len(test.systems) == 1:
        (hypotheses,) = test.systems.values()
        print(test.references.bleu(hypotheses))
        print(test.references.chrf(hypotheses))
        columns = by_subset(test)
    else:
        columns = compared(test) + by_subset(test)
    if test.lengths:
        print(f"BLEU by source length in {test.unit}")
    if columns:
        print(f"\n{as_text(test.table(columns))}", end="")


def _report_long(found: Sequence[Translation], folders: Sequence[str]) -> None:
    """Reports the sentences that are longer than those of the training."""
    from bahdanau_tf.commands.long_lines import trained_limit

    limit = trained_limit(folders)
    if limit is None:
        return
    count = sum(len(one.source_tokens) > limit for one in found)
    if count:
        print(
            f"{count:,} of {amount(len(found), 'sentence')}: longer than the "
            f"{limit} tokens of training sentences, may lose words; see "
            "translate --split_long",
            file=sys.stderr,
        )


def _translated(
    translator: Translator, sources: Sequence[str], output: str | None
) -> list[Translation]:
    """Translates, reports progress, and writes the translations to a file."""
    start = time.monotonic()
    line = ProgressLine(len(sources))
    done: list[Translation] = []
    with (
        kept_lines_named(output, lambda: len(done)),
        written(output or os.devnull) as file,
    ):
        while some := sources[len(done) : len(done) + WINDOW]:
            found = translator.translate(some)
            done += found
            for one in found:
                file.write(f"{one.line}\n")
            file.flush()
            rate = len(done) / (time.monotonic() - start)
            line.update(len(done), f"sentences, {rate:.1f} a second")
    unfinished = sum(not translation.finished for translation in done)
    line.note(
        f"{amount(len(done), 'sentence')} in {time.monotonic() - start:.1f} s, "
        f"{unfinished} cut off at the length limit"
    )
    return done


Column = Sequence[Cell]  # title, number of sentences, a cell for each system


class TestSet(NamedTuple):
    """The test set, and the systems' translations of it.

    Attributes:
        systems: Translations by the name of the system.
        references: The reference translations.
        lengths: The length of each source; empty if unknown.
        unit: What the lengths count.
        known: Whether each sentence has no unknown words; empty if unknown.
    """

    systems: dict[str, list[str]]
    references: References
    lengths: list[int]
    unit: str
    known: list[bool]

    def table(self, columns: Sequence[Column]) -> Table:
        """A table of the numbers of sentences and a row for each system."""
        names = ["", "sentences", *self.systems]
        heads, *rows = zip(names, *columns, strict=True)
        return Table("scores", "", [str(head) for head in heads], rows)


def compared(test: TestSet) -> list[Column]:
    """BLEU, chrF2 and p of all sentences; prints their signatures."""
    rows = test.references.compare(test.systems)
    chrf = [*map(test.references.chrf, test.systems.values())]
    print(f"BLEU|{rows[0].score.signature}")
    print(f"chrF2|{chrf[0].signature}")
    first = printable(rows[0].system)
    print(f"p of the BLEU: paired bootstrap against {first}")
    p = ["" if r.p_value is None else f"{r.p_value:.4f}" for r in rows]
    count = len(test.references.lines)
    return [
        ["BLEU", count, *(row.score.brief for row in rows)],
        ["p", count, *p],
        ["chrF2", count, *(one.score for one in chrf)],
    ]


def by_subset(test: TestSet) -> list[Column]:
    """BLEU without unknown words, and by length."""
    columns: list[Column] = []
    references, systems = test.references, test.systems
    if any(test.known):
        part = (references.bleu(x, test.known) for x in systems.values())
        scores = (one.score for one in part)
        columns.append(["no unknown", sum(test.known), *scores])
    if test.lengths:
        titles, rows = length_rows(
            {name: references.by_length(lines, test.lengths) for name, lines in systems.items()}
        )
        columns += zip(titles, *(row[1:] for row in rows), strict=True)
    return columns
