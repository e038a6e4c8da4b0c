"""Converts between word ids and places in a shortlist.

A search over a shortlist has places in it where another has ids of words.
"""

from __future__ import annotations

import tensorflow as tf

from bahdanau_tf.search import Constraint
from bahdanau_tf.search import History
from bahdanau_tf.search.selections import NEVER
from bahdanau_tf.translation.steps import word_ids


def word_places(first: int, own: tf.Tensor, size: int) -> tf.Tensor:
    """The place of each word in the shortlist of each sentence.

    Args:
        first: F, the number of words that all sentences share.
        own: int32 [B, M], the words of each sentence that follow these; -1 for
            none.
        size: K_y, the size of the vocabulary.

    Returns:
        int32 [B, K_y]; F + M for a word that is not in the shortlist.
    """
    batch, count = tf.unstack(tf.shape(own))
    row, place = tf.meshgrid(
        tf.range(batch), tf.range(first, first + count), indexing="ij"
    )
    ids = tf.range(size + 1)  # the last one stands for "no word"
    places = tf.where(ids < first, ids, first + count)
    places = tf.tensor_scatter_nd_update(
        tf.tile(places[tf.newaxis], [batch, 1]),
        tf.stack([row, tf.where(own < 0, size, own)], axis=-1),
        place,
    )
    return places[:, :size]


def of_words(
    constraint: Constraint, first: int, own: tf.Tensor, size: int
) -> Constraint:
    """Makes a constraint on words work in a shortlist.

    The constraint gets logits of the whole vocabulary, with -inf for words that
    are not in the shortlist, and tokens that are ids.

    Args:
        constraint: The constraint.
        first, own, size: As in `word_places`.
    """
    places = word_places(first, own, size)

    def constrain(logits: tf.Tensor, history: History) -> tf.Tensor:
        words = tf.gather(own, history.rows)
        frequent = tf.tile([tf.range(first)], [tf.shape(words)[0], 1])
        shortlist = tf.concat([frequent, words], axis=1)
        every = tf.pad(logits, [[0, 0], [0, 0], [0, 1]], constant_values=NEVER)
        every = _columns(every, tf.gather(places, history.rows))
        every = tf.ensure_shape(every, [None, None, size])
        tokens = word_ids(history.tokens, first, words)
        every = constraint(every, history._replace(tokens=tokens))
        there = _columns(every, tf.maximum(shortlist, 0))
        return tf.where(shortlist[:, tf.newaxis] < 0, NEVER, there)

    return constrain


def _columns(logits: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """Takes columns of each row: [B, K, V], [B, C] -> [B, K, C]."""
    return tf.gather(
        logits,
        tf.tile(columns[:, tf.newaxis], [1, tf.shape(logits)[1], 1]),
        batch_dims=2,
    )
