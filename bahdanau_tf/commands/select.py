"""Selects the pairs of a large corpus most similar to those of a small one.

Pairs are scored by bilingual cross-entropy difference (Axelrod, He and Gao, 2011): n-gram models of
the in-domain text against models of a random sample of the corpus. The best --pairs or --words are
written in the order of the corpus, one sentence per line. Files may be plain or .gz, UTF-8.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from absl import flags as absl_flags

from bahdanau_tf.commands.flags import Group, check_files, check_output
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.data.selection import ORDER, count_of_words, count_words, lowest, score_pairs
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.lines import written, written_together
from bahdanau_tf.system.ranges import Range
from bahdanau_tf.system.terminal import amount


@dataclass(frozen=True)
class _Files(OptionGroup):
    source: str | None = option("the corpus to select from", required=True)
    target: str | None = option("its translation", required=True)
    in_domain_source: str | None = option("text of the kind you want", required=True)
    in_domain_target: str | None = option("its translation", required=True)
    output_source: str | None = option("file for the selected lines of --source", required=True)
    output_target: str | None = option("file for the selected lines of --target", required=True)
    scores: str | None = option(
        "file for the score of each line of the corpus; lower is better, inf for lines that "
        "have an empty side"
    )


@dataclass(frozen=True)
class _Selection(OptionGroup):
    pairs: int | None = option("number of pairs to keep")
    words: int | None = option(
        "words to keep, in place of --pairs, counted between spaces in --target"
    )
    order: int = option("length of the longest n-grams", ORDER, Range(1, 100))


GROUPS = (Group(_Files), Group(_Selection))


def needs_tensorflow(*_: object) -> bool:
    """It does not."""
    return False


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that would otherwise be found after hours."""
    if flags.pairs is None and flags.words is None:
        raise ValueError("--pairs or --words is missing")
    if flags.pairs is not None and flags.words is not None:
        raise ValueError("--pairs and --words: wanted one, not both")
    taken = check_files(flags, "source", "target", "in_domain_source", "in_domain_target")
    for name in ("output_source", "output_target", "scores"):
        path = flags[name].value
        check_output(name, path, taken)
        if path is not None:
            taken.append((f"--{name}", path))


def run(flags: absl_flags.FlagValues) -> None:
    """Runs the command."""
    corpus = ParallelCorpus(flags.source, flags.target)
    in_domain = ParallelCorpus(flags.in_domain_source, flags.in_domain_target)
    words = np.ones(len(corpus), np.int64) if flags.words is None else count_words(corpus)
    unit, wanted = ("pairs", flags.pairs) if flags.words is None else ("words", flags.words)
    if not 1 <= wanted <= words.sum():
        raise ValueError(f"--{unit} is {wanted}, wanted 1 to {words.sum()}, the {unit} of --target")
    start = time.monotonic()
    scores = score_pairs(corpus, in_domain, flags.order)
    rate = len(corpus) / (time.monotonic() - start)
    chosen = lowest(scores, count_of_words(scores, words, wanted))
    if flags.scores is not None:
        by_line = np.full(corpus.lines, np.inf, np.float32)
        by_line[corpus.rows] = scores
        with written(flags.scores) as stream:
            stream.writelines(f"{score:.4f}\n" for score in by_line)
    with written_together([flags.output_source, flags.output_target]) as streams:
        for texts in corpus.read_in_chunks(corpus.rows[chosen]):
            for stream, lines in zip(streams, texts, strict=True):
                stream.writelines(f"{line.decode()}\n" for line in lines)
    kept_words = "" if flags.words is None else f", {words[chosen].sum():,} words of --target"
    print(
        f"kept {len(chosen):,} of {amount(len(corpus), 'pair')}{kept_words}, with scores "
        f"from {scores[chosen].min():.3f} to {scores[chosen].max():.3f}; "
        f"{corpus.blank:,} with a blank line; {rate:.0f} pairs a second"
    )
