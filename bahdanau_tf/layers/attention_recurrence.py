"""The attention decoder over a sentence, with its gradient written by hand.

A step is

    s = s_{i-1}, c_i = attention(s), s_i = GRU(projected_i + C c_i, s)

and with an update before attention, as in a conditional unit,

    s = GRU'(projected_i, s_{i-1}), c_i = attention(s), s_i = GRU(b + C c_i, s)

As in `gru_recurrence`, the backward loop computes only the gradients that depend on those of the
next step; the weights' gradients are then one product over all steps. The tanh of every pair of
positions, [T_y, B, T_x, n'], is not kept: the backward loop computes it again from keys and
query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.layers.gru import (
    Arrays,
    Gradient,
    GRUTrace,
    gru_kernel_gradient,
    gru_step,
    gru_step_gradient,
    kernel_parts,
    masked_by,
    over_time,
    previous_states,
    product_over_time,
    stacked,
    transposed_parts,
    write,
)
from bahdanau_tf.system.tensors import operand, product


class Weights(NamedTuple):
    """The decoder's weights that are used in the loop.

    Attributes:
        query: W_a, float [n, n'].
        energy: v_a, float [n', 1].
        context: C, float [c, 3n].
        recurrent: [U_z | U_r | U], float [n, 3n].
        before: The same of the update before attention; or None.
        bias: What the update after it gets besides the context, float [3n]; None if it is the
            only one.
    """

    query: tf.Tensor
    energy: tf.Tensor
    context: tf.Tensor
    recurrent: tf.Tensor
    before: tf.Tensor | None = None
    bias: tf.Tensor | None = None


class Unrolled(NamedTuple):
    """The results of all steps.

    Attributes:
        states: s_0 .. s_{T-1} or s_1 .. s_T, float [T, B, n].
        contexts: c_i, float [T, B, c].
        alignment: α_i, float [T, B, T_x].
    """

    states: tf.Tensor
    contexts: tf.Tensor
    alignment: tf.Tensor


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

    Args:
        projected: float [T, B, 3n], W E y_i + b for all gates of the first update of a step; T
            >= 1.
        first: float [B, n], s_0.
        annotations: float [B, T_x, c].
        keys: float [B, T_x, n'].
        mask: bool [B, T_x]; None if all positions are real.
        weights: `Weights`.
        dropped: float [B, n], a dropout mask on s_{i-1} in the recurrent products; or None.
        states_before: Whether to return s_{i-1}, the states that attend, in place of s_i;
            without an update before attention.
    """
    own_weights = [weight for weight in weights if weight is not None]
    visible_of = masked_by(dropped)

    @tf.custom_gradient
    def run(
        projected: tf.Tensor,
        first: tf.Tensor,
        annotations: tf.Tensor,
        keys: tf.Tensor,
        *weights: tf.Tensor,
    ) -> tuple[tuple[tf.Tensor, ...], Gradient]:
        inputs = _Inputs(projected, first, annotations, keys, mask, Weights(*weights))
        after, trace = _forward(inputs, visible_of)

        def gradient(*upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
            return _backward(inputs, trace, Unrolled(*upstream), visible_of, states_before)

        read = trace.previous if states_before else after
        return (read, trace.contexts, trace.alignment), gradient

    return Unrolled(*run(projected, first, annotations, keys, *own_weights))


class _Inputs(NamedTuple):
    """The inputs of `attention_recurrence`."""

    projected: tf.Tensor
    first: tf.Tensor
    annotations: tf.Tensor
    keys: tf.Tensor
    mask: tf.Tensor | None
    weights: Weights


class _Trace(NamedTuple):
    """What the gradient needs of the steps, [T, B, .] each.

    Attributes:
        previous: s_{i-1}.
        attending: The state that attends: s_{i-1}, or s'_i.
        contexts: c_i.
        alignment: α_i.
        queries: W_a times the state that attends.
        gru: What the gradient of the gated unit needs.
        before: The same of the update before attention, or None.
    """

    previous: tf.Tensor
    attending: tf.Tensor
    contexts: tf.Tensor
    alignment: tf.Tensor
    queries: tf.Tensor
    gru: GRUTrace
    before: GRUTrace | None


def _forward(
    inputs: _Inputs, visible_of: Callable[[tf.Tensor], tf.Tensor]
) -> tuple[tf.Tensor, _Trace]:
    """The states after every step, and the trace."""
    w = inputs.weights
    kernels = kernel_parts(w.recurrent)
    query_kernel, context_kernel = operand(w.query), operand(w.context)
    before = None if w.before is None else kernel_parts(w.before)
    n = w.recurrent.shape[0]

    def body(t: tf.Tensor, state: tf.Tensor, kept: Arrays) -> tuple[tf.Tensor, Arrays]:
        terms, more = inputs.projected[t], []
        if before is not None:
            state, trace = gru_step(terms, state, visible_of(state), before)
            terms, more = w.bias, [state, *trace]
        query = product(state, query_kernel)
        energies = _energies(_hidden(query, inputs.keys), w.energy)
        alignment = _softmax(energies, inputs.mask)
        context = _row_products(alignment, inputs.annotations)
        new, trace = gru_step(
            terms + product(context, context_kernel), state, visible_of(state), kernels
        )
        values = (new, context, alignment, query, *trace, *more)
        return new, write(kept, t, values)

    sizes = [[n], [w.context.shape[0]], [None], [w.query.shape[1]]]
    sizes += (3 if before is None else 7) * [[n]]
    first, time = inputs.first, tf.shape(inputs.projected)[0]
    _, kept = over_time(time, body, first, first.dtype, sizes)
    after, contexts, alignment, queries, *gates = stacked(kept[:7])
    gru = GRUTrace(*gates)
    attending = previous = previous_states(after, first)
    of_before = None
    if before is not None:
        attending, *gates = stacked(kept[7:])
        of_before = GRUTrace(*gates)
    return after, _Trace(previous, attending, contexts, alignment, queries, gru, of_before)


def _backward(
    inputs: _Inputs,
    trace: _Trace,
    upstream: Unrolled,
    visible_of: Callable[[tf.Tensor], tf.Tensor],
    states_before: bool,
) -> tuple[tf.Tensor, ...]:
    """The gradients of all inputs but the mask, in the order of `_Inputs`."""
    w, dtype = inputs.weights, inputs.first.dtype
    transposed = transposed_parts(w.recurrent)
    before = None if w.before is None else transposed_parts(w.before)
    context_transposed = tf.transpose(operand(w.context))
    query_transposed = tf.transpose(operand(w.query))

    def body(
        t: tf.Tensor, carried: tuple[tf.Tensor, ...], kept: Arrays
    ) -> tuple[tuple[tf.Tensor, ...], Arrays]:
        to_state, to_keys, to_energy = carried
        if not states_before:
            to_state += upstream.states[t]
        to_gates, to_state = gru_step_gradient(
            to_state, trace.attending[t], visible_of, trace.gru.at(t), transposed
        )
        to_context = product(to_gates, context_transposed)
        to_context += upstream.contexts[t]
        by_weight = _row_products(to_context, inputs.annotations, True)
        energies = _softmax_gradient(
            by_weight + upstream.alignment[t], trace.alignment[t], inputs.mask
        )
        hidden = _hidden(trace.queries[t], inputs.keys)
        to_hidden = _hidden_gradient(energies, w.energy, hidden)
        to_query = tf.reduce_sum(to_hidden, 1)
        to_state += product(to_query, query_transposed)
        values = [to_gates, to_context, to_query]
        if before is not None and trace.before is not None:
            to_gates, to_state = gru_step_gradient(
                to_state, trace.previous[t], visible_of, trace.before.at(t), before
            )
            values.append(to_gates)
        if states_before:
            to_state += upstream.states[t]
        to_energy += _weighted_sum(energies, hidden)
        carried = to_state, to_keys + to_hidden, to_energy
        return carried, write(kept, t, values)

    zeros_of = (inputs.first, inputs.keys, w.energy)
    gates = [w.recurrent.shape[1]]
    sizes = [gates, [w.context.shape[0]], [w.query.shape[1]]]
    sizes += [] if before is None else [gates]
    time = tf.shape(inputs.projected)[0]
    start = tuple(map(tf.zeros_like, zeros_of))
    carried, kept = over_time(time, body, start, dtype, sizes, reverse=True)
    return _gradients(trace, visible_of, carried, stacked(kept))


def _gradients(
    trace: _Trace,
    visible_of: Callable[[tf.Tensor], tf.Tensor],
    sums: tuple[tf.Tensor, ...],
    steps: list[tf.Tensor],
) -> tuple[tf.Tensor, ...]:
    """What `_backward` returns, of the sums and the steps of its loop."""
    to_first, to_keys, to_energy = sums
    to_gates, to_contexts, to_queries, *of_before = steps
    of_inputs = (to_first, _outer_over_time(trace.alignment, to_contexts), to_keys)
    visible = visible_of(trace.attending)
    of_weights = (
        product_over_time(trace.attending, to_queries),
        to_energy,
        product_over_time(trace.contexts, to_gates),
        gru_kernel_gradient(to_gates, visible, trace.gru.reset),
    )
    if trace.before is None:
        return to_gates, *of_inputs, *of_weights
    (to_projected,) = of_before
    visible = visible_of(trace.previous)
    of_before = gru_kernel_gradient(to_projected, visible, trace.before.reset)
    to_bias = tf.reduce_sum(to_gates, [0, 1])
    return to_projected, *of_inputs, *of_weights, of_before, to_bias


def _hidden(query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """tanh(W_a s + U_a h_j), [B, T_x, n']."""
    return tf.tanh(query[:, None] + keys)


def _energies(hidden: tf.Tensor, energy: tf.Tensor) -> tf.Tensor:
    """e_j = v_a · hidden_j, [B, T_x]."""
    flat = tf.matmul(tf.reshape(hidden, [-1, hidden.shape[-1]]), energy)
    return tf.reshape(flat, tf.shape(hidden)[:2])


def _hidden_gradient(upstream: tf.Tensor, energy: tf.Tensor, hidden: tf.Tensor) -> tf.Tensor:
    """The gradient of W_a s + U_a h_j by that of e, [B, T_x, n']."""
    # As a product, which is faster than a broadcast multiplication.
    outer = tf.matmul(tf.reshape(upstream, [-1, 1]), energy, transpose_b=True)
    outer = tf.reshape(outer, tf.shape(hidden))
    return tf.raw_ops.TanhGrad(y=hidden, dy=outer)


def _softmax(energies: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    if mask is not None:
        energies = tf.where(mask, energies, energies.dtype.min)
    return tf.nn.softmax(energies)


def _softmax_gradient(upstream: tf.Tensor, weights: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """The gradient of `_softmax` by e, [B, T_x]; 0 at padding."""
    mean = tf.reduce_sum(upstream * weights, -1, keepdims=True)
    gradient = weights * (upstream - mean)
    return gradient if mask is None else tf.where(mask, gradient, 0.0)


def _row_products(rows: tf.Tensor, matrices: tf.Tensor, transpose: bool = False) -> tf.Tensor:
    """x_b M_b, or x_b M_bᵀ, for every b: ([B, p], [B, ., .]) -> [B, q].

    `tf.matmul` runs oneDNN on a processor, which for single rows takes up to twice as long as
    Eigen's kernel of this operation.
    """
    outputs = tf.raw_ops.BatchMatMulV3(
        x=rows[:, None], y=matrices, Tout=rows.dtype, adj_y=transpose
    )
    return outputs[:, 0]


def _weighted_sum(weights: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Σ_bj w_bj x_bj: ([B, T_x], [B, T_x, n']) -> [n', 1]."""
    flat = tf.reshape(rows, [-1, rows.shape[-1]])
    return tf.matmul(flat, tf.reshape(weights, [-1, 1]), transpose_a=True)


def _outer_over_time(weights: tf.Tensor, vectors: tf.Tensor) -> tf.Tensor:
    """Σ_t α_tj g_t: ([T, B, T_x], [T, B, c]) -> [B, T_x, c]."""
    return tf.matmul(tf.transpose(weights, [1, 2, 0]), tf.transpose(vectors, [1, 0, 2]))
