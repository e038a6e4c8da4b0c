"""Tests the paper's claim: RNNsearch stays flat where RNNencdec falls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import hypot
from typing import NamedTuple

from bahdanau_tf.evaluation import Score
from bahdanau_tf.report.paper import Finding
from bahdanau_tf.report.results import Results, System


class Bounds(NamedTuple):
    """RNNsearch keeps `flat` of its BLEU on short sentences, RNNencdec less than `fallen`."""

    flat: float
    fallen: float


WITHIN = Bounds(0.85, 0.85)  # lengths that occur in training
BEYOND = Bounds(0.75, 0.5)
ENOUGH = 10  # least number of sentences of each kind
RULE = (
    "A pair that was trained on sentences of up to L words is tested twice on "
    "long sentences: of more than 3/5 L and up to L words, and of more than "
    "L, longer than any in training; short ones have more than 1/5 L and up to "
    f"3/5 L. “Yes” means that RNNsearch keeps at least {WITHIN.flat:.0%} of "
    f"its BLEU on the former, or {BEYOND.flat:.0%} on the latter, that "
    f"RNNencdec keeps less than {WITHIN.fallen:.0%}, or {BEYOND.fallen:.0%}, "
    "and that RNNsearch is significantly better there (paired bootstrap, p "
    "below 0.05). ± is half the width of the 95 % bootstrap interval."
)


def findings(results: Results) -> list[Finding]:
    """Tests the claim by `RULE` on each RNNsearch and matching RNNencdec.

    They match if they were trained on sentences of the same length.

    Returns:
        Two findings for each pair, one if the limit of its length is unknown; a
        single one if there is no pair.
    """
    pairs = [
        (search, encdec)
        for search in results.of_kind("RNNsearch")
        for encdec in results.of_kind("RNNencdec")
        if search.max_length == encdec.max_length
    ]
    text = "There is no RNNsearch with an RNNencdec trained on sentences of the same length."
    tests = [finding for pair in pairs for finding in _of_pair(results, pair)]
    return tests or [Finding(None, text)]


def _of_pair(results: Results, pair: tuple[System, System]) -> Iterator[Finding]:
    names = " and ".join(system.name for system in pair)
    limit = pair[0].max_length
    if not limit:
        text = "the longest length of their training sentences is unknown."
        yield Finding(None, f"{names}: {text}")
        return
    first, middle = limit // 5, 3 * limit // 5
    short = [first < n <= middle for n in results.lengths]
    within = [middle < n <= limit for n in results.lengths]
    beyond = [n > limit for n in results.lengths]
    for long, bounds, title in (
        (within, WITHIN, f"{middle + 1} to {limit} words"),
        (beyond, BEYOND, f"more than {limit} words"),
    ):
        is_shown, text = _test(results, pair, (short, long), bounds)
        title += f" against those of {first + 1} to {middle}: {text}"
        yield Finding(is_shown, f"{names}, sentences of {title}")


def _test(
    results: Results,
    pair: tuple[System, System],
    masks: tuple[Sequence[bool], Sequence[bool]],
    bounds: Bounds,
) -> Finding:
    """Tests the claim for a pair, comparing long sentences with short ones."""
    if min(map(sum, masks)) < ENOUGH:
        short, long = map(sum, masks)
        return Finding(
            None,
            f"the test set has {short} such short and {long} long sentences; the test "
            f"needs {ENOUGH} of each.",
        )
    search, encdec = pair
    scores = [
        [results.references.bleu(each.texts, mask, results.scoring.n_bootstrap) for mask in masks]
        for each in pair
    ]
    (search_kept, search_margin), (encdec_kept, encdec_margin) = (_kept(*both) for both in scores)
    _, p = results.p_values(pair, masks[1])
    against = {
        f"{search.name} does not stay flat": search_kept < bounds.flat,
        f"{encdec.name} does not fall": encdec_kept >= bounds.fallen,
        f"{search.name} is not clearly better on long sentences": (
            scores[0][1].score <= scores[1][1].score or p >= 0.05
        ),
    }
    reasons = [reason for reason, holds in against.items() if holds]
    verdict = "RNNsearch stays flat where RNNencdec falls"
    if reasons:
        verdict = "unlike in the paper, " + ", and ".join(reasons)
    if (
        abs(search_kept - bounds.flat) < search_margin
        or abs(encdec_kept - bounds.fallen) < encdec_margin
    ):
        verdict += " (but an interval contains the bound, so another test set might disagree)"
    figures = "; ".join(_figures(each.name, *both) for each, both in zip(pair, scores, strict=True))
    return Finding(
        not reasons, f"{verdict}. {figures}. The difference on long sentences has p = {p:.4f}."
    )


def _kept(short: Score, long: Score) -> tuple[float, float]:
    """The share that is kept, and half the width of its 95 % interval.

    To first order the relative errors of both scores, which are independent,
    add up as squares.
    """
    if not short.score:
        return 0.0, 0.0
    share = long.score / short.score
    margins = [(score.margin or 0.0) / short.score for score in (long, short)]
    return share, hypot(margins[0], share * margins[1])


def _figures(name: str, short: Score, long: Score) -> str:
    share, margin = _kept(short, long)
    return (
        f"{name} has BLEU {short.score:.2f} on short sentences and "
        f"{long.score:.2f} on long ones, and so keeps {100 * share:.0f} ± "
        f"{100 * margin:.0f} %"
    )
