"""The decoder of Nematus, which updates its state twice in each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.layers.attention import Attention, FixedContext
from bahdanau_tf.layers.cells import States
from bahdanau_tf.layers.decoder import AttentionDecoder, Read
from bahdanau_tf.layers.nested_cells import new_cell
from bahdanau_tf.layers.weights import Weight, build_once
from bahdanau_tf.system.tensors import Nest


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class ConditionalDecoder(AttentionDecoder):
    """Two updates in each step, with attention between them: Nematus' cGRU.

        s'_i = f(s_{i-1}, E y_{i-1})
        c_i  = Σ_j α_ij h_j             α_ij from a(s'_i, h_j)
        s_i  = g(s'_i, c_i)             is read out

    The cells f and g are of one kind and have weights of their own; C is the input matrix of g.

    Args:
        cell: f; g is a new cell from its config, `context_cell`.
        attention: An attention layer or `FixedContext`.
        state_dropout: Dropout rate of the state in the recurrent products while training, with
            one mask for all steps of a sentence, the same for f and g.

    Call arguments, returns: see `AttentionDecoder`.

    Raises:
        ValueError: `cell` or `attention` is not one of these.

    Reference:
        Sennrich et al. 2017, arXiv 1703.04357 (Nematus).
    """

    step_orders = ("conditional",)
    has_fast_path = True

    def __init__(
        self,
        cell: keras.layers.Layer,
        attention: Attention | FixedContext | None = None,
        state_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, attention, "conditional", state_dropout, **kwargs)
        if self.attention is None:
            raise ValueError(
                "ConditionalDecoder: attention is None, wanted an attention layer or FixedContext"
            )
        self.context_cell = new_cell(self.cell)

    def _build_cells(self, embedding_dim: int) -> None:
        build_once(self.cell, (None, embedding_dim))
        build_once(self.context_cell, (None, self.context_size))
        self.context_term_size = self.context_cell.projection_size

    def context_term(self, context: tf.Tensor) -> tf.Tensor:
        """The projection of g: C c + b.

        Search averages these terms of the annotations by α_i, so a cell's `project` must be
        affine, as those of this package are.
        """
        return self.context_cell.project(context)

    def _update(
        self,
        projected: tf.Tensor,
        cell_term: tf.Tensor | None,
        states: States,
        dropped: States | None = None,
    ) -> States:
        """One step of g on C c + b."""
        return self.context_cell.step(cell_term, states, dropped)

    def _transition(
        self,
        projected: tf.Tensor,
        states: States,
        attend: Callable[[tf.Tensor], Read],
        dropped: States | None = None,
    ) -> tuple[tf.Tensor, Read, States]:
        """Updates by f, attends, then updates by g."""
        states = self.cell.step(projected, states, dropped)
        return super()._transition(projected, states, attend, dropped)

    def _terms(self, query: tf.Tensor, memory: Nest, attention_state: Nest) -> Read:
        """Adds what an average of C h_j + b lacks of b where the weights sum to less than 1."""
        read = super()._terms(query, memory, attention_state)
        if not tf.nest.flatten(attention_state):  # a softmax sums to 1
            return read
        missing = 1 - tf.reduce_sum(read.weights, -1, keepdims=True)
        bias = self.context_cell.project(tf.zeros([1, self.context_size], query.dtype))
        return read._replace(cell_term=read.cell_term + tf.cast(missing, bias.dtype) * bias)

    def _kernels(self) -> tuple[Weight, ...]:
        return (
            self.context_cell.kernel,
            self.context_cell.recurrent_kernel,
            self.cell.recurrent_kernel,
            self.context_cell.projected_bias,
        )

    @property
    def slow_part(self) -> str | None:
        """As in `AttentionDecoder`, but `FixedContext` has no fast path here."""
        is_fixed = isinstance(self.attention, FixedContext)
        return type(self).__name__ if is_fixed else super().slow_part

    def get_config(self) -> dict[str, object]:
        config = super().get_config()
        del config["step_order"], config["kernel_initializer"]
        return config
