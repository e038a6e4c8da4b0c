"""BLEU on parts of a corpus: by length, without unknown words."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import tensorflow as tf

from bahdanau_tf.evaluation.scores import Score
from bahdanau_tf.evaluation.scores import bleu
from bahdanau_tf.evaluation.scores import check_counts


@dataclass(frozen=True)
class LengthBin:
    """The score of the sentences with `shortest` to `longest` source words."""

    shortest: int
    longest: int
    sentences: int
    score: Score


def bleu_by_length(
    hypotheses: Sequence[str],
    references: Sequence[str],
    source_lengths: Sequence[int],
    *,
    width: int = 10,
    tokenize: str = "13a",
    lowercase: bool = False,
    n_bootstrap: int = 1000,
) -> list[LengthBin]:
    """Computes BLEU for each bin of source length, as in the paper's Figure 2.

    Args:
        hypotheses, references, tokenize, lowercase, n_bootstrap: as in `bleu`.
        source_lengths: number of words of each source sentence.
        width: lengths per bin: 1 to `width`, `width` + 1 to twice that, and so
            on. An empty sentence is in the first bin.

    Returns:
        The bins that hold sentences, shortest first.

    Raises:
        ValueError: as in `bleu`; or `width` is less than 1.
    """
    if width < 1:
        raise ValueError(f"bleu_by_length: width is {width}, wanted >= 1.")
    check_counts(
        "bleu_by_length",
        {
            "hypotheses": hypotheses,
            "references": references,
            "source lengths": source_lengths,
        },
    )
    places = [max(length - 1, 0) // width for length in source_lengths]
    bins = []
    for place in sorted(set(places)):
        mask = [other == place for other in places]
        ours, theirs = select(mask, hypotheses, references)
        score = bleu(
            ours,
            theirs,
            tokenize=tokenize,
            lowercase=lowercase,
            n_bootstrap=n_bootstrap,
        )
        first = place * width + 1
        bins.append(LengthBin(first, first + width - 1, len(ours), score))
    return bins


def without_unknown_words(
    *sides: tuple[Iterable[Iterable[str]], Callable[[str], bool]],
) -> list[bool]:
    """Tells which sentences have no unknown word on any side.

    Args:
        *sides: pairs of tokenized sentences and a function that tells whether
            a word is known, such as `vocabulary.__contains__`. For the paper's
            "No UNK" the sides are source and reference.

    Returns:
        A mask for `select`, one entry per sentence.

    Raises:
        ValueError: the numbers of sentences differ.
    """
    masks = [
        [all(map(known, words)) for words in sentences]
        for sentences, known in sides
    ]
    named = {f"side {i}": mask for i, mask in enumerate(masks, start=1)}
    check_counts("without_unknown_words", named)
    return [all(row) for row in zip(*masks, strict=True)]


class _Text(Protocol):
    """As `bahdanau_tf.text.protocol.Tokenizer`, with `settings`."""

    @property
    def unk_id(self) -> int: ...

    def settings(self) -> dict[str, object]: ...

    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor: ...


class _Translator(Protocol):
    """As `bahdanau_tf.Translator`."""

    @property
    def source_texts(self) -> Sequence[_Text]: ...

    @property
    def target_text(self) -> _Text: ...


def known_sentences(
    translators: Sequence[_Translator],
    sources: Sequence[str],
    references: Sequence[str],
) -> list[bool]:
    """Tells which sentences have only words that all models know.

    Args:
        translators: Objects with the tokenizers of each model, as
            `source_texts` and `target_text`.
        sources: The source sentences.
        references: Their translations, which are checked as well.

    Returns:
        A mask for `select`, one entry per sentence.
    """
    sides: dict[str, tuple[_Text, Sequence[str]]] = {}
    for translator in translators:
        texts = [(text, sources) for text in translator.source_texts]
        for text, lines in [*texts, (translator.target_text, references)]:
            key = json.dumps([text.settings(), lines is sources], default=str)
            sides[key] = (text, lines)
    if not sides:
        return [True] * len(sources)
    return without_unknown_words(
        *(
            (
                text.tokenize(tf.constant(lines, tf.string)).to_list(),
                partial(operator.ne, text.unk_id),
            )
            for text, lines in sides.values()
        )
    )


def select(mask: Sequence[bool], *columns: Sequence[str]) -> list[list[str]]:
    """Takes the sentences where the mask is True out of each column.

    Args:
        mask: one entry per sentence.
        *columns: hypotheses, references, sources, and the like.

    Returns:
        A list for each column.

    Raises:
        ValueError: a column and the mask have different lengths.
    """
    named = {f"column {i}": column for i, column in enumerate(columns, start=1)}
    check_counts("select", {"mask": mask, **named})
    return [
        [line for line, kept in zip(column, mask, strict=True) if kept]
        for column in columns
    ]
