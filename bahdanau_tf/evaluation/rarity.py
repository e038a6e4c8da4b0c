"""BLEU by rarity of words: Figure 3 of Sutskever et al. 2014, right."""

from __future__ import annotations

from collections.abc import Sequence

from bahdanau_tf.evaluation.lengths import LengthBin
from bahdanau_tf.evaluation.lengths import bleu_by_length
from bahdanau_tf.evaluation.scores import check_counts


def bleu_by_rank(
    hypotheses: Sequence[str],
    references: Sequence[str],
    ranks: Sequence[float],
    *,
    count: int = 6,
    tokenize: str = "13a",
    lowercase: bool = False,
    nfc: bool = True,
    n_bootstrap: int = 1000,
) -> list[LengthBin]:
    """Computes BLEU of sentences that are sorted by the rank of their words.

    Args:
        hypotheses: The translations.
        references: The reference translations.
        ranks: The mean frequency rank of each sentence's words; sentences of
            the same rank keep their order.
        count: Largest number of bins. They have as many sentences as each
            other, but for the last one, which may have fewer.
        tokenize: As in `bleu`.
        lowercase: As in `bleu`.
        nfc: As in `bleu`.
        n_bootstrap: Samples for the intervals; less than 2 for no intervals.

    Returns:
        The bins, sentences with the most frequent words first; `shortest` and
        `longest` are places among the sorted sentences, from 1.

    Raises:
        ValueError: As in `bleu`; or `count` is less than 1.
    """
    if count < 1:
        raise ValueError(f"bleu_by_rank: count is {count}, wanted >= 1.")
    check_counts(
        "bleu_by_rank",
        {"hypotheses": hypotheses, "references": references, "ranks": ranks},
    )
    places = [0] * len(ranks)
    for place, number in enumerate(by_rank(ranks), 1):
        places[number] = place
    return bleu_by_length(
        hypotheses,
        references,
        places,
        width=max(-(-len(ranks) // count), 1),
        tokenize=tokenize,
        lowercase=lowercase,
        nfc=nfc,
        n_bootstrap=n_bootstrap,
    )


def by_rank(ranks: Sequence[float]) -> list[int]:
    """The numbers of the sentences, those with the smallest rank first."""
    return sorted(range(len(ranks)), key=ranks.__getitem__)
