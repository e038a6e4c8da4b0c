"""Tables as data, and written as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from bahdanau_tf.system.terminal import printable

NOT_RUN = None
NOTHING = ""
Cell = str | int | float | None


class Table(NamedTuple):
    """A table; `name` is that of its file.

    A cell `NOT_RUN` is written as "not run", `NOTHING` as "".
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


def cell_text(cell: Cell) -> str:
    """A cell as text; a float has two digits after the point."""
    if cell is NOT_RUN:
        return "not run"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


def as_csv(table: Table) -> str:
    """A table as comma-separated values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([cell_text(cell) for cell in row] for row in table.rows)
    return text.getvalue()


def as_text(table: Table) -> str:
    """The heads and rows of a table in aligned columns, for a terminal."""
    rows = [[printable(cell_text(cell)) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(f"{text_row(row, widths)}\n" for row in rows)


def text_row(cells: Sequence[Cell], widths: Sequence[int]) -> str:
    """A row of a table; the first cell is aligned left, the others right."""
    first, *others = (
        cell_text(cell).rjust(width) if place else cell_text(cell).ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
