"""Selects the pairs of a large corpus most similar to a small one's."""

from __future__ import annotations

import time

import numpy as np
from absl import flags as absl_flags

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.data.selection import CHUNK, lowest, score_pairs
from bahdanau_tf.system.lines import written, written_together
from bahdanau_tf.system.terminal import amount


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
