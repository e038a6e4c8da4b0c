"""How much of a training is over, by its updates and by its time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager


class Pace:
    """The time of a training, evaluations included, and what of it is over.

    In each run the time begins when the first update is over, since that one
    waits until its graph is made, which says nothing of the others.

    Time is kept for the evaluation with which a training ends, as much as the
    longest one took; before the first one, a tenth of the time.

    Args:
        total_steps: Number of updates of the whole training.
        minutes: Longest time of all runs together; 0 for any.
        used: Seconds that earlier runs took.
        clock: Returns seconds, by which the time is measured.
        longest: Seconds of the longest evaluation of earlier runs; NaN if
            there was none.

    Attributes:
        longest: The same of all runs so far.
    """

    def __init__(
        self,
        total_steps: int,
        minutes: float = 0.0,
        used: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        longest: float = math.nan,
    ) -> None:
        self._total_steps = total_steps
        self._limit = 60 * minutes if minutes else math.inf
        self._clock = clock
        self._used = used
        self._start = math.nan  # before the time begins
        self.longest = longest
        self._over = 0.0  # the largest share so far

    def begin(self) -> None:
        """The first update of this run is over; later calls do nothing."""
        if math.isnan(self._start):
            self._start = self._clock()

    @property
    def seconds(self) -> float:
        """The time of all runs so far."""
        if math.isnan(self._start):
            return self._used
        return self._used + self._clock() - self._start

    @property
    def seconds_left(self) -> float:
        """The time left for updates; infinite without a limit."""
        return max(self._for_updates - self.seconds, 0.0)

    @property
    def _for_updates(self) -> float:
        """The whole time without that of the last evaluation."""
        if math.isnan(self.longest):
            return 0.9 * self._limit
        return max(self._limit - self.longest, 1e-9)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the training must end now."""
        return self.seconds_left <= 0

    def share(self, step: int) -> float:
        """The share of the training that is over after `step` updates.

        It is that of the updates or that of the time, whichever is larger. It
        never gets smaller in a run: if the first evaluation is shorter than
        what was kept for it, the share stays until the time has caught up.
        """
        of_time = self.seconds / self._for_updates
        of_both = min(max(step / self._total_steps, of_time), 1.0)
        self._over = max(self._over, of_both)
        return self._over

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Measures the evaluation in the block."""
        start = self._clock()
        # Else a training that is over would not be so for a later run.
        kept = self._limit - self.seconds if self.is_out_of_time else 0.0
        yield
        found = max(self._clock() - start, kept)
        # NaN is not larger than it.
        self.longest = self.longest if self.longest > found else found
