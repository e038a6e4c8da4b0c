"""What a step may give in place of logits: what these are computed from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from typing import TypeAlias

import tensorflow as tf

from bahdanau_tf.search.hypotheses import NEVER
from bahdanau_tf.system.tensors import Nest


class Features(NamedTuple):
    """Features of hypotheses, from which search computes logits it needs.

    The last product of a step is the largest. A hypothesis that has ended, or
    that cannot win any more, is left out of it.

    Attributes:
        values: nest of float `[B, K, ...]`.
        to_logits: function of such a nest -> logits, float `[B, K, V]`; it
            treats each hypothesis alone, and is called with `[M, 1, ...]`.
    """

    values: Nest
    to_logits: Callable[[Nest], tf.Tensor]

    def of_live(self, live: Live) -> tf.Tensor:
        """The logits of the live hypotheses: float32 `[M, 1, V]`."""

        def one_a_row(x: tf.Tensor) -> tf.Tensor:
            rest = x.shape[2:].as_list()
            return tf.gather(tf.reshape(x, [-1, *rest]), live.places)

        values = tf.nest.map_structure(one_a_row, self.values)
        return tf.cast(self.to_logits(values), tf.float32)


Output: TypeAlias = "tf.Tensor | Features"  # of a step


class Live(NamedTuple):
    """The M live hypotheses of all rows, numbered.

    Attributes:
        places: int64 `[M, 1]`, of each among the B K hypotheses.
        numbers: int32 `[B, K]`; 0 for a place without a hypothesis.
    """

    places: tf.Tensor
    numbers: tf.Tensor

    @classmethod
    def of(cls, log_probs: tf.Tensor) -> Live:
        """Those of log-probabilities `[B, K]` that are more than -inf."""
        exist = tf.cast(tf.reshape(log_probs, [-1]) > NEVER, tf.int32)
        numbers = exist * tf.cumsum(exist, exclusive=True)
        numbers = tf.reshape(numbers, [-1, log_probs.shape[1]])
        return cls(tf.where(exist), numbers)


def all_logits(output: Output) -> tf.Tensor:
    """The logits of all hypotheses: float32 `[B, K, V]`."""
    if isinstance(output, Features):
        output = output.to_logits(output.values)
    return tf.cast(output, tf.float32)


def live_logits(
    output: Output, log_probs: tf.Tensor
) -> tuple[tf.Tensor, Live | None]:
    """The logits of the live hypotheses, if the others' need no computation.

    Args:
        output: Of a step.
        log_probs: float32 `[B, K]` of the hypotheses, -inf where there is none.

    Returns:
        float32 `[M, 1, V]`, and which these are; or `[B, K, V]` and None.
    """
    if not isinstance(output, Features) or log_probs.shape[1] == 1:
        return all_logits(output), None  # a beam of one is always live
    live = Live.of(log_probs)
    return output.of_live(live), live
