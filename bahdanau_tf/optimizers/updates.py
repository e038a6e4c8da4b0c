"""The papers' optimizers, derived from those of Keras."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

from bahdanau_tf.optimizers.guarded import Guarded
from bahdanau_tf.optimizers.guarded import Variable
from bahdanau_tf.optimizers.guarded import handle


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Adadelta(Guarded, keras.optimizers.Adadelta):
    """The paper's optimizer.

        E[g²] ← ρ E[g²] + (1 - ρ) g²
        Δ     = g √(E[Δ²] + ε) / √(E[g²] + ε)
        E[Δ²] ← ρ E[Δ²] + (1 - ρ) Δ²,   θ ← θ - Δ

    The defaults are the paper's: ρ = 0.95, ε = 1e-6, learning rate 1 (that of
    Keras is 0.001), gradients clipped to norm 1.

    Args:
        learning_rate: Factor of Δ.
        rho: ρ.
        epsilon: ε.
        max_norm: Largest global gradient norm; None for no clipping.
        **kwargs: As in `keras.optimizers.Adadelta`.

    Reference:
        Zeiler 2012, arXiv 1212.5701; Bahdanau et al. 2015, appendix B.2.
    """

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule = 1.0,
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
        self,
        grad: tf.Tensor,
        variable: Variable,
        learning_rate: tf.Tensor,
    ) -> None:
        """Keras' update of a weight in one pass over memory, not in ten."""
        dtype = variable.dtype

        def update() -> None:
            tf.raw_ops.ResourceApplyAdadelta(
                var=handle(variable),
                accum=self._slot("accumulated_grad", variable),
                accum_update=self._slot("accumulated_delta_var", variable),
                lr=tf.cast(learning_rate, dtype),
                rho=tf.cast(self.rho, dtype),
                epsilon=tf.cast(self.epsilon, dtype),
                grad=tf.cast(grad, dtype),
            )

        self.unless_skipped(update)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Adam(Guarded, keras.optimizers.Adam):
    """`keras.optimizers.Adam` with `Guarded` updates.

    Args:
        max_norm: Largest global gradient norm; None for no clipping.
        **kwargs: As in `keras.optimizers.Adam`.
    """

    def _update(self, *args: Any) -> None:
        step = tf.cast(self.iterations + 1, tf.float32)
        self.beta_1_power, self.beta_2_power = (
            tf.cast(beta, tf.float32) ** step
            for beta in (self.beta_1, self.beta_2)
        )
        super()._update(*args)
        self.beta_1_power = self.beta_2_power = None

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: Variable,
        learning_rate: tf.Tensor,
    ) -> None:
        """Keras' update of a weight in one pass over memory, not in ten."""
        if self.amsgrad:
            plain = super().update_step
            self.unless_skipped(
                lambda: plain(gradient, variable, learning_rate)
            )
            return
        dtype = variable.dtype

        def update() -> None:
            tf.raw_ops.ResourceApplyAdam(
                var=handle(variable),
                m=self._slot("momentum", variable),
                v=self._slot("velocity", variable),
                beta1_power=tf.cast(self.beta_1_power, dtype),
                beta2_power=tf.cast(self.beta_2_power, dtype),
                lr=tf.cast(learning_rate, dtype),
                beta1=tf.cast(self.beta_1, dtype),
                beta2=tf.cast(self.beta_2, dtype),
                epsilon=tf.cast(self.epsilon, dtype),
                grad=tf.cast(gradient, dtype),
            )

        self.unless_skipped(update)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class SGD(Guarded, keras.optimizers.SGD):
    """`keras.optimizers.SGD` with `Guarded` updates.

    Args:
        max_norm: Largest global gradient norm; None for no clipping.
        **kwargs: As in `keras.optimizers.SGD`.
    """

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: Variable,
        learning_rate: tf.Tensor,
    ) -> None:
        """Keras' update of a weight."""
        plain = super().update_step
        self.unless_skipped(lambda: plain(gradient, variable, learning_rate))
