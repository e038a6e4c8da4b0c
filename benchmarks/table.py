"""Figures beside their goals, as rows of one Markdown table.

A program that imports this module has the flag `--table`: a file to which its
figures are added. A new file begins with the machine, the versions and the
date. `make bench` writes `bench.md` so.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("table", None, "A Markdown file to which the figures are added.")
PACKAGES = ("tensorflow", "keras", "numpy")


class Figure(NamedTuple):
    """A row.

    Attributes:
        what: What was measured.
        value: The figure.
        unit: Its unit; "" if it is a ratio.
        at_least: The goal, if the figure should not be smaller.
        at_most: The goal, if it should not be larger.
    """

    what: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        """The row in Markdown."""
        goal, reached = "", ""
        if self.at_least is not None:
            goal, met = f"at least {self.at_least:g}", self.at_least
            reached = "yes" if self.value >= met else "no"
        elif self.at_most is not None:
            goal, met = f"at most {self.at_most:g}", self.at_most
            reached = "yes" if self.value <= met else "no"
        digits = ",.0f" if self.value >= 1000 else ".3g"
        value = f"{self.value:{digits}} {self.unit}".strip()
        return f"| {self.what} | {value} | {goal} | {reached} |"


def add(figures: Iterable[Figure]) -> None:
    """Prints figures that have a goal; adds all to the file of `--table`."""
    for figure in figures:
        if figure.at_least is not None or figure.at_most is not None:
            print(figure)
        if FLAGS.table:
            path = Path(FLAGS.table)
            head = "" if path.is_file() else _head()
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{head}{figure}\n")


def _head() -> str:
    """The lines before the first row."""
    name = processor("model name") or platform.processor()
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    packages = (f"{package} {version(package)}" for package in PACKAGES)
    return (
        f"{datetime.date.today()}, {name}, {cores} cores, load "
        f"{load:.1f} at the beginning; Python {platform.python_version()}, "
        f"{', '.join(packages)}\n\n"
        "| figure | measured | goal | met |\n|---|---|---|---|\n"
    )


def processor(key: str) -> str:
    """What Linux says of the processor; "" elsewhere.

    Args:
        key: A word of /proc/cpuinfo, as "model name" or "flags".
    """
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text("utf-8").split("\n"):
            if line.startswith(key):
                return line.partition(":")[2].strip()
    return ""
