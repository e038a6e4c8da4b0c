"""The gated unit over a sentence, with its gradient written by hand.

Left to TensorFlow, the gradient of a loop is a loop that multiplies for the
weights' gradients at every step. Here the backward loop finds the gradients of
the pre-activations alone, and each weight's gradient is one product for all
steps behind it. The results are those of the plain loop (`unroll`).

Tensors are time-major here: a step is a slice that copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import tensorflow as tf


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
    """One step of `GRUCell`.

    Args:
        projected: float [B, 3n], the inputs' share.
        state: float [B, n], h_{t-1}.
        visible: float [B, n], h_{t-1} as the recurrent products see it.
        kernels: [U_z | U_r] and U.
        real: float [B, 1], 0 where the state is to be carried along.

    Returns:
        h_t and what `gru_step_gradient` needs.
    """
    n = state.shape[-1]
    for_gates, for_candidate = tf.split(projected, [2 * n, n], axis=-1)
    gates = tf.sigmoid(for_gates + tf.matmul(visible, kernels[0]))
    update, reset = tf.split(gates, 2, axis=-1)
    if real is not None:
        update *= real
    candidate = tf.tanh(for_candidate + tf.matmul(reset * visible, kernels[1]))
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


def previous_states(
    states: tf.Tensor, first: tf.Tensor, reverse: bool = False
) -> tf.Tensor:
    """h_{t-1} for every h_t, [T, B, n]; h_{t+1} when `reverse`."""
    if reverse:
        return tf.concat([states[1:], first[None]], 0)
    return tf.concat([first[None], states[:-1]], 0)


def gru_recurrence(
    projected: tf.Tensor,
    real: tf.Tensor,
    first: tf.Tensor,
    kernel: tf.Tensor,
    dropped: tf.Tensor | None = None,
    reverse: bool = False,
) -> tuple[tf.Tensor, tf.Tensor]:
    """`GRUCell` over a sentence.

    Args:
        projected: float [T, B, 3n], the inputs' share, T at least 1.
        real: float [T, B, 1], 0 where the state is to be carried along.
        first: float [B, n], h_0.
        kernel: float [n, 3n], [U_z | U_r | U].
        dropped: float [B, n], a mask on what the recurrent products see.
        reverse: Whether to go from the last position to the first.

    Returns:
        The states at every position, float [T, B, n], and the last state.
    """
    time = tf.shape(projected)[0]
    visible_of = masked_by(dropped)

    @tf.custom_gradient
    def run(
        projected: tf.Tensor, first: tf.Tensor, kernel: tf.Tensor
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., Any]]:
        kernels = kernel_parts(kernel)

        def body(t: tf.Tensor, state: tf.Tensor, kept: Any) -> Any:
            new, trace = gru_step(
                projected[t], state, visible_of(state), kernels, real[t]
            )
            return new, write(kept, t, (new, *trace))

        sizes = [[kernel.shape[0]]] * 4
        last, kept = over_time(time, body, first, first.dtype, sizes, reverse)
        states, *others = stacked(kept)
        trace = GRUTrace(*others)

        def gradient(upstream: tf.Tensor, to_last: tf.Tensor) -> Any:
            states_before = previous_states(states, first, reverse)
            transposed = transposed_parts(kernel)

            def body(t: tf.Tensor, carried: tf.Tensor, kept: Any) -> Any:
                before = states_before[t]
                found, to_state, to_visible = gru_step_gradient(
                    carried + upstream[t],
                    before,
                    visible_of(before),
                    GRUTrace(*(x[t] for x in trace)),
                    transposed,
                )
                carried = to_state + visible_of(to_visible)
                return carried, write(kept, t, (found,))

            carried, kept = over_time(
                time,
                body,
                to_last,
                first.dtype,
                [[3 * kernel.shape[0]]],
                not reverse,
            )
            (found,) = stacked(kept)
            for_kernel = gru_kernel_gradient(
                found, visible_of(states_before), trace.reset
            )
            return found, carried, for_kernel

        return (states, last), gradient

    return run(projected, first, kernel)


def masked_by(dropped: tf.Tensor | None) -> Callable[[tf.Tensor], tf.Tensor]:
    """Dropout by one mask, which is its own gradient; or nothing."""
    return lambda x: x if dropped is None else x * dropped


def over_time(
    time: tf.Tensor,
    body: Callable[..., Any],
    carried: Any,
    dtype: tf.DType,
    sizes: list[Any],
    reverse: bool,
) -> tuple[Any, Any]:
    """A loop over positions that keeps tensors of every step.

    Args:
        time: int32, T.
        body: (position, what is carried, arrays) -> the latter two.
        carried: A nest of tensors.
        dtype: Of the tensors kept.
        sizes: Their shapes at one step without the batch.
        reverse: Whether to go from the last position to the first.

    Returns:
        What is carried at the end, and the arrays.
    """
    arrays = [
        tf.TensorArray(dtype, size=time, element_shape=[None, *size])
        for size in sizes
    ]

    def step(i: tf.Tensor, carried: Any, arrays: Any) -> Any:
        position = time - 1 - i if reverse else i
        return i + 1, *body(position, carried, arrays)

    _, carried, arrays = tf.while_loop(
        lambda i, *_: i < time,
        step,
        (tf.constant(0), carried, arrays),
        maximum_iterations=time,
    )
    return carried, arrays


def write(arrays: Any, position: tf.Tensor, values: Any) -> list[Any]:
    """Writes a value into each array."""
    return [
        array.write(position, value)
        for array, value in zip(arrays, values, strict=True)
    ]


def stacked(arrays: Any) -> list[tf.Tensor]:
    """The arrays as tensors [T, ...]."""
    return [array.stack() for array in arrays]
