"""The last product of a translation model: from features to logits."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from bahdanau_tf.layers.weights import as_rows
from bahdanau_tf.layers.weights import reshaped


@dataclass(eq=False)
class OutputWeights:
    """The last matrix, with a row for each word, and its bias.

    Variables are converted to tensors once, not at every step of a loop.

    Attributes:
        kernel: float [K, f].
        bias: float [K].
    """

    kernel: tf.Tensor
    bias: tf.Tensor

    def __post_init__(self) -> None:
        self.kernel = tf.convert_to_tensor(self.kernel)
        self.bias = tf.convert_to_tensor(self.bias)

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Logits of all words: float [..., f] -> float32 [..., K]."""
        kernel = tf.cast(self.kernel, features.dtype)
        logits = tf.matmul(as_rows(features), kernel, transpose_b=True)
        return _biased(logits, self.bias, features)

    def first(self, count: int) -> OutputWeights:
        """The output weights of the first `count` words."""
        return OutputWeights(self.kernel[:count], self.bias[:count])


@dataclass(eq=False)
class OutputColumns:
    """`OutputWeights` with a column for each word, its bias at the end.

    A product of few rows of features reads them two to three times as fast,
    one of hundreds of rows a tenth faster; training is slower. The bias is part
    of the product: adding it afterwards would take a tenth as long again.

    Attributes:
        kernel: float [f + 1, K].
    """

    kernel: tf.Tensor

    @classmethod
    def of(cls, output: OutputWeights) -> OutputColumns:
        """The same weights in columns."""
        bias = tf.cast(output.bias, output.kernel.dtype)
        rows = tf.concat([output.kernel, bias[:, tf.newaxis]], 1)
        return cls(tf.transpose(rows))

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Logits of all words: float [..., f] -> float32 [..., K]."""
        rows = tf.pad(as_rows(features), [[0, 0], [0, 1]], constant_values=1)
        logits = tf.matmul(rows, tf.cast(self.kernel, rows.dtype))
        logits = tf.cast(logits, tf.float32)
        return reshaped(logits, features, self.kernel.shape[1])


def _biased(
    logits: tf.Tensor, bias: tf.Tensor, features: tf.Tensor
) -> tf.Tensor:
    # Not `+`: inside a loop TensorFlow fuses only bias_add with matmul.
    logits = tf.nn.bias_add(logits, tf.cast(bias, logits.dtype))
    return reshaped(tf.cast(logits, tf.float32), features, bias.shape[0])
