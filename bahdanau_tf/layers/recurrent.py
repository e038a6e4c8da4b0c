"""Runs cells over a sequence: one recurrent layer, and the encoders made of such layers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import keras
import tensorflow as tf

from bahdanau_tf.layers.cells import GRUCell, States, apart, as_cell, new_cell
from bahdanau_tf.layers.gru import gru_recurrence, over_time
from bahdanau_tf.layers.weights import ConfiguredLayer, KerasOptions, build_once, stay_frozen
from bahdanau_tf.system.ranges import size
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

Mask: TypeAlias = "tf.Tensor | None"  # bool [B, T], True on real positions; None if all are
Step = Callable[[tuple[tf.Tensor, ...], Nest], tuple[Sequence[tf.Tensor], Nest]]


def unroll(
    step: Step,
    inputs: Sequence[tf.Tensor],
    states: Nest,
    output_shapes: Sequence[Sequence[int | None]],
    output_dtypes: Sequence[tf.DType] | None = None,
) -> tuple[tuple[tf.Tensor, ...], Nest]:
    """Runs `step` at each position of sequences: the outputs, [B, T, ...], and the last states.

    `keras.layers.RNN` of Keras 3 passes no constants to a cell and projects the inputs inside
    the loop; here the loop runs `step` alone: (inputs at t, states) -> (outputs at t, states).
    The inputs are [B, T, ...], T at least 1, the states a nest of [B, ...]. `output_shapes` are
    those of one step without the batch; dtypes are that of the first state if None.
    """
    time = tf.shape(inputs[0])[1]
    reads = [_steps(x) for x in inputs]
    dtypes = output_dtypes or [tf.nest.flatten(states)[0].dtype] * len(output_shapes)

    def body(t: tf.Tensor, states: Nest) -> tuple[Nest, Sequence[tf.Tensor]]:
        outputs, new = step(tuple(array.read(t) for array in reads), states)
        return new, outputs

    states, outputs = over_time(time, body, states, dtypes, output_shapes, maximum=time)
    return tuple(map(batch_major, outputs)), states


def _steps(sequence: tf.Tensor) -> tf.TensorArray:
    # A TensorArray, not the slice `x[t]`, whose gradient in a loop adds a tensor of the whole
    # sequence's size at every step.
    steps = time_major(sequence)
    array = tf.TensorArray(steps.dtype, size=tf.shape(steps)[0], element_shape=steps.shape[1:])
    return array.unstack(steps)


def time_major(sequence: tf.Tensor) -> tf.Tensor:
    """[B, T, ...] -> [T, B, ...]."""
    return tf.transpose(sequence, [1, 0, *range(2, sequence.shape.rank)])


def batch_major(steps: tf.Tensor) -> tf.Tensor:
    """[T, B, ...] -> [B, T, ...]."""
    return time_major(steps)


def as_mask(owner: str, mask: Mask, sequence: tf.Tensor) -> Mask:
    """A mask of any dtype as bool [B, T]; None stays None.

    Raises ValueError if the mask, an argument of the class `owner`, does not fit the sequence,
    [B, T, ...].
    """
    if mask is None:
        return None
    mask = tf.cast(mask, tf.bool)
    if not mask.shape.is_compatible_with(sequence.shape[:2]):
        raise ValueError(
            f"{owner}: mask has the shape {mask.shape}, wanted [B, T], the "
            f"first two of {sequence.shape}"
        )
    return mask


def shifted(embedded: tf.Tensor, first_input: tf.Tensor) -> tf.Tensor:
    """E y_0 .. E y_{Ty-1} from E y_1 .. E y_Ty: float [B, T_y, m]."""
    steps = tf.shape(embedded)[1]
    # Not `embedded[:, :-1]`, whose gradient takes thirty times as long.
    earlier, _ = tf.split(embedded, [steps - 1, 1], axis=1)
    return tf.concat([first_input[:, None], earlier], axis=1)


def has_own_gradient(cell: object, dtype: tf.DType) -> bool:
    """Whether the cell's recurrence has a gradient written by hand.

    Half precision uses the plain loop, which rounds where TensorFlow does.
    """
    return type(cell) is GRUCell and dtype in (tf.float32, tf.float64)


def state_dropout_masks(
    states: States, rate: float, training: bool, seed_generator: keras.random.SeedGenerator
) -> States | None:
    """One dropout mask for all steps of a sentence (Gal and Ghahramani 2016).

    For each state: 0 for a dropped unit, 1 / (1 - rate) for a kept one. None without dropout.
    """
    if not training or rate == 0.0:
        return None
    ones = map(tf.ones_like, states)
    return tuple(keras.random.dropout(x, rate, seed=seed_generator) for x in ones)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Recurrent(ConfiguredLayer):
    """Runs a cell over a sequence; all inputs are projected in one product.

    Args:
        cell: A cell of this package, or of Keras (see `KerasCell`).
        reverse: Whether to read from right to left.
        state_dropout: Dropout rate of the state in the recurrent products while training, with
            one mask for all steps.

    Call arguments:
        inputs: float [B, T, m], T at least 1, finite at all positions.
        mask: bool [B, T]; at False positions the states stay as they are.
        training: Whether to apply dropout.

    Returns:
        The states at every position, float [B, T, n], and the last states, a tuple of float [B,
        n]: after the last real position, or before the first when `reverse`.
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        reverse: bool = False,
        state_dropout: float = 0.0,
        **kwargs: Unpack[KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.cell = as_cell(type(self).__name__, cell)
        self.reverse = reverse
        self.state_dropout = state_dropout
        self.seed_generator = keras.random.SeedGenerator()
        self.supports_masking = True

    def compute_mask(self, inputs: tf.Tensor, mask: Mask = None) -> tuple[Mask, None]:
        """The states at every position have the mask of the inputs."""
        return mask, None

    def build(self, input_shape: Shape) -> None:
        build_once(self.cell, (None, input_shape[-1]))
        stay_frozen(self)

    def call(
        self, inputs: tf.Tensor, mask: Mask = None, training: bool = False
    ) -> tuple[tf.Tensor, States]:
        mask = as_mask(type(self).__name__, mask, inputs)
        if mask is None:
            mask = tf.ones(tf.shape(inputs)[:2], tf.bool)
        first = self.cell.get_initial_state(tf.shape(inputs)[0])
        states = tuple(tf.cast(state, inputs.dtype) for state in first)
        dropped = state_dropout_masks(states, self.state_dropout, training, self.seed_generator)
        is_fast = has_own_gradient(self.cell, inputs.dtype)
        unrolled = self._recurrence if is_fast else self._plain_loop
        # Not a loop from the last position to the first: tf2onnx, by which Keras exports to
        # ONNX, takes it for one that writes in order.
        if self.reverse:
            inputs, mask = tf.reverse(inputs, [1]), tf.reverse(mask, [1])
        outputs, last = unrolled(inputs, mask, states, dropped)
        if self.reverse:
            outputs = tf.reverse(outputs, [1])
        return outputs, last

    def _recurrence(
        self, inputs: tf.Tensor, mask: tf.Tensor, states: States, dropped: States | None
    ) -> tuple[tf.Tensor, States]:
        """The fast path for `GRUCell`: `gru_recurrence`."""
        steps, last = gru_recurrence(
            self.cell.project(time_major(inputs)),
            time_major(tf.cast(mask, inputs.dtype)[..., None]),
            states[0],
            tf.convert_to_tensor(self.cell.recurrent_kernel),
            None if dropped is None else dropped[0],
        )
        return batch_major(steps), (last,)

    def _plain_loop(
        self, inputs: tf.Tensor, mask: tf.Tensor, states: States, dropped: States | None
    ) -> tuple[tf.Tensor, States]:
        """The path for all other cells; tests compare the fast one with it."""
        projected = self.cell.project(inputs)

        def step(now: tuple[tf.Tensor, ...], states: States) -> tuple[tuple[tf.Tensor], States]:
            new = zip(self.cell.step(now[0], states, dropped), states, strict=True)
            kept = tuple(tf.where(now[1][:, None], state, old) for state, old in new)
            return (kept[0],), kept

        (outputs,), states = unroll(step, (projected, mask), states, [[self.cell.units]])
        return outputs, states


class Encoded(NamedTuple):
    """The output of an encoder.

    Attributes:
        annotations: float [B, T_x, c]; h_j, c = 2n if bidirectional.
        forward_states: For each layer, the bottom one first, the states after the last real
            word, a tuple of float [B, n]. The first is the output; a residual layer's includes
            what it is added to.
        backward_states: The same for the backward direction, after the first word, which it reads
            last; empty without a backward direction.
        mask: bool [B, T_x], True on real positions; None or () if all are.
    """

    annotations: tf.Tensor
    forward_states: tuple[States, ...]
    backward_states: tuple[States, ...]
    mask: Nest  # a tensor, () or None


def as_encoded(owner: str, encoded: Sequence[Nest]) -> Encoded:
    """The output of an encoder, which in a reloaded functional model is a list.

    Raises ValueError if it is a tensor.
    """
    if hasattr(encoded, "shape"):
        raise ValueError(
            f"{owner}: encoded is a tensor of shape {tuple(encoded.shape)}, wanted the output of "
            "an encoder, or Encoded(annotations, (), (), None)"
        )
    return Encoded(*encoded)


def _name(layer: int, reverse: bool) -> str:
    return f"{'backward' if reverse else 'forward'}_{layer}"


class _RecurrentEncoder(ConfiguredLayer):
    """Recurrent layers on top of one another, in one or two directions."""

    directions: tuple[bool, ...] = ()  # the `reverse` of each direction

    def __init__(
        self,
        cell: keras.layers.Layer,
        layers: int = 1,
        state_dropout: float = 0.0,
        residual: bool = False,
        **kwargs: Unpack[KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        # Not `layers`, which `summary` takes for a list of layers.
        self.depth = size(type(self).__name__, "layers", layers)
        cell = as_cell(type(self).__name__, cell)
        self.cell_config = apart(keras.saving.serialize_keras_object(cell))
        self.units: int = cell.units
        self.state_sizes = list(tf.nest.flatten(cell.state_size))
        self.state_dropout = state_dropout
        self.residual = residual
        self.supports_masking = True
        start: dict[str, Any] = {"state_dropout": state_dropout, "dtype": self.dtype_policy}
        for layer, reverse in itertools.product(range(self.depth), self.directions):
            # Attributes, not a list: checkpoints and exports of TensorFlow lack the weights of
            # Keras layers that are in a list.
            name = _name(layer, reverse)
            setattr(self, name, Recurrent(new_cell(cell), reverse, name=name, **start))

    @property
    def stack(self) -> list[list[Recurrent]]:
        """For each layer, the bottom one first, the list of its directions."""
        return [
            [getattr(self, _name(layer, reverse)) for reverse in self.directions]
            for layer in range(self.depth)
        ]

    @property
    def annotation_size(self) -> int:
        """c: n for each direction."""
        return self.units * len(self.directions)

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """Shape of the annotations, for `summary`."""
        return None, None, self.encoded_shape().annotations[-1]

    def compute_mask(self, embedded: tf.Tensor, mask: Mask = None) -> tuple[Mask]:
        """The annotations, the first of `Encoded`, have the inputs' mask."""
        return (mask,)

    def encoded_shape(self) -> Encoded:
        """The shapes of what `call` returns."""
        states = tuple((None, size) for size in self.state_sizes)
        layers = (states,) * self.depth
        return Encoded(
            annotations=(None, None, self.annotation_size),
            forward_states=layers,
            backward_states=layers if len(self.directions) > 1 else (),
            mask=(None, None),
        )

    def build(self, input_shape: Shape) -> None:
        width = input_shape[-1]
        for layer in self.stack:
            for recurrent in layer:
                build_once(recurrent, (None, None, width))
            width = self.annotation_size
        stay_frozen(self)

    def call(self, embedded: tf.Tensor, mask: Mask = None, training: bool = False) -> Encoded:
        mask = as_mask(type(self).__name__, mask, embedded)
        if mask is None:
            mask = tf.ones(tf.shape(embedded)[:2], tf.bool)
        states: list[list[States]] = [[] for _ in self.directions]
        sequence = embedded
        for depth, layer in enumerate(self.stack):
            outputs = []
            for direction, recurrent in zip(states, layer, strict=True):
                output, last = recurrent(sequence, mask=mask, training=training)
                outputs.append(output)
                direction.append(last)
            below, sequence = sequence, tf.concat(outputs, -1)
            if self.residual and depth:
                sequence += below
                for direction in states:
                    output, *others = direction[-1]
                    direction[-1] = (direction[-2][0] + output, *others)
        forward, backward = (*states, [])[:2]
        return Encoded(sequence, tuple(forward), tuple(backward), mask)

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "cell": self.cell_config,
            "layers": self.depth,
            "state_dropout": self.state_dropout,
            "residual": self.residual,
        }


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class BidirectionalEncoder(_RecurrentEncoder):
    """The paper's encoder, which reads the source in both directions.

        h→_j = f(E x_j, h→_{j-1})    (A.2.1)
        h←_j = f(E x_j, h←_{j+1})
        h_j  = [h→_j ; h←_j]         (eq. 7)

    The initial states of both directions are zero; they share the embedding, not the weights.

    Args:
        cell: A recurrent cell of this package or of Keras. It is a template: each direction of
            each layer gets a new cell from its config.
        layers: Number of layers; each but the first reads the annotations of the layer below.
        state_dropout: See `Recurrent`.
        residual: Whether each layer but the first adds its outputs to the annotations of the
            layer below, which it reads.

    Call arguments:
        embedded: float [B, T_x, m], E x_j, T_x at least 1.
        mask: bool [B, T_x], True on real words.
        training: Whether to apply dropout.

    Returns:
        `Encoded`, with annotations float [B, T_x, 2n].

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, section 3.2, appendix A.2.1.
    """

    directions = (False, True)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class UnidirectionalEncoder(_RecurrentEncoder):
    """An encoder that reads from left to right: RNNencdec's, Sutskever's.

    Args, call arguments: see `BidirectionalEncoder`.

    Returns:
        `Encoded`, with annotations float [B, T_x, n] and no backward states.

    Reference:
        Cho et al. 2014, arXiv 1406.1078; Sutskever et al. 2014, arXiv 1409.3215.
    """

    directions = (False,)
