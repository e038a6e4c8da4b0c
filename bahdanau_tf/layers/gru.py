"""The gated unit over a sentence, with its gradient written by hand.

TensorFlow's own gradient of a loop has a matrix product for each weight at every step. Here the
backward loop computes only the gradients of the pre-activations; each weight's gradient is then
one product over all steps. The results are those of the plain loop (`unroll`). Tensors are
time-major in this module, so that slicing a step copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import tensorflow as tf

from bahdanau_tf.layers.weights import as_rows, linear
from bahdanau_tf.system.tensors import operand, product

Values = Sequence[tf.Tensor]
Masking = Callable[[tf.Tensor], tf.Tensor]  # multiplies by a dropout mask, if any


class GRUTrace(NamedTuple):
    """What the gradient of a step needs, float [..., n] each."""

    update: tf.Tensor  # z_t; 0 at padding, where the state is kept
    reset: tf.Tensor  # r_t
    candidate: tf.Tensor  # h~_t

    def at(self, position: tf.Tensor) -> GRUTrace:
        """Of one position, given those of all, [T, ..., n]."""
        return GRUTrace(*(x[position] for x in self))


def gru_step(
    projected: tf.Tensor,
    state: tf.Tensor,
    visible: tf.Tensor,
    kernels: tuple[tf.Tensor, tf.Tensor],
    real: tf.Tensor | None = None,
) -> tuple[tf.Tensor, GRUTrace]:
    """One step of `GRUCell`: h_t, and what `step_gradient` needs.

    `projected`, float [..., 3n], has the input terms of z, r and h~; `state` is h_{t-1}, `visible`
    the same after dropout, which the recurrent products take, float [..., n]; `kernels` are [U_z |
    U_r] and U; `real`, float [..., 1] or None, is 0 at padding, where the state is kept.
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


def step_gradient(
    upstream: tf.Tensor,
    state: tf.Tensor,
    visible_of: Masking,
    trace: GRUTrace,
    transposed: tuple[tf.Tensor, tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradients of a step's `projected` [B, 3n] and `state` [B, n], given that of h_t.

    `visible_of` applies the dropout of the step; it is linear, so it applies to gradients, too.
    `transposed` are the kernels of the step, transposed.
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


def kernel_gradient(projected: tf.Tensor, visible: tf.Tensor, reset: tf.Tensor) -> tf.Tensor:
    """The gradient of [U_z | U_r | U], summed over all steps, given those of `projected`."""
    n = visible.shape[-1]
    for_gates, for_candidate = tf.split(projected, [2 * n, n], axis=-1)
    for_candidate = product_over_time(reset * visible, for_candidate)
    return tf.concat([product_over_time(visible, for_gates), for_candidate], -1)


def product_over_time(inputs: tf.Tensor, gradients: tf.Tensor) -> tf.Tensor:
    """Σ_t x_tᵀ g_t, the gradient of a weight: ([T, B, p], [T, B, q]) -> [p, q]."""
    return product(as_rows(inputs), as_rows(gradients), transpose_a=True)


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
    """`GRUCell` over a sentence: the states, float [T, B, n], and the last one.

    `projected`, float [T, B, 3n] with T >= 1, has the input terms of z, r and h~; `real`, float [T,
    B, 1], is 0 at padding, where the state is kept; `first` is h_0, float [B, n], the kernel [U_z |
    U_r | U], float [n, 3n]. `dropped`, float [B, n] or None, is a dropout mask on h_{t-1} in the
    recurrent products.
    """
    time = tf.shape(projected)[0]
    visible_of = masked_by(dropped)

    @tf.custom_gradient
    def run(
        projected: tf.Tensor, first: tf.Tensor, kernel: tf.Tensor
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], Gradient]:
        kernels = kernel_parts(kernel)

        def body(t: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, Values]:
            new, trace = gru_step(projected[t], state, visible_of(state), kernels, real[t])
            return new, (new, *trace)

        sizes = [[kernel.shape[0]]] * 4
        last, (states, *others) = over_time(time, body, first, first.dtype, sizes)
        trace = GRUTrace(*others)

        def gradient(upstream: tf.Tensor, to_last: tf.Tensor) -> tuple[tf.Tensor, ...]:
            states_before = previous_states(states, first)
            transposed = transposed_parts(kernel)

            def body(t: tf.Tensor, carried: tf.Tensor) -> tuple[tf.Tensor, Values]:
                to_projected, carried = step_gradient(
                    carried + upstream[t], states_before[t], visible_of, trace.at(t), transposed
                )
                return carried, (to_projected,)

            carried, (to_projected,) = over_time(
                time, body, to_last, first.dtype, [[3 * kernel.shape[0]]], reverse=True
            )
            for_kernel = kernel_gradient(to_projected, visible_of(states_before), trace.reset)
            return to_projected, carried, for_kernel

        return (states, last), gradient

    done: tuple[tf.Tensor, tf.Tensor] = run(projected, first, kernel)
    return done


def masked_by(dropped: tf.Tensor | None) -> Masking:
    """The function of a mask."""
    return lambda x: x if dropped is None else x * dropped


def over_time(
    time: tf.Tensor,
    body: Callable[[tf.Tensor, Carried], tuple[Carried, Values]],
    carried: Carried,
    dtype: tf.DType,
    sizes: Sequence[Sequence[int | None]],
    reverse: bool = False,
) -> tuple[Carried, list[tf.Tensor]]:
    """A loop over T positions: the last of what is carried, and the values of all steps.

    `body` takes a position and what the step before it carried; it returns what the next step
    gets, and values to keep, of `dtype` and with the shapes `sizes` without the batch. They are
    returned as tensors [T, ...].
    """
    arrays = [tf.TensorArray(dtype, size=time, element_shape=[None, *size]) for size in sizes]

    def step(
        i: tf.Tensor, carried: Carried, arrays: list[tf.TensorArray]
    ) -> tuple[tf.Tensor, Carried, list[tf.TensorArray]]:
        position = time - 1 - i if reverse else i
        carried, values = body(position, carried)
        arrays = [array.write(position, x) for array, x in zip(arrays, values, strict=True)]
        return i + 1, carried, arrays

    start = tf.constant(0), carried, arrays
    _, carried, arrays = tf.while_loop(lambda i, *_: i < time, step, start)
    return carried, [array.stack() for array in arrays]
