"""Significance of differences in BLEU between systems."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.significance import PairedTest

from bahdanau_tf.evaluation.scores import Score
from bahdanau_tf.evaluation.scores import as_scored
from bahdanau_tf.evaluation.scores import bleu_metric
from bahdanau_tf.evaluation.scores import check_corpus
from bahdanau_tf.evaluation.scores import signature_text


@dataclass(frozen=True)
class Comparison:
    """A system compared with the first one.

    Attributes:
        system: The name of the system.
        score: Its BLEU, with bootstrap interval.
        p_value: That of the paired bootstrap test. None for the first system;
            1 for translations identical to the first one's.
    """

    system: str
    score: Score
    p_value: float | None


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    nfc: bool = True,
    n_bootstrap: int = 1000,
) -> list[Comparison]:
    """Compares systems with the first one by paired bootstrap resampling.

    Args:
        systems: name -> translations; the first is the baseline.
        references, tokenize, lowercase, nfc: as in `bleu`.
        n_bootstrap: samples, 1 or more.

    Returns:
        A `Comparison` for each system, in the order given.

    Raises:
        ValueError: as in `bleu`; or there are no systems or no samples.

    Reference: Koehn 2004, "Statistical Significance Tests for Machine
    Translation Evaluation"; the test is sacreBLEU's.
    """
    if not systems or n_bootstrap < 1:
        raise ValueError(
            f"compare: {len(systems)} systems and n_bootstrap {n_bootstrap}, "
            "wanted 1 or more of both."
        )
    for name, lines in systems.items():
        check_corpus("compare", f"lines of {name!r}", lines, references)
    test = PairedTest(
        named_systems=[(n, as_scored(x, nfc)) for n, x in systems.items()],
        metrics={"BLEU": bleu_metric(tokenize, lowercase)},
        references=[as_scored(references, nfc)],
        test_type="bs",
        n_samples=n_bootstrap,
    )
    signatures, columns = test()
    # `Result`, whose mean sacreBLEU types as optional: here it is always set.
    results: list[Any] = columns["BLEU"]
    signature = signature_text(signatures["BLEU"], nfc)
    comparisons = []
    for name, result in zip(systems, results, strict=True):
        mean, margin = float(result.mean), float(result.ci)
        score = Score("BLEU", result.score, signature, mean, margin)
        p_value = result.p_value  # None for the first
        # sacreBLEU counts larger differences, so of none it finds the least p.
        if p_value is not None and result.score == results[0].score:
            p_value = 1.0
        comparisons.append(Comparison(name, score, p_value))
    return comparisons
