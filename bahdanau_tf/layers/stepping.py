"""One step of a decoder for all hypotheses of a beam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.layers.attention import Attention
from bahdanau_tf.layers.cell import States
from bahdanau_tf.layers.fixed_context import FixedContext
from bahdanau_tf.layers.glimpse import DecoderState
from bahdanau_tf.layers.glimpse import Read
from bahdanau_tf.layers.glimpse import StepGlimpse
from bahdanau_tf.layers.glimpse import StepMemory
from bahdanau_tf.layers.weights import as_rows
from bahdanau_tf.layers.weights import reshaped
from bahdanau_tf.system.tensors import Nest


class SteppingDecoder(keras.layers.Layer):
    """The part of `AttentionDecoder` that decodes step by step.

    Inside a step hypotheses are rows, [B K, .], as products take them; only
    attention has the axes B and K.
    """

    cell: Any
    attention: Attention | FixedContext | None
    context_term_size: int
    _updates_first: bool

    def context_term(self, context: tf.Tensor) -> tf.Tensor:
        """The term added to the cell's projection."""
        raise NotImplementedError

    def _update(
        self, projected: tf.Tensor, cell_term: tf.Tensor | None, states: States
    ) -> States:
        """One step of the cell."""
        raise NotImplementedError

    def _transition(
        self,
        projected: tf.Tensor,
        states: States,
        attend: Callable[[tf.Tensor], Read],
    ) -> tuple[tf.Tensor, Read, States]:
        """Attends and updates: the state to read out, `Read`, new states."""
        raise NotImplementedError

    def step_memory(
        self, memory: Nest, readout_term: Callable[[tf.Tensor], tf.Tensor]
    ) -> StepMemory | tuple[()]:
        """What `step` reads of the source: `StepMemory`, () if no attention.

        Args:
            memory: From the attention layer's `memory`, [B, ...]; () without
                one.
            readout_term: The readout's `context_term`.
        """
        if self.attention is None:
            return ()
        values = memory
        if self.attention.has_weights:
            memory = self.attention.completed(memory)
            values = memory.annotations
        terms = [self.context_term(values), readout_term(values)]
        return StepMemory(memory, tf.concat(terms, -1))

    def initial_state(self, states: States) -> DecoderState:
        """The state before the first step, from the cell's [B, n] states."""
        term: tf.Tensor | tuple[()] = ()
        if self._updates_first and self.attention is not None:
            shape = [tf.shape(states[0])[0], self.cell.projection_size]
            term = tf.zeros(shape, states[0].dtype)
        return DecoderState(tuple(states), term)

    def step(
        self,
        previous: tf.Tensor,
        is_first: tf.Tensor,
        state: DecoderState,
        memory: Nest,
    ) -> tuple[StepGlimpse, DecoderState]:
        """One step for K hypotheses of each sentence, given y_{i-1}.

        Args:
            previous: float [B, K, m], E y_{i-1}, or the first input.
            is_first: bool [B, K], True at the first step, without y_{i-1}.
            state: `DecoderState`, [B, K, ...].
            memory: From `step_memory`, [B, ...].

        Returns:
            `StepGlimpse`, and the new state.
        """

        def beams(rows: tf.Tensor) -> tf.Tensor:
            return reshaped(rows, previous, rows.shape[-1])

        def attend(query: tf.Tensor) -> Read:
            read = self._terms(beams(query), memory)
            if read.cell_term is None:
                return read
            return read._replace(cell_term=as_rows(read.cell_term))

        states = tuple(map(as_rows, state.states))
        projected = self.cell.project(as_rows(previous))
        kept: tf.Tensor | tuple[()] = ()
        if self._updates_first:
            term = None if self.attention is None else as_rows(state.cell_term)
            new = self._update(projected, term, states)
            new = tuple(
                tf.where(is_first[..., tf.newaxis], old, beams(updated))
                for old, updated in zip(state.states, new, strict=True)
            )
            seen, read = as_rows(new[0]), self._terms(new[0], memory)
            if read.cell_term is not None:
                kept = read.cell_term
        else:
            seen, read, new = self._transition(projected, states, attend)
            new = tuple(map(beams, new))
        glimpse = StepGlimpse(seen, read.context, read.weights)
        return glimpse, DecoderState(new, kept)

    def _terms(self, query: tf.Tensor, memory: Nest) -> Read:
        """What queries [B, K, n] read.

        Returns:
            The cell's terms [B, K, p], the readout's [B K, t], and the weights
            [B, K, T_x].
        """
        if self.attention is None:
            return Read(None, None, None)
        source, values = memory
        terms, weights = self.attention(query, source, values)
        sizes = [self.context_term_size, -1]
        cell_term, readout_term = tf.split(terms, sizes, -1)
        return Read(cell_term, as_rows(readout_term), weights)
