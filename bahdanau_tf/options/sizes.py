"""How many sub-words and units, and which learning rate, fit a text's size."""

from __future__ import annotations

import math

from bahdanau_tf.data.held_out import Facts

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
    return next(
        (rate for _, most, rate in UNITS if units <= most), UNITS[-1][2]
    )


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
