"""Word alignments: their error rate, and their files.

An alignment is a set of links (source word, target word), counted from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bahdanau_tf.evaluation.scores import check_counts
from bahdanau_tf.system.lines import read_lines, written

Links = frozenset[tuple[int, int]]


def alignment_error_rate(
    alignments: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links] | None = None
) -> float:
    """Computes the alignment error rate, summed over sentences.

        AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    Args:
        alignments: A, the links to judge, a set for each sentence.
        sure: S, the links that must be found.
        possible: further links that may be found; P is their union with S.

    Returns:
        From 0, the best, to 1; 0 if there are no links at all.

    Raises:
        ValueError: the numbers of sentences differ.

    Reference: Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models",
    section 5.
    """
    possible = [frozenset()] * len(sure) if possible is None else possible
    columns = {"alignments": alignments, "sure": sure, "possible": possible}
    check_counts("alignment_error_rate", columns)
    hits = links = 0
    for a, s, p in zip(alignments, sure, possible, strict=True):
        hits += len(a & s) + len(a & (s | p))
        links += len(a) + len(s)
    return 1.0 - hits / links if links else 0.0


def diagonal_links(target_length: int, source_length: int) -> Links:
    """Links target word i of T_y to the source word ⌊(i + 1/2) T_x / T_y⌋.

    Words are counted from 0. Without a source word there are no links.
    """
    if not source_length:
        return frozenset()
    return frozenset(
        ((2 * i + 1) * source_length // (2 * target_length), i) for i in range(target_length)
    )


def hard_links(weights: np.ndarray) -> Links:
    """The source word with the largest weight, for each target word.

    Args:
        weights: α, float [T_y, T_x], end symbols left out.
    """
    if not weights.size:
        return frozenset()
    return frozenset((int(source), target) for target, source in enumerate(weights.argmax(axis=1)))


def mean_entropy(weights: Sequence[np.ndarray]) -> float:
    """Computes the mean entropy of the weights of a target word, in nats.

        H(α_i) = -Σ_j α_ij log α_ij

    Args:
        weights: α of each sentence, float [T_y, T_x]; rows are normalized.
    """
    total = rows = 0.0
    for matrix in weights:
        alpha = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-30)
        total -= float(np.sum(alpha * np.log(np.maximum(alpha, 1e-30))))
        rows += len(matrix)
    return total / max(rows, 1.0)


def parse_pharaoh(line: str) -> Links:
    """Reads links as in "0-0 1-2": source-target, counted from 0.

    Raises:
        ValueError: the line holds something else.
    """
    links = []
    for item in line.split():
        match = re.fullmatch(r"([0-9]+)-([0-9]+)", item)
        if match is None:
            raise ValueError(f'parse_pharaoh: {item!r} is not a link, wanted e.g. "0-1".')
        links.append((int(match[1]), int(match[2])))
    return frozenset(links)


def format_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Writes links as in "0-0 1-2", sorted and without repetition."""
    return " ".join(f"{i}-{j}" for i, j in sorted(set(links)))


def read_pharaoh(path: str | Path) -> list[Links]:
    """Reads a file of alignments, one sentence per line; see `parse_pharaoh`.

    Raises:
        ValueError: a line holds something else; the message has its number.
    """
    alignments = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            alignments.append(parse_pharaoh(line))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from error
    return alignments


def write_pharaoh(path: str | Path, alignments: Iterable[Links]) -> None:
    """Writes a file of alignments, plain or .gz, one sentence per line."""
    with written(path) as file:
        file.writelines(f"{format_pharaoh(links)}\n" for links in alignments)
