"""The record of attention weights that a search keeps."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.system.tensors import Shape


class Record(NamedTuple):
    """The weights of all steps, of the rows that were searched in each."""

    weights: tf.TensorArray  # of float32 [B, K, T_x]
    rows: tf.TensorArray  # of int32 [B], ascending

    @classmethod
    def empty(cls, places: int) -> Record:
        """The record before the first step of a beam of so many places."""
        return cls(
            _steps(tf.float32, (None, places, None)), _steps(tf.int32, (None,))
        )

    def write(
        self, time: tf.Tensor, weights: tf.Tensor, rows: tf.Tensor
    ) -> Record:
        """Adds those of a step."""
        return Record(
            self.weights.write(time, weights), self.rows.write(time, rows)
        )

    def followed(
        self, slots: tf.Tensor, real: tf.Tensor, steps: tf.Tensor
    ) -> tf.Tensor:
        """The weights of chosen hypotheses: float32 [B, N, T, T_x].

        Args:
            slots: int32 [B, N, T], the place in the beam of each of their
                tokens.
            real: bool [B, N, T], whether there is a token.
            steps: int32 scalar, how many steps were recorded.
        """
        weights = self._whole(tf.shape(slots)[0], steps)
        places = tf.transpose(slots[..., :steps], [0, 2, 1])  # [B, steps, N]
        weights = tf.gather(weights, places, batch_dims=2)
        weights = tf.transpose(weights, [0, 2, 1, 3])  # [B, N, steps, T_x]
        after = tf.shape(slots)[-1] - steps
        weights = tf.pad(weights, [[0, 0], [0, 0], [0, after], [0, 0]])
        return tf.where(real[..., tf.newaxis], weights, 0.0)

    def _whole(self, batch: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
        """float32 [B, steps, K, T_x] of all rows; 0 where there are none."""
        weights, rows = self.weights.concat(), self.rows.concat()
        # A step begins where the rows no longer ascend.
        before = tf.concat([[batch], rows], 0)[:-1]
        step = tf.cumsum(tf.cast(rows <= before, tf.int32)) - 1
        shape = tf.concat([[batch, steps], tf.shape(weights)[1:]], 0)
        return tf.scatter_nd(tf.stack([rows, step], 1), weights, shape)


def _steps(dtype: tf.DType, shape: Shape) -> tf.TensorArray:
    """An empty record of steps, of tensors with unknown numbers of rows."""
    return tf.TensorArray(
        dtype, 0, dynamic_size=True, infer_shape=False, element_shape=shape
    )
