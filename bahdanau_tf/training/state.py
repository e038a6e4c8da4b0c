"""The state of a training, besides weights and optimizer."""

from __future__ import annotations

import math

import tensorflow as tf

from bahdanau_tf.data.batching import Position


class State(tf.Module):
    """What is checkpointed besides weights and optimizer.

    Attributes:
        step: Number of updates.
        position: The `Position` in the text after the last batch.
        loss: Summed loss since the last evaluation.
        words: Number of target words over which it is summed.
        best_bleu: BLEU of the best model on the dev set; NaN before there is
            one.
        best_loss: Its loss per word of the dev set.
        stale: Number of evaluations since the best one.
        seconds: Time spent in all runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.step = _variable(0, tf.int64)
        self.position = _variable(Position(), tf.int64)
        self.loss = _variable(0.0)
        self.words = _variable(0.0)
        # In float64: rounded to float32, an equal score might look better.
        self.best_bleu = _variable(math.nan)
        self.best_loss = _variable(math.nan)
        self.stale = _variable(0, tf.int32)
        self.seconds = _variable(0.0)

    @property
    def added(self) -> tuple[tf.Variable, ...]:
        """Those that the first version lacked; a new one belongs here.

        With checkpoints of earlier versions they keep their initial values.
        """
        return self.loss, self.words, self.best_loss


def _variable(value: object, dtype: tf.DType = tf.float64) -> tf.Variable:
    return tf.Variable(value, dtype=dtype, trainable=False)
