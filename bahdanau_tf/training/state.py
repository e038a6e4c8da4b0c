"""What a training must know to go on, beside weights and optimizer."""

from __future__ import annotations

import math

import tensorflow as tf

from bahdanau_tf.data.batching import Position


class State(tf.Module):
    """What is checkpointed beside weights and optimizer.

    Attributes:
        step: Updates made.
        position: Where in the text the last batch ended, a `Position`.
        loss: Summed loss since the last evaluation.
        words: Target words that it is summed over.
        best_bleu: Of the best model on the dev set; NaN before there is one.
        best_loss: Its loss for each word of the dev set.
        stale: Evaluations since.
        seconds: Time spent, by all runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.step = _variable(0, tf.int64)
        self.position = _variable(Position(), tf.int64)
        self.loss = _variable(0.0)
        self.words = _variable(0.0)
        # In 64 bits, or an equal score may be the better one.
        self.best_bleu = _variable(math.nan)
        self.best_loss = _variable(math.nan)
        self.stale = _variable(0, tf.int32)
        self.seconds = _variable(0.0)


def _variable(value: object, dtype: tf.DType = tf.float64) -> tf.Variable:
    return tf.Variable(value, dtype=dtype, trainable=False)
