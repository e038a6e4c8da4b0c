"""The context of a decoder without attention."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.layers.encoder import Encoded
from bahdanau_tf.system.tensors import Shape


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class FixedContext(keras.layers.Layer):
    """RNNencdec's context: the same sentence vector c = h_Tx at every step.

    It is used in place of an attention layer and returns None as weights.

    Call arguments:
        query: float [B, n] or [B, K, n]; only its shape is used.
        memory: float [B, c], from `memory(encoded)`.
        values: float [B, v], returned in place of c.

    Returns:
        context, float [B, c] or [B, K, c], and None.

    Reference:
        Cho et al. 2014, arXiv 1406.1078; Bahdanau et al. 2015, section 2.1.
    """

    has_weights = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, query_shape: Shape, memory_shape: Shape) -> None:
        """Makes no weights."""

    def compute_mask(
        self, query: tf.Tensor, mask: tf.Tensor | None = None
    ) -> tuple[tf.Tensor | None, None]:
        """The contexts have the mask of the queries, the weights have none."""
        return mask, None

    def context_size(self, encoded_shape: Encoded) -> int:
        """n, the width of h_Tx."""
        width: int = encoded_shape.forward_states[-1][0][-1]
        return width

    def memory(self, encoded: Encoded) -> tf.Tensor:
        """h_Tx, the top layer's last forward state."""
        encoded = Encoded(*encoded)  # a list in a reloaded functional model
        return encoded.forward_states[-1][0]

    def call(
        self,
        query: tf.Tensor,
        memory: tf.Tensor,
        values: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, None]:
        context = memory if values is None else values
        if query.shape.rank == 2:
            return context, None
        shape = tf.concat([tf.shape(query)[:2], tf.shape(context)[1:]], 0)
        return tf.broadcast_to(context[:, None], shape), None

    def get_config(self) -> dict[str, object]:
        # Without an override Keras does not serialize a dtype policy.
        return {**super().get_config()}
