"""How large a dev text is, and how often a training is evaluated on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bahdanau_tf.data.held_out import Facts
from bahdanau_tf.options.cost import seconds_per_epoch, seen, updates_per_epoch

DEV_SHARE = 20  # of so many pairs one is held out
MOST_DEV_PAIRS = 1000
MINUTES = 5  # of training before each evaluation, with so many dev pairs
LEAST, MOST = 250, 2000  # updates before each
COUNT = 10  # that a training has at least, as far as this leaves it time:
LEAST_MINUTES = 2  # before each, with so many dev pairs
QUICK = 0.25  # with this share of them an evaluation takes few seconds


def updates_between(facts: Facts, known: Mapping[str, Any]) -> float:
    """The number of updates between two evaluations; 0 for those of an epoch.

    There are ten or more, so that a short training has a model early, unless
    they would take much of its time.

    Args:
        facts: The text.
        known: Options, "batch_size" among them, and the number of
            "dev_lines", if there is a dev text.
    """
    if known.get("token_budget"):
        return 0
    an_epoch = updates_per_epoch(facts, known)
    a_minute = an_epoch / (seconds_per_epoch(facts, known) / 60)
    held_out = min(facts.pairs / DEV_SHARE, MOST_DEV_PAIRS)
    pairs = known.get("dev_lines", known.get("dev_pairs", held_out))
    share = pairs / MOST_DEV_PAIRS
    accumulate: int = known.get("accumulate", 1)
    least = max(LEAST // accumulate, 1)
    wanted: float = max(least, min(MINUTES * share * a_minute, MOST))
    some = seen(facts, known) * an_epoch / COUNT
    quick: float = LEAST_MINUTES * (share - QUICK) * a_minute
    return max(min(wanted, some), quick, 1)
