"""One HTML page of tables and figures that needs nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field
from html import escape
from pathlib import Path

from bahdanau_tf.report import paper
from bahdanau_tf.report.claim import RULE
from bahdanau_tf.report.claim import Finding
from bahdanau_tf.report.tables import NOT_RUN
from bahdanau_tf.report.tables import Cell
from bahdanau_tf.report.tables import Table
from bahdanau_tf.report.tables import shown

_STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --page: #fff;
  --line: #c8c8c8; --soft: #f3f3f3; --paper: #4b4b7a; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e6; --page: #17181a; --line: #44474c;
    --soft: #222428; --paper: #b9b9ee; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text);
  background: var(--page); max-width: 78rem; margin: 2rem auto;
  padding: 0 1rem; }
p, pre { max-width: 64rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9375rem;
  font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .45rem;
  text-align: left; vertical-align: top; }
th { background: var(--soft); vertical-align: bottom; }
thead td { border: 0; } th[colspan] { text-align: center; }
.number { text-align: right; }
td { white-space: nowrap; } td.missing { opacity: .7; }
td.long { white-space: normal; min-width: 9rem; }
/* A number in the first column begins a group of rows. */
tr:has(> td.number:first-child:not(:empty)) {
  border-top: 3px solid var(--line); }
.paper { color: var(--paper); font-style: italic; }
.note { font-size: .875rem; }
.finding { border-left: .3rem solid var(--line); padding-left: .8rem; }
.figures { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
figure { margin: 0; } figcaption { font-size: .875rem; }
img { background: #fff; max-width: 100%; max-height: 40rem; padding: .5rem;
  box-sizing: border-box; }
pre { background: var(--soft); padding: .6rem; font-size: .8rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
"""


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        path: Its PNG.
        title: What it shows.
    """

    path: Path
    title: str


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        title: Its heading; "" where the tables' titles say it all.
        pictures: Figures, above the tables.
        tables: Tables.
        paragraphs: Text above both.
    """

    title: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    paragraphs: Sequence[str] = field(default_factory=list)


def page(
    title: str,
    about: Sequence[str],
    found: Sequence[Finding],
    sections: Sequence[Section],
    commands: Sequence[str],
) -> str:
    """Makes the page: pictures inside, light and dark, no script.

    Args:
        title: Its heading.
        about: What was measured on what, a paragraph each.
        found: What became of the paper's claim.
        sections: Tables and figures.
        commands: How the systems were trained.

    Returns:
        HTML.
    """
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *map(_paragraph, about),
        '<p class="paper">Figures in italics, in columns headed '
        f"“{paper.MARK}own”, are the papers’ own, measured on other data "
        "(WMT14 English-French) with far larger models; they stand here for "
        "reference, not for comparison.</p>",
        "<h2>Does RNNsearch stay flat where RNNencdec falls?</h2>",
        _paragraph(RULE),
        *(
            f'<p class="finding"><strong>{_answer(one)}</strong> '
            f"{escape(one.text)}</p>"
            for one in found
        ),
        *map(_section, sections),
    ]
    if commands:
        parts.append("<h2>How the systems were trained</h2><pre>")
        parts += [f"{escape(command)}\n" for command in commands]
        parts.append("</pre>")
    return "\n".join([*parts, "</body></html>", ""])


def _answer(one: Finding) -> str:
    if one.is_shown is None:
        return "Not run."
    return "Yes." if one.is_shown else "No."


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"] if section.title else []
    parts += map(_paragraph, section.paragraphs)
    if section.pictures:
        parts.append('<div class="figures">')
        parts += map(_figure, section.pictures)
        parts.append("</div>")
    parts += map(_table, section.tables)
    return "\n".join(parts)


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _figure(picture: Picture) -> str:
    data = base64.b64encode(picture.path.read_bytes()).decode()
    title = escape(picture.title)
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{title}">'
        f"<figcaption>{title}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    kinds = [
        ["number"] * any(_is_number(row[place]) for row in table.rows)
        + ["paper"] * column.startswith(paper.MARK)
        for place, column in enumerate(table.columns)
    ]
    rows = []
    for row in table.rows:
        cells = []
        for cell, kind in zip(row, kinds, strict=True):
            names = [*kind]
            names += ["missing"] * (cell is NOT_RUN)
            names += ["long"] * (len(shown(cell)) > 40)
            cells.append(f"<td{_class(names)}>{escape(_text(cell))}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(rows)
    notes = "".join(f'<p class="note">{escape(n)}</p>' for n in table.notes)
    return (
        f"<h2>{escape(table.title)}</h2>"
        f'<div class="scroll"><table><thead>{_heads(table.columns, kinds)}'
        f"</thead><tbody>{body}</tbody></table></div>{notes}"
    )


def _heads(columns: Sequence[str], kinds: Sequence[Sequence[str]]) -> str:
    """A row of heads; the papers' columns, the last, have one above theirs."""
    own = [one for one in columns if not one.startswith(paper.MARK)]
    count = len(columns) - len(own)
    rows = ""
    if count:
        title = escape(f"{paper.MARK}own")
        rows = (
            f'<tr><td colspan="{len(own)}"></td>'
            f'<th scope="colgroup" colspan="{count}" class="paper">{title}</th>'
            "</tr>"
        )
    heads = "".join(
        f'<th scope="col"{_class(kind)}>'
        f"{escape(column.removeprefix(paper.MARK))}</th>"
        for column, kind in zip(columns, kinds, strict=True)
    )
    return f"{rows}<tr>{heads}</tr>"


def _is_number(cell: Cell) -> bool:
    """Whether a cell is a number, or one with the width of its interval."""
    return isinstance(cell, int | float) or " ± " in shown(cell)


def _text(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int) else shown(cell)


def _class(names: Sequence[str]) -> str:
    return f' class="{" ".join(names)}"' if names else ""
