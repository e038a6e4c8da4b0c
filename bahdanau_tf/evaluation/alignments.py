"""Word alignments: those of simple aligners, their error rate, and their files.

An alignment is a set of links (source word, target word), counted from 0.
"""

from __future__ import annotations

import re
import reprlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bahdanau_tf.evaluation.scores import check_counts
from bahdanau_tf.system.lines import read_lines, written
from bahdanau_tf.system.ranges import Refusal

Links = frozenset[tuple[int, int]]
SEED = 1993  # of the bootstrap samples, which are the same for all aligners


class Estimate(NamedTuple):
    """A mean or a rate over sentences, and half the width of its 95 % bootstrap interval."""

    value: float
    margin: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.margin:.3f}"


def alignment_error_rate(
    alignments: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links] | None = None
) -> float:
    """Computes the alignment error rate, summed over sentences.

        AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    Args:
        alignments: A, the links to judge, a set for each sentence.
        sure: S, the links that must be present.
        possible: further links that may be present; P is their union with S.

    Returns:
        From 0, the best, to 1; 0 if there are no links at all.

    Raises:
        ValueError: the numbers of sentences differ.

    Reference: Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models",
    section 5.
    """
    return _rates(_counts(alignments, sure, possible).sum(axis=0))[0]


def score_alignments(
    alignments: Sequence[Links],
    sure: Sequence[Links],
    possible: Sequence[Links] | None = None,
    n_bootstrap: int = 1000,
) -> list[Estimate]:
    """Computes AER, precision |A ∩ P| / |A| and recall |A ∩ S| / |S|, with bootstrap intervals.

    Args:
        alignments, sure, possible: As in `alignment_error_rate`.
        n_bootstrap: Number of samples of the sentences.

    Raises:
        ValueError: There are no sentences, or their numbers differ.
    """
    counts = _counts(alignments, sure, possible)
    return bootstrap("score_alignments", counts, _rates, n_bootstrap)


def _counts(
    alignments: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links] | None
) -> np.ndarray:
    """|A ∩ S|, |A ∩ P|, |A| and |S| of each sentence, int [N, 4]."""
    possible = [frozenset()] * len(sure) if possible is None else possible
    columns = {"alignments": alignments, "sure": sure, "possible": possible}
    check_counts("alignment_error_rate", columns)
    triples = zip(alignments, sure, possible, strict=True)
    rows = [(len(a & s), len(a & (s | p)), len(a), len(s)) for a, s, p in triples]
    return np.array(rows, int).reshape(-1, 4)


def _rates(counts: np.ndarray) -> list[float]:
    """AER, precision and recall; the best ones if there is nothing to count."""
    sure_hits, hits, links, sure = counts.tolist()
    shares = (sure_hits + hits, links + sure), (hits, links), (sure_hits, sure)
    agreement, *others = (part / whole if whole else 1.0 for part, whole in shares)
    return [1.0 - agreement, *others]


def bootstrap(
    owner: str, rows: np.ndarray, statistics: Callable[[np.ndarray], list[float]], n_bootstrap: int
) -> list[Estimate]:
    """Estimates statistics, for `owner`, of the sum of rows [N, d], one of each sentence."""
    count = len(rows)
    if not count:
        raise Refusal(owner, "there are no sentences, wanted one or more")
    if n_bootstrap < 1:
        raise Refusal(owner, f"n_bootstrap is {n_bootstrap}, wanted 1 or more")
    draw = np.random.default_rng(SEED).integers
    samples = [statistics(rows[draw(count, size=count)].sum(axis=0)) for _ in range(n_bootstrap)]
    low, high = np.percentile(samples, (2.5, 97.5), axis=0)
    margins = ((high - low) / 2).tolist()
    return [*map(Estimate, statistics(rows.sum(axis=0)), margins)]


def ibm_model_1(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], iterations: int = 5
) -> list[np.ndarray]:
    """Aligns sentence pairs by IBM model 1 (Brown et al. 1993), trained on them by EM.

        α_ij = t(y_i | x_j) / Σ_k t(y_i | x_k),  t(y | x) ← Σ α_ij / Σ_y Σ α_ij

    x_0 is an empty word in each sentence.

    Args:
        sources, targets: The words of each sentence.
        iterations: Number of EM steps, from equal t.

    Returns:
        α of each pair, float [T_y, T_x], for `hard_links`; the empty word is left out.

    Raises:
        ValueError: The numbers of sentences differ.
    """
    check_counts("ibm_model_1", {"sources": sources, "targets": targets})
    if not sources:
        return []
    source_ids: dict[str, int] = {}
    target_ids: dict[str, int] = {}
    x = [[0, *(source_ids.setdefault(w, len(source_ids) + 1) for w in line)] for line in sources]
    y = [[target_ids.setdefault(w, len(target_ids)) for w in line] for line in targets]
    width = len(source_ids) + 1
    # A cell is a source and a target word of one pair; `places` are those of its words in t.
    cells = [np.add.outer(np.multiply(b, width), a).ravel() for a, b in zip(x, y, strict=True)]
    words, places = np.unique(np.concatenate([[], *cells]).astype(int), return_inverse=True)
    lengths = np.repeat([*map(len, x)], [*map(len, y)])  # of the rows of α
    starts, t = np.cumsum(lengths) - lengths, np.ones(len(words))
    for _ in range(iterations + 1):  # the last time for α alone
        alpha = t[places] / np.repeat(np.add.reduceat(t[places], starts), lengths)
        counts = np.bincount(places, alpha, len(words))
        t = counts / np.bincount(words % width, counts)[words % width]
    parts = zip(np.split(alpha, np.cumsum([*map(len, cells)])[:-1]), x, y, strict=True)
    return [part.reshape(len(b), len(a))[:, 1:] for part, a, b in parts]


def diagonal_links(target_length: int, source_length: int) -> Links:
    """Links target word i of T_y to the source word ⌊(i + 1/2) T_x / T_y⌋.

    Words are counted from 0. Without a source word there are no links.
    """
    rows = range(target_length if source_length else 0)
    return frozenset(((2 * i + 1) * source_length // (2 * target_length), i) for i in rows)


def hard_links(weights: np.ndarray) -> Links:
    """The source word with the largest weight, for each target word.

    Args:
        weights: α, float [T_y, T_x], end symbols left out.
    """
    sources = weights.argmax(axis=1).tolist() if weights.size else []
    return frozenset((source, target) for target, source in enumerate(sources))


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


PHARAOH, NAACL = "0-1, or 0?1 if possible", "1 1 2 S"  # examples, for messages
_LINKS = {  # what a line, or a link in it, looks like
    PHARAOH: re.compile(r"(?:[0-9]+[-?p][0-9]+[?p]?(?:\s+|$))+"),
    NAACL: re.compile(r"[0-9]+\s+[0-9]+\s+[0-9]+(\s+[SP](\s+[0-9.]+)?)?"),
}
MANY, SOME = 20, 3  # pairs of which some link the first word of a side, or of one of both


def read_gold(
    path: str | Path, lengths: Sequence[tuple[int, int]]
) -> tuple[list[Links], list[Links]]:
    """Reads links made by hand, in Pharaoh's format or that of the NAACL 2003 task.

    Pharaoh's has a line for each pair, of links as in "0-0 1-2", and possible ones as in "1?2",
    "1p2" or "1-2?". NAACL's has a line for each link, "pair source target", counted from 1, with
    "P" at the end for a possible one. The first line in either shows which format it is. A warning
    says if Pharaoh's links seem to be counted from 1.

    Args:
        path: The file, plain or .gz.
        lengths: Numbers of source and target words of each pair.

    Returns:
        The sure links of each pair, and the possible ones.

    Raises:
        ValueError: The file has no links, or not a line for each pair; or a line, whose number the
            message has, holds something else, or a word that the pair does not have.
    """
    lines = [line.strip() for line in read_lines(path)]
    matches = (name for line in lines for name in _LINKS if _LINKS[name].fullmatch(line))
    if (wanted := next(matches, None)) is None:
        place, first = next((x for x in enumerate(lines, 1) if x[1]), (0, ""))
        line = f", line {place}: {reprlib.repr(first)}" if place else " has no links"
        raise ValueError(f"{path}{line}, wanted Pharaoh's {PHARAOH}, or NAACL's {NAACL}")
    pattern, is_naacl = _LINKS[wanted], wanted == NAACL
    if not is_naacl and len(lines) != len(lengths):
        raise ValueError(f"{path} has {len(lines)} lines, wanted {len(lengths)}, one for each pair")
    sure, possible = ([set[tuple[int, int]]() for _ in lengths] for _ in range(2))
    for place, line in enumerate(lines):
        for item in [line] * bool(line) if is_naacl else line.split():
            if not pattern.fullmatch(item):
                raise ValueError(
                    f"{path}, line {place + 1}: {item!r} is not a link, wanted e.g. {wanted}"
                )
            numbers = [int(number) - is_naacl for number in re.findall("[0-9]+", item)]
            pair, i, j = numbers[:3] if is_naacl else (place, *numbers)
            is_there = 0 <= pair < len(lengths)
            x, y = lengths[pair] if is_there else (0, 0)
            if not (0 <= i < x and 0 <= j < y):
                words = f"the pair's {x} source and {y} target words"
                raise ValueError(
                    f"{path}, line {place + 1}: {item!r} is not within "
                    f"{words if is_there else f'the {len(lengths)} pairs'}, counted from "
                    f"{int(is_naacl)}"
                )
            (possible if {*item} & {*"?pP"} else sure)[pair].add((i, j))
    links = [*filter(None, map(set.union, sure, possible))]
    firsts = [any(link[side] == 0 for own in links for link in own) for side in (0, 1)]
    fewest = MANY if any(firsts) else SOME
    for name, is_linked in zip(("source", "target"), firsts, strict=True):
        if len(links) >= fewest and not is_linked:
            hint = f"if {name} words are counted from 1, subtract 1"
            warnings.warn(f"{path}: no first {name} word has a link; {hint}", stacklevel=2)
    return [*map(frozenset, sure)], [*map(frozenset, possible)]


def write_pharaoh(path: str | Path, alignments: Iterable[Links]) -> None:
    """Writes a file of alignments, plain or .gz, one sentence per line."""
    with written(path) as file:
        file.writelines(f"{format_pharaoh(links)}\n" for links in alignments)
