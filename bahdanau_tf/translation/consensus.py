"""Minimum Bayes risk: of a sentence's hypotheses, the one that agrees most with the others.

It has the largest expected utility (Kumar and Byrne 2004, "Minimum Bayes-Risk Decoding for
Statistical Machine Translation")

    u(y_i) = Σ_j p_j U(y_i, y_j)

where U(y, r) is sacreBLEU's chrF or BLEU of the sentence y if r is the reference. p_j is
p(y_j | x)^0.7, divided by the sum over the hypotheses, and 1 / K for draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from bahdanau_tf.evaluation.scores import ScoreOptions, bleu_metric, default_tokenizer
from bahdanau_tf.options import Decoding
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.translation.batches import Sentences, Work
from bahdanau_tf.translation.result import Translation

LETTERS, WORDS = 6, 4  # the longest n-grams of chrF and of BLEU
RECALL = 4  # its weight in chrF, β²
UTILITIES = ("chrf", "bleu")
FLATTER = 0.7  # chosen on Tatoeba; with 1 short hypotheses win too often in another domain


def check_consensus(mbr: str, decoding: Decoding, terms: Mapping[str, str] | None) -> None:
    """Raises ValueError if `mbr` is unknown, or set with terms or for one hypothesis."""
    if mbr not in UTILITIES:
        raise Refusal("Translator.translate", f"mbr is {mbr!r}, wanted one of {[*UTILITIES]}")
    if terms:
        raise Refusal("Translator.translate", "mbr and terms are set, wanted one of them")
    if decoding.hypotheses == 1:
        option = decoding.option_of_hypotheses
        why = f"there is one hypothesis, wanted several, such as with {option}=16"
        raise Refusal("Translator.translate", f"mbr is set and {why}")


def with_consensus(work: Work, mbr: str, target_text: object) -> Work:
    """A function that ranks all hypotheses that `work` finds by their expected utility."""

    def translate(
        decoding: Decoding, sentences: Sentences, prefixes: Sentences | None
    ) -> Iterable[Translation]:
        rows = [*work(replace(decoding, n_best=decoding.hypotheses), sentences, prefixes)]
        utility: Callable[[Sequence[str]], np.ndarray] = chrf
        if mbr == "bleu":
            tokenize = default_tokenizer(target_text, [x.text for x in rows])
            utility = partial(bleu, split=bleu_metric(ScoreOptions(tokenize)).tokenizer)
        for row in rows:
            yield _ranked(row, utility, decoding) if row.source_tokens else row

    return translate


def _ranked(
    row: Translation, utility: Callable[[Sequence[str]], np.ndarray], decoding: Decoding
) -> Translation:
    """The n best of a list; the finished ones first, as in search."""
    every = [replace(row, alternatives=[]), *row.alternatives]
    log_probs = np.array([x.log_prob for x in every])
    power = 0.0 if decoding.sampling else FLATTER
    shares = np.exp(power * (log_probs - log_probs.max()))
    means = utility([x.text for x in every]) @ (shares / shares.sum())
    every = [replace(x, score=float(mean)) for x, mean in zip(every, means, strict=True)]
    first, *others = sorted(every, key=lambda x: (not x.finished, -x.score))
    return replace(first, alternatives=others[: decoding.n_best - 1])


def chrf(texts: Sequence[str]) -> np.ndarray:
    """The chrF of each text with each other as its reference, float64 [K, K]."""
    counts, common = _counted(["".join(text.split()) for text in texts], LETTERS)
    with np.errstate(invalid="ignore"):
        is_there = (counts[:, :, None] > 0) & (counts[:, None] > 0)
        orders = np.maximum(is_there.sum(0), 1)
        precision = np.nan_to_num(common / counts[:, :, None]).sum(0) / orders
        recall = np.nan_to_num(common / counts[:, None]).sum(0) / orders
        f = (1 + RECALL) * precision * recall / (RECALL * precision + recall)
    scores: np.ndarray = np.nan_to_num(100 * f)
    return scores


def bleu(texts: Sequence[str], split: Callable[[str], str]) -> np.ndarray:
    """The BLEU of each text with each other as its reference, float64 [K, K].

    `split` is a tokenizer of sacreBLEU, which puts spaces between words.
    """
    counts, common = _counted([split(text.rstrip()).split() for text in texts], WORDS)
    totals = counts[:, :, None]
    halves = 0.5 ** np.cumsum(common == 0, 0)  # "exp" smoothing
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = np.where(common > 0, common, halves) / totals
        logs = np.where(totals > 0, np.log(precisions), 0).sum(0)
        means = np.exp(logs / np.maximum((totals > 0).sum(0), 1))
        brevity = np.exp(np.minimum(0, 1 - counts[0][None] / counts[0][:, None]))
    return np.where(common.any(0), 100 * means * brevity, 0.0)


def _counted(rows: Sequence[Sequence[str]], orders: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of n-grams of rows, [orders, K], and of those of two rows, [orders, K, K].

    Of an n-gram that two rows have 2 and 3 times, they have 2 in common.
    """
    symbols = [symbol for row in rows for symbol in row]
    names = {symbol: number for number, symbol in enumerate(dict.fromkeys(symbols))}
    first = grams = np.array([names[symbol] for symbol in symbols], np.int64)
    owner = np.repeat(np.arange(len(rows)), [*map(len, rows)])
    totals = np.zeros([orders, len(rows)])
    common = np.zeros([orders, len(rows), len(rows)])
    for n in range(orders):
        if n:  # each continues one that is a symbol shorter
            _, grams = np.unique(grams[:-1] * len(names) + first[n:], return_inverse=True)
        kinds = grams.max(initial=-1) + 1
        inside = owner[: len(grams)] == owner[n:]
        places = (owner[: len(grams)] * kinds + grams)[inside]
        counts = np.bincount(places, minlength=len(rows) * kinds).reshape(len(rows), kinds)
        totals[n] = counts.sum(1)
        for times in range(1, counts.max(initial=0) + 1):
            has = (counts >= times).astype(np.float32)
            common[n] += has @ has.T
    return totals, common
