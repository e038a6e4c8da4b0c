"""Ensembles of trained models of a kind, as Sutskever et al. compared them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import replace

from bahdanau_tf.options import Decoding
from bahdanau_tf.translator import Translator

Members = Mapping[str, Sequence[Translator]]  # the models of each kind
Row = tuple[str, int, int]  # kind, number of models, beam size
MIXED = "mixed"  # a forward and a reversed model together


def name_of(kind: str, size: int, beam_size: int = 0) -> str:
    """The paper's name of some models: "Ensemble of 5 reversed, ..."."""
    name = f"Single {kind}" if size == 1 else f"Ensemble of {size} {kind}"
    return f"{name}, beam size {beam_size}" if beam_size else name


def joined(
    members: Members, kind: str, size: int, average: str = "probability"
) -> Translator | None:
    """`size` models of a kind as one; None if there are too few."""
    chosen = members.get(kind, ())[:size]
    if len(chosen) < size:
        return None
    return chosen[0] if size == 1 else Translator.ensemble(chosen, average)


def translate_rows(
    rows: Iterable[Row],
    members: Members,
    sources: Sequence[str],
    decoding: Decoding,
    average: str = "probability",
) -> Iterator[tuple[Row, list[str] | None]]:
    """Translates with the models of each row.

    Args:
        rows: Rows such as `paper.ENSEMBLES`.
        members: The models of each kind.
        sources: The sentences to translate.
        decoding: How to search; beam sizes are those of the rows.
        average: What an ensemble averages, as in `Ensemble`.

    Yields:
        Each row with its translations, or with None if there are not enough
        models.
    """
    for row in rows:
        kind, size, beam_size = row
        translator = joined(members, kind, size, average)
        if translator is None:
            yield row, None
            continue
        how = replace(decoding, beam_size=beam_size, n_best=1)
        yield row, [one.text for one in translator.translate(sources, how)]
