"""Scores a model, and other systems' output, against references.

With --model_dir, the lines of --source are translated. Each --hypotheses=NAME=FILE (may be
repeated) is another system's output. The scores are sacreBLEU's, printed with signatures. Unless
--tokenize is set, BLEU uses the tokenizer that fits the script of the references: 13a for text with
spaces between words; zh for Chinese; in Japanese, Thai and other scripts without spaces, none for
tokenized text, otherwise ja-mecab for Japanese if it is installed, else char.

Several systems make a table: the first of --metrics with the margin of its 95 % bootstrap interval;
p, the probability that a difference from the first row as large as this arises by chance (paired
bootstrap); and the other metrics. With --source, the first metric is also printed by source length,
in tokens of the model or, without a model, in words; with a model also for the sentences without
words unknown to it, in source or reference. The paper forbids unknown words there:
--unknown=forbid. The metric perplexity is that of the references for the model; alone, nothing is
translated.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands import files, flags as common
from bahdanau_tf.data.parallel import is_table, read_table
from bahdanau_tf.evaluation import References, Table, length_rows
from bahdanau_tf.evaluation.scores import METRICS
from bahdanau_tf.evaluation.tables import Cell, as_text
from bahdanau_tf.options.fields import option
from bahdanau_tf.system.files import check_file
from bahdanau_tf.system.lines import read_lines, written
from bahdanau_tf.system.terminal import ProgressLine, StatusLine, amount, printable

if TYPE_CHECKING:
    from bahdanau_tf.translation import Translation
    from bahdanau_tf.translation.habits import Habits
    from bahdanau_tf.translation.protocol import StringTranslator
    from bahdanau_tf.translator import Translator

OWN = "model"  # name of the system of --model_dir
PERPLEXITY = "perplexity"
WINDOW = 256  # sentences between two reports of progress


@dataclass(frozen=True)
class _Files(common.Memory):
    source: str | None = option("text to translate; FILE.tsv has both columns, with a tab between")
    reference: str | None = option("its reference translation; required unless --source has it")
    output: str | None = option(f"file for the model's translations; {common.WRITTEN}")
    hypotheses: tuple[str, ...] | None = option(
        "another system's translations, as FILE or NAME=FILE; may be repeated", repeated=True
    )


_LOWER = ", ".join(kind.title for kind in METRICS.values() if kind.lower_is_better)


@dataclass(frozen=True)
class _Scores(common.Scores):
    metrics: tuple[str, ...] = option(
        f"scores to compute, separated by commas: {', '.join(METRICS)}; for {_LOWER}, lower is "
        "better. For a model that was chosen by the share of exact matches exact,cer,wer",
        ("bleu", "chrf"),
    )


GROUPS = (
    common.Group(common.Model, optional=("model_dir",)),
    common.Group(common.Search, without=("n_best",)),
    common.Group(_Files),
    common.Group(_Scores),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before a model is loaded."""
    metrics = {*flags.metrics}
    known_metrics = [*METRICS, PERPLEXITY]
    if not metrics or len(metrics) < len(flags.metrics) or not metrics <= {*known_metrics}:
        names, wanted = ",".join(flags.metrics), ", ".join(known_metrics)
        raise ValueError(f"--metrics is {names!r}, wanted some of {wanted}, each once")
    read = common.check_files(flags, "source", "reference", "dictionary", "memory")
    if not _is_table(flags):
        common.require(flags, "reference")
    if flags.source is None and not flags.hypotheses:
        raise ValueError("--source (with --model_dir) or --hypotheses is missing")
    if flags.source is None and flags.model_dir:
        raise ValueError("--source is missing: --model_dir needs a text to translate")
    for value in flags.hypotheses or []:
        _, path = _name_and_path(value)
        check_file("hypotheses", path)
        read.append(("--hypotheses", path))
    common.check_output("output", flags.output, read)
    if flags.source is not None and flags.reference is not None:
        common.check_apart("--reference", flags.reference, [("--source", flags.source)])
    if PERPLEXITY in metrics:
        common.require(flags, "source", "model_dir")
    if metrics == {PERPLEXITY}:
        common.refuse(flags, ["hypotheses", "output"], f"with --metrics={PERPLEXITY} alone")
    if _has_model(flags):
        common.check_model(flags, also_in_onnx=PERPLEXITY not in metrics)
    else:
        groups = flags.flags_by_module_dict()
        of_model = [flag.name for flag in groups["Model"] + groups["Search"]]
        common.refuse(flags, ["output", "memory", *of_model], "without --model_dir")


def _is_table(flags: absl_flags.FlagValues) -> bool:
    """Whether --source has the references, too."""
    return flags.reference is None and flags.source is not None and is_table(flags.source)


def _name_and_path(value: str) -> tuple[str, str]:
    """Reads NAME=FILE, or FILE, which may exist with a = in its name."""
    name, equals, path = value.partition("=")
    if equals and name and not os.path.exists(value):
        return name, path
    return os.path.basename(value), value


def _has_model(flags: absl_flags.FlagValues) -> bool:
    """Whether a model translates: if it is given, or if there are no hypotheses."""
    return bool(flags.model_dir or not flags.hypotheses)


def needs_tensorflow(flags: absl_flags.FlagValues) -> bool:
    """Whether the model, if any, runs in TensorFlow."""
    return _has_model(flags) and not common.is_in_onnx(flags)


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    files.check_tokenize_flag(flags)
    sources, references, is_pair = _texts(flags)
    systems = _read_hypotheses(flags, references, is_pair)
    translator = files.load_either(flags) if _has_model(flags) else None
    if PERPLEXITY in flags.metrics:
        _print_perplexity(translator, sources, references)
    if not (metrics := _metrics(flags, translator)):
        return
    tokenize = files.tokenizer_for(flags, translator, references, metrics)
    if translator is not None:
        files.warn_of_sides(sources[:WINDOW], translator.habits.languages)
        translations = _translate(translator, sources, flags)
        _warn_of_long(translations, translator.habits)
        systems = {OWN: [translation.text for translation in translations], **systems}
    test = TestSet(
        metrics,
        systems,
        _references(flags, metrics, sources, references, tokenize),
        sources,
        *_facts(translator, sources, references),
    )
    if flags.tokenize is None and tokenize == "none":
        files.warn_of_untokenized(systems)
    _print(test)


def _metrics(flags: absl_flags.FlagValues, translator: StringTranslator | None) -> list[str]:
    """The names of the scores to compute, without the perplexity.

    By default those of short strings for a model whose training chose it by one of them.
    """
    if not common.is_given(flags, "metrics") and translator and translator.habits.is_short:
        return [name for name, kind in METRICS.items() if kind.takes_any]
    return [metric for metric in flags.metrics if metric != PERPLEXITY]


def _references(
    flags: absl_flags.FlagValues,
    metrics: Sequence[str],
    sources: list[str],
    references: list[str],
    tokenize: str,
) -> References:
    """The references, with all of the same source for metrics that take any of them."""
    answers = evaluation.right_answers(sources, references) if sources else None
    kinds = [METRICS[name] for name in metrics]
    titles = ", ".join(kind.title for kind in kinds if kind.takes_any)
    if titles and answers and not all(answers):
        StatusLine().note(
            f"{amount(len(references), 'line')} of {sum(map(bool, answers)):,} different sources: "
            f"{titles} count each source once, by the nearest of its references"
        )
    return References(references, tokenize, flags.ignore_case, flags.nfc, answers)


def _print_perplexity(
    translator: StringTranslator | None, sources: list[str], references: list[str]
) -> None:
    """Scores the references with the model, which is in TensorFlow."""
    from bahdanau_tf.translation.rescoring import perplexity

    scored = cast("Translator", translator).score(sources, references)
    count = sum(len(each.token_log_probs) for each in scored)
    print(f"perplexity = {perplexity(scored):.2f} of {count:,} tokens, end symbols included")


def _texts(flags: absl_flags.FlagValues) -> tuple[list[str], list[str], list[bool]]:
    """The sources, none if they are not given, their references, and which lines are pairs."""
    if _is_table(flags):
        # Blank lines, as between sentences, are no pairs.
        rows = [*read_table(flags.source, "source")]
        pairs = [pair for pair in rows if any(pair)]
        return [x for x, _ in pairs], [y for _, y in pairs], [*map(any, rows)]
    references = list(read_lines(flags.reference))
    sources = [] if flags.source is None else list(read_lines(flags.source))
    if flags.source is not None:
        files.check_count("--source", len(sources), len(references))
    return sources, references, [True] * len(references)


def _facts(
    translator: StringTranslator | None, sources: list[str], references: list[str]
) -> tuple[list[int], str, list[bool]]:
    """The length of each source, its unit, and whether each sentence has no unknown words."""
    from bahdanau_tf.translation.protocol import source_lengths

    if translator is None:
        return *source_lengths([], sources), []
    is_known = evaluation.known_sentences([translator], sources, references)
    return *source_lengths(translator.source_texts, sources), is_known


def _read_hypotheses(
    flags: absl_flags.FlagValues, references: list[str], is_pair: list[bool]
) -> dict[str, list[str]]:
    """Other systems' translations, by name, with or without a line for each that is no pair."""
    systems: dict[str, list[str]] = {}
    for value in flags.hypotheses or []:
        name, path = _name_and_path(value)
        if name in systems or (name == OWN and _has_model(flags)):
            raise ValueError(
                f"--hypotheses: the name {name!r} is taken, wanted another one, as in NAME=FILE"
            )
        lines = list(read_lines(path))
        whole = len(lines) == len(is_pair)
        systems[name] = [*itertools.compress(lines, is_pair)] if whole else lines
        files.check_count(f"--hypotheses={value}", len(systems[name]), len(references))
    return systems


def _warn_of_long(translations: Sequence[Translation], habits: Habits) -> None:
    """Reports how many lines, or sentences in them, are longer than those of the training."""
    if count := sum("long" in (doubt.kind for doubt in x.doubts) for x in translations):
        advice = "" if habits.is_short else ", may lose words"
        StatusLine().note(
            f"{count:,} of {amount(len(translations), 'line')}: longer than in training "
            f"({habits.longest} tokens){advice}"
        )


def _translate(
    translator: StringTranslator, sources: list[str], flags: absl_flags.FlagValues
) -> list[Translation]:
    """Translates, reports progress, and writes the translations to a file."""
    start, output = time.monotonic(), flags.output
    line = ProgressLine(len(sources))
    done: list[Translation] = []
    results: dict[str, Translation] = {}
    different = [*dict.fromkeys(sources)]
    with files.kept_lines_named(output, lambda: len(done)), written(output or os.devnull) as file:
        while window := different[len(results) : len(results) + WINDOW]:
            rows = translator.translate(window, mbr=flags.mbr)
            results.update(zip(window, rows, strict=True))
            ready = itertools.takewhile(results.__contains__, sources[len(done) :])
            translations = [results[source] for source in ready]
            done += translations
            file.writelines(f"{translation.line}\n" for translation in translations)
            file.flush()
            rate = len(done) / (time.monotonic() - start)
            line.update(len(done), f"lines, {rate:.1f} a second")
    truncated = sum(translation.truncated for translation in done)
    line.note(
        f"{amount(len(done), 'line')} in {time.monotonic() - start:.1f} s, "
        f"{truncated} cut off at the length limit"
    )
    return done


Column = Sequence[Cell]  # title, number of sentences, a cell for each system


class TestSet(NamedTuple):
    """The test set, and the systems' translations of it."""

    metrics: Sequence[str]  # their names; the first is also computed for subsets
    systems: dict[str, list[str]]  # translations by the name of the system
    references: References
    sources: list[str]  # empty if unknown
    lengths: list[int]  # of each source; empty if unknown
    unit: str  # what the lengths count
    is_known: list[bool]  # whether each sentence has no unknown words; empty if unknown

    def compared(self) -> list[Column]:
        """Scores of all sentences, with p of the first metric; prints signatures."""
        first, *others = self.metrics
        count = self.references.count(first)
        rows = self.references.compare(self.systems, metric=first)
        title = rows[0].score.name
        print(f"{title}|{rows[0].score.signature}")
        columns: list[Column] = [
            [title, count, *(row.score.brief for row in rows)],
            ["p", count, *("" if r.p_value is None else f"{r.p_value:.4f}" for r in rows)],
        ]
        for metric in others:
            scores = [self.references.score(metric, texts) for texts in self.systems.values()]
            print(f"{scores[0].name}|{scores[0].signature}")
            count = self.references.count(metric)
            columns.append([scores[0].name, count, *(score.score for score in scores)])
        print(f"p of the {title}: paired bootstrap against {printable(rows[0].system)}")
        return columns

    def copied(self) -> list[Column]:
        """Numbers and names that arrived; prints those of one system, or how many there are."""
        if not self.sources:
            return []
        first, *others = (self.references.copied(x, self.sources) for x in self.systems.values())
        if first and not others:
            shares = ", ".join(f"{kind} {share}" for kind, share in first.items())
            print(f"copied of what the reference has from the source: {shares}")
        if not (first and others):
            return []
        counts = ", ".join(f"{share.count:,} {kind}" for kind, share in first.items())
        print(f"% copied of what the reference has from the source: {counts}")
        return [
            [kind, share.sentences, share.share, *(other[kind].share for other in others)]
            for kind, share in first.items()
        ]

    def by_subset(self) -> list[Column]:
        """The first metric without unknown words, and by length."""
        columns: list[Column] = []
        metric, references = self.metrics[0], self.references
        if self.is_known and (count := references.count(metric, self.is_known)):
            scores = (references.score(metric, x, self.is_known) for x in self.systems.values())
            columns.append(["no unknown", count, *(score.score for score in scores)])
        if self.lengths:
            curves = {
                name: references.by_length(lines, self.lengths, metric=metric)
                for name, lines in self.systems.items()
            }
            titles, rows = length_rows(curves)
            columns += zip(titles, *(row[1:] for row in rows), strict=True)
        return columns


def _print(test: TestSet) -> None:
    columns = [] if len(test.systems) == 1 else test.compared()
    if not columns:
        (texts,) = test.systems.values()
        for metric in test.metrics:
            print(test.references.score(metric, texts))
    columns += test.copied()
    columns += test.by_subset()
    if test.lengths:
        print(f"{METRICS[test.metrics[0]].title} by source length in {test.unit}")
    if columns:
        lines = "lines" if METRICS[test.metrics[0]].takes_any else "sentences"
        heads, *rows = zip(["", lines, *test.systems], *columns, strict=True)
        print(f"\n{as_text(Table('scores', '', [*map(str, heads)], rows))}", end="")
