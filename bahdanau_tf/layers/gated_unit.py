"""The gated unit: one step, and the gradient of a step beside it.

`GRUCell` and the recurrences with a gradient of their own take the same step.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.layers.weights import linear


class GRUTrace(NamedTuple):
    """What a step of the gated unit leaves for its gradient.

    Attributes:
        update: z_t, float [..., n]; 0 where the state is carried along.
        reset: r_t, float [..., n].
        candidate: h~_t, float [..., n].
    """

    update: tf.Tensor
    reset: tf.Tensor
    candidate: tf.Tensor


def gru_step(
    projected: tf.Tensor,
    state: tf.Tensor,
    visible: tf.Tensor,
    kernels: tuple[tf.Tensor, tf.Tensor],
    real: tf.Tensor | None = None,
) -> tuple[tf.Tensor, GRUTrace]:
    """One step of `GRUCell`, whose docstring has the equations.

    Args:
        projected: float [..., 3n], the inputs' share.
        state: float [..., n], h_{t-1}.
        visible: float [..., n], h_{t-1} as the recurrent products see it.
        kernels: [U_z | U_r] and U.
        real: float [..., 1], 0 where the state is to be carried along.

    Returns:
        h_t and what `gru_step_gradient` needs.
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
    visible: tf.Tensor,
    trace: GRUTrace,
    transposed: tuple[tf.Tensor, tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The gradient of `gru_step`.

    Args:
        upstream: float [B, n], that of h_t.
        state: As in the step.
        visible: As in the step.
        trace: From the step.
        transposed: The kernels of the step, transposed.

    Returns:
        The gradients of the pre-activations [B, 3n], which is that of
        `projected`; of `state` apart from `visible`; and of `visible`.
    """
    update, reset, candidate = trace
    to_candidate = upstream * update
    for_update = tf.raw_ops.SigmoidGrad(
        y=update, dy=upstream * (candidate - state)
    )
    for_candidate = tf.raw_ops.TanhGrad(y=candidate, dy=to_candidate)
    to_product = tf.matmul(for_candidate, transposed[1])
    for_reset = tf.raw_ops.SigmoidGrad(y=reset, dy=to_product * visible)
    for_gates = tf.concat([for_update, for_reset], -1)
    to_visible = to_product * reset + tf.matmul(for_gates, transposed[0])
    projected = tf.concat([for_gates, for_candidate], -1)
    return projected, upstream - to_candidate, to_visible


def gru_kernel_gradient(
    projected: tf.Tensor, visible: tf.Tensor, reset: tf.Tensor
) -> tf.Tensor:
    """The gradient of [U_z | U_r | U], [n, 3n], from all steps together.

    Args:
        projected: float [T, B, 3n], gradients of the pre-activations.
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
    """Σ_t x_t' g_t, the gradient of a weight: [p, q].

    Args:
        inputs: float [T, B, p].
        gradients: float [T, B, q].
    """
    flat = [tf.reshape(x, [-1, x.shape[-1]]) for x in (inputs, gradients)]
    return tf.matmul(*flat, transpose_a=True)


def kernel_parts(kernel: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """[U_z | U_r] and U of [U_z | U_r | U]."""
    n = kernel.shape[0]
    return kernel[:, : 2 * n], kernel[:, 2 * n :]


def transposed_parts(kernel: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The two parts transposed, once for all steps.

    A product with a large matrix that is transposed on the way is slower.
    """
    gates, candidate = kernel_parts(kernel)
    return tf.transpose(gates), tf.transpose(candidate)
