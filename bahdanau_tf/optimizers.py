"""Keras' optimizers with what the papers' training does before an update.

Three things, once for all gradients together, in `fit` as in `train`:

* rows of an embedding's gradient that repeat are summed, and gradients of
  replicas are;
* the sum is scaled down to a global norm of at most `max_norm`;
* a gradient that is not finite changes nothing and is counted.

Keras' own `global_clipnorm` does not merge repeated rows and clips each
replica's gradient by itself, and nothing in Keras skips an update.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf


class _Guarded(keras.optimizers.Optimizer):
    """Mixed into an optimizer, it stands before every update.

    The original code, where the norm is not finite, goes on with a tenth of
    the parameters in place of the gradient. Skipping is a departure: that rule
    shrinks all weights and enters Adadelta's running means.

    Attributes:
        gradient_norm: float32 scalar, the norm before clipping at the last
            update.
        skipped_updates: int32 scalar, how many updates were skipped.
    """

    def __init__(
        self, *args: Any, max_norm: float | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        if max_norm is not None and max_norm <= 0:
            raise ValueError(
                f"{type(self).__name__}: max_norm is {max_norm}, wanted more "
                "than 0, or None"
            )
        self.max_norm = max_norm

    def build(self, variables: Sequence[Any]) -> None:
        if not self.built:
            # Replicas know the same norm.
            once = {"shape": (), "aggregation": "only_first_replica"}
            self.gradient_norm = self.add_variable(name="gradient_norm", **once)
            self.skipped_updates = self.add_variable(
                name="skipped_updates", dtype="int32", **once
            )
        super().build(variables)

    def apply(
        self, grads: Sequence[Any], trainable_variables: Any = None
    ) -> None:
        if not self.built:
            with tf.init_scope():
                self.build(trainable_variables)
        dense, replicas = _summed([_dense(g) for g in grads])
        norm = tf.linalg.global_norm([g for g in dense if g is not None])
        is_finite = tf.math.is_finite(norm)
        scale = 1.0 if self.max_norm is None else self.max_norm / norm
        scale = tf.minimum(scale, 1.0) / replicas  # Keras sums them once more
        scale = tf.where(is_finite, scale, np.nan)  # which `_unless_nan` sees
        dense = [
            None if g is None else g * tf.cast(scale, g.dtype) for g in dense
        ]
        super().apply(dense, trainable_variables)
        skipped = tf.cast(~is_finite, tf.int32)
        self.gradient_norm.assign(norm)
        self.skipped_updates.assign(self.skipped_updates + skipped)
        iterations = self.iterations - tf.cast(skipped, self.iterations.dtype)
        self.iterations.assign(iterations)

    def _slot(self, name: str, variable: Any) -> tf.Tensor:
        """Handle of what Keras' optimizer keeps by that name for a weight."""
        slots = [v for v in self.variables if v.name.endswith(name)]
        return _handle(slots[self._get_variable_index(variable)])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "max_norm": self.max_norm}


def _dense(gradient: Any) -> tf.Tensor | None:
    return None if gradient is None else tf.convert_to_tensor(gradient)


def _summed(
    gradients: Sequence[tf.Tensor | None],
) -> tuple[list[tf.Tensor | None], int]:
    """The gradients summed over the replicas, and how many these are."""
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return list(gradients), 1
    present = [g for g in gradients if g is not None]
    summed = iter(replica.all_reduce(tf.distribute.ReduceOp.SUM, present))
    dense = [None if g is None else next(summed) for g in gradients]
    return dense, replica.num_replicas_in_sync


def _unless_nan(gradient: tf.Tensor, update: Callable[[], Any]) -> None:
    """Updates a weight, unless the gradient of this step is to be skipped.

    One number tells: a gradient of finite norm has no NaN.
    """

    def updated() -> tf.Tensor:
        update()
        return tf.constant(True)

    number = tf.reshape(gradient, [-1])[0]
    tf.cond(tf.math.is_finite(number), updated, lambda: tf.constant(False))


def _handle(variable: Any) -> tf.Tensor:
    """What TensorFlow's own update kernels know a variable by."""
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return variable.handle


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Adadelta(_Guarded, keras.optimizers.Adadelta):
    """The paper's optimizer.

        E[g²] ← ρ E[g²] + (1 - ρ) g²
        Δ     = g √(E[Δ²] + ε) / √(E[g²] + ε)
        E[Δ²] ← ρ E[Δ²] + (1 - ρ) Δ²,   θ ← θ - Δ

    The defaults are the paper's: ρ = 0.95, ε = 1e-6, no learning rate (1,
    where Keras' default is 0.001), gradients clipped to norm 1.

    Args:
        learning_rate: Factor of Δ.
        rho: ρ.
        epsilon: ε.
        max_norm: Largest global gradient norm; None for no clipping.
        **kwargs: Of `keras.optimizers.Adadelta`.

    Reference:
        Zeiler 2012, arXiv 1212.5701; Bahdanau et al. 2015, appendix B.2.
    """

    def __init__(
        self,
        learning_rate: Any = 1.0,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        max_norm: float | None = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            rho=rho,
            epsilon=epsilon,
            max_norm=max_norm,
            **kwargs,
        )

    def update_step(
        self, grad: tf.Tensor, variable: Any, learning_rate: Any
    ) -> None:
        """Keras' update of a weight in one pass over memory, not in ten."""
        dtype = variable.dtype

        def update() -> None:
            tf.raw_ops.ResourceApplyAdadelta(
                var=_handle(variable),
                accum=self._slot("accumulated_grad", variable),
                accum_update=self._slot("accumulated_delta_var", variable),
                lr=tf.cast(learning_rate, dtype),
                rho=tf.cast(self.rho, dtype),
                epsilon=tf.cast(self.epsilon, dtype),
                grad=tf.cast(grad, dtype),
            )

        _unless_nan(grad, update)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Adam(_Guarded, keras.optimizers.Adam):
    """`keras.optimizers.Adam` with merged rows, one clip and a guard.

    Args:
        max_norm: Largest global gradient norm; None for no clipping.
        **kwargs: Of `keras.optimizers.Adam`.
    """

    def update_step(
        self, gradient: tf.Tensor, variable: Any, learning_rate: Any
    ) -> None:
        """Keras' update of a weight in one pass over memory, not in ten."""
        if self.amsgrad:
            plain = super().update_step
            _unless_nan(
                gradient, lambda: plain(gradient, variable, learning_rate)
            )
            return
        dtype = variable.dtype
        step = tf.cast(self.iterations + 1, dtype)
        beta_1, beta_2 = (tf.cast(b, dtype) for b in (self.beta_1, self.beta_2))

        def update() -> None:
            tf.raw_ops.ResourceApplyAdam(
                var=_handle(variable),
                m=self._slot("momentum", variable),
                v=self._slot("velocity", variable),
                beta1_power=beta_1**step,
                beta2_power=beta_2**step,
                lr=tf.cast(learning_rate, dtype),
                beta1=beta_1,
                beta2=beta_2,
                epsilon=tf.cast(self.epsilon, dtype),
                grad=tf.cast(gradient, dtype),
            )

        _unless_nan(gradient, update)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class SGD(_Guarded, keras.optimizers.SGD):
    """`keras.optimizers.SGD` with merged rows, one clip and a guard.

    Args:
        max_norm: Largest global gradient norm; None for no clipping.
        **kwargs: Of `keras.optimizers.SGD`.
    """

    def update_step(
        self, gradient: tf.Tensor, variable: Any, learning_rate: Any
    ) -> None:
        """Keras' update of a weight."""
        plain = super().update_step
        _unless_nan(gradient, lambda: plain(gradient, variable, learning_rate))


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that rises to its peak, stays there, then falls in a line.

    Args:
        peak: The highest rate.
        total_steps: Updates in all; from then on the rate is the last one.
        warmup_steps: Updates until the peak is reached, from 0.
        constant_share: Share of `total_steps` after which the rate falls.
        final_share: The last rate as a share of the peak.
    """

    def __init__(
        self,
        peak: float,
        total_steps: int,
        warmup_steps: int = 200,
        constant_share: float = 0.5,
        final_share: float = 0.02,
    ) -> None:
        super().__init__()
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.constant_share = constant_share
        self.final_share = final_share

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        warm = (step + 1.0) / max(self.warmup_steps, 1)
        falls_from = self.constant_share * self.total_steps
        span = max(self.total_steps - falls_from, 1.0)
        fallen = tf.clip_by_value((step - falls_from) / span, 0.0, 1.0)
        decay = 1.0 - fallen * (1.0 - self.final_share)
        return self.peak * tf.minimum(tf.minimum(warm, 1.0), decay)

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "constant_share": self.constant_share,
            "final_share": self.final_share,
        }


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class HalvedEveryHalfEpoch(keras.optimizers.schedules.LearningRateSchedule):
    """Sutskever et al.'s rate: constant, then halved every half epoch.

    "After 5 epochs, we begun halving the learning rate every half epoch": the
    first half comes right after the fifth epoch, so that their 7.5 epochs end
    with a 32nd of the rate.

    Args:
        initial_rate: The rate of the first epochs.
        steps_per_epoch: Updates in an epoch.
        constant_epochs: Epochs before the rate is halved first.

    Example: their training, with gradients of the sum divided by 128.

    ```python
    rate = HalvedEveryHalfEpoch(0.7, steps_per_epoch)
    model.compile(SGD(rate, max_norm=5.0), TokenCrossentropy(divisor=128))
    ```

    Reference:
        Sutskever et al. 2014, arXiv 1409.3215, section 3.4.
    """

    def __init__(
        self,
        initial_rate: float,
        steps_per_epoch: int,
        constant_epochs: int = 5,
    ) -> None:
        super().__init__()
        if steps_per_epoch < 1:
            raise ValueError(
                f"HalvedEveryHalfEpoch: steps_per_epoch is {steps_per_epoch}, "
                "wanted 1 or more"
            )
        self.initial_rate = initial_rate
        self.steps_per_epoch = steps_per_epoch
        self.constant_epochs = constant_epochs

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        # In whole numbers: a float32 cannot count updates beyond 2^24.
        late = tf.cast(step, tf.int64)
        late -= self.constant_epochs * self.steps_per_epoch
        halvings = tf.maximum(2 * late // self.steps_per_epoch + 1, 0)
        return self.initial_rate * 0.5 ** tf.cast(halvings, tf.float32)

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_rate": self.initial_rate,
            "steps_per_epoch": self.steps_per_epoch,
            "constant_epochs": self.constant_epochs,
        }
