"""Files whose lines belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def check_count(
    flag: str, lines: Sequence[Any], references: Sequence[str]
) -> None:
    """Refuses a file that has not a line for each reference.

    Raises:
        ValueError: The counts differ; says both.
    """
    if len(lines) != len(references):
        raise ValueError(
            f"{flag} has {len(lines)} lines and --reference "
            f"{len(references)}, wanted as many"
        )
