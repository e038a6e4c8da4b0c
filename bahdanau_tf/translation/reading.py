"""What is read of the sentences of a batch: ids and words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from typing import TypeAlias

import tensorflow as tf

# int32 [B, T_x], padded with 0; a tuple of them for a model of many sources.
Sources: TypeAlias = "tf.Tensor | tuple[tf.Tensor, ...]"


class Reading(NamedTuple):
    """What is read of the sentences of a batch before they are translated.

    Attributes:
        source: The ids of all sources.
        words: Ragged string [B, (T_x)], the words of source 0, with which
            unknown words are replaced; None to keep these.
        prefix: Ragged int32 [B, (P)], ids with which each translation begins;
            None for no prefixes.
        given: Ragged string [B, (P)], the words of the prefixes.
    """

    source: Sources
    words: tf.RaggedTensor | None = None
    prefix: tf.RaggedTensor | None = None
    given: tf.RaggedTensor | None = None


def joined(rows: Sequence[tf.RaggedTensor]) -> Sources:
    """The ids of all sources, padded, as a model takes them."""
    ids = [padded(one) for one in rows]
    return tuple(ids) if len(ids) > 1 else ids[0]


def padded(rows: tf.RaggedTensor) -> tf.Tensor:
    """Pads rows with 0 or "" to at least one column, even without rows."""
    values = rows.to_tensor()
    missing = tf.maximum(1 - tf.shape(values)[1], 0)
    fill = tf.zeros([tf.shape(values)[0], missing], values.dtype)
    return tf.concat([values, fill], axis=1)
