"""A command's process: its progress lines, interrupts and garbage collection."""

from __future__ import annotations

import gc
import math
import os
import re
import signal
import socket
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from typing import Any, TextIO
from unicodedata import east_asian_width

from bahdanau_tf.system.language import localized

NOTES_APART = 30.0  # seconds between two reports of odd lines
SHOWN = 20  # runs of line numbers in one report
GRACE = 1.0  # seconds in which an interrupted process may end by itself
ANSWERED = threading.Event()  # once a message has said that it is stopping
# All except tab and line feed, including those that change the writing direction.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""A message with its control characters escaped, such as \x1b.

    Names in it may come from a stranger's file, and a terminal obeys control characters.
    """
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def as_shown(text: str) -> str:
    """A message as its reader sees it."""
    return printable(localized(text))


def in_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class StatusLine:
    """A line about a long job, on standard error, in a notebook on standard output.

    On a terminal it is overwritten, at most twice a second; elsewhere (a log file) a new line is
    written every 30 seconds. `stream` is where to write instead.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        # Some programs have no stream, or replace it by an object without `isatty`.
        self._stream = stream or (sys.stdout if in_notebook() else sys.stderr)
        isatty = getattr(self._stream, "isatty", None)
        self._live = isatty is not None and isatty()
        self._interval = 0.5 if self._live else 30.0
        self._last = -float("inf")

    def note(self, text: str) -> None:
        """Writes a line that stays."""
        text = as_shown(text)
        self._write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")

    def _is_due(self, now: float) -> bool:
        return now - self._last >= self._interval

    @property
    def _columns(self) -> int:
        """The longest line: a longer one cannot be overwritten."""
        if not self._live:
            return sys.maxsize
        with suppress(OSError):
            if columns := os.get_terminal_size(self._stream.fileno()).columns:
                return columns - 1
        return 79

    def _show(self, text: str, now: float) -> None:
        """Writes the line over the one before."""
        self._last = now
        text = printable(text)[: self._columns]
        self._write(f"\r\x1b[K{text}" if self._live else f"{text}\n")

    def _write(self, text: str) -> None:
        # A closed terminal or a full disk must not end the job itself.
        if self._stream is not None:
            with suppress(OSError):
                self._stream.write(text)
                self._stream.flush()


class ProgressLine(StatusLine):
    """The progress of a job whose number of steps is known.

    The time left is estimated without the first step, which may include work done once, such as
    tracing a graph. `total` includes the steps of earlier runs, of which there are `done`. The
    job ends `seconds` after its first step, even if steps are left; if that comes first, only the
    time is shown, not the number of steps.
    """

    def __init__(
        self, total: int, done: int = 0, stream: TextIO | None = None, seconds: float = math.inf
    ) -> None:
        super().__init__(stream)
        self._total = total
        self._seconds = seconds
        self._first = done
        self._start: float | None = None  # after the first step
        self._columns_of_table: list[str] = []

    def update(self, done: int, text: str, count: str = "") -> None:
        """Reports that `done` steps are done; `text` follows the count, or what stands for it.

        On a narrow terminal the bar and the last parts of the text, between commas, are left out.
        """
        now = time.monotonic()
        if self._start is None and done > self._first:
            self._first, self._start = done, now
        if not self._is_due(now) and done < self._total:
            return
        used = 0.0 if self._start is None else now - self._start
        steps = done - self._first  # after the first one, by whose mean time the others are judged
        by_steps = max(used, 1e-9) / steps * (self._total - done) if steps > 0 else math.inf
        by_time = max(self._seconds - used, 0.0)
        share, count, left = done / max(self._total, 1), count or f"{done}/{self._total}", []
        if by_steps > by_time:
            share, count = used / max(self._seconds, 1e-9), f"{done},"
        if math.isfinite(seconds := min(by_steps, by_time)):
            left = [localized(f"{'at most ' * math.isinf(by_steps)}{_clock(seconds)} left")]
        first, *others = map(localized, text.split(", "))
        self._draw(share, [f"{count} {first}", *others], left, now)

    def end_in(self, seconds: float) -> None:
        """Says again when the job ends; infinite if it has no limit."""
        used = 0.0 if self._start is None else time.monotonic() - self._start
        self._seconds = used + seconds

    def _draw(self, share: float, parts: list[str], left: list[str], now: float) -> None:
        lines = [", ".join([*parts[:number], *left]) for number in range(len(parts), 0, -1)]
        if self._live:
            bar = "█" * round(20 * min(share, 1.0))
            lines = [f"{bar:░<20} {lines[0]}", *lines]
        columns = self._columns
        self._show(next((x for x in lines if _columns_of(x) <= columns), lines[-1]), now)

    def row(self, values: dict[str, float]) -> None:
        """Writes a row of a table of results; the headings come before its first row."""
        heads = [" " * (8 - _columns_of(head)) + head for head in map(localized, values)]
        if list(values) != self._columns_of_table:
            self._columns_of_table = list(values)
            self.note("  ".join(heads))
        cells = zip(map(short, values.values()), map(_columns_of, heads), strict=True)
        self.note("  ".join(cell.rjust(width) for cell, width in cells))


class LineCounter(StatusLine):
    """Counts the lines that are done, and reports odd ones.

    The total is unknown, since the lines may come from a pipe. Odd lines are collected and reported
    every 30 seconds and at the end; if `quiet`, they alone are, and at once, because the output
    itself goes to the same terminal. `about` is written before the count; of the text, `first`
    lines come before those that are counted.
    """

    def __init__(self, about: str = "", quiet: bool = False, first: int = 0) -> None:
        super().__init__()
        self.done = 0
        self._first = first
        self._shown = 0
        self._about = f"{about}: " if about else ""
        self._quiet = quiet
        self._start = self._last = self._noted = time.monotonic()
        self._odd: defaultdict[str, list[int]] = defaultdict(list)  # lines still to report
        self._reported: defaultdict[str, list[int]] = defaultdict(list)  # how many each time

    def advance(self, lines: int) -> None:
        """Counts `lines` more; reports if the last report is old enough."""
        self.done += lines
        now = time.monotonic()
        if self._quiet or now - self._noted >= NOTES_APART:
            self._noted = now
            self._note_odd()
        if self._quiet or not self._is_due(now):
            return
        self._shown = self.done
        self._show(str(self), now)

    def __str__(self) -> str:
        rate = self.done / max(time.monotonic() - self._start, 1e-9)
        digits = f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"
        return f"{self._about}{amount(self.done, 'line')}, {digits} lines/s"

    def report(self, what: str, places: Sequence[int], at_once: bool = False) -> None:
        """Collects lines that are odd in the way `what`, in ascending order.

        Place 0 is the first line that is not yet counted. They are reported later, or `at_once`.
        """
        first = self._first + self.done + 1
        if places:
            self._odd[what] += [first + place for place in places]
        if places and at_once:
            self._note_odd()

    def _note_odd(self) -> None:
        for what, numbers in self._odd.items():
            if numbers:
                self._reported[what].append(len(numbers))
                self.note(f"{_lines(numbers)}: {what}")
                numbers.clear()

    def close(self) -> None:
        """Reports the final counts, of all lines and of the odd ones, unless a line showed them."""
        if self._shown and (self._live or self._shown < self.done):
            self.note(str(self))
        self._note_odd()
        for what, counts in self._reported.items():
            if len(counts) > 1:
                self.note(f"{sum(counts)} of {self.done} lines: {what}")


def _lines(numbers: Sequence[int]) -> str:
    """Ascending numbers of lines, as "lines 2, 4-6"; of many only the first runs."""
    grouped = groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in grouped]
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs[:SHOWN]]
    if len(runs) > SHOWN:
        texts.append(f"... ({len(numbers)} lines)")
    return f"line{'s' * (len(numbers) > 1)} {', '.join(texts)}"


def short(value: float) -> str:
    """A result with the digits that a table needs."""
    if isinstance(value, int):
        return str(value)
    if abs(value) < 1e-12 or abs(value) >= 1:  # BLEU may be 1e-48
        return f"{value:.{0 if value >= 1000 else 2}f}"
    return f"{value:.3g}"


def amount(number: float, of: str) -> str:
    """A number with what it counts: "1 minute", "1,234 sentence pairs"."""
    digits = ",g" if number < 1e6 else ",.0f"
    return f"{number:{digits}} {of}{'s' * (number != 1)}"


def counted(lines: Iterable[str], about: str) -> Iterator[str]:
    """Yields the lines, and shows their number by a `LineCounter`."""
    with closing(LineCounter(about)) as counter:
        for line in lines:
            yield line
            counter.advance(1)


def _columns_of(text: str) -> int:
    """The columns of a terminal that a text takes: two for a letter of Chinese or Korean."""
    return sum(1 + (east_asian_width(letter) in "WF") for letter in text)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{minutes}:{seconds:02d}"


@contextmanager
def handling(handlers: Mapping[int, Any]) -> Iterator[None]:
    """Handles signals in the block, each as `signal.signal` takes it, except those ignored before.

    A job of a script may ignore Ctrl-C. Outside the main thread this has no effect.
    """
    before = {}
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(ValueError):  # only the main thread can handle signals
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_two_interrupts(name: str) -> Iterator[None]:
    """Answers SIGINT, and ends the process, like a kill, at a second one; for commands.

    Both only if it is still running after `GRACE`. A handler runs only between two Python
    instructions, so not before a call of TensorFlow returns. But Python writes the number of each
    signal to a socket at once, which a thread reads. It says nothing if another has `ANSWERED`.
    Outside the main thread this has no effect.
    """
    here, there = socket.socketpair()
    there.setblocking(False)
    is_over = threading.Event()
    ANSWERED.clear()

    def read() -> None:
        count = 0
        while number := here.recv(1):
            if number[0] != signal.SIGINT or is_over.wait(GRACE):
                continue
            count += 1
            if count > 1:
                os.write(2, f"\n{name}: interrupted\n".encode())
                os._exit(130)
            if not ANSWERED.is_set():
                ANSWERED.set()
                os.write(2, f"\n{name}: stopping; press Ctrl-C again to end at once\n".encode())

    with here, there:
        try:
            before = signal.set_wakeup_fd(there.fileno())
        except ValueError:  # not the main thread
            yield
            return
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield
        finally:
            is_over.set()
            signal.set_wakeup_fd(before)
            there.close()
            reader.join()


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses Python's garbage collector, for a second or two.

    It would search all objects of TensorFlow's modules again and again while many new
    objects are created that stay.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def never_collected() -> Iterator[None]:
    """Pauses the collector, and exempts all objects that exist at the end for good.

    This is for the imports of a command, at its start.
    """
    with uncollected():
        yield
        gc.freeze()
