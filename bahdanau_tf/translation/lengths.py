"""Lengths of sentences, and ranks of words, in the units that models count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from bahdanau_tf.translation.protocol import Text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bahdanau_tf.models.stepwise import TranslationModel
    from bahdanau_tf.text.tokenizer import Tokenizer

T = TypeVar("T", bound=Text)

WORDS = "words between spaces"  # a unit
UNITS = {"word": "words", "char": "characters", "space": "symbols"}  # of the kinds of tokenizers


def token_lengths(text: Text, lines: Sequence[str]) -> list[int]:
    """Tokens of each line, the end symbol not counted, as training counts."""
    return [len(ids) - 1 for ids in text.ids(lines)]


def source_lengths(
    texts: Sequence[Text], sources: Sequence[str], by_words: bool = False
) -> tuple[list[int], str]:
    """The length of each source, and its unit in words.

    Lengths are in tokens of the first tokenizer that has words, so that they are the same for all
    systems; else in sub-words, characters or symbols of the first tokenizer, by which the training
    of its model counted; without a tokenizer, or `by_words`, as some trainings count, in words
    between spaces.
    """
    text = None if by_words else counting_text(texts)
    if text is None:
        return [len(line.split()) for line in sources], WORDS
    return token_lengths(text, sources), "tokens" if text.are_words else unit_of(text)


def unit_of(text: Text) -> str:
    """What the tokens of a tokenizer are."""
    return UNITS.get(text.kind, "sub-words")


def counting_text(texts: Sequence[T]) -> T | None:
    """The first tokenizer that has words, else the first one, if any."""
    return next((text for text in texts if text.are_words), texts[0] if texts else None)


def mean_ranks(text: Text, lines: Sequence[str], learned: Sequence[str] = ()) -> list[float]:
    """The mean frequency rank of each line's tokens.

    The rank of a word is its id, since vocabularies are sorted by frequency; an unknown word comes
    after all others. Sub-words are not: single letters, for example, have the last ids. So they are
    counted in `learned`, lines of the training text; those that it does not have come last, in the
    order of their ids. A line without tokens has rank 0.
    """
    rows = text.ids(lines)
    ranks = np.arange(text.vocabulary_size, dtype=np.float64)  # of each id
    if text.are_words:
        ranks[text.unk_id] = text.vocabulary_size
    else:
        ids = [*chain(*text.ids(learned))]
        counts = np.bincount(ids, minlength=text.vocabulary_size)
        ranks[np.argsort(-counts, kind="stable")] = ranks.copy()
    return [float(ranks[ids[:-1]].mean()) if len(ids) > 1 else 0.0 for ids in rows]


def sentence_vectors(
    model: TranslationModel, text: Tokenizer, sentences: Sequence[str]
) -> NDArray[np.float32]:
    """The fixed vector in which a model keeps each sentence, `[B, d]`.

    It is all that the decoder gets: the first states of all layers, and the context of a model that
    has one. A model with attention keeps no fixed vector and is refused.

    Reference: Sutskever et al. 2014, arXiv 1409.3215, section 3.8.
    """
    import tensorflow as tf

    from bahdanau_tf.translation.graph import padded

    if model.has_alignment:
        raise ValueError(
            f"sentence_vectors: {type(model).__name__} has attention, wanted a "
            "model that keeps a sentence in one vector"
        )
    ids = padded(text.tokenize(tf.constant(sentences, tf.string)))
    rows = [
        tf.cast(x, tf.float32).numpy().reshape([len(sentences), -1])
        for x in tf.nest.flatten(model.encode(ids))
        if x.dtype.is_floating
    ]
    vectors: NDArray[np.float32] = np.concatenate(rows, 1)
    return vectors


def in_a_plane(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
    """Projects vectors `[N, d]` on their two principal components, `[N, 2]`, centred.

    Beside it is the share of the variance that is in it.
    """
    centred = np.asarray(vectors, np.float64) - np.mean(vectors, 0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros([len(vectors), 2])
    points[:, : len(sizes)] = (left * sizes)[:, :2]
    total = float(np.sum(sizes**2))
    return points, float(np.sum(sizes[:2] ** 2)) / total if total else 1.0


def nearest(vectors: NDArray[np.float32]) -> list[int]:
    """The number of the nearest other vector of each, of `[N, d]`."""
    x = np.asarray(vectors, np.float64)
    distances = np.linalg.norm(x[:, None] - x[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    places: list[int] = np.argmin(distances, 1).tolist()
    return places
