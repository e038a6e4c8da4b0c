"""Records of the decoder: its memory, its state, and its results of a step."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.layers.cell import States
from bahdanau_tf.system.tensors import Nest


class Glimpse(NamedTuple):
    """What the readout needs of all steps of a sentence, and the alignment.

    Attributes:
        state: float [B, T_y, n], s_{i-1} or s_i by the step order.
        context: float [B, T_y, c], c_i, or None without a context.
        weights: float [B, T_y, T_x], α_i, or None without an alignment.
    """

    state: tf.Tensor
    context: tf.Tensor | None
    weights: tf.Tensor | None


class Read(NamedTuple):
    """What a state reads of the source at a step; None without a context.

    Attributes:
        cell_term: float [..., p], C c_i.
        context: float [..., c], c_i, or the readout's term C_o c_i.
        weights: float [..., T_x], α_i; None without an alignment, too.
    """

    cell_term: tf.Tensor | None
    context: tf.Tensor | None
    weights: tf.Tensor | None


class StepMemory(NamedTuple):
    """What one step of a decoder reads of the source.

    Cell and readout multiply the context by C and C_o. Since these products
    are linear, they are computed once, of the annotations: with C h_j given,
    C c_i = Σ_j α_ij C h_j.

    Attributes:
        source: What the attention layer's `memory` returned.
        terms: float [B, T_x, p + t], [C h_j ; C_o h_j]; [B, p + t] if the
            context is the same at all steps.
    """

    source: Nest
    terms: tf.Tensor


class StepGlimpse(NamedTuple):
    """What the readout needs of one step of K hypotheses, and the alignment.

    Attributes:
        state: float [B K, n], s_{i-1} or s_i by the step order.
        readout_term: float [B K, t], C_o c_i, or None without a context.
        weights: float [B, K, T_x], α_i, or None without an alignment.
    """

    state: tf.Tensor
    readout_term: tf.Tensor | None
    weights: tf.Tensor | None


class DecoderState(NamedTuple):
    """The state of a decoder between two steps.

    Attributes:
        states: The cell's states, float [B, K, n] each.
        cell_term: float [B, K, p], C c_{i-1}: in the step order "original" the
            update with c_{i-1} is done in the next step, when y_{i-1} is
            known. () in the other orders and without a context.
    """

    states: States
    cell_term: tf.Tensor | tuple[()]
