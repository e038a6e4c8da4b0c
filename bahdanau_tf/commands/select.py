"""Keeps the pairs of a large corpus that are most like those of a small one.

Pairs are scored by bilingual cross-entropy difference (Axelrod, He and Gao,
2011): n-gram models of the in-domain text against models of a random sample
of the corpus. The best --pairs are written in the order of the corpus, one
sentence a line. Files may be plain or .gz, UTF-8.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from absl import flags as absl_flags

from bahdanau_tf.corpora.parallel import ParallelCorpus
from bahdanau_tf.corpora.selection import CHUNK
from bahdanau_tf.corpora.selection import ORDER
from bahdanau_tf.corpora.selection import lowest
from bahdanau_tf.corpora.selection import score_pairs
from bahdanau_tf.text_files import written

_FILES = {
    "source": "the corpus to select from",
    "target": "its translation",
    "in_domain_source": "text like what is wanted",
    "in_domain_target": "its translation",
    "output_source": "where the selected lines of --source go",
    "output_target": "where those of --target go",
}


def define_flags(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    scores = (
        "where the score of each line of the corpus goes, the lower the "
        "better, inf for lines that are blank on a side"
    )
    for name, text in (*_FILES.items(), ("scores", scores)):
        absl_flags.DEFINE_string(name, None, text, flag_values=flags)
    absl_flags.DEFINE_integer(
        "pairs", None, "how many pairs to keep", flag_values=flags
    )
    absl_flags.DEFINE_integer(
        "order", ORDER, "length of the longest n-grams", flag_values=flags
    )


def run(flags: absl_flags.FlagValues) -> int:
    """Selects."""
    _check(flags)
    corpus = ParallelCorpus(flags.source, flags.target)
    in_domain = ParallelCorpus(flags.in_domain_source, flags.in_domain_target)
    if not 1 <= flags.pairs <= len(corpus):
        raise ValueError(
            f"--pairs is {flags.pairs}, wanted 1 to {len(corpus)}, the pairs "
            "of the corpus"
        )
    start = time.monotonic()
    scores = score_pairs(corpus, in_domain, flags.order)
    rate = len(corpus) / (time.monotonic() - start)
    chosen = lowest(scores, flags.pairs)
    if flags.scores is not None:
        _write_scores(corpus, scores, flags.scores)
    _write_pairs(
        corpus, corpus.rows[chosen], flags.output_source, flags.output_target
    )
    print(
        f"kept {len(chosen)} of {len(corpus)} pairs, with scores from "
        f"{scores[chosen].min():.3f} to {scores[chosen].max():.3f}; "
        f"{corpus.blank} blank; {rate:.0f} pairs a second"
    )
    return 0


def _check(flags: absl_flags.FlagValues) -> None:
    """Refuses what would only be found out after hours of work."""
    for name in (*_FILES, "pairs"):
        if flags[name].value is None:
            raise ValueError(f"--{name} is missing")
    if flags.order < 1:
        raise ValueError(f"--order is {flags.order}, wanted at least 1")
    places: dict[Path, str] = {}
    for name in ("output_source", "output_target", "scores"):
        path = flags[name].value
        if path is None:
            continue
        place = Path(path).absolute()
        if place in places:
            raise ValueError(
                f"--{name} is the file of --{places[place]}, wanted another"
            )
        if not place.parent.is_dir():
            raise ValueError(f"--{name}: there is no folder {place.parent}")
        places[place] = name


def _write_pairs(
    corpus: ParallelCorpus, rows: np.ndarray, source: str, target: str
) -> None:
    with written(source) as sources, written(target) as targets:
        for start in range(0, len(rows), CHUNK):
            texts = corpus.read(rows[start : start + CHUNK])
            for stream, lines in zip((sources, targets), texts, strict=True):
                stream.writelines(f"{line.decode()}\n" for line in lines)


def _write_scores(
    corpus: ParallelCorpus, scores: np.ndarray, path: str
) -> None:
    by_line = np.full(corpus.lines, np.inf, np.float32)
    by_line[corpus.rows] = scores
    with written(path) as stream:
        stream.writelines(f"{score:.4f}\n" for score in by_line)
