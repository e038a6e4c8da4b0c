"""Renders a document as HTML and JSON."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import starmap

from bahdanau_tf.evaluation import Table
from bahdanau_tf.evaluation.tables import NOT_RUN, Cell, cell_text
from bahdanau_tf.report import paper
from bahdanau_tf.report.claim import RULE
from bahdanau_tf.report.paper import Document, Picture, Section

_ANSWERS = {True: "Yes.", False: "No.", None: "Not run."}
_PAPERS = (
    f"Figures in italics, in columns headed “{paper.MARK}own”, are the papers’ "
    "own, measured on other data (WMT14 English-French) with far larger "
    "models; they are given for reference, not for comparison."
)


def as_json(document: Document) -> str:
    """All data of a document, without title and headings."""
    tables = {table.name: table._asdict() for table in document.tables}
    for fields in tables.values():
        del fields["name"]
    data: dict[str, object] = {
        "findings": [finding._asdict() for finding in document.findings],
        "tables": tables,
    }
    for section in document.sections:
        data |= section.data
    data |= {"about": document.about, "commands": document.commands}
    return json.dumps(data, indent=1, ensure_ascii=False)


def as_html(document: Document) -> str:
    """One self-contained page, with embedded pictures and without scripts."""
    title = escape(document.title)
    style = files("bahdanau_tf.report").joinpath("page.css").read_text("utf-8")
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{title}</title>",
        f"<style>\n{style}</style></head><body>",
        f"<h1>{title}</h1>",
        *(_element("p", text) for text in document.about),
        f'<p class="paper">{_PAPERS}</p>',
        "<h2>Does RNNsearch stay flat where RNNencdec falls?</h2>",
        _element("p", RULE),
        *(
            f'<p class="finding"><strong>{_ANSWERS[is_shown]}</strong> {escape(text)}</p>'
            for is_shown, text in document.findings
        ),
        *map(_section, document.sections),
    ]
    if document.commands:
        parts.append("<h2>How the systems were trained</h2><pre>")
        parts += [f"{escape(command)}\n" for command in document.commands]
        parts.append("</pre>")
    return "\n".join([*parts, "</body></html>", ""])


def _element(name: str, text: str, classes: Sequence[str] = (), attributes: str = "") -> str:
    kind = f' class="{" ".join(classes)}"' if classes else ""
    return f"<{name}{attributes}{kind}>{escape(text)}</{name}>"


def _section(section: Section) -> str:
    parts = [_element("h2", section.title)] if section.title else []
    parts += [_element("p", text) for text in section.paragraphs]
    if section.pictures:
        parts.append('<div class="figures">')
        parts += map(_figure, section.pictures)
        parts.append("</div>")
    parts += map(_table, section.tables)
    return "\n".join(parts)


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
    rows = (zip(row, kinds, strict=True) for row in table.rows)
    body = "\n".join(f"<tr>{''.join(starmap(_cell, r))}</tr>" for r in rows)
    notes = "".join(_element("p", note, ["note"]) for note in table.notes)
    return (
        f"{_element('h2', table.title)}"
        f'<div class="scroll"><table><thead>{_heads(table.columns, kinds)}'
        f"</thead><tbody>{body}</tbody></table></div>{notes}"
    )


def _heads(columns: Sequence[str], kinds: Sequence[Sequence[str]]) -> str:
    """The row of heads, with a common head above the papers' columns, the last ones."""
    count = sum("paper" in kind for kind in kinds)
    above = ""
    if count:
        title, span = f"{paper.MARK}own", f' scope="colgroup" colspan="{count}"'
        above = (
            f'<tr><td colspan="{len(columns) - count}"></td>'
            f"{_element('th', title, ['paper'], span)}</tr>"
        )
    heads = (
        _element("th", column.removeprefix(paper.MARK), kind, ' scope="col"')
        for column, kind in zip(columns, kinds, strict=True)
    )
    return f"{above}<tr>{''.join(heads)}</tr>"


def _cell(cell: Cell, kind: Sequence[str]) -> str:
    text = f"{cell:,}" if isinstance(cell, int) else cell_text(cell)
    missing = ["missing"] * (cell is NOT_RUN)
    long = ["long"] * (len(cell_text(cell)) > 40)
    return _element("td", text, [*kind, *missing, *long])


def _is_number(cell: Cell) -> bool:
    """Whether a cell is a number, with or without its interval."""
    has_interval = re.fullmatch(r"-?[\d.,]+ ± [\d.,]+", cell_text(cell)) is not None
    return isinstance(cell, int | float) or has_interval
