"""Ranks n-best lists of any system again with a translation model.

The lists are in Moses' format, one hypothesis per line:

    sentence number ||| hypothesis ||| features ||| score ||| further fields
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from bahdanau_tf.evaluation import Score, bleu
from bahdanau_tf.options.decoding import WINDOW
from bahdanau_tf.system.ranges import OptionError, Refusal
from bahdanau_tf.translation.result import Scored

GRID = tuple(step / 100 for step in range(101))
_BAR = "|||"
_ESCAPED = "&#124;&#124;&#124;"  # how Moses writes it in a text


class MalformedListError(ValueError):
    """A file is not an n-best list of the sentences."""


class Scorer(Protocol):
    """What this module needs of a `Translator`."""

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> Sequence[Scored]:
        """Computes log p(y | x) of given translations."""


@dataclass(frozen=True)
class Hypothesis:
    """A line of an n-best list."""

    sentence: int  # number of the source sentence, from 0
    text: str  # the translation
    features: str  # scores of the system's parts, as written in the list
    score: float  # the system's total score; higher is better
    rest: tuple[str, ...] = ()  # further fields, such as an alignment

    def __str__(self) -> str:
        number, score = str(self.sentence), f"{self.score:.8g}"
        return fields(number, self.text, self.features, score, *self.rest)

    @classmethod
    def parse(cls, line: str) -> Hypothesis:
        """Reads a line; raises ValueError if it is not one of an n-best list."""
        try:
            number, text, features, score, *rest = (field.strip(" ") for field in line.split(_BAR))
            if math.isnan(float(score)):
                raise ValueError("not a number cannot be ranked")
            text = text.replace(_ESCAPED, _BAR)
            return cls(int(number), text, features, float(score), tuple(rest))
        except ValueError:
            wanted = f"a number {_BAR} a hypothesis {_BAR} features {_BAR} a score"
            raise OptionError("Hypothesis.parse", "line", line, wanted) from None


def perplexity(scored: Iterable[Scored]) -> float:
    """exp of the mean of -log p over the tokens of translations, end symbols included."""
    if not (rows := [each.token_log_probs for each in scored]):
        raise Refusal("perplexity", "there are no sentences to score")
    return float(np.exp(-np.concatenate(rows).mean(dtype=np.float64)))


def fields(*texts: str) -> str:
    """A line of fields; "|||" in a text is escaped as in Moses."""
    return f" {_BAR} ".join(text.replace(_BAR, _ESCAPED) for text in texts)


class NBest(NamedTuple):
    """The n-best list of a sentence."""

    source: str
    hypotheses: list[Hypothesis]  # may be empty


def read_nbest(lines: Iterable[str], sources: Iterable[str]) -> Iterator[NBest]:
    """Reads n-best lists, ordered by sentence numbers from 0, with the sentences they translate.

    Only one list at a time is kept in memory. A MalformedListError has the number of a line that is
    malformed, out of order, or of a sentence that is not among `sources`.
    """
    groups = itertools.groupby(_parsed(lines), lambda numbered: numbered[1].sentence)
    group = next(groups, None)
    for number, source in enumerate(sources):
        if group is not None and group[0] < number:
            break
        if group is None or group[0] != number:
            yield NBest(source, [])
            continue
        yield NBest(source, [hypothesis for _, hypothesis in group[1]])
        group = next(groups, None)
    if group is not None:
        line, hypothesis = next(group[1])
        raise MalformedListError(
            f"line {line} is for sentence {hypothesis.sentence}, "
            "wanted ascending numbers from 0, less than the number of sources"
        )


def _parsed(lines: Iterable[str]) -> Iterator[tuple[int, Hypothesis]]:
    for number, line in enumerate(lines, 1):
        try:
            yield number, Hypothesis.parse(line)
        except OptionError as error:
            said = f"line {number} is {error.value!r}, wanted {error.wanted}"
            raise MalformedListError(said) from None


def score_nbest(
    scorer: Scorer, lists: Iterable[NBest], window: int = WINDOW
) -> Iterator[tuple[NBest, list[float]]]:
    """Yields each list, in order, with log p(y | x) of its hypotheses by a `Translator`.

    At least `window` hypotheses are scored at once, so that those of similar length are in one
    batch. The lists of a window are kept in memory.
    """
    held: list[NBest] = []
    count = 0
    for nbest in lists:
        held.append(nbest)
        count += len(nbest.hypotheses)
        if count >= window:
            yield from _score_window(scorer, held)
            held, count = [], 0
    yield from _score_window(scorer, held)


def _score_window(scorer: Scorer, held: list[NBest]) -> Iterator[tuple[NBest, list[float]]]:
    sources = [nbest.source for nbest in held for _ in nbest.hypotheses]
    texts = [hypothesis.text for nbest in held for hypothesis in nbest.hypotheses]
    scored = iter(scorer.score(sources, texts) if texts else ())
    for nbest in held:
        some = itertools.islice(scored, len(nbest.hypotheses))
        yield nbest, [float(score.log_prob) for score in some]


def combine(
    hypotheses: Sequence[Hypothesis],
    log_probs: Sequence[float],
    weight: float = 0.5,
    feature: str = "LogProb",
) -> list[Hypothesis]:
    """Ranks an n-best list by (1 - λ) s + λ log p(y | x), λ in 0 to 1.

    λ = 0.5 is the plain average of Sutskever et al. 2014, section 3.6. s is the total score of a
    hypothesis. log p(y | x) is added to the features under the name `feature`, with the first
    number from 0 that makes it new. Ties keep their order.
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"combine: weight is {weight}, wanted 0 to 1")
    ranked = [
        replace(
            hypothesis,
            features=_added(hypothesis.features, feature, log_prob),
            score=_mixed(hypothesis.score, log_prob, weight),
        )
        for hypothesis, log_prob in zip(hypotheses, log_probs, strict=True)
    ]
    return sorted(ranked, key=lambda hypothesis: -hypothesis.score)


def _mixed(score: float, log_prob: float, weight: float) -> float:
    parts = ((1 - weight, score), (weight, log_prob))
    return sum(share * value for share, value in parts if share)  # 0 times -inf


def _added(features: str, name: str, value: float) -> str:
    names = features.split()
    number = next(n for n in itertools.count() if f"{name}{n}=" not in names)
    return f"{features} {name}{number}= {value:.4f}".lstrip()


class Choice(NamedTuple):
    """A weight, and its BLEU on the sentences on which it was chosen."""

    weight: float  # λ of `combine`
    score: Score  # BLEU of the hypotheses that it ranks first


def choose_weight(
    scored: Iterable[tuple[NBest, list[float]]], references: Sequence[str], **options: Any
) -> Choice:
    """Chooses λ of `combine` by BLEU, from 0, 0.01, ..., 1; of equals that nearest to 0.5.

    `scored` is the result of `score_nbest` for a development set; `references` and options are
    those of `bleu`, which raises a ValueError if there are no sentences, or their numbers differ.
    """
    lists = [
        [
            (hypothesis.text, hypothesis.score, log_prob)
            for hypothesis, log_prob in zip(nbest.hypotheses, log_probs, strict=True)
        ]
        for nbest, log_probs in scored
    ]
    scores: dict[tuple[str, ...], Score] = {}
    choices = []
    for weight in sorted(GRID, key=lambda weight: abs(weight - 0.5)):
        best = tuple(_best(hypotheses, weight) for hypotheses in lists)
        if best not in scores:
            scores[best] = bleu(best, references, **options)
        choices.append(Choice(weight, scores[best]))
    return max(choices, key=lambda choice: choice.score.score)


def _best(hypotheses: Sequence[tuple[str, float, float]], weight: float) -> str:
    """The text that ranks first; "" if there are no hypotheses."""
    return max(hypotheses, key=lambda x: _mixed(x[1], x[2], weight), default=("",))[0]
