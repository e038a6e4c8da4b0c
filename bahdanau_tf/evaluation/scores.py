"""BLEU and chrF, sacreBLEU's own, with the signature that says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class Score:
    """A score with its sacreBLEU signature; prints as sacreBLEU prints it.

    Attributes:
        name: "BLEU" or "chrF2".
        score: From 0 to 100.
        signature: All that could change it.
        mean: Mean over bootstrap samples, None if none were drawn.
        margin: Half the width of their 95 % interval, None likewise.
        detail: n-gram precisions, brevity penalty and lengths of BLEU.
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
    n_bootstrap: int = 0,
) -> Score:
    """Computes corpus BLEU.

    Args:
        hypotheses: translations, one string per sentence.
        references: as many references.
        tokenize: a tokenizer of sacreBLEU: "13a" for text with blanks between
            words (Japanese without them has BLEU 0), "none" for text that is
            tokenized already, "char", "intl", "zh", "ja-mecab", "ko-mecab"...
            `bleu_tokenizer` chooses one.
        lowercase: whether case is ignored.
        n_bootstrap: bootstrap samples to draw; below 2 none are.

    Returns:
        The score.

    Raises:
        ValueError: no sentences, different numbers of them, an unknown
            tokenizer or one whose package is not installed.
    """
    metric = bleu_metric(tokenize, lowercase)
    return _score(metric, "bleu", hypotheses, references, n_bootstrap)


def chrf(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    n_bootstrap: int = 0,
) -> Score:
    """Computes corpus chrF2, which needs no words; Args as for `bleu`."""
    metric = CHRF(lowercase=lowercase)
    return _score(metric, "chrf", hypotheses, references, n_bootstrap)


def bleu_metric(tokenize: str, lowercase: bool) -> BLEU:
    """Makes sacreBLEU's metric.

    Raises:
        ValueError: There is no such tokenizer, says which there are; or its
            package is not installed, says how to install it.
    """
    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(
            f"bleu: tokenize is {tokenize!r}, wanted one of "
            f"{', '.join(BLEU.TOKENIZERS)}."
        )
    try:
        # `force` stops the warning that the text looks tokenized: it is.
        return BLEU(
            lowercase=lowercase, tokenize=tokenize, force=tokenize == "none"
        )
    except (RuntimeError, AssertionError) as error:  # what it checks of MeCab
        advice = " ".join(str(error).split())
        raise ValueError(f"bleu: tokenize is {tokenize!r}: {advice}") from error


def _score(
    metric: BLEU | CHRF,
    function: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    n_bootstrap: int,
) -> Score:
    check_corpus(function, "hypotheses", hypotheses, references)
    score = metric.corpus_score(
        list(hypotheses), [list(references)], n_bootstrap=n_bootstrap
    )
    signature = metric.get_signature().format()
    # Its JSON is sacreBLEU's one public way to mean and interval.
    known = json.loads(score.format(10, signature=signature, is_json=True))
    drawn = 0.0 if n_bootstrap > 1 else None  # left out where they are 0
    return Score(
        name=known["name"],
        score=score.score,
        signature=signature,
        mean=known.get("confidence_mean", drawn),
        margin=known.get("confidence_var", drawn),
        detail=known.get("verbose_score", ""),
    )


def check_corpus(
    function: str,
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> None:
    """Raises unless there are sentences, as many in `name` as references."""
    check_counts(function, {name: hypotheses, "references": references})
    if not len(hypotheses):
        raise ValueError(f"{function}: there are no sentences to score.")


def check_counts(
    function: str, columns: Mapping[str, Sequence[object]]
) -> None:
    """Raises unless all columns are of one length, naming the lengths."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise ValueError(f"{function}: {counts}; wanted as many of each.")
