"""The papers' own figures, shown next to the measured ones.

They were measured on other data, WMT14 English-French, with far larger models, and BLEU by Moses'
multi-bleu.perl on tokenized text. The report marks each of them as the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from bahdanau_tf.evaluation import Table

MARK = "the paper's "  # the start of their column heads

# Table 1 of Bahdanau et al. 2015: BLEU of all sentences, and of those without
# unknown words, with [UNK] forbidden.
BLEU = {
    "RNNencdec-30": (13.93, 24.19),
    "RNNsearch-30": (21.50, 31.44),
    "RNNencdec-50": (17.82, 26.71),
    "RNNsearch-50": (26.75, 34.16),
    "RNNsearch-50*": (28.45, 36.15),
    "Moses": (33.30, 35.63),
}

# Its Table 2; NLL is the mean over sentences.
TRAINING_HEADS = ("updates", "epochs", "hours", "device", "train NLL", "dev NLL")
TRAINING = {
    "RNNencdec-30": (846_000, 6.4, 109, "TITAN BLACK", 28.1, 53.0),
    "RNNencdec-50": (600_000, 4.5, 108, "Quadro K-6000", 44.0, 43.6),
    "RNNsearch-30": (471_000, 3.6, 113, "TITAN BLACK", 26.7, 47.2),
    "RNNsearch-50": (288_000, 2.2, 111, "Quadro K-6000", 40.7, 38.1),
    "RNNsearch-50*": (667_000, 5.0, 252, "Quadro K-6000", 36.7, 35.2),
}

# Tables 1 and 2 of Sutskever et al. 2014, by kind of model, number of models
# and beam size. A rescored list has no beam size.
ENSEMBLES = {
    ("forward", 1, 12): 26.17,
    ("reversed", 1, 12): 30.59,
    ("reversed", 5, 1): 33.00,
    ("reversed", 2, 12): 33.27,
    ("reversed", 5, 2): 34.50,
    ("reversed", 5, 12): 34.81,
}
PERPLEXITY = {"forward": 5.8, "reversed": 4.7}  # of single models
RESCORING = {("forward", 1): 35.61, ("reversed", 1): 35.85, ("reversed", 5): 36.5}
RESCORING_BASELINE = 33.30
RESCORING_ORACLE = 45.0  # "about"


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

    A section without a title shows only the titles of its tables. `data` has the figures' data by
    name, for `json.dumps`.
    """

    title: str = ""
    paragraphs: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    data: Mapping[str, object] = MappingProxyType({})


class Document(NamedTuple):
    """The contents of a report."""

    title: str
    about: Sequence[str]  # paragraphs on the data, the settings and the machine
    findings: Sequence[Finding]  # the results of testing the paper's claim
    sections: Sequence[Section]
    commands: Sequence[str]  # those that trained the systems

    @property
    def tables(self) -> list[Table]:
        """The tables of all sections."""
        return [table for section in self.sections for table in section.tables]
