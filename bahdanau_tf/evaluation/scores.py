"""BLEU and chrF by sacreBLEU, of composed text, with its signature."""

from __future__ import annotations

import copy
import functools
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command line reads flags without it
    from sacrebleu.metrics.base import Signature
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class Score:
    """A score with its sacreBLEU signature; prints as sacreBLEU prints it.

    Attributes:
        name: "BLEU" or "chrF2".
        score: From 0 to 100.
        signature: The settings that the score depends on; after sacreBLEU's
            own "norm:NFC" if the texts were composed before.
        mean: Mean over bootstrap samples, None if none were drawn.
        margin: Half the width of their 95 % interval, None if none were drawn.
        detail: BLEU's n-gram precisions, brevity penalty and lengths.
    """

    name: str
    score: float
    signature: str
    mean: float | None = None
    margin: float | None = None
    detail: str = ""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % bootstrap interval, None if no samples were drawn."""
        if self.mean is None or self.margin is None:
            return None
        return self.mean - self.margin, self.mean + self.margin

    @property
    def brief(self) -> str:
        """The score, with the margin if there is one: "57.02 ± 1.13"."""
        margin = "" if self.margin is None else f" ± {self.margin:.2f}"
        return f"{self.score:.2f}{margin}"

    def __str__(self) -> str:
        parts = [f"{self.name}|{self.signature} = {self.score:.2f}"]
        if self.interval is not None:
            parts.append(f"(μ = {self.mean:.2f} ± {self.margin:.2f})")
        return " ".join([*parts, self.detail]).rstrip()


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    nfc: bool = True,
    n_bootstrap: int = 0,
) -> Score:
    """Computes corpus BLEU.

    Args:
        hypotheses: translations, one string per sentence.
        references: one reference per sentence.
        tokenize: a tokenizer of sacreBLEU: "13a" for text with blanks between
            words (Japanese without blanks has BLEU 0), "none" for text that is
            tokenized already, "char", "intl", "zh", "ja-mecab", "ko-mecab"...
            `bleu_tokenizer` chooses one.
        lowercase: whether case is ignored.
        nfc: whether both are written in composed characters (NFC) before: the
            same text may come decomposed (NFD), and no word would match.
        n_bootstrap: bootstrap samples to draw; less than 2 for none.

    Returns:
        The score.

    Raises:
        ValueError: there are no sentences, their numbers differ, the tokenizer
            is unknown or its package is not installed.
    """
    metric = bleu_metric(tokenize, lowercase)
    return _score(metric, "bleu", hypotheses, references, nfc, n_bootstrap)


def chrf(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    nfc: bool = True,
    n_bootstrap: int = 0,
) -> Score:
    """Computes corpus chrF2, which needs no tokenizer; Args as in `bleu`."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF(lowercase=lowercase)
    return _score(metric, "chrf", hypotheses, references, nfc, n_bootstrap)


def bleu_metric(tokenize: str, lowercase: bool) -> BLEU:
    """Makes sacreBLEU's metric.

    All of a kind share a tokenizer. It keeps what it has tokenized, up to
    65,536 lines, so references that are evaluated again are kept once.

    Raises:
        ValueError: The tokenizer is unknown, or its package is not installed.
            The message lists the tokenizers, or says how to install it.
    """
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(
            f"bleu: tokenize is {tokenize!r}, wanted one of {', '.join(BLEU.TOKENIZERS)}."
        )
    # A copy: bootstrapping changes a metric, and its signature.
    return copy.copy(_first_metric(tokenize, lowercase))


@functools.cache
def _first_metric(tokenize: str, lowercase: bool) -> BLEU:
    from sacrebleu.metrics.bleu import BLEU

    try:
        # `force`: no warning that the text looks tokenized.
        return BLEU(lowercase=lowercase, tokenize=tokenize, force=tokenize == "none")
    except (RuntimeError, AssertionError) as error:  # from its MeCab checks
        advice = " ".join(str(error).split())
        raise ValueError(f"bleu: tokenize is {tokenize!r}: {advice}") from error


def _score(
    metric: BLEU | CHRF,
    function: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    nfc: bool,
    n_bootstrap: int,
) -> Score:
    check_corpus(function, "hypotheses", hypotheses, references)
    score = metric.corpus_score(
        as_scored(hypotheses, nfc),
        [as_scored(references, nfc)],
        n_bootstrap=n_bootstrap,
    )
    signature = signature_text(metric.get_signature(), nfc)
    # Only this JSON makes mean and interval public; it omits those that are 0.
    known = json.loads(score.format(10, signature=signature, is_json=True))
    drawn = 0.0 if n_bootstrap > 1 else None
    return Score(
        name=known["name"],
        score=score.score,
        signature=signature,
        mean=known.get("confidence_mean", drawn),
        margin=known.get("confidence_var", drawn),
        detail=known.get("verbose_score", ""),
    )


def as_scored(lines: Iterable[str], nfc: bool) -> list[str]:
    """Translations or references as sacreBLEU gets them, composed if `nfc`."""
    if not nfc:
        return [*lines]
    return [unicodedata.normalize("NFC", line) for line in lines]


def signature_text(signature: Signature, nfc: bool) -> str:
    """sacreBLEU's signature, and behind it what was done before."""
    return signature.format() + ("|norm:NFC" if nfc else "")


def check_corpus(
    function: str,
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> None:
    """Raises ValueError if there are no sentences, or the numbers differ."""
    check_counts(function, {name: hypotheses, "references": references})
    if not len(hypotheses):
        raise ValueError(f"{function}: there are no sentences to score.")


def check_counts(function: str, columns: Mapping[str, Sequence[object]]) -> None:
    """Raises ValueError, with the lengths, unless all columns have the same."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise ValueError(f"{function}: {counts}; wanted equal numbers.")


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
    from sacrebleu.significance import PairedTest

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
