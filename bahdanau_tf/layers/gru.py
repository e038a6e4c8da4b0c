"""The gated unit over a sentence, with its gradient written by hand.

TensorFlow's own gradient of a loop has a matrix product for each weight at every step. Here the
backward loop computes only the gradients of the pre-activations; each weight's gradient is then
one product over all steps. The results are those of the plain loop (`unroll`).

Tensors are time-major in this module, so that slicing a step copies nothing.

`GRUCell`, `gru_recurrence` and `attention_recurrence` use this one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import tensorflow as tf

from bahdanau_tf.layers.weights import linear
from bahdanau_tf.system.tensors import operand, product


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
        visible: float [..., n], h_{t-1} after dropout, which the recurrent products take.
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
        visible_of: Applies the dropout of the step; linear, so it applies to gradients, too.
        trace: From the step.
        transposed: The kernels of the step, transposed.

    Returns:
        Two gradients: of `projected` [B, 3n]; of `state` [B, n], with its part through the
        recurrent products.
    """
    update, reset, candidate = trace
    visible = visible_of(state)
    to_candidate = upstream * update
    for_update = tf.raw_ops.SigmoidGrad(y=update, dy=upstream * (candidate - state))
    for_candidate = tf.raw_ops.TanhGrad(y=candidate, dy=to_candidate)
    to_product = product(for_candidate, transposed[1])
    for_reset = tf.raw_ops.SigmoidGrad(y=reset, dy=to_product * visible)
    for_gates = tf.concat([for_update, for_reset], -1)
    to_visible = to_product * reset + product(for_gates, transposed[0])
    projected = tf.concat([for_gates, for_candidate], -1)
    return projected, upstream - to_candidate + visible_of(to_visible)


def gru_kernel_gradient(projected: tf.Tensor, visible: tf.Tensor, reset: tf.Tensor) -> tf.Tensor:
    """The gradient of [U_z | U_r | U], [n, 3n], summed over all steps.

    Args:
        projected: float [T, B, 3n], the gradients of `projected`.
        visible: float [T, B, n].
        reset: float [T, B, n].
    """
    n = visible.shape[-1]
    for_gates, for_candidate = tf.split(projected, [2 * n, n], axis=-1)
    return tf.concat(
        [product_over_time(visible, for_gates), product_over_time(reset * visible, for_candidate)],
        -1,
    )


def product_over_time(inputs: tf.Tensor, gradients: tf.Tensor) -> tf.Tensor:
    """Σ_t x_tᵀ g_t, the gradient of a weight: [p, q].

    Args:
        inputs: float [T, B, p].
        gradients: float [T, B, q].
    """
    left, right = (tf.reshape(x, [-1, x.shape[-1]]) for x in (inputs, gradients))
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


Arrays = list[tf.TensorArray]
Gradient = Callable[..., tuple[tf.Tensor, ...]]  # of what runs forward
Carried = TypeVar("Carried")


def previous_states(states: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
    """h_{t-1} for every h_t, [T, B, n]."""
    return tf.concat([first[None], states[:-1]], 0)


def gru_recurrence(
    projected: tf.Tensor,
    real: tf.Tensor,
    first: tf.Tensor,
    kernel: tf.Tensor,
    dropped: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """`GRUCell` over a sentence.

    Args:
        projected: float [T, B, 3n], the input terms of z, r and h~; T >= 1.
        real: float [T, B, 1], 0 at padding, where the state is kept.
        first: float [B, n], h_0.
        kernel: float [n, 3n], [U_z | U_r | U].
        dropped: float [B, n], a dropout mask on h_{t-1} in the recurrent products; or None.

    Returns:
        The states at every position, float [T, B, n], and the last state.
    """
    time = tf.shape(projected)[0]
    visible_of = masked_by(dropped)

    @tf.custom_gradient
    def run(
        projected: tf.Tensor, first: tf.Tensor, kernel: tf.Tensor
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], Gradient]:
        kernels = kernel_parts(kernel)

        def body(t: tf.Tensor, state: tf.Tensor, kept: Arrays) -> tuple[tf.Tensor, Arrays]:
            new, trace = gru_step(projected[t], state, visible_of(state), kernels, real[t])
            return new, write(kept, t, (new, *trace))

        sizes = [[kernel.shape[0]]] * 4
        last, kept = over_time(time, body, first, first.dtype, sizes)
        states, *others = stacked(kept)
        trace = GRUTrace(*others)

        def gradient(upstream: tf.Tensor, to_last: tf.Tensor) -> tuple[tf.Tensor, ...]:
            states_before = previous_states(states, first)
            transposed = transposed_parts(kernel)

            def body(t: tf.Tensor, carried: tf.Tensor, kept: Arrays) -> tuple[tf.Tensor, Arrays]:
                to_projected, carried = gru_step_gradient(
                    carried + upstream[t], states_before[t], visible_of, trace.at(t), transposed
                )
                return carried, write(kept, t, (to_projected,))

            carried, kept = over_time(
                time, body, to_last, first.dtype, [[3 * kernel.shape[0]]], reverse=True
            )
            (to_projected,) = stacked(kept)
            for_kernel = gru_kernel_gradient(to_projected, visible_of(states_before), trace.reset)
            return to_projected, carried, for_kernel

        return (states, last), gradient

    done: tuple[tf.Tensor, tf.Tensor] = run(projected, first, kernel)
    return done


def masked_by(dropped: tf.Tensor | None) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function that multiplies by the mask, if any.

    It is linear, so the same function is applied to gradients.
    """
    return lambda x: x if dropped is None else x * dropped


def over_time(
    time: tf.Tensor,
    body: Callable[[tf.Tensor, Carried, Arrays], tuple[Carried, Arrays]],
    carried: Carried,
    dtype: tf.DType,
    sizes: Sequence[Sequence[int | None]],
    reverse: bool = False,
) -> tuple[Carried, Arrays]:
    """A loop over positions that stores tensors of every step in arrays.

    Args:
        time: int32, T.
        body: (position, carried, arrays) -> new (carried, arrays).
        carried: A nest of tensors, passed from step to step.
        dtype: The dtype of the arrays.
        sizes: For each array the shape of one step without the batch.
        reverse: Whether to go from the last position to the first.

    Returns:
        `carried` after the last step, and the arrays.
    """
    arrays = [tf.TensorArray(dtype, size=time, element_shape=[None, *size]) for size in sizes]

    def step(i: tf.Tensor, carried: Carried, arrays: Arrays) -> tuple[tf.Tensor, Carried, Arrays]:
        position = time - 1 - i if reverse else i
        return i + 1, *body(position, carried, arrays)

    _, carried, arrays = tf.while_loop(
        lambda i, *_: i < time, step, (tf.constant(0), carried, arrays)
    )
    return carried, arrays


def write(arrays: Arrays, position: tf.Tensor, values: Sequence[tf.Tensor]) -> Arrays:
    """Writes one value into each array."""
    return [array.write(position, value) for array, value in zip(arrays, values, strict=True)]


def stacked(arrays: Arrays) -> list[tf.Tensor]:
    """The arrays as tensors [T, ...]."""
    return [array.stack() for array in arrays]
