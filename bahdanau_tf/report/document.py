"""A report as data: tables, pictures and words, whatever is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

NOT_RUN = None
NOTHING = ""
Cell = str | int | float | None


class Table(NamedTuple):
    """A table.

    Attributes:
        name: Of its file.
        title: What it shows.
        columns: Heads; those that begin with `paper.MARK` hold the papers'
            own figures.
        rows: Cells; `NOT_RUN` says "not run", `NOTHING` stays empty.
        notes: What one must know to read it.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


class Picture(NamedTuple):
    """A PNG, and what it shows."""

    path: Path
    title: str


class Finding(NamedTuple):
    """Whether a claim is to be seen, None if it could not be tried; and why."""

    is_shown: bool | None
    text: str


class Section(NamedTuple):
    """Paragraphs, figures below them, tables below those.

    Without a title the tables' titles say it all. `data` is what figures were
    drawn from, by name, for `json.dumps`.
    """

    title: str = ""
    paragraphs: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    data: Mapping[str, object] = MappingProxyType({})


class Document(NamedTuple):
    """All that a report says.

    Attributes:
        title: Its heading.
        about: What was measured on what, a paragraph each.
        findings: What became of the paper's claim.
        sections: Tables and figures.
        commands: How the systems were trained.
    """

    title: str
    about: Sequence[str]
    findings: Sequence[Finding]
    sections: Sequence[Section]
    commands: Sequence[str]

    @property
    def tables(self) -> list[Table]:
        """The tables of all sections."""
        return [table for one in self.sections for table in one.tables]
