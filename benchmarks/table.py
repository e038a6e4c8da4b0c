"""Figures beside their goals, as rows of one Markdown table.

A program that imports this module has the flag `--table`: a file to which its figures are added. A
new file starts with the machine, the versions and the date. `make bench` writes `bench.md` so.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import machine
from absl import flags

FLAGS = flags.FLAGS
flags.DEFINE_string("table", None, "A Markdown file to which the figures are added.")


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
        goal, is_met = "", ""
        if self.at_least is not None:
            goal = f"at least {self.at_least:g}"
            is_met = "yes" if self.value >= self.at_least else "no"
        elif self.at_most is not None:
            goal = f"at most {self.at_most:g}"
            is_met = "yes" if self.value <= self.at_most else "no"
        digits = ",.0f" if self.value >= 1000 else ".3g"
        value = f"{self.value:{digits}} {self.unit}".strip()
        return f"| {self.what} | {value} | {goal} | {is_met} |"


def add(figures: Iterable[Figure]) -> None:
    """Prints figures that have a goal; adds all to the file of `--table`."""
    for figure in figures:
        if figure.at_least is not None or figure.at_most is not None:
            print(figure)
        if FLAGS.table:
            path = Path(FLAGS.table)
            head = "| figure | measured | goal | met |\n|---|---|---|---|\n"
            head = "" if path.is_file() else f"{machine.description()}\n\n{head}"
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{head}{figure}\n")
