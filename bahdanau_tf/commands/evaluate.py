"""Scores a model, and other systems' output, against references."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

from absl import flags as absl_flags

from bahdanau_tf import evaluation
from bahdanau_tf.commands.common.comparison import TestSet, by_subset, compared
from bahdanau_tf.commands.common.lines import check_count, kept_lines_named
from bahdanau_tf.commands.common.model import load_translator
from bahdanau_tf.commands.common.scoring import check_tokenize_flag, tell_untokenized, tokenizer_for
from bahdanau_tf.evaluation.tables import as_text
from bahdanau_tf.flags.evaluate import name_and_path
from bahdanau_tf.system.lines import read_lines, written
from bahdanau_tf.system.terminal import ProgressLine, amount
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.lengths import source_lengths
from bahdanau_tf.translation.long_lines import trained_limit
from bahdanau_tf.translator import Translator

MODEL = "model"  # name of the system of --model_dir
WINDOW = 256  # sentences between two reports of progress


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
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
