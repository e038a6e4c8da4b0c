"""The gated unit over a sentence, alone and with attention, with gradients written by hand.

TensorFlow's own gradient of a loop has a matrix product for each weight at every step. Here the
backward loop computes only the gradients of the pre-activations; each weight's gradient is then
one product over all steps. The results are those of the plain loop (`unroll`). Tensors are
time-major in this module, so that slicing a step copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import tensorflow as tf

from bahdanau_tf.layers.weights import as_rows, linear, masked_softmax
from bahdanau_tf.system.tensors import operand, product

Values = Sequence[tf.Tensor]
Masking = Callable[[tf.Tensor], tf.Tensor]  # multiplies by a dropout mask, if any


class GRUTrace(NamedTuple):
    """What the gradient of a step needs, float [..., n] each."""

    update: tf.Tensor  # z_t; 0 at padding, where the state is kept
    reset: tf.Tensor  # r_t
    candidate: tf.Tensor  # h~_t

    def at(self, position: tf.Tensor) -> GRUTrace:
        """The values at one position; those of all are [T, ..., n]."""
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
    the same after dropout, the input of the recurrent products, float [..., n]; `kernels` are
    [U_z | U_r] and U; `real`, float [..., 1] or None, is 0 at padding, where the state is kept.
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

    `visible_of` applies the dropout of the step; it is linear, so it also applies to gradients.
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

        dtypes, shapes = [first.dtype] * 4, [[kernel.shape[0]]] * 4
        last, (states, *others) = over_time(time, body, first, dtypes, shapes)
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
                time, body, to_last, [first.dtype], [[3 * kernel.shape[0]]], reverse=True
            )
            for_kernel = kernel_gradient(to_projected, visible_of(states_before), trace.reset)
            return to_projected, carried, for_kernel

        return (states, last), gradient

    done: tuple[tf.Tensor, tf.Tensor] = run(projected, first, kernel)
    return done


def masked_by(dropped: tf.Tensor | None) -> Masking:
    """A function that applies the mask."""
    return lambda x: x if dropped is None else x * dropped


def over_time(
    time: tf.Tensor,
    body: Callable[[tf.Tensor, Carried], tuple[Carried, Values]],
    carried: Carried,
    dtypes: Sequence[tf.DType],
    shapes: Sequence[Sequence[int | None]],
    reverse: bool = False,
    maximum: tf.Tensor | None = None,
) -> tuple[Carried, list[tf.Tensor]]:
    """Loops over T positions; returns the final carry and the values of all steps.

    `body` takes a position and what the step before it carried; it returns what the next step
    gets, and values to keep, with such dtypes and shapes without the batch. They are returned as
    tensors [T, ...]. XLA compiles the gradient of the loop only with a maximum of positions.
    """
    arrays = [
        tf.TensorArray(dtype, size=time, element_shape=[None, *shape])
        for dtype, shape in zip(dtypes, shapes, strict=True)
    ]

    def step(
        i: tf.Tensor, carried: Carried, arrays: list[tf.TensorArray]
    ) -> tuple[tf.Tensor, Carried, list[tf.TensorArray]]:
        position = time - 1 - i if reverse else i
        carried, values = body(position, carried)
        arrays = [array.write(position, x) for array, x in zip(arrays, values, strict=True)]
        return i + 1, carried, arrays

    start = tf.constant(0), carried, arrays
    _, carried, arrays = tf.while_loop(
        lambda i, *_: i < time, step, start, maximum_iterations=maximum
    )
    return carried, [array.stack() for array in arrays]


class Weights(NamedTuple):
    """The decoder's weights that are used in the loop."""

    query: tf.Tensor  # W_a, float [n, n']
    energy: tf.Tensor  # v_a, float [n', 1]
    context: tf.Tensor  # C, float [c, 3n]
    recurrent: tf.Tensor  # [U_z | U_r | U], float [n, 3n]
    before: tf.Tensor | None = None  # the same of an update before attention
    bias: tf.Tensor | None = None  # b of the update after it, float [3n]


class Unrolled(NamedTuple):
    """The results of all steps, or their gradients."""

    states: tf.Tensor  # s_0 .. s_{T-1} or s_1 .. s_T, float [T, B, n]
    contexts: tf.Tensor  # c_i, float [T, B, c]
    alignment: tf.Tensor  # α_i, float [T, B, T_x]


def attention_recurrence(
    projected: tf.Tensor,
    first: tf.Tensor,
    annotations: tf.Tensor,
    keys: tf.Tensor,
    mask: tf.Tensor | None,
    weights: Weights,
    dropped: tf.Tensor | None = None,
    states_before: bool = True,
) -> Unrolled:
    """`GRUCell` that attends by `BahdanauAttention` at every step.

    A step is

        s = s_{i-1}, c_i = attention(s), s_i = GRU(projected_i + C c_i, s)

    and with an update before attention, as in a conditional unit,

        s = GRU'(projected_i, s_{i-1}), c_i = attention(s), s_i = GRU(b + C c_i, s)

    The tanh of every pair of positions, [T_y, B, T_x, n'], is not kept: the backward loop computes
    it again from keys and query.

    `projected`, float [T, B, 3n] with T >= 1, is W E y_i + b for all gates of the first update of
    a step; `first` is s_0, float [B, n]; annotations are float [B, T_x, c], keys float [B, T_x,
    n'], the mask is bool [B, T_x], or None if all positions are real. `dropped`, float [B, n] or
    None, is a dropout mask on s_{i-1} in the recurrent products. With `states_before` the result
    has s_{i-1}, the states that attend, in place of s_i; without an update before attention.
    """
    own_weights = [weight for weight in weights if weight is not None]
    visible_of = masked_by(dropped)

    @tf.custom_gradient
    def run(*tensors: tf.Tensor) -> tuple[tuple[tf.Tensor, ...], Gradient]:
        inputs = _Inputs(mask, Weights(*tensors[4:]), *tensors[:4])
        after, trace = _forward(inputs, visible_of)

        def gradient(*upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return _backward(inputs, trace, Unrolled(*upstream), visible_of, states_before)

        read = trace.previous if states_before else after
        return (read, trace.contexts, trace.alignment), gradient

    return Unrolled(*run(projected, first, annotations, keys, *own_weights))


class _Inputs(NamedTuple):
    mask: tf.Tensor | None
    weights: Weights
    projected: tf.Tensor
    first: tf.Tensor
    annotations: tf.Tensor
    keys: tf.Tensor


class _Trace(NamedTuple):
    """What the gradient needs of the steps, [T, B, .] each."""

    previous: tf.Tensor  # s_{i-1}
    attending: tf.Tensor  # the state that attends: s_{i-1}, or s'_i
    contexts: tf.Tensor  # c_i
    alignment: tf.Tensor  # α_i
    queries: tf.Tensor  # W_a times the state that attends
    update: GRUTrace
    before: GRUTrace | None  # of the update before attention


def _forward(inputs: _Inputs, visible_of: Masking) -> tuple[tf.Tensor, _Trace]:
    """The states after every step, and the trace."""
    w = inputs.weights
    kernels = kernel_parts(w.recurrent)
    query_kernel, context_kernel = operand(w.query), operand(w.context)
    before = None if w.before is None else kernel_parts(w.before)
    n = w.recurrent.shape[0]

    def body(t: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, Values]:
        terms, more = inputs.projected[t], []
        if before is not None:
            state, trace = gru_step(terms, state, visible_of(state), before)
            terms, more = w.bias, [state, *trace]
        query = product(state, query_kernel)
        hidden = _hidden(query, inputs.keys)
        energies = tf.reshape(tf.matmul(as_rows(hidden), w.energy), tf.shape(hidden)[:2])
        alignment = masked_softmax(energies, inputs.mask)
        context = _row_products(alignment, inputs.annotations)
        terms += product(context, context_kernel)
        new, trace = gru_step(terms, state, visible_of(state), kernels)
        return new, (new, context, alignment, query, *trace, *more)

    shapes = [[n], [w.context.shape[0]], [None], [w.query.shape[1]]]
    shapes += (3 if before is None else 7) * [[n]]
    first, time = inputs.first, tf.shape(inputs.projected)[0]
    _, values = over_time(time, body, first, [first.dtype] * len(shapes), shapes)
    after, contexts, alignment, queries = values[:4]
    update = GRUTrace(*values[4:7])
    attending = previous = previous_states(after, first)
    of_before = None
    if before is not None:
        attending, of_before = values[7], GRUTrace(*values[8:])
    return after, _Trace(previous, attending, contexts, alignment, queries, update, of_before)


def _backward(
    inputs: _Inputs, trace: _Trace, upstream: Unrolled, visible_of: Masking, states_before: bool
) -> tuple[tf.Tensor, ...]:
    """The gradients of all inputs but the mask, those of the weights last."""
    w = inputs.weights
    transposed = transposed_parts(w.recurrent)
    before = None if w.before is None else transposed_parts(w.before)
    context_transposed = tf.transpose(operand(w.context))
    query_transposed = tf.transpose(operand(w.query))

    def body(t: tf.Tensor, carried: Values) -> tuple[Values, Values]:
        to_state, to_keys, to_energy = carried
        if not states_before:
            to_state += upstream.states[t]
        to_gates, to_state = step_gradient(
            to_state, trace.attending[t], visible_of, trace.update.at(t), transposed
        )
        to_context = product(to_gates, context_transposed) + upstream.contexts[t]
        by_weight = _row_products(to_context, inputs.annotations, True) + upstream.alignment[t]
        energies = _softmax_gradient(by_weight, trace.alignment[t], inputs.mask)
        hidden = _hidden(trace.queries[t], inputs.keys)
        to_hidden = _hidden_gradient(energies, w.energy, hidden)
        to_query = tf.reduce_sum(to_hidden, 1)
        to_state += product(to_query, query_transposed)
        values = [to_gates, to_context, to_query]
        if before is not None and trace.before is not None:
            to_gates, to_state = step_gradient(
                to_state, trace.previous[t], visible_of, trace.before.at(t), before
            )
            values.append(to_gates)
        if states_before:
            to_state += upstream.states[t]
        column = tf.reshape(energies, [-1, 1])
        to_energy += tf.matmul(as_rows(hidden), column, transpose_a=True)
        return (to_state, to_keys + to_hidden, to_energy), values

    gates = [w.recurrent.shape[1]]
    shapes = [gates, [w.context.shape[0]], [w.query.shape[1]]]
    shapes += [] if before is None else [gates]
    dtypes = [inputs.first.dtype] * len(shapes)
    time = tf.shape(inputs.projected)[0]
    start: Values = tuple(map(tf.zeros_like, (inputs.first, inputs.keys, w.energy)))
    carried, steps = over_time(time, body, start, dtypes, shapes, reverse=True)
    return _gradients(trace, visible_of, carried, steps)


def _gradients(
    trace: _Trace, visible_of: Masking, sums: Values, steps: list[tf.Tensor]
) -> tuple[tf.Tensor, ...]:
    """Computes the result of `_backward` from sums and per-step values of its loop."""
    to_first, to_keys, to_energy = sums
    to_gates, to_contexts, to_queries, *of_before = steps
    by_position = tf.transpose(trace.alignment, [1, 2, 0])
    to_annotations = tf.matmul(by_position, tf.transpose(to_contexts, [1, 0, 2]))
    of_inputs = (to_first, to_annotations, to_keys)
    visible = visible_of(trace.attending)
    of_weights = (
        product_over_time(trace.attending, to_queries),
        to_energy,
        product_over_time(trace.contexts, to_gates),
        kernel_gradient(to_gates, visible, trace.update.reset),
    )
    if trace.before is None:
        return to_gates, *of_inputs, *of_weights
    (to_projected,) = of_before
    visible = visible_of(trace.previous)
    of_before = kernel_gradient(to_projected, visible, trace.before.reset)
    to_bias = tf.reduce_sum(to_gates, [0, 1])
    return to_projected, *of_inputs, *of_weights, of_before, to_bias


def _hidden(query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """tanh(W_a s + U_a h_j), [B, T_x, n']."""
    return tf.tanh(query[:, None] + keys)


def _hidden_gradient(upstream: tf.Tensor, energy: tf.Tensor, hidden: tf.Tensor) -> tf.Tensor:
    """The gradient of W_a s + U_a h_j by that of e, [B, T_x, n']."""
    # As a product, which is faster than a broadcast multiplication.
    outer = tf.matmul(tf.reshape(upstream, [-1, 1]), energy, transpose_b=True)
    outer = tf.reshape(outer, tf.shape(hidden))
    return tf.raw_ops.TanhGrad(y=hidden, dy=outer)


def _softmax_gradient(upstream: tf.Tensor, weights: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """The gradient of `masked_softmax` by e, [B, T_x]; 0 at padding."""
    mean = tf.reduce_sum(upstream * weights, -1, keepdims=True)
    gradient = weights * (upstream - mean)
    return gradient if mask is None else tf.where(mask, gradient, 0.0)


def _row_products(rows: tf.Tensor, matrices: tf.Tensor, transpose: bool = False) -> tf.Tensor:
    """x_b M_b, or x_b M_bᵀ, for every b: ([B, p], [B, ., .]) -> [B, q].

    `tf.matmul` runs oneDNN on a processor, which for single rows takes up to twice as long as
    Eigen's kernel of this operation.
    """
    rows = tf.raw_ops.BatchMatMulV3(x=rows[:, None], y=matrices, Tout=rows.dtype, adj_y=transpose)
    return rows[:, 0]
