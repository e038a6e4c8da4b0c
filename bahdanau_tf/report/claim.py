"""Tests the paper's claim: RNNsearch stays flat where RNNencdec falls."""

from __future__ import annotations

from collections.abc import Sequence

from bahdanau_tf.experiments.results import Results
from bahdanau_tf.experiments.results import System
from bahdanau_tf.report.document import Finding

FLAT = 0.8  # least share of its BLEU that a flat curve keeps
ENOUGH = 10  # least number of sentences of each kind
UNKNOWN_LENGTH = 30  # assumed if the length of training sentences is unknown
RULE = (
    "A pair that was trained on sentences of up to L words is tested on long "
    "sentences twice: of more than L / 2 and up to L words, and of more than "
    "L, longer than any in training; short ones have up to L / 2. “Yes” means "
    f"that RNNsearch keeps at least {100 * FLAT:.0f} % of its BLEU on long "
    "sentences, that RNNencdec does not, and that RNNsearch is significantly "
    "better there (paired bootstrap, p below 0.05)."
)


def findings(results: Results) -> list[Finding]:
    """Tests the claim by `RULE` on each RNNsearch and matching RNNencdec.

    They match if they were trained on sentences of the same length.

    Returns:
        Two findings for each pair; a single one if there is no pair.
    """
    found = []
    for search in results.of_kind("RNNsearch"):
        for encdec in results.of_kind("RNNencdec"):
            if search.max_length != encdec.max_length:
                continue
            limit = search.max_length or UNKNOWN_LENGTH
            half = limit // 2
            short = [n <= half for n in results.lengths]
            within = [half < n <= limit for n in results.lengths]
            beyond = [n > limit for n in results.lengths]
            for long, title in (
                (within, f"{half + 1} to {limit} words"),
                (beyond, f"more than {limit} words"),
            ):
                is_shown, text = _tried(results, search, encdec, short, long)
                title = f"{title} beside those of up to {half}: {text}"
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
    search: System,
    encdec: System,
    short: Sequence[bool],
    long: Sequence[bool],
) -> Finding:
    """Tests the claim for a pair, comparing long sentences with short ones."""
    if min(sum(short), sum(long)) < ENOUGH:
        return Finding(None, "the test set has too few such sentences.")
    ends, shares, kept = [], [], []
    for one in (search, encdec):
        near, far = (
            results.references.bleu(one.texts, where).score
            for where in (short, long)
        )
        ends.append(far)
        shares.append(far / near if near else 0.0)
        kept.append(
            f"{one.name} has BLEU {near:.2f} on short sentences and {far:.2f} "
            f"on long ones, and so keeps {100 * shares[-1]:.0f} %"
        )
    _, p = results.p_values([search, encdec], long)
    against = {
        f"{search.name} does not stay flat": shares[0] < FLAT,
        f"{encdec.name} does not fall": shares[1] >= FLAT,
        f"{search.name} is not clearly better on long sentences": (
            ends[0] <= ends[1] or p >= 0.05
        ),
    }
    reasons = [reason for reason, holds in against.items() if holds]
    verdict = "RNNsearch stays flat where RNNencdec falls"
    if reasons:
        verdict = "unlike in the paper, " + ", and ".join(reasons)
    return Finding(
        not reasons,
        f"{verdict}. {kept[0]}; {kept[1]}. The difference on long sentences "
        f"has p = {p:.4f}.",
    )
