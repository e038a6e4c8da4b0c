"""What a model keeps of the source while it is translated."""

from __future__ import annotations

import math
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.layers.readout import scores


class SourceMemory(NamedTuple):
    """What stays the same while one source sentence is translated.

    Attributes:
        attended: What the decoder's `step` reads; () without attention.
        first_input: float [B, m], what stands for E y_0.
        annotations: float [B, T_x, c], h_1 .. h_Tx.
        own: `OwnWords`; () where all of the vocabulary may be used.
    """

    attended: Any
    first_input: tf.Tensor
    annotations: tf.Tensor
    own: Any = ()


class OwnWords(NamedTuple):
    """The end of each sentence's shortlist, behind the first F words of all.

    In the place of ids the search then has places in the shortlist.

    Attributes:
        words: int32 [B, M], ids from F on; -1 for none.
        kernel: float [B, M, f], their rows of the output matrix.
        bias: float [B, M], -inf where there is no word.
    """

    words: tf.Tensor
    kernel: tf.Tensor
    bias: tf.Tensor

    @classmethod
    def of(
        cls, words: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor, dtype: str
    ) -> OwnWords:
        """Looks the words up in a readout's `output_weights`.

        Args:
            words: int32 [B, M].
            kernel: float [K_y, f].
            bias: float [K_y].
            dtype: What the readout computes in.
        """
        kernel, bias = (
            tf.gather(weight, tf.maximum(words, 0)) for weight in (kernel, bias)
        )
        bias = tf.where(words < 0, -math.inf, tf.cast(bias, tf.float32))
        return cls(words, tf.cast(kernel, dtype), bias)

    def scores(
        self,
        features: tf.Tensor,
        kernel: tf.Tensor,
        bias: tf.Tensor,
        first: int,
    ) -> tf.Tensor:
        """Logits of the shortlist, from a readout's `factors`.

        Args:
            features: float [B, K, f].
            kernel: float [K_y, f].
            bias: float [K_y].
            first: F.

        Returns:
            float32 [B, K, F + M].
        """
        frequent = scores(features, kernel[:first], bias[:first])
        own = tf.matmul(features, self.kernel, transpose_b=True)
        own = tf.cast(own, tf.float32) + self.bias[:, tf.newaxis]
        return tf.concat([frequent, own], axis=-1)


def word_ids(places: tf.Tensor, first: int, words: tf.Tensor) -> tf.Tensor:
    """Turns places in a shortlist to ids.

    Args:
        places: int32 [B, ...].
        first: F.
        words: int32 [B, M], `OwnWords.words`.

    Returns:
        int32 [B, ...].
    """
    own = tf.gather(words, tf.maximum(places - first, 0), batch_dims=1)
    return tf.where(places < first, places, own)
