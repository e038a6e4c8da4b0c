"""The progress of a long job in a notebook: one display, which is updated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import chain

from bahdanau_tf.system.language import said
from bahdanau_tf.system.terminal import ProgressLine, as_shown, in_notebook, short

WIDTH, HEIGHT, MARGIN = 300, 120, 16  # of a curve, in pixels
CELL = "padding:2px 8px;text-align:right"


def progress_line(
    total: int, done: int = 0, seconds: float = math.inf, curves: Sequence[Sequence[str]] = ()
) -> ProgressLine:
    """The progress of a job, where its user looks; arguments as for `ProgressLine`.

    `curves` are the columns of the table that a notebook draws against the first column, each
    drawing one or two of them.
    """
    if in_notebook():
        return _Display(total, done, seconds, curves)
    return ProgressLine(total, done, seconds=seconds)


class _Display(ProgressLine):
    """A bar with the time left, the messages, a table of the results, and their curves."""

    def __init__(
        self, total: int, done: int, seconds: float, curves: Sequence[Sequence[str]]
    ) -> None:
        from IPython.display import display

        super().__init__(total, done, seconds=seconds)
        self._interval = 0.5
        self._curves = curves
        self._notes: list[str] = []
        self._rows: list[dict[str, float]] = []
        self._share, self._text = 0.0, ""
        self._display = display(self, display_id=True)

    def note(self, text: str) -> None:
        """Adds a line that stays."""
        self._notes.append(as_shown(text))
        self._display.update(self)

    def row(self, values: dict[str, float]) -> None:
        """Adds a row to the table, and a point to each curve."""
        self._rows.append(values)
        self._text = self._text.split(", ")[0]  # the rest, such as the best score, is outdated
        self._display.update(self)

    def _draw(self, share: float, parts: list[str], left: list[str], now: float) -> None:
        self._last = now
        self._share, self._text = min(share, 1.0), ", ".join([*parts, *left])
        self._display.update(self)

    def __repr__(self) -> str:
        return "\n".join([*self._notes, self._text])

    def _repr_html_(self) -> str:
        notes = "".join(f"<div>{escape(note)}</div>" for note in self._notes)
        bar = f'<progress value="{self._share:.3f}" style="width:20em"></progress>'
        curves = "".join(_curve(self._rows, names) for names in self._curves)
        return f"{notes}<div>{bar} {escape(self._text)}</div>{_table(self._rows)}{curves}"


def _table(rows: Sequence[dict[str, float]]) -> str:
    if not rows:
        return ""
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    cells = [[f'<th style="{CELL}">{escape(said(name))}</th>' for name in names]]
    for row in rows:
        values = [short(row[name]) if name in row else "" for name in names]
        cells.append([f'<td style="{CELL}">{value}</td>' for value in values])
    lines = "".join(f"<tr>{''.join(line)}</tr>" for line in cells)
    return (
        '<div style="max-height:20em;overflow-y:auto;display:inline-block">'
        f"<table>{lines}</table></div>"
    )


def _curve(rows: Sequence[dict[str, float]], names: Sequence[str]) -> str:
    """Lines of columns against the first one, from the second row on."""
    lines = [
        [
            (next(iter(row.values())), row[name])
            for row in rows
            if math.isfinite(row.get(name, math.nan))
        ]
        for name in names
    ]
    if len(rows) < 2 or not any(lines):
        return ""
    across, up = zip(*chain.from_iterable(lines), strict=True)
    left, right, low, high = min(across), max(across), min(up), max(up)

    def place(point: tuple[float, float]) -> str:
        x = MARGIN + (WIDTH - 2 * MARGIN) * (point[0] - left) / ((right - left) or 1)
        y = MARGIN + (HEIGHT - 2 * MARGIN) * (high - point[1]) / ((high - low) or 1)
        return f"{x:.1f},{y:.1f}"

    drawn = "".join(
        f'<polyline points="{" ".join(map(place, line))}" fill="none" stroke="currentColor" '
        f'stroke-width="1.5" stroke-dasharray="{dashes}"/>'
        for line, dashes in zip(lines, ("", "4 3"), strict=False)
    )
    heads = zip(("—", "- -"), map(said, names), strict=False)
    title = ", ".join(f"{dash} {name}" for dash, name in heads)
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" font-size="11" fill="currentColor" role="img" '
        f'aria-label="{escape(", ".join(map(said, names)))}">{drawn}'
        f'<text x="{MARGIN}" y="11">{escape(title)}, {short(low)}–{short(high)}</text>'
        f'<text x="{MARGIN}" y="{HEIGHT - 3}">{short(left)}</text>'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 3}" text-anchor="end">{short(right)}</text>'
        "</svg>"
    )
