"""Selects the pairs of a large corpus most similar to those of a small one.

Pairs are scored by bilingual cross-entropy difference (Axelrod, He and Gao,
2011): n-gram models of the in-domain text against models of a random sample
of the corpus. The best --pairs are written in the order of the corpus, one
sentence per line. Files may be plain or .gz, UTF-8.
"""

from __future__ import annotations

import time

import numpy as np
from absl import flags as absl_flags

from bahdanau_tf.commands.flags import Group, check_files, check_output, define_strings
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.data.selection import CHUNK, ORDER, lowest, score_pairs
from bahdanau_tf.system.lines import written, written_together
from bahdanau_tf.system.terminal import amount

_READ = {
    "source": "the corpus to select from",
    "target": "its translation",
    "in_domain_source": "text of the wanted kind",
    "in_domain_target": "its translation",
}
_WRITTEN = {
    "output_source": "file for the selected lines of --source",
    "output_target": "file for the selected lines of --target",
}
REQUIRED = (*_READ, *_WRITTEN, "pairs")
NEEDS_TENSORFLOW = False


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    scores = (
        "file for the score of each line of the corpus; lower is better, inf "
        "for lines that are blank on a side"
    )
    define_strings(flags, "Files", {**_READ, **_WRITTEN, "scores": scores})
    options: Group = {"flag_values": flags, "module_name": "Selection"}
    absl_flags.DEFINE_integer("pairs", None, "number of pairs to keep", **options)
    absl_flags.DEFINE_integer("order", ORDER, "length of the longest n-grams", **options)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that would otherwise be found after hours."""
    if not 1 <= flags.order <= 100:
        raise ValueError(f"--order is {flags.order}, wanted 1 to 100")
    taken = check_files(flags, *_READ)
    for name in (*_WRITTEN, "scores"):
        path = flags[name].value
        check_output(name, path, taken)
        if path is not None:
            taken.append((f"--{name}", path))


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    corpus = ParallelCorpus(flags.source, flags.target)
    in_domain = ParallelCorpus(flags.in_domain_source, flags.in_domain_target)
    if not 1 <= flags.pairs <= len(corpus):
        raise ValueError(
            f"--pairs is {flags.pairs}, wanted 1 to {len(corpus)}, the pairs of the corpus"
        )
    start = time.monotonic()
    scores = score_pairs(corpus, in_domain, flags.order)
    rate = len(corpus) / (time.monotonic() - start)
    chosen = lowest(scores, flags.pairs)
    if flags.scores is not None:
        _write_scores(corpus, scores, flags.scores)
    _write_pairs(corpus, corpus.rows[chosen], flags.output_source, flags.output_target)
    print(
        f"kept {len(chosen):,} of {amount(len(corpus), 'pair')}, with scores "
        f"from {scores[chosen].min():.3f} to {scores[chosen].max():.3f}; "
        f"{corpus.blank:,} with a blank line; {rate:.0f} pairs a second"
    )
    return 0


def _write_pairs(corpus: ParallelCorpus, rows: np.ndarray, source: str, target: str) -> None:
    with written_together([source, target]) as streams:
        for start in range(0, len(rows), CHUNK):
            texts = corpus.read(rows[start : start + CHUNK])
            for stream, lines in zip(streams, texts, strict=True):
                stream.writelines(f"{line.decode()}\n" for line in lines)


def _write_scores(corpus: ParallelCorpus, scores: np.ndarray, path: str) -> None:
    by_line = np.full(corpus.lines, np.inf, np.float32)
    by_line[corpus.rows] = scores
    with written(path) as stream:
        stream.writelines(f"{score:.4f}\n" for score in by_line)
