"""What a parallel text is like, as far as the choice of a recipe needs it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bahdanau_tf.data.held_out import source_keys
from bahdanau_tf.data.parallel import ParallelCorpus

SAMPLE = 20_000  # lines from which script and lengths are measured
LONGEST = 1000  # characters of a line that count for its script
MOST = 0.995  # the share of lines that are not longer than the lengths here


@dataclass(frozen=True)
class Side:
    """One language of a parallel text, in composed characters (NFC).

    Attributes:
        script: Its script, as `evaluation.script` names it.
        has_blanks: Whether blanks separate its words.
        is_tokenized: Whether blanks separate its punctuation, too.
        size: Number of characters.
        characters: Number of different characters; those of the source also
            count as they are in a line that `true_cased` has changed.
        length: Number of characters that 99.5 % of its lines do not exceed.
        words: The same in words between blanks.
    """

    script: str
    has_blanks: bool
    is_tokenized: bool
    size: int
    characters: int
    length: int
    words: int


@dataclass(frozen=True)
class Facts:
    """A parallel text.

    Attributes:
        pairs: Number of sentence pairs.
        different: Number of different source lines.
        characters: Number of different characters of both sides together.
        source: The side to translate.
        target: Its translation.
    """

    pairs: int
    different: int
    characters: int
    source: Side
    target: Side


# A text of which nothing is known, to check flags before a text is read.
TYPICAL = Facts(
    pairs=30_000,
    different=30_000,
    characters=100,
    source=Side("latin", True, False, 2_000_000, 90, 150, 30),
    target=Side("latin", True, False, 2_000_000, 90, 150, 30),
)


def measure(corpus: ParallelCorpus) -> Facts:
    """Reads a text, a part at a time, and measures it."""
    from bahdanau_tf.text.words import true_cased

    every = max(len(corpus) // SAMPLE, 1)
    samples: tuple[list[str], list[str]] = ([], [])
    characters: tuple[set[str], set[str]] = (set(), set())
    sizes = [0, 0]
    for chunk in corpus.read_in_chunks(corpus.rows):
        for side, lines in enumerate(chunk):
            text = _composed(b"\n".join(lines))
            sizes[side] += len(text)
            characters[side].update(text)
            samples[side].extend(map(_composed, lines[::every]))
        sentences = true_cased(chunk[0]).numpy().tolist()
        characters[0].update(_composed(b"\n".join(sentences)))
    source, target = (
        _side(*parts) for parts in zip(samples, sizes, characters, strict=True)
    )
    return Facts(
        pairs=len(corpus),
        different=len(np.unique(source_keys(corpus))),
        characters=len(set.union(*characters)),
        source=source,
        target=target,
    )


def _composed(text: bytes) -> str:
    return unicodedata.normalize("NFC", text.decode())


def _side(lines: list[str], size: int, characters: set[str]) -> Side:
    from bahdanau_tf.evaluation import has_blanks
    from bahdanau_tf.evaluation import is_tokenized
    from bahdanau_tf.evaluation import script

    begins = [line[:LONGEST] for line in lines]
    return Side(
        script=script(begins),
        has_blanks=has_blanks(begins),
        is_tokenized=is_tokenized(begins),
        size=size,
        characters=len(characters),
        length=_most(map(len, lines)),
        words=_most(len(line.split()) for line in lines),
    )


def _most(lengths: Iterator[int]) -> int:
    """The length that most lines do not exceed."""
    return int(np.quantile([*lengths], MOST, method="higher"))
