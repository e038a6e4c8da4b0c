"""The state of a training, besides weights and optimizer."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from bahdanau_tf.data.batching import Position


class State(tf.Module):
    """What is checkpointed besides weights and optimizer.

    Names that end in "seconds" are readings of a clock. All others have the
    same values in the end, however often a training was interrupted.

    Attributes:
        step: Number of updates.
        position: The `Position` in the text after the last batch.
        loss: Summed loss since the last evaluation.
        words: Number of target words over which it is summed.
        best_bleu: BLEU of the best model on the dev set; NaN before there is
            one.
        best_loss: Its loss per word of the dev set.
        stale: Number of evaluations since the best one.
        seconds: Time spent in all runs, each from the end of its first update.
        longest_seconds: Those of their longest evaluation; NaN before there
            is one.
        halvings: How often the learning rate of "plateau" was halved.
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
        self.halvings = _variable(0, tf.int32)
        self.longest_seconds = _variable(math.nan)

    def advance(self, position: Position, cost: float, words: float) -> None:
        """Counts an update.

        Args:
            position: The position in the text after its batch.
            cost: The summed loss of the batch; left out if it is not finite.
            words: The number of its target words.
        """
        self.step.assign_add(1)
        self.position.assign(position)
        if math.isfinite(cost):
            self.loss.assign_add(as_array(cost))
            self.words.assign_add(as_array(words))

    def take_loss(self) -> dict[str, float]:
        """{"loss": the mean loss of a word since the last call}, if any."""
        if not self.words:
            return {}
        mean = float(self.loss / self.words)
        self.loss.assign(0.0)
        self.words.assign(0.0)
        return {"loss": mean}

    def forget_best(self) -> None:
        """Makes the next model that is evaluated the best."""
        self.best_bleu.assign(math.nan)
        self.best_loss.assign(math.nan)
        self.stale.assign(0)

    def read_position(self) -> Position:
        """`position` as numbers."""
        return Position(*self.position.numpy().tolist())


def as_array(number: float) -> np.ndarray:
    """The number in a form that TensorFlow does not keep.

    It keeps a tensor for each Python number that it was ever given, some 700
    bytes, so a training would grow with each update.
    """
    return np.asarray(number)


def _variable(value: object, dtype: tf.DType = tf.float64) -> tf.Variable:
    return tf.Variable(value, dtype=dtype, trainable=False)
