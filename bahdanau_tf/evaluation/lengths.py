"""BLEU by sentence length: the points of the paper's Figure 2."""

from __future__ import annotations

from collections.abc import Sequence

from bahdanau_tf.evaluation.subsets import LengthBin
from bahdanau_tf.evaluation.subsets import bleu_by_length

LONGEST = 60  # longer sentences are one bin, as in the paper's Figure 2


def length_bins(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lengths: Sequence[int],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    n_bootstrap: int = 0,
) -> list[LengthBin]:
    """BLEU of the sentences of 1 to 10 words, of 11 to 20, ..., over 60.

    Args:
        hypotheses: The translations.
        references: The reference translations.
        lengths: Number of words of each source sentence.
        tokenize: As in `bleu`.
        lowercase: As in `bleu`.
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
        n_bootstrap=n_bootstrap,
    )


def bin_title(one: LengthBin) -> str:
    """The title of a bin: "1-10", ">60"."""
    if one.longest > LONGEST:
        return f">{LONGEST}"
    return f"{one.shortest}-{one.longest}"
