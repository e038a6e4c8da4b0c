"""Tests the paper's claim: RNNsearch stays flat where RNNencdec falls."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from typing import NamedTuple

from bahdanau_tf.evaluation import Score
from bahdanau_tf.report.paper import Finding
from bahdanau_tf.report.results import Results, System


class Bounds(NamedTuple):
    """Shares of the BLEU of short sentences that are kept on long ones.

    Attributes:
        flat: The least of RNNsearch.
        fallen: RNNencdec keeps less.
    """

    flat: float
    fallen: float


WITHIN = Bounds(0.85, 0.85)  # lengths that were seen in training
BEYOND = Bounds(0.75, 0.5)
ENOUGH = 10  # least number of sentences of each kind
RULE = (
    "A pair that was trained on sentences of up to L words is tested on long "
    "sentences twice: of more than 3/5 L and up to L words, and of more than "
    "L, longer than any in training; short ones have more than 1/5 L and up to "
    f"3/5 L. “Yes” means that RNNsearch keeps at least {WITHIN.flat:.0%} of "
    f"its BLEU on the former, or {BEYOND.flat:.0%} on the latter, that "
    f"RNNencdec keeps less than {WITHIN.fallen:.0%}, or {BEYOND.fallen:.0%}, "
    "and that RNNsearch is significantly better there (paired bootstrap, p "
    "below 0.05). After ± is half the width of the 95 % bootstrap interval."
)


def findings(results: Results) -> list[Finding]:
    """Tests the claim by `RULE` on each RNNsearch and matching RNNencdec.

    They match if they were trained on sentences of the same length.

    Returns:
        Two findings for each pair, one if no limit of its length is known; a
        single one if there is no pair.
    """
    found = []
    for search in results.of_kind("RNNsearch"):
        for encdec in results.of_kind("RNNencdec"):
            if search.max_length != encdec.max_length:
                continue
            limit = search.max_length
            if not limit:
                found.append(
                    Finding(
                        None,
                        f"{search.name} and {encdec.name}: no limit of the "
                        "length of their training sentences is known.",
                    )
                )
                continue
            first, middle = limit // 5, 3 * limit // 5
            short = [first < n <= middle for n in results.lengths]
            within = [middle < n <= limit for n in results.lengths]
            beyond = [n > limit for n in results.lengths]
            for long, bounds, title in (
                (within, WITHIN, f"{middle + 1} to {limit} words"),
                (beyond, BEYOND, f"more than {limit} words"),
            ):
                is_shown, text = _tried(results, (search, encdec), (short, long), bounds)
                title += f" beside those of {first + 1} to {middle}: {text}"
                pair = f"{search.name} and {encdec.name}, sentences of {title}"
                found.append(Finding(is_shown, pair))
    return found or [
        Finding(
            None,
            "There is no RNNsearch beside an RNNencdec that was trained on "
            "sentences of the same length.",
        )
    ]


def _tried(
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
            f"the test set has {short} such short and {long} long sentences, "
            f"wanted {ENOUGH} of each.",
        )
    search, encdec = pair
    scores = [
        [results.references.bleu(one.texts, where, results.scoring.n_bootstrap) for where in masks]
        for one in pair
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
        verdict += " (but an interval holds the bound, so that another test "
        verdict += "set might say otherwise)"
    said = [_say(one.name, *both) for one, both in zip(pair, scores, strict=True)]
    return Finding(
        not reasons,
        f"{verdict}. {'; '.join(said)}. The difference on long sentences has p = {p:.4f}.",
    )


def _kept(short: Score, long: Score) -> tuple[float, float]:
    """The share that is kept, and half the width of its 95 % interval.

    To first order the relative errors of both scores, which are independent,
    add up as squares.
    """
    if not short.score:
        return 0.0, 0.0
    share = long.score / short.score
    margins = [(one.margin or 0.0) / short.score for one in (long, short)]
    return share, hypot(margins[0], share * margins[1])


def _say(name: str, short: Score, long: Score) -> str:
    share, margin = _kept(short, long)
    return (
        f"{name} has BLEU {short.score:.2f} on short sentences and "
        f"{long.score:.2f} on long ones, and so keeps {100 * share:.0f} ± "
        f"{100 * margin:.0f} %"
    )
