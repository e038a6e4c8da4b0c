"""A report as data: tables, pictures and text."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from bahdanau_tf.evaluation import Table


class Picture(NamedTuple):
    """A PNG file and its caption."""

    path: Path
    title: str


class Finding(NamedTuple):
    """Whether a claim holds, None if it could not be tested; and why."""

    is_shown: bool | None
    text: str


class Section(NamedTuple):
    """Paragraphs, then figures, then tables.

    A section without a title has only the titles of its tables. `data` is the
    data of the figures, by name, for `json.dumps`.
    """

    title: str = ""
    paragraphs: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    data: Mapping[str, object] = MappingProxyType({})


class Document(NamedTuple):
    """The contents of a report.

    Attributes:
        title: Its heading.
        about: Paragraphs on the data, the settings and the machine.
        findings: The results of testing the paper's claim.
        sections: Tables and figures.
        commands: The commands by which the systems were trained.
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
