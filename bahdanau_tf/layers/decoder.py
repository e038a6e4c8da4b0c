"""The decoders: attend, read out, update; for a sentence or for one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import keras
import tensorflow as tf

from bahdanau_tf.layers import recurrent, weights
from bahdanau_tf.layers.attention import Attention, BahdanauAttention, FixedContext, as_attention
from bahdanau_tf.layers.cells import States, as_cell, new_cell
from bahdanau_tf.layers.gru import Weights, attention_recurrence, gru_recurrence, previous_states
from bahdanau_tf.system.ranges import OptionError
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Glimpse(NamedTuple):
    """The inputs of the readout at all steps of a sentence, or of a step of K hypotheses; and α."""

    state: tf.Tensor  # float [B, T_y, n], of a step [B K, n]; s_{i-1} or s_i by the step order
    # float [B, T_y, c], c_i; of a step [B K, t], the readout's term C_o c_i; None without one
    context: tf.Tensor | None
    weights: tf.Tensor | None  # float [B, T_y or K, T_x], α_i; None without an alignment


class Read(NamedTuple):
    """What a state reads from the source at a step; None without a context."""

    cell_term: tf.Tensor | None = None  # float [..., p], C c_i
    context: tf.Tensor | None = None  # float [..., c], c_i, or the readout's term C_o c_i
    weights: tf.Tensor | None = None  # float [..., T_x], α_i; also None without alignment
    attention_state: Nest = ()  # after the step


class StepMemory(NamedTuple):
    """What one step of a decoder reads from the source.

    Cell and readout multiply the context by C and C_o. Since these products are linear, they are
    computed once, of the annotations: with C h_j given, C c_i = Σ_j α_ij C h_j.
    """

    source: Nest  # what the attention layer's `memory` returned
    terms: tf.Tensor  # [C h_j ; C_o h_j], float [B, T_x, p + t]; of a fixed context [B, p + t]


class DecoderState(NamedTuple):
    """The state of a decoder between two steps.

    In the step order "original" the update with c_{i-1} is done in the next step, when y_{i-1} is
    known, so its C c_{i-1} is kept.
    """

    states: States  # the cell's, float [B, K, n] each
    cell_term: tf.Tensor | tuple[()]  # float [B, K, p]; () in other orders, without a context
    attention: Nest  # the attention's state, a nest of [B, K, ...]; () without one


STEP_ORDERS = ("original", "appendix", "main-text")


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class AttentionDecoder(weights.ConfiguredLayer):
    """A recurrent cell that attends to the source at every step.

    The context enters every gate of the cell through C: the cell's input term is W E y + C c_i,
    which equals W' [E y ; c_i], where W' is W stacked on C. The paper's text and its code order
    a step differently:

        s_i = f(s_{i-1}, y_i, c_i)        "original" (the code)
        s_i = f(s_{i-1}, y_{i-1}, c_i)    "appendix" (A.2.2)
        s_i = f(s_{i-1}, y_{i-1}, c_i)    "main-text" (eq. 4)

    All attend with s_{i-1}; "main-text" reads out from s_i, the others from s_{i-1}. In "original"
    it has seen y_{i-1} already, and the first step has no update: s_0 attends and is read out.

    Args:
        cell: A cell of this package, or of Keras, whose input then is [E y ; c_i] (see
            `KerasCell`).
        attention: An attention layer, `FixedContext`, or None for a decoder without any context.
        step_order: One of the above.
        state_dropout: Dropout rate of the state in the recurrent products while training, with
            one mask for all steps of a sentence.
        kernel_initializer: Initializer of C.

    Call arguments:
        embedded: float [B, T_y, m], E y_1 .. E y_Ty.
        first_input: float [B, m], used in place of E y_0.
        states: The cell's initial states, tuple of float [B, n].
        memory: From the attention layer's `memory`; () without one.
        training: Whether to apply dropout.

    Returns:
        `Glimpse` of all steps, [B, T_y, ...].

    Raises:
        ValueError: `step_order`, `cell` or `attention` is not one of these.

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, section 3.1, appendix A.2.2.
    """

    step_orders: Sequence[str] = STEP_ORDERS
    has_fast_path = True

    def __init__(
        self,
        cell: keras.layers.Layer,
        attention: Attention | FixedContext | None = None,
        step_order: str = "original",
        state_dropout: float = 0.0,
        kernel_initializer: weights.Initializer = None,
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        name = type(self).__name__
        if step_order not in (orders := self.step_orders):
            raise OptionError(name, "step_order", step_order, f"one of {list(orders)}")
        self.cell = as_cell(name, cell)
        self.attention = as_attention(name, attention)
        self.step_order = step_order
        self._updates_first = step_order == "original"
        self._reads_new_state = step_order not in ("original", "appendix")
        self.state_dropout = state_dropout
        self.seed_generator = keras.random.SeedGenerator()
        self.kernel_initializer = weights.for_kernel(kernel_initializer)
        self.supports_masking = True

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """Shape of the states, for `summary`."""
        return None, None, self.cell.units

    def compute_mask(self, embedded: tf.Tensor, mask: recurrent.Mask = None) -> Glimpse | None:
        """The states have the mask of the target words."""
        return None if mask is None else Glimpse(mask, None, None)

    def build_for(self, embedding_dim: int, encoded_shape: recurrent.Encoded) -> None:
        """Makes all weights, given m and the shapes of an encoder's output."""
        shape: Nest = encoded_shape  # `build` reads its first shape only
        if self.attention is not None and not self.attention.has_alignment:
            shape = (None, self.attention.context_size(encoded_shape))
        self.build((None, None, embedding_dim), memory_shape=shape)

    def build(
        self,
        embedded_shape: tuple[int | None, int | None, int],
        first_input_shape: Shape | None = None,
        states_shape: Sequence[Shape] | None = None,
        memory_shape: Nest = None,  # of shapes
    ) -> None:
        self.context_size = 0
        if self.attention is not None:
            has_alignment = self.attention.has_alignment
            self.context_size = (memory_shape[0] if has_alignment else memory_shape)[-1]
        self._build_cells(embedded_shape[-1])
        if self.attention is not None:
            weights.build_once(self.attention, (None, self.cell.units), memory_shape)
        weights.stay_frozen(self)

    def _build_cells(self, embedding_dim: int) -> None:
        """Makes the weights of the cell, and C."""
        as_input = self.cell.context_as_input
        width = embedding_dim + (self.context_size if as_input else 0)
        weights.build_once(self.cell, (None, width))
        self.context_term_size = self.cell.projection_size
        if self.attention is not None and not as_input:
            shape = self.context_size, self.context_term_size
            self.context_kernel = self.new_weight("context_kernel", shape, self.kernel_initializer)

    def _attend(self, query: tf.Tensor, memory: Nest, attention_state: Nest) -> Read:
        if self.attention is None:
            return Read()
        context, alignment, new = self.attention.step(query, memory, attention_state)
        return Read(self.context_term(context), context, alignment, new)

    def context_term(self, context: tf.Tensor) -> tf.Tensor:
        """The term added to the cell's projection: C c, or [0 ; c]."""
        if not self.cell.context_as_input:
            return weights.linear(context, self.context_kernel)
        beside = self.cell.projection_size - self.context_size
        edges = [[0, 0]] * (context.shape.rank - 1) + [[beside, 0]]
        return tf.pad(context, edges)

    def _update(
        self,
        projected: tf.Tensor,
        cell_term: tf.Tensor | None,
        states: States,
        dropped: States | None = None,
    ) -> States:
        """One step of the cell on W E y + C c."""
        if cell_term is not None:
            projected += cell_term
        return self.cell.step(projected, states, dropped)

    def _attending(self, projected: tf.Tensor, states: States, dropped: States | None) -> States:
        """The states that attend, those of the step before."""
        return states

    def _transition(
        self,
        projected: tf.Tensor,
        states: States,
        attend: Callable[[tf.Tensor], Read],
        dropped: States | None = None,
    ) -> tuple[tf.Tensor, Read, States]:
        """Attends and updates: the state to read out, `Read`, new states."""
        states = self._attending(projected, states, dropped)
        read = attend(states[0])
        new = self._update(projected, read.cell_term, states, dropped)
        return (new if self._reads_new_state else states)[0], read, new

    def call(
        self,
        embedded: tf.Tensor,
        first_input: tf.Tensor,
        states: States,
        memory: Nest,
        training: bool = False,
        memory_mask: Sequence[recurrent.Mask] | None = None,
    ) -> Glimpse:
        if not self._updates_first:
            embedded = recurrent.shifted(embedded, first_input)
        if self.attention is not None and self.attention.has_alignment:
            memory = self.attention.completed(memory, memory_mask)
        dropped = recurrent.state_dropout_masks(
            states, self.state_dropout, training, self.seed_generator
        )
        unrolled = self._plain_loop
        if self.slow_part is None and recurrent.has_own_gradient(self.cell, embedded.dtype):
            is_paper = type(self.attention) is BahdanauAttention
            unrolled = self._recurrence if is_paper else self._fixed_recurrence
        return unrolled(embedded, states, memory, dropped)

    @property
    def slow_part(self) -> str | None:
        """The class for which training runs the plain loop; None on a fast path.

        The fast paths have gradients written by hand, for `GRUCell` with `BahdanauAttention`,
        `FixedContext` or no attention, not for classes derived from these.
        """
        if not vars(type(self)).get("has_fast_path", False):
            return type(self).__name__
        if not recurrent.has_own_gradient(self.cell, tf.float32):
            return type(getattr(self.cell, "cell", self.cell)).__name__
        if type(self.attention) not in (BahdanauAttention, FixedContext, type(None)):
            return type(self.attention).__name__
        return None

    def _recurrence(
        self, embedded: tf.Tensor, states: States, memory: Nest, dropped: States | None
    ) -> Glimpse:
        """The fast path for the paper's parts: `attention_recurrence`."""
        attention = cast("BahdanauAttention", self.attention)  # see `call`
        kernels = (attention.query_projection.kernel, attention.energy_kernel, *self._kernels())
        unrolled = attention_recurrence(
            self.cell.project(recurrent.time_major(embedded)),
            states[0],
            memory.annotations,
            memory.keys,
            memory.mask,
            Weights(*map(tf.convert_to_tensor, kernels)),
            None if dropped is None else dropped[0],
            states_before=not self._reads_new_state,
        )
        return Glimpse(*map(recurrent.batch_major, unrolled))

    def _kernels(self) -> tuple[weights.Weight, ...]:
        """The weights of the cell as `gru.Weights`."""
        return self.context_kernel, self.cell.recurrent_kernel

    def _fixed_recurrence(
        self, embedded: tf.Tensor, states: States, memory: Nest, dropped: States | None
    ) -> Glimpse:
        """The fast path for one context at all steps, or none."""
        projected = self.cell.project(recurrent.time_major(embedded))
        context = None
        if self.attention is not None:
            projected += weights.linear(memory, self.context_kernel)
            context = tf.repeat(memory[:, None], tf.shape(embedded)[1], axis=1)
        after, _ = gru_recurrence(
            projected,
            tf.ones_like(projected[..., :1]),
            states[0],
            tf.convert_to_tensor(self.cell.recurrent_kernel),
            None if dropped is None else dropped[0],
        )
        if not self._reads_new_state:
            after = previous_states(after, states[0])
        return Glimpse(recurrent.batch_major(after), context, None)

    def _plain_loop(
        self, embedded: tf.Tensor, states: States, memory: Nest, dropped: States | None
    ) -> Glimpse:
        """The path for all other parts; tests compare the fast ones with it."""
        projected = self.cell.project(embedded)

        def step(
            now: tuple[tf.Tensor, ...], carried: tuple[States, Nest]
        ) -> tuple[list[tf.Tensor], tuple[States, Nest]]:
            states, attention_state = carried
            state, read, new = self._transition(
                now[0], states, lambda s: self._attend(s, memory, attention_state), dropped
            )
            kept = [x for x in (state, read.context, read.weights) if x is not None]
            outputs = [tf.cast(x, dtype) for x, dtype in zip(kept, dtypes, strict=True)]
            return outputs, (new, read.attention_state)

        shapes: list[list[int | None]] = [[self.cell.units]]
        if self.attention is not None:
            shapes.append([self.context_size])
            if self.attention.has_alignment:
                shapes.append([None])
        dtypes = [states[0].dtype] * len(shapes)
        if states[0].dtype.size < 4 and len(shapes) > 2:
            dtypes[-1] = tf.float32  # the weights, as in a step
        start = (tuple(states), self._attention_state(memory))
        outputs, _ = recurrent.unroll(step, [projected], start, shapes, dtypes)
        state, context, alignment = (*outputs, None, None)[:3]
        return Glimpse(state, context, alignment)

    def step_memory(
        self, memory: Nest, readout_term: Callable[[tf.Tensor], tf.Tensor]
    ) -> StepMemory | tuple[()]:
        """What `step` reads from the source: `StepMemory`, () if no attention.

        The memory is that of a call, `readout_term` the readout's `context_term`.
        """
        if self.attention is None:
            return ()
        values = memory
        if self.attention.has_alignment:
            memory = self.attention.completed(memory)
            values = memory.annotations
        terms = [self.context_term(values), readout_term(values)]
        return StepMemory(memory, tf.concat(terms, -1))

    def initial_state(self, states: States, memory: Nest) -> DecoderState:
        """The state before the first step, a nest of [B, ...]; arguments as in a call."""
        term: tf.Tensor | tuple[()] = ()
        if self._updates_first and self.attention is not None:
            shape = [tf.shape(states[0])[0], self.cell.projection_size]
            term = tf.zeros(shape, states[0].dtype)
        return DecoderState(tuple(states), term, self._attention_state(memory))

    def _attention_state(self, memory: Nest) -> Nest:
        return () if self.attention is None else self.attention.initial_state(memory)

    def step(
        self, previous: tf.Tensor, is_first: tf.Tensor, state: DecoderState, memory: Nest
    ) -> tuple[Glimpse, DecoderState]:
        """One step for K hypotheses of each sentence: its `Glimpse` and the new state.

        `previous` is E y_{i-1}, or the first input, float [B, K, m]; `is_first`, bool [B, K], is
        True at the first step, without y_{i-1}. The state is [B, K, ...]; the memory, [B, ...], is
        that of `step_memory`.
        """

        def beams(rows: tf.Tensor) -> tf.Tensor:
            return weights.reshaped(rows, previous, rows.shape[-1])

        def attend(query: tf.Tensor) -> Read:
            read = self._terms(beams(query), memory, state.attention)
            term = read.cell_term
            return read if term is None else read._replace(cell_term=weights.as_rows(term))

        states = tuple(map(weights.as_rows, state.states))
        projected = self.cell.project(weights.as_rows(previous))
        kept: tf.Tensor | tuple[()] = ()
        if self._updates_first:
            term = None if self.attention is None else weights.as_rows(state.cell_term)
            new = self._update(projected, term, states)
            new = tuple(
                tf.where(is_first[..., tf.newaxis], old, beams(updated))
                for old, updated in zip(state.states, new, strict=True)
            )
            seen, read = weights.as_rows(new[0]), self._terms(new[0], memory, state.attention)
            kept = () if read.cell_term is None else read.cell_term
        else:
            seen, read, new = self._transition(projected, states, attend)
            new = tuple(map(beams, new))
        after = DecoderState(new, kept, read.attention_state)
        return Glimpse(seen, read.context, read.weights), after

    def _terms(self, query: tf.Tensor, memory: Nest, attention_state: Nest) -> Read:
        """What queries [B, K, n] read: terms of the cell [B, K, p], of the readout [B K, t]."""
        if self.attention is None:
            return Read()
        source, values = memory
        terms, alignment, new = self.attention.step(query, source, attention_state, values)
        cell_term, readout_term = tf.split(terms, [self.context_term_size, -1], -1)
        return Read(cell_term, weights.as_rows(readout_term), alignment, new)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class ConditionalDecoder(AttentionDecoder):
    """Two updates in each step, with attention between them: Nematus' cGRU.

        s'_i = f(s_{i-1}, E y_{i-1})
        c_i  = Σ_j α_ij h_j             α_ij from a(s'_i, h_j)
        s_i  = g(s'_i, c_i)             is read out

    The cells f and g are of the same kind but have their own weights; C is the input matrix of g.

    Args:
        cell: f; g is a new cell from its config, `context_cell`.
        attention: An attention layer or `FixedContext`.
        state_dropout: As in `AttentionDecoder`, the same mask for f and g.

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
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(cell, attention, "conditional", state_dropout, **kwargs)
        if self.attention is None:
            wanted = "an attention layer or FixedContext"
            raise OptionError("ConditionalDecoder", "attention", None, wanted)
        self.context_cell = new_cell(self.cell)

    def _build_cells(self, embedding_dim: int) -> None:
        weights.build_once(self.cell, (None, embedding_dim))
        weights.build_once(self.context_cell, (None, self.context_size))
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

    def _attending(self, projected: tf.Tensor, states: States, dropped: States | None) -> States:
        """The states after the update by f."""
        return self.cell.step(projected, states, dropped)

    def _terms(self, query: tf.Tensor, memory: Nest, attention_state: Nest) -> Read:
        """Adds the missing share of b where the weights of C h_j + b sum to less than 1."""
        read = super()._terms(query, memory, attention_state)
        if not tf.nest.flatten(attention_state):  # a softmax sums to 1
            return read
        missing = 1 - tf.reduce_sum(read.weights, -1, keepdims=True)
        bias = self.context_cell.project(tf.zeros([1, self.context_size], query.dtype))
        return read._replace(cell_term=read.cell_term + tf.cast(missing, bias.dtype) * bias)

    def _kernels(self) -> tuple[weights.Weight, ...]:
        return (
            self.context_cell.kernel,
            self.context_cell.recurrent_kernel,
            self.cell.recurrent_kernel,
            self.context_cell.projected_bias,
        )

    @property
    def slow_part(self) -> str | None:
        """Does what `AttentionDecoder` does, but `FixedContext` has no fast path here."""
        is_fixed = isinstance(self.attention, FixedContext)
        return type(self).__name__ if is_fixed else super().slow_part

    def get_config(self) -> dict[str, object]:
        config = super().get_config()
        del config["step_order"], config["kernel_initializer"]
        return config
