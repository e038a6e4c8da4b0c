"""How long a training takes, from counted operations, and which sizes fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bahdanau_tf.data.held_out import Facts, Side

SPECIAL = 260  # bytes, special symbols and the blank among the sub-words
SMALL = 256
MEASURED = 29_000  # lines of the text by which the rules were found
# Different lines of a text, the units that fit it, and Adam's learning rate.
UNITS = (
    (5_000, 128, 2e-3),
    (500_000, 256, 2e-3),
    (5_000_000, 512, 1e-3),
    (math.inf, 1000, 5e-4),
)


def subwords(lines: int, is_joint: bool, size: int, characters: int) -> int:
    """Number of sub-words for a text.

    Args:
        lines: Number of different source lines; repeated ones teach no words.
        is_joint: Whether both sides share the sub-words.
        size: Number of characters of the text.
        characters: Number of different characters.
    """
    needed = SPECIAL + characters  # SentencePiece refuses less
    share = lines / MEASURED
    wanted = 8000 * share ** (1 / 3) if is_joint else 4000 * math.sqrt(share)
    wanted = between(500, wanted, 32_000)
    wanted = max(rounded(wanted), needed + rounded(wanted / 4))
    return min(wanted, needed + size // 20)


def rate_of(units: int) -> float:
    """The learning rate of Adam for a new model of so many units."""
    return next((rate for _, most, rate in UNITS if units <= most), UNITS[-1][2])


def by_lines(facts: Facts) -> tuple[float, int, float]:
    """The row of `UNITS` for a text."""
    return next(row for row in UNITS if facts.different < row[0])


def between(low: float, value: float, high: float) -> float:
    """The value, or the limit that is nearer."""
    return max(low, min(value, high))


def rounded(number: float) -> int:
    """To two digits, so that it is easily read."""
    unit: int = 10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0)
    return round(number / unit) * unit


# Operations a second of a training on one core, and the seconds for 80 pairs
# besides: together 3,050 target tokens a second of Multi30k with the recipe for
# it (2026-11-22, AMD EPYC) where a square product of float32 had PRODUCT_RATE.
# Where it has another, both change with it.
CORE = 5.6e10
PRODUCT_RATE = 1.08e11
OUTPUT = 0.5  # time of an operation of the output's large product, as measured
RISK = 1.4  # time of a sample of --risk_samples, of a pair's, as measured
GPU = 10  # cores of PRODUCT_RATE that are as fast; an H200: 13 at 256 units
BESIDES = 0.04
SPREAD = 0.85  # exponent of the cores: two take 0.55 of one's time, as measured
PART_ROWS = 8  # of a core's part of a batch: fewer rows cost more each
MOST_PARTS = 16  # a training begins a second or two later for each
BATCH_TOKENS = 1450  # of the target, in a batch
MINUTES = 60  # of a training, if no end of it is given
ANY = 1e6  # epochs, more than any training has
_LETTERS = 3.9  # of an alphabet, blanks included, in a sub-word or short word
_SYLLABLES = 1.8  # the same of Chinese, Japanese or Korean


def seconds_per_epoch(facts: Facts, known: Mapping[str, Any]) -> float:
    """Estimates the time of an epoch.

    With n units, n annotations a direction and embeddings as wide, a source
    token takes 14 n² multiplications (a bidirectional gated unit of 12 n², the
    keys of 2 n²), a target token 21 n² + n K (a gated unit that reads word,
    state and annotations, the query, the readout, the output matrix of K
    rows) and 3 n² more for the conditional decoder's other state;
    back-propagation takes twice as many again. Those of the output take less
    time each. With `risk_samples` each pair is drawn so many times.

    Args:
        facts: The text.
        known: Options, "units" and the sizes of the vocabularies among them,
            and of the machine the number of "cores", 1 if it is missing, the
            "product_rate" of one, `PRODUCT_RATE` if it is missing, and
            "has_gpu", false if it is missing.
    """
    units: int = max(1, min(known["units"], 10**6))  # not checked yet
    rows: int = known.get("target_vocabulary_size") or known["source_vocabulary_size"]
    squares = 24 if known.get("step_order") == "conditional" else 21
    multiplications = estimated_tokens(facts.source) * 14 * units**2
    multiplications += estimated_tokens(facts.target) * (squares * units**2 + OUTPUT * units * rows)
    one_core = 3 * 2 * multiplications / CORE + BESIDES * facts.pairs / 80
    if samples := known.get("risk_samples"):
        one_core *= RISK * samples
    speed: float = known.get("product_rate", PRODUCT_RATE) / PRODUCT_RATE
    cores = cores_of(facts, known)
    if known.get("has_gpu"):
        speed, cores = 1.0, GPU
    return one_core / speed / math.pow(cores, SPREAD)


def cores_of(facts: Facts, known: Mapping[str, Any]) -> int:
    """How many cores a training uses; without a batch size, can use."""
    batch: int = known.get("batch_size") or batch_of(facts, BATCH_TOKENS)
    cores: int = known.get("cores", 1)
    return min(cores, parts_of(batch))


def batch_of(facts: Facts, tokens: float) -> int:
    """The number of pairs, 16 to 80, that have so many target tokens."""
    share = tokens / max(estimated_tokens(facts.target), 1)
    return int(between(16, 8 * round(share * facts.pairs / 8), 80))


def parts_of(batch_size: int) -> int:
    """The most parts of a batch that are computed at the same time."""
    return max(1, min(batch_size // PART_ROWS, MOST_PARTS))


def estimated_tokens(side: Side) -> float:
    """Number of sub-words or words of one side, estimated by its letters."""
    is_short = side.script in ("kana", "han", "hangul") or not side.has_blanks
    return side.size / (_SYLLABLES if is_short else _LETTERS)


def limits(facts: Facts, known: Mapping[str, Any]) -> tuple[float, float]:
    """The most epochs, and minutes, 0 for any.

    With a number of updates that is given, both leave room for them.
    """
    updates = known.get("updates")
    is_free = "epochs" in known or updates or known.get("deterministic")
    return (
        known.get("epochs", ANY if updates else float(_epochs(facts.pairs))),
        known.get("minutes", 0.0 if is_free else float(MINUTES)),
    )


def fitting(facts: Facts, known: Mapping[str, Any]) -> float:
    """How many epochs are wanted, or fit into the time."""
    epochs, minutes = limits(facts, known)
    if minutes:
        epochs = min(epochs, 60 * minutes / seconds_per_epoch(facts, known))
    return epochs


def seen(facts: Facts, known: Mapping[str, Any]) -> float:
    """How often each pair is seen in the epochs, time and updates given."""
    epochs = fitting(facts, known)
    if updates := known.get("updates"):
        epochs = min(epochs, updates / updates_per_epoch(facts, known))
    return epochs


def updates_per_epoch(facts: Facts, known: Mapping[str, Any]) -> float:
    """The number of updates in an epoch.

    Args:
        facts: The text.
        known: Options, "batch_size" among them.
    """
    pairs: float = known["batch_size"]
    if budget := known.get("token_budget"):
        longest = max(map(estimated_tokens, (facts.source, facts.target)))
        pairs = max(budget * facts.pairs / max(longest, 1), 1)
    accumulate: int = known.get("accumulate", 1)
    return math.ceil(facts.pairs / pairs) / accumulate


def _epochs(pairs: int) -> int:
    fewer = math.sqrt(MEASURED / pairs)
    return round(between(3, 20 * max(fewer, math.sqrt(fewer)), 100))
