"""Sentences as vectors: what a decoder without attention gets of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.translation.reading import padded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bahdanau_tf.models.stepwise import TranslationModel


def sentence_vectors(
    model: TranslationModel, text: Tokenizer, sentences: Sequence[str]
) -> NDArray[np.float32]:
    """The fixed vector in which a model keeps each sentence, `[B, d]`.

    It is all that the decoder gets: the first states of all layers, and the
    context of a model that has one.

    Args:
        model: A model of one source.
        text: The tokenizer of its source.
        sentences: The sentences.

    Raises:
        ValueError: The model has attention: it keeps no fixed vector.

    Reference:
        Sutskever et al. 2014, arXiv 1409.3215, section 3.8.
    """
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


def in_a_plane(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.float64], float]:
    """Projects vectors `[N, d]` on their two principal components.

    Returns:
        float `[N, 2]`, centred; and the share of the variance that is in it.
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
    found: list[int] = np.argmin(distances, 1).tolist()
    return found
