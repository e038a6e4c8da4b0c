"""What a decoder reads of a sentence, carries from step to step, and shows."""

from __future__ import annotations

from typing import Any
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.layers.cells import States


class Glimpse(NamedTuple):
    """What the readout needs at every step of a sentence, and the alignment.

    Attributes:
        state: float [B, T_y, n], s_{i-1} or s_i by the step order.
        context: float [B, T_y, c], c_i, or None without a context.
        weights: float [B, T_y, T_x], α_i, or None without an alignment.
    """

    state: tf.Tensor
    context: Any
    weights: Any


class StepMemory(NamedTuple):
    """What one step of a decoder reads of the source.

    Cell and readout multiply the context by C and C_o. Both products are
    linear, so they are taken once of the annotations: C c_i is the mean of the
    C h_j, with the same weights.

    Attributes:
        source: What the attention layer's `memory` gave.
        terms: float [B, T_x, p + t], [C h_j ; C_o h_j]; [B, p + t] where the
            context is one for all steps.
    """

    source: Any
    terms: tf.Tensor


class StepGlimpse(NamedTuple):
    """What the readout needs at one step of K hypotheses, and the alignment.

    Attributes:
        state: float [B, K, n], s_{i-1} or s_i by the step order.
        readout_term: float [B, K, t], C_o c_i, or None without a context.
        weights: float [B, K, T_x], α_i, or None without an alignment.
    """

    state: tf.Tensor
    readout_term: Any
    weights: Any


class DecoderState(NamedTuple):
    """What a decoder carries from step to step.

    Attributes:
        states: The cell's states, float [B, K, n] each.
        cell_term: float [B, K, p], C c_{i-1}, in the order "original" with a
            context, where the update waits for y_{i-1}; else ().
    """

    states: States
    cell_term: Any
