"""The gated unit: one step, and its gradient written by hand.

`GRUCell`, `gru_recurrence` and `attention_recurrence` use this one step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.layers.weights import linear
from bahdanau_tf.system.tensors import operand
from bahdanau_tf.system.tensors import product


class GRUTrace(NamedTuple):
    """What the gradient of a step needs.

    Attributes:
        update: z_t, float [..., n]; 0 at padding, where the state is kept.
        reset: r_t, float [..., n].
        candidate: h~_t, float [..., n].
    """

    update: tf.Tensor
    reset: tf.Tensor
    candidate: tf.Tensor

    def at(self, position: tf.Tensor) -> GRUTrace:
        """Of one position, given those of all: float [T, ..., n]."""
        return GRUTrace(*(x[position] for x in self))


def gru_step(
    projected: tf.Tensor,
    state: tf.Tensor,
    visible: tf.Tensor,
    kernels: tuple[tf.Tensor, tf.Tensor],
    real: tf.Tensor | None = None,
) -> tuple[tf.Tensor, GRUTrace]:
    """One step of `GRUCell`, whose docstring has the equations.

    Args:
        projected: float [..., 3n], the input terms of z, r and h~.
        state: float [..., n], h_{t-1}.
        visible: float [..., n], h_{t-1} after dropout, which the recurrent
            products take.
        kernels: [U_z | U_r] and U.
        real: float [..., 1], 0 at padding, where the state is kept; or None.

    Returns:
        h_t, and what `gru_step_gradient` needs.
    """
    n = state.shape[-1]
    for_gates, for_candidate = tf.split(projected, [2 * n, n], axis=-1)
    gates = tf.sigmoid(for_gates + linear(visible, kernels[0]))
    update, reset = tf.split(gates, 2, axis=-1)
    if real is not None:
        update *= real
    candidate = tf.tanh(for_candidate + linear(reset * visible, kernels[1]))
    new = state + update * (candidate - state)
    return new, GRUTrace(update, reset, candidate)


def gru_step_gradient(
    upstream: tf.Tensor,
    state: tf.Tensor,
    visible_of: Callable[[tf.Tensor], tf.Tensor],
    trace: GRUTrace,
    transposed: tuple[tf.Tensor, tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradient of `gru_step`.

    Args:
        upstream: float [B, n], the gradient of h_t.
        state: As in the step.
        visible_of: Applies the dropout of the step; linear, so it applies to
            gradients, too.
        trace: From the step.
        transposed: The kernels of the step, transposed.

    Returns:
        Two gradients: of `projected` [B, 3n]; of `state` [B, n], with its part
        through the recurrent products.
    """
    update, reset, candidate = trace
    visible = visible_of(state)
    to_candidate = upstream * update
    for_update = tf.raw_ops.SigmoidGrad(
        y=update, dy=upstream * (candidate - state)
    )
    for_candidate = tf.raw_ops.TanhGrad(y=candidate, dy=to_candidate)
    to_product = product(for_candidate, transposed[1])
    for_reset = tf.raw_ops.SigmoidGrad(y=reset, dy=to_product * visible)
    for_gates = tf.concat([for_update, for_reset], -1)
    to_visible = to_product * reset + product(for_gates, transposed[0])
    projected = tf.concat([for_gates, for_candidate], -1)
    return projected, upstream - to_candidate + visible_of(to_visible)


def gru_kernel_gradient(
    projected: tf.Tensor, visible: tf.Tensor, reset: tf.Tensor
) -> tf.Tensor:
    """The gradient of [U_z | U_r | U], [n, 3n], summed over all steps.

    Args:
        projected: float [T, B, 3n], the gradients of `projected`.
        visible: float [T, B, n].
        reset: float [T, B, n].
    """
    n = visible.shape[-1]
    for_gates, for_candidate = tf.split(projected, [2 * n, n], axis=-1)
    return tf.concat(
        [
            product_over_time(visible, for_gates),
            product_over_time(reset * visible, for_candidate),
        ],
        -1,
    )


def product_over_time(inputs: tf.Tensor, gradients: tf.Tensor) -> tf.Tensor:
    """Σ_t x_tᵀ g_t, the gradient of a weight: [p, q].

    Args:
        inputs: float [T, B, p].
        gradients: float [T, B, q].
    """
    left, right = (
        tf.reshape(x, [-1, x.shape[-1]]) for x in (inputs, gradients)
    )
    return product(left, right, transpose_a=True)


def kernel_parts(kernel: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Splits [U_z | U_r | U] into [U_z | U_r] and U."""
    n = kernel.shape[0]
    kernel = operand(kernel)
    return kernel[:, : 2 * n], kernel[:, 2 * n :]


def transposed_parts(kernel: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The two parts of a kernel, transposed once for all steps.

    `tf.matmul(..., transpose_b=True)` of a large matrix would be slower.
    """
    gates, candidate = kernel_parts(kernel)
    return tf.transpose(gates), tf.transpose(candidate)
