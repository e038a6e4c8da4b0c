"""Parts of a corpus: sentences under a mask, those without unknown words."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import tensorflow as tf

from bahdanau_tf.evaluation.scores import check_counts


def without_unknown_words(
    *sides: tuple[Iterable[Iterable[str]], Callable[[str], bool]],
) -> list[bool]:
    """Tells which sentences have no unknown word on any side.

    Args:
        *sides: pairs of tokenized sentences and a function that tells whether
            a word is known, such as `set(words).__contains__`. For the paper's
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
    """As `bahdanau_tf.text.tokenizer.Tokenizer`, with `settings`."""

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
