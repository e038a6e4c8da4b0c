"""Single models and ensembles, after Table 1 of Sutskever et al. 2014."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from bahdanau_tf.options import Decoding
from bahdanau_tf.report.paper import ENSEMBLES
from bahdanau_tf.translator import Translator


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        kind: "forward", "reversed", or "mixed" for some of both.
        size: How many models.
        beam_size: K.
    """

    kind: str
    size: int
    beam_size: int

    @property
    def name(self) -> str:
        """As the paper calls it."""
        return f"{name_of(self.kind, self.size)}, beam size {self.beam_size}"


PAPER_ROWS = tuple(Row(*key) for key in ENSEMBLES)


def name_of(kind: str, size: int) -> str:
    """What some models are called: "Ensemble of 5 reversed"."""
    if size == 1:
        return f"Single {kind}"
    return f"Ensemble of {size} {kind}"


def translate_rows(
    rows: Sequence[Row],
    members: Mapping[str, Sequence[Translator]],
    sources: Sequence[str],
    decoding: Decoding,
    average: str = "probability",
) -> Iterator[tuple[Row, list[str] | None]]:
    """Translates with every row for which there are models enough.

    Args:
        rows: The rows.
        members: The models of each kind.
        sources: What to translate.
        decoding: How to search; beam sizes are those of the rows.
        average: What an ensemble averages, as for `Ensemble`.

    Yields:
        Each row with its translations, or None where models are missing.
    """
    for row in rows:
        chosen = members.get(row.kind, ())[: row.size]
        if len(chosen) < row.size:
            yield row, None
            continue
        found = joined(chosen, average).translate(
            sources,
            dataclasses.replace(decoding, beam_size=row.beam_size, n_best=1),
        )
        yield row, [translation.text for translation in found]


def joined(
    translators: Sequence[Translator], average: str = "probability"
) -> Translator:
    """The one translator, or the ensemble of several."""
    if len(translators) == 1:
        return translators[0]
    return Translator.ensemble(translators, average)
