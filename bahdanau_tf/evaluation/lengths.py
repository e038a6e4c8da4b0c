"""BLEU by sentence length: the points of the paper's Figure 2."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

from bahdanau_tf.evaluation.scores import Score
from bahdanau_tf.evaluation.scores import bleu
from bahdanau_tf.evaluation.scores import check_counts
from bahdanau_tf.evaluation.subsets import select
from bahdanau_tf.evaluation.tables import Cell

LONGEST = 60  # longer sentences are one bin, as in the paper's Figure 2


@dataclass(frozen=True)
class LengthBin:
    """The score of the sentences with `shortest` to `longest` source words."""

    shortest: int
    longest: int
    sentences: int
    score: Score


def bleu_by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    source_lengths: Sequence[int],
    *,
    width: int = 10,
    tokenize: str = "13a",
    lowercase: bool = False,
    nfc: bool = True,
    n_bootstrap: int = 1000,
) -> list[LengthBin]:
    """Computes BLEU for each bin of source length, as in the paper's Figure 2.

    Args:
        hypotheses, references, tokenize, lowercase, nfc, n_bootstrap: as in
            `bleu`.
        source_lengths: number of words of each source sentence.
        width: lengths per bin: 1 to `width`, `width` + 1 to twice that, and so
            on. An empty sentence is in the first bin.

    Returns:
        The bins that hold sentences, shortest first.

    Raises:
        ValueError: as in `bleu`; or `width` is less than 1.
    """
    if width < 1:
        raise ValueError(f"bleu_by_length: width is {width}, wanted >= 1.")
    check_counts(
        "bleu_by_length",
        {
            "hypotheses": hypotheses,
            "references": references,
            "source lengths": source_lengths,
        },
    )
    places = [max(length - 1, 0) // width for length in source_lengths]
    bins = []
    for place in sorted(set(places)):
        mask = [other == place for other in places]
        ours, theirs = select(mask, hypotheses, references)
        score = bleu(
            ours,
            theirs,
            tokenize=tokenize,
            lowercase=lowercase,
            nfc=nfc,
            n_bootstrap=n_bootstrap,
        )
        first = place * width + 1
        bins.append(LengthBin(first, first + width - 1, len(ours), score))
    return bins


def length_bins(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lengths: Sequence[int],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    nfc: bool = True,
    n_bootstrap: int = 0,
) -> list[LengthBin]:
    """BLEU of the sentences of 1 to 10 words, of 11 to 20, ..., over 60.

    Args:
        hypotheses: The translations.
        references: The reference translations.
        lengths: Number of words of each source sentence.
        tokenize: As in `bleu`.
        lowercase: As in `bleu`.
        nfc: As in `bleu`.
        n_bootstrap: Samples for the intervals; less than 2 for no intervals.

    Returns:
        The bins that hold sentences.
    """
    return bleu_by_length(
        hypotheses,
        references,
        [min(length, LONGEST + 1) for length in lengths],
        tokenize=tokenize,
        lowercase=lowercase,
        nfc=nfc,
        n_bootstrap=n_bootstrap,
    )


def bin_title(one: LengthBin) -> str:
    """The title of a bin: "1-10", ">60"."""
    if one.longest > LONGEST:
        return f">{LONGEST}"
    return f"{one.shortest}-{one.longest}"


def length_rows(
    curves: Mapping[str, Sequence[LengthBin]],
) -> tuple[list[str], list[list[Cell]]]:
    """A table of BLEU by length.

    Args:
        curves: The bins of each system.

    Returns:
        The titles of the bins, and the rows below: the number of sentences,
        then the scores of each system.
    """
    bins = next(iter(curves.values()), [])
    rows: list[list[Cell]] = [["sentences", *(one.sentences for one in bins)]]
    for name, points in curves.items():
        rows.append([name, *(one.score.brief for one in points)])
    return [*map(bin_title, bins)], rows
