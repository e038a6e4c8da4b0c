"""The gated unit over a sentence, with its gradient written by hand.

TensorFlow's own gradient of a loop has a matrix product for each weight at
every step. Here the backward loop computes only the gradients of the
pre-activations; each weight's gradient is then one product over all steps. The
results are those of the plain loop (`unroll`).

Tensors are time-major in this module, so that slicing a step copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import TypeVar

import tensorflow as tf

from bahdanau_tf.layers.gated_unit import GRUTrace
from bahdanau_tf.layers.gated_unit import gru_kernel_gradient
from bahdanau_tf.layers.gated_unit import gru_step
from bahdanau_tf.layers.gated_unit import gru_step_gradient
from bahdanau_tf.layers.gated_unit import kernel_parts
from bahdanau_tf.layers.gated_unit import transposed_parts

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
        dropped: float [B, n], a dropout mask on h_{t-1} in the recurrent
            products; or None.

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

        def body(
            t: tf.Tensor, state: tf.Tensor, kept: Arrays
        ) -> tuple[tf.Tensor, Arrays]:
            new, trace = gru_step(
                projected[t], state, visible_of(state), kernels, real[t]
            )
            return new, write(kept, t, (new, *trace))

        sizes = [[kernel.shape[0]]] * 4
        last, kept = over_time(time, body, first, first.dtype, sizes)
        states, *others = stacked(kept)
        trace = GRUTrace(*others)

        def gradient(
            upstream: tf.Tensor, to_last: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            states_before = previous_states(states, first)
            transposed = transposed_parts(kernel)

            def body(
                t: tf.Tensor, carried: tf.Tensor, kept: Arrays
            ) -> tuple[tf.Tensor, Arrays]:
                found, carried = gru_step_gradient(
                    carried + upstream[t],
                    states_before[t],
                    visible_of,
                    trace.at(t),
                    transposed,
                )
                return carried, write(kept, t, (found,))

            carried, kept = over_time(
                time,
                body,
                to_last,
                first.dtype,
                [[3 * kernel.shape[0]]],
                reverse=True,
            )
            (found,) = stacked(kept)
            for_kernel = gru_kernel_gradient(
                found, visible_of(states_before), trace.reset
            )
            return found, carried, for_kernel

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
    arrays = [
        tf.TensorArray(dtype, size=time, element_shape=[None, *size])
        for size in sizes
    ]

    def step(
        i: tf.Tensor, carried: Carried, arrays: Arrays
    ) -> tuple[tf.Tensor, Carried, Arrays]:
        position = time - 1 - i if reverse else i
        return i + 1, *body(position, carried, arrays)

    _, carried, arrays = tf.while_loop(
        lambda i, *_: i < time,
        step,
        (tf.constant(0), carried, arrays),
    )
    return carried, arrays


def write(
    arrays: Arrays, position: tf.Tensor, values: Sequence[tf.Tensor]
) -> Arrays:
    """Writes one value into each array."""
    return [
        array.write(position, value)
        for array, value in zip(arrays, values, strict=True)
    ]


def stacked(arrays: Arrays) -> list[tf.Tensor]:
    """The arrays as tensors [T, ...]."""
    return [array.stack() for array in arrays]
