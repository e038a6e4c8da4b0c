"""Learning rate schedules."""

from __future__ import annotations

from dataclasses import dataclass, fields

import keras
import tensorflow as tf


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """The base class: a dataclass, whose fields are its config."""

    def get_config(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@keras.saving.register_keras_serializable(package="bahdanau_tf")
@dataclass(eq=False, repr=False)
class WarmupLinearDecay(Schedule):
    """A rate that rises linearly to its peak, stays there, falls linearly.

        rate(n) = peak · min(1, n / w, 1 - (1 - e) f)   at update n = 1, 2, ...
        f = clip((n - 1 - c N) / (N - c N), 0, 1)

    N is `total_steps`, w `warmup_steps`, c `constant_share`, e `final_share`.

    Args:
        peak: The highest rate.
        total_steps: Number of updates; later the rate stays the last one. It may be a variable, if
            the end is not known yet.
        warmup_steps: Number of updates in which the rate rises from 0; or a variable.
        constant_share: Share of `total_steps` after which the rate falls.
        final_share: The last rate as a share of the peak.
    """

    peak: float
    total_steps: int
    warmup_steps: int = 200
    constant_share: float = 0.5
    final_share: float = 0.02

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        warm = (step + 1.0) / tf.maximum(tf.cast(self.warmup_steps, tf.float32), 1.0)
        falls_from = self.constant_share * self.total_steps
        span = tf.maximum(self.total_steps - falls_from, 1.0)
        fallen = tf.clip_by_value((step - falls_from) / span, 0.0, 1.0)
        decay = 1.0 - fallen * (1.0 - self.final_share)
        return self.peak * tf.minimum(tf.minimum(warm, 1.0), decay)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
@dataclass(eq=False, repr=False)
class InverseSquareRoot(Schedule):
    """A rate that rises linearly to its peak, then falls as 1/√updates.

        rate(n) = peak · min(n / w, √(w / n))   at update n = 1, 2, ...

    w is `warmup_steps`. It does not depend on the length of the training.

    Args:
        peak: The highest rate, that of update w.
        warmup_steps: Number of updates in which the rate rises from 0; 0 counts as 1.

    Reference:
        Vaswani et al. 2017, arXiv 1706.03762, equation 3, where the peak is (d_model w)^-1/2.
    """

    peak: float
    warmup_steps: int = 200

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        ratio = (tf.cast(step, tf.float32) + 1.0) / max(self.warmup_steps, 1)
        return self.peak * tf.minimum(ratio, tf.math.rsqrt(ratio))


@keras.saving.register_keras_serializable(package="bahdanau_tf")
@dataclass(eq=False, repr=False)
class HalvedEveryHalfEpoch(Schedule):
    """Sutskever et al.'s rate: constant, then halved every half epoch.

    "After 5 epochs, we begun halving the learning rate every half epoch": it is first halved right
    after the fifth epoch, so that their 7.5 epochs end with 1/32 of the rate.

    Args:
        initial_rate: The rate of the first epochs.
        steps_per_epoch: Number of updates in an epoch; with batches whose gradients are accumulated
            it need not be whole.
        constant_epochs: Number of epochs before the rate is first halved.

    Raises:
        ValueError: `steps_per_epoch` is not more than 0.

    Example: their training; the gradient is that of the sum divided by 128.

    ```python
    rate = HalvedEveryHalfEpoch(0.7, steps_per_epoch)
    model.compile(SGD(rate, max_norm=5.0), TokenCrossentropy(divisor=128))
    ```

    Reference:
        Sutskever et al. 2014, arXiv 1409.3215, section 3.4.
    """

    initial_rate: float
    steps_per_epoch: float
    constant_epochs: int = 5

    def __post_init__(self) -> None:
        if self.steps_per_epoch <= 0:
            raise ValueError(
                f"HalvedEveryHalfEpoch: steps_per_epoch is {self.steps_per_epoch}, "
                "wanted more than 0"
            )

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        # A float32 cannot count updates beyond 2^24.
        late = tf.cast(step, tf.float64)
        late -= self.constant_epochs * self.steps_per_epoch
        halvings = tf.floor(2 * late / self.steps_per_epoch) + 1
        halvings = tf.cast(tf.maximum(halvings, 0), tf.float32)
        return self.initial_rate * 0.5**halvings
