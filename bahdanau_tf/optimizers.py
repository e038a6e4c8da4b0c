"""The papers' optimizers, with clipping and a guard against non-finite gradients, and schedules.

Before an update, in `fit` as in `train`:

* repeated rows of an embedding's gradient are summed, and so are the gradients of replicas;
* all gradients together are scaled to a global norm of at most `max_norm`;
* an update whose norm is not finite is skipped and counted.

Keras' own `global_clipnorm` does not merge repeated rows and clips the gradient of each replica
separately, and nothing in Keras skips an update.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import keras
import tensorflow as tf
from keras.optimizers.schedules import LearningRateSchedule

if TYPE_CHECKING:
    from typing_extensions import Unpack

Variable: TypeAlias = "keras.Variable | tf.Variable"


class KerasOptions(TypedDict, total=False):
    """The arguments of every optimizer of Keras, and here."""

    weight_decay: float | None
    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


class Guarded(keras.optimizers.Optimizer):
    """Mixin of an optimizer: clips, and skips updates that are not finite.

    If the norm is not finite, the original code uses a tenth of the parameters as the gradient. We
    skip the update instead: that rule shrinks all weights and changes Adadelta's running means.
    What Keras does without gradients (weight decay and the moving average of weights) is not
    skipped.

    With `gradient_accumulation_steps` k, as in Keras, an update follows every k-th step and uses
    the mean of k gradients; it is this mean that is clipped and checked. With a loss that is a sum,
    k batches then are like one batch whose loss is divided by k. `iterations`, and so a learning
    rate schedule, counts updates.

    Attributes:
        gradient_norm: float32 scalar, the norm before clipping at the last update.
        skipped_updates: int64 scalar, the number of skipped updates.

    Raises:
        ValueError: `max_norm` is not positive, or `gradient_accumulation_steps` is less than 2 or
            not None with several replicas; or, when it is built, weights and optimizer are not of
            the same `strategy.scope()`.
    """

    def __init__(
        self,
        *args: Any,
        max_norm: float | None = None,
        gradient_accumulation_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        # `gradient_accumulation_steps` is not passed to Keras, which would
        # clip and count every step.
        super().__init__(*args, **kwargs)
        if max_norm is not None and max_norm <= 0:
            raise ValueError(
                f"{type(self).__name__}: max_norm is {max_norm}, wanted more than 0, or None"
            )
        steps = gradient_accumulation_steps
        if steps is not None and steps < 2:
            raise ValueError(
                f"{type(self).__name__}: gradient_accumulation_steps is "
                f"{steps}, wanted 2 or more, or None"
            )
        self.max_norm = max_norm
        self.accumulation_steps = steps
        self.strategy = tf.distribute.get_strategy()
        if steps is not None and (replicas := self.strategy.num_replicas_in_sync) > 1:
            raise ValueError(
                f"{type(self).__name__}: gradient_accumulation_steps is {steps} "
                f"with {replicas} replicas, wanted None or one replica"
            )

    def build(self, variables: Sequence[Variable]) -> None:
        if not self.built:
            # Checkpoints number the variables: a new one comes after those of `super().build`. All
            # replicas compute the same values. A GPU holds no int32.
            once = {"shape": (), "aggregation": "only_first_replica"}
            self.gradient_norm = self.add_variable(name="gradient_norm", **once)
            self.skipped_updates = self.add_variable(name="skipped_updates", dtype="int64", **once)
            if self.accumulation_steps is not None:
                self.accumulated = self.add_variable(name="accumulated", dtype="int64", **once)
                self.gradient_sums = [
                    self.add_variable_from_reference(v, name="gradient_sum") for v in variables
                ]
            # Not a dictionary, which checkpoints would have to hold.
            self.places = MappingProxyType(_places(variables))
        super().build(variables)

    def add_variable_from_reference(
        self, reference_variable: Variable, *args: Any, **kwargs: Any
    ) -> keras.Variable:
        """A variable of the optimizer like a weight, on all replicas."""
        weight = _variable(reference_variable)
        has_copies = isinstance(weight, tf.distribute.DistributedValues)
        is_outside = self.strategy is not tf.distribute.get_strategy()
        if is_outside or (has_copies and not tf.distribute.has_strategy()):
            raise ValueError(
                f"{type(self).__name__}: the weights, the optimizer and its variables were not "
                "made in the same strategy.scope(), wanted weights, optimizer and `build` in one"
            )
        return super().add_variable_from_reference(reference_variable, *args, **kwargs)

    def apply(
        self,
        grads: Sequence[tf.Tensor | tf.IndexedSlices | None],
        trainable_variables: Sequence[Variable] | None = None,
    ) -> None:
        if not self.built:
            if trainable_variables is None:
                raise ValueError(
                    f"{type(self).__name__}: apply got no variables before the optimizer was "
                    "built, wanted apply(gradients, variables), or build(variables) first"
                )
            with tf.init_scope():
                self.build(trainable_variables)
        dense, replicas = _summed([g if g is None else tf.convert_to_tensor(g) for g in grads])
        if self.accumulation_steps is None:
            self._update(dense, trainable_variables, replicas)
        else:
            self._accumulate(dense, trainable_variables)

    def _accumulate(
        self, gradients: Sequence[tf.Tensor | None], variables: Sequence[Variable] | None
    ) -> None:
        """Adds gradients to the sums; updates after the last of the steps."""
        sums = self.gradient_sums
        if variables is not None:
            sums = [sums[self._place(v)] for v in variables]
        for total, gradient in zip(sums, gradients, strict=True):
            if gradient is not None:
                total.assign_add(tf.cast(gradient, total.dtype))
        self.accumulated.assign_add(1)

        def update() -> tf.Tensor:
            # A gradient that is missing in some of the steps counts as 0.
            means = [total / self.accumulation_steps for total in sums]
            self._update(means, variables, 1)
            for variable in (*sums, self.accumulated):
                variable.assign(tf.zeros_like(variable))
            return tf.constant(True)

        is_last = self.accumulated.value >= self.accumulation_steps
        tf.cond(is_last, update, lambda: tf.constant(False))

    def _update(
        self, dense: Sequence[tf.Tensor | None], variables: Sequence[Variable] | None, replicas: int
    ) -> None:
        """Clips, updates unless the norm is not finite, and counts."""
        norm = tf.linalg.global_norm([g for g in dense if g is not None])
        if self.loss_scale_factor is not None:  # Keras divides by it later
            norm /= self.loss_scale_factor
        is_finite = tf.math.is_finite(norm)
        scale = 1.0 if self.max_norm is None else self.max_norm / norm
        scale = tf.minimum(scale, 1.0) / replicas  # Keras sums them once more
        dense = [None if g is None else g * tf.cast(scale, g.dtype) for g in dense]
        # One check for all weights: each that waits for a number of its own
        # makes the host wait for a GPU.
        self.is_finite = is_finite
        super().apply(dense, variables)
        self.is_finite = None
        skipped = tf.cast(~is_finite, tf.int64)
        self.gradient_norm.assign(norm)
        self.skipped_updates.assign(self.skipped_updates + skipped)
        iterations = self.iterations - tf.cast(skipped, self.iterations.dtype)
        self.iterations.assign(iterations)

    def update_step(self, gradient: tf.Tensor, variable: Variable, rate: tf.Tensor) -> None:
        """Keras' update of a weight by `update_weight`, unless this update is to be skipped."""

        def update() -> tf.Tensor:
            self.update_weight(gradient, variable, rate)
            return tf.constant(True)

        tf.cond(self.is_finite, update, lambda: tf.constant(False))

    def update_weight(self, gradient: tf.Tensor, variable: Variable, rate: tf.Tensor) -> None:
        """The update of a weight by Keras' optimizer; or the same in one pass over memory."""
        super().update_step(gradient, variable, rate)

    def _slot(self, name: str, variable: Variable) -> tf.Tensor:
        """Handle of the optimizer's variable of that name for a weight."""
        slots = [v for v in self.variables if v.name.endswith(name)]
        return handle(slots[self._place(variable)])

    def _place(self, variable: Variable) -> int:
        """Its place in `build`, even if it is a replica's copy of the weight."""
        place = self.places.get(handle(variable).ref())
        if place is None:
            raise ValueError(
                f"{type(self).__name__}: the optimizer was not built for the weight "
                f"{variable.name}, wanted one passed to `build`"
            )
        return place

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "max_norm": self.max_norm,
            "gradient_accumulation_steps": self.accumulation_steps,
        }


def _places(variables: Sequence[Variable]) -> dict[Hashable, int]:
    """The place of each variable, by the handles of all replicas' copies."""
    local = tf.distribute.get_strategy().experimental_local_results
    return {
        handle(copy).ref(): place
        for place, variable in enumerate(variables)
        for copy in local(_variable(variable))
    }


def _variable(variable: Variable) -> tf.Variable:
    """TensorFlow's variable of one that may be Keras'."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def _summed(gradients: Sequence[tf.Tensor | None]) -> tuple[list[tf.Tensor | None], int]:
    """The gradients summed over the replicas, and the number of replicas."""
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return list(gradients), 1
    present = [g for g in gradients if g is not None]
    summed = iter(replica.all_reduce(tf.distribute.ReduceOp.SUM, present))
    dense = [None if g is None else next(summed) for g in gradients]
    return dense, replica.num_replicas_in_sync


def handle(variable: Variable) -> tf.Tensor:
    """The resource handle of a variable, for TensorFlow's update kernels."""
    return _variable(variable).handle


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Adadelta(Guarded, keras.optimizers.Adadelta):
    """The paper's optimizer.

        E[g²] ← ρ E[g²] + (1 - ρ) g²
        Δ     = g √(E[Δ²] + ε) / √(E[g²] + ε)
        E[Δ²] ← ρ E[Δ²] + (1 - ρ) Δ²,   θ ← θ - Δ

    The defaults are the paper's: ρ = 0.95, ε = 1e-6, learning rate 1 (that of Keras is 0.001),
    gradients clipped to norm 1.

    Args:
        learning_rate: Factor of Δ.
        rho: ρ.
        epsilon: ε.
        max_norm: Largest global gradient norm; None for no clipping.
        **kwargs: As in `keras.optimizers.Optimizer`, such as `weight_decay`.

    Reference:
        Zeiler 2012, arXiv 1212.5701; Bahdanau et al. 2015, appendix B.2.
    """

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule = 1.0,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        max_norm: float | None = 1.0,
        **kwargs: Unpack[KerasOptions],
    ) -> None:
        super().__init__(learning_rate, rho, epsilon, max_norm=max_norm, **kwargs)

    def update_weight(self, gradient: tf.Tensor, variable: Variable, rate: tf.Tensor) -> None:
        dtype = variable.dtype
        tf.raw_ops.ResourceApplyAdadelta(
            var=handle(variable),
            accum=self._slot("accumulated_grad", variable),
            accum_update=self._slot("accumulated_delta_var", variable),
            lr=tf.cast(rate, dtype),
            rho=tf.cast(self.rho, dtype),
            epsilon=tf.cast(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Adam(Guarded, keras.optimizers.Adam):
    """`keras.optimizers.Adam` with `Guarded` updates.

    Args:
        learning_rate: This and the others as in `keras.optimizers.Adam`.
        max_norm: Largest global gradient norm; None for no clipping.
    """

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        *,
        max_norm: float | None = None,
        **kwargs: Unpack[KerasOptions],
    ) -> None:
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, amsgrad, max_norm=max_norm, **kwargs
        )

    def _update(self, *args: Any) -> None:
        step = tf.cast(self.iterations + 1, tf.float32)
        self.beta_1_power, self.beta_2_power = (
            tf.cast(beta, tf.float32) ** step for beta in (self.beta_1, self.beta_2)
        )
        super()._update(*args)
        self.beta_1_power = self.beta_2_power = None

    def update_weight(self, gradient: tf.Tensor, variable: Variable, rate: tf.Tensor) -> None:
        if self.amsgrad:
            super().update_weight(gradient, variable, rate)
            return
        dtype = variable.dtype
        tf.raw_ops.ResourceApplyAdam(
            var=handle(variable),
            m=self._slot("momentum", variable),
            v=self._slot("velocity", variable),
            beta1_power=tf.cast(self.beta_1_power, dtype),
            beta2_power=tf.cast(self.beta_2_power, dtype),
            lr=tf.cast(rate, dtype),
            beta1=tf.cast(self.beta_1, dtype),
            beta2=tf.cast(self.beta_2, dtype),
            epsilon=tf.cast(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class SGD(Guarded, keras.optimizers.SGD):
    """`keras.optimizers.SGD` with `Guarded` updates.

    Args:
        learning_rate: This and the others as in `keras.optimizers.SGD`.
        max_norm: Largest global gradient norm; None for no clipping.
    """

    def __init__(
        self,
        learning_rate: float | LearningRateSchedule = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        *,
        max_norm: float | None = None,
        **kwargs: Unpack[KerasOptions],
    ) -> None:
        super().__init__(learning_rate, momentum, nesterov, max_norm=max_norm, **kwargs)


class _Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """The base class: a dataclass, whose fields are its config."""

    def get_config(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@keras.saving.register_keras_serializable(package="bahdanau_tf")
@dataclass(eq=False, repr=False)
class WarmupLinearDecay(_Schedule):
    """A rate that rises linearly to its peak, stays there, then falls linearly.

        rate(n) = peak · min(1, n / w, 1 - (1 - e) f)   at update n = 1, 2, ...
        f = clip((n - 1 - c N) / (N - c N), 0, 1)

    N is `total_steps`, w `warmup_steps`, c `constant_share`, e `final_share`.

    Args:
        peak: The highest rate.
        total_steps: Number of updates; after them the rate stays at its last value. It may be a
            variable, if the end is not known yet.
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
class InverseSquareRoot(_Schedule):
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
class HalvedEveryHalfEpoch(_Schedule):
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
