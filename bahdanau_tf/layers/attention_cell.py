"""Attention around any cell: a cell for `keras.layers.RNN`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf
from keras import ops

from bahdanau_tf.layers import weights
from bahdanau_tf.layers.attention import Attention, Memory, as_attention
from bahdanau_tf.layers.cells import as_cell
from bahdanau_tf.layers.recurrent import Encoded
from bahdanau_tf.system.ranges import OptionError, Refusal, size

if TYPE_CHECKING:
    from typing_extensions import Unpack

CellInput = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class AttentionCell(weights.ConfiguredLayer):
    """A cell that attends after each step, for `keras.layers.RNN`: `AttentionWrapper` in Keras.

        s_i = f(s_{i-1}, [x_i ; a_{i-1}])
        c_i = Σ_j α_ij h_j                   α_ij from s_i and h_j
        a_i = c_i, or W [s_i ; c_i] with an attention layer

    Keras hands a cell no constants, so the annotations h_j and their keys travel in the state,
    which `initial_state` makes. With x_i = E y_i and a_0 = c_1 this is the step order "original"
    of `AttentionDecoder`, whose training is faster; this cell is for models made of Keras' own
    parts.

    Args:
        cell: f, a cell of Keras or of this package.
        attention: An attention layer.
        attention_layer_size: Width of a_i with a layer W, `attention_layer`; None for none.
        cell_input_fn: What f reads, a function of x_i and a_{i-1}; None for [x_i ; a_{i-1}]. Give
            it a name of its own with `keras.saving.register_keras_serializable` to save a model.
        output_attention: Whether the output is a_i; otherwise it is s_i.

    Call arguments:
        inputs: float [B, m], x_i.
        states: Those of `initial_state`, or of the step before.

    Returns:
        The output, float [B, a] or [B, n], and the new states.

    Raises:
        ValueError: an argument is not one of these, or the first states are not those of
            `initial_state`.

    Example:

    ```python
    cell = AttentionCell(keras.layers.GRUCell(256), BahdanauAttention(256))
    encoded = encoder(source)
    outputs = keras.layers.RNN(cell, return_sequences=True)(
        target, initial_state=cell.initial_state(encoded), mask=mask
    )
    ```

    Keras hands no mask on to a layer that is given first states, so pass that of the target, bool
    [B, T_y], if it has padding.

    Reference:
        Luong et al. 2015, arXiv 1508.04025, section 3.3 (the attention layer, input feeding).
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        attention: Attention,
        attention_layer_size: int | None = None,
        cell_input_fn: CellInput | None = None,
        output_attention: bool = True,
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.cell = as_cell("AttentionCell", cell)
        layer = as_attention("AttentionCell", attention)
        if not isinstance(layer, Attention):
            wanted = "a subclass of Attention such as BahdanauAttention"
            raise OptionError("AttentionCell", "attention", weights.described(layer), wanted)
        self.attention = layer
        self.attention_layer_size = attention_layer_size
        self.attention_layer = None
        if attention_layer_size is not None:
            units = size("AttentionCell", "attention_layer_size", attention_layer_size)
            self.attention_layer = keras.layers.Dense(
                units, use_bias=False, name="attention_layer", dtype=self.dtype_policy
            )
        self.cell_input_fn: CellInput | None = weights.deserialized(cell_input_fn)
        self.output_attention = output_attention
        self.context_size = 0  # while the annotations are unknown
        self._cells = len(self._cell_sizes)

    @property
    def _cell_sizes(self) -> list[int]:
        return list(tf.nest.flatten(self.cell.state_size))

    @property
    def attention_size(self) -> int:
        """a, the width of a_i; 0 while the annotations are unknown."""
        return self.attention_layer_size or self.context_size

    @property
    def state_size(self) -> list[int]:
        """The last sizes of the states, 0 where they depend on the source.

        They are those of the cell, a_i, the memory's three parts, the attention's state, and the
        latest α.
        """
        dummy = Memory(tf.zeros([1, 1, 1]), tf.zeros([1, 1, 1]), None)
        own = len(tf.nest.flatten(self.attention.initial_state(dummy)))
        return [*self._cell_sizes, self.attention_size, 0, 0, 0, *[0] * own, 0]

    @property
    def output_size(self) -> int:
        """a or n."""
        return self.attention_size if self.output_attention else self.cell.output_size

    def initial_state(
        self,
        encoded: Encoded,
        states: Sequence[tf.Tensor] | None = None,
        alignment_history: int = 0,
    ) -> list[tf.Tensor]:
        """The states before the first step; a_0 is zero.

        Args:
            encoded: What an encoder returned.
            states: First states of the cell, float [B, n] each; zeros if None.
            alignment_history: Number of latest steps whose α the states keep, for
                `alignment_history` afterwards.

        Returns:
            A list of tensors [B, ...], for `initial_state` of `keras.layers.RNN`. In a functional
            model it has no keys: the cell computes them at each step.
        """
        annotations, keys, mask = self.attention.memory(encoded)
        self._build_attention(annotations.shape)
        nothing = ops.zeros_like(annotations[:, 0, :1])
        everywhere = ops.zeros_like(annotations[..., :1])
        states = None if states is None else tf.nest.flatten(states)
        if states is not None and len(states) != len(self._cell_sizes):
            raise Refusal(
                "AttentionCell.initial_state",
                f"states has {len(states)} tensors, wanted {len(self._cell_sizes)}",
            )
        sizes = [*self._cell_sizes, self.attention_size]
        zeros = [ops.repeat(nothing, width, -1) for width in sizes]
        own = self.attention.initial_state(Memory(annotations, annotations, None))
        return [
            *(zeros[:-1] if states is None else states),
            zeros[-1],
            annotations,
            ops.repeat(everywhere, 0, -1) if isinstance(keys, tuple) else keys,
            everywhere[..., 0] + 1 if mask is None or isinstance(mask, tuple) else mask,
            *tf.nest.flatten(own),
            ops.repeat(everywhere, alignment_history, -1),
        ]

    def alignment_history(self, states: Sequence[tf.Tensor]) -> tf.Tensor:
        """α of the latest steps, oldest first: float [B, steps, T_x]; from the last states.

        Zeros come first if there were fewer steps. A step that the mask of the inputs leaves out
        is none. In a functional model, where Keras takes all states for matrices, use the last
        state itself, [B, T_x, steps].
        """
        return ops.transpose(states[-1], (0, 2, 1))

    def get_initial_state(self, batch_size: int | tf.Tensor) -> list[tf.Tensor]:
        """Raises ValueError: `keras.layers.RNN` calls this without a source."""
        raise Refusal(
            "AttentionCell",
            "initial_state is lacking, wanted RNN(cell)(inputs, "
            "initial_state=cell.initial_state(encoded))",
        )

    def _build_attention(self, annotations_shape: tuple[int | None, int | None, int]) -> None:
        self.context_size = annotations_shape[-1]
        shapes = (annotations_shape, (), ())
        weights.build_once(self.attention, (None, self.cell.units), shapes)
        if self.attention_layer is not None:
            width = self.cell.units + self.context_size
            weights.build_once(self.attention_layer, (None, width))

    def build(self, input_shape: tuple[int | None, int]) -> None:
        if not self.context_size:
            self.get_initial_state(0)
        widths = input_shape[-1], self.attention_size
        read = (self.cell_input_fn or _beside)(*(tf.zeros([1, width]) for width in widths))
        weights.build_once(self.cell, (None, read.shape[-1]))
        weights.stay_frozen(self)
        self._input_size = input_shape[-1]

    def get_build_config(self) -> dict[str, Any]:
        """The widths of inputs and annotations."""
        return {"input_size": self._input_size, "context_size": self.context_size}

    def build_from_config(self, config: Mapping[str, Any]) -> None:
        """Makes the weights, of a saved cell."""
        self._build_attention((None, None, config["context_size"]))
        self.build((None, config["input_size"]))
        self.built = True

    def call(
        self, inputs: tf.Tensor, states: Sequence[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        cell_states, (before, *rest) = states[: self._cells], states[self._cells :]
        annotations, keys, mask, *own, history = rest
        read = self.cell_input_fn or _beside
        output, new = self.cell(read(inputs, before), list(cell_states))
        # In a functional model there are no keys.
        has_keys = keys.shape[-1] != 0
        memory = Memory(annotations, keys if has_keys else (), tf.cast(mask, tf.bool))
        memory = self.attention.completed(memory)
        state = tf.nest.pack_sequence_as(self.attention.initial_state(memory), own)
        context, alignment, state = self.attention.step(output, memory, state)
        attention = context
        if self.attention_layer is not None:
            attention = self.attention_layer(_beside(output, context))
        if history.shape[-1]:
            latest = tf.cast(alignment, history.dtype)[..., None]
            history = tf.concat([history[..., 1:], latest], -1)
        own = [tf.cast(x, old.dtype) for x, old in zip(tf.nest.flatten(state), own, strict=True)]
        after = [*tf.nest.flatten(new), attention, annotations, keys, mask, *own, history]
        return (attention if self.output_attention else output), after


def _beside(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    return tf.concat([x, y], -1)
