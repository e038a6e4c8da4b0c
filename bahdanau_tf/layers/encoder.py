"""Encoders: from embedded source words to annotations."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from bahdanau_tf.layers.cells import States
from bahdanau_tf.layers.nested_cells import apart, as_cell, new_cell
from bahdanau_tf.layers.recurrent import Recurrent, as_mask
from bahdanau_tf.layers.weights import ConfiguredLayer, build_once, stay_frozen
from bahdanau_tf.system.ranges import size
from bahdanau_tf.system.tensors import Nest, Shape


class Encoded(NamedTuple):
    """The output of an encoder.

    Attributes:
        annotations: float [B, T_x, c]; h_j, c = 2n if bidirectional.
        forward_states: For each layer, the bottom one first, the states after the last real
            word, a tuple of float [B, n]. The first is the output; a residual layer's includes
            what it is added to.
        backward_states: The same of the backward direction, after the first word, which it reads
            last; empty without a backward direction.
        mask: bool [B, T_x], True on real positions; None or () if all are.
    """

    annotations: tf.Tensor
    forward_states: tuple[States, ...]
    backward_states: tuple[States, ...]
    mask: Nest  # a tensor, () or None


class _RecurrentEncoder(ConfiguredLayer):
    """Recurrent layers on top of one another, in one or two directions."""

    directions: tuple[bool, ...] = ()  # the `reverse` of each direction

    def __init__(
        self,
        cell: keras.layers.Layer,
        layers: int = 1,
        state_dropout: float = 0.0,
        residual: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.layers = size(type(self).__name__, "layers", layers)
        cell = as_cell(type(self).__name__, cell)
        self.cell_config = apart(keras.saving.serialize_keras_object(cell))
        self.units: int = cell.units
        self.state_sizes = list(tf.nest.flatten(cell.state_size))
        self.state_dropout = state_dropout
        self.residual = residual
        self.supports_masking = True
        for name, reverse in self._names_and_directions():
            # Attributes, not a list: checkpoints and exports of TensorFlow lack the weights of
            # Keras layers that are in a list.
            recurrent = Recurrent(
                new_cell(cell),
                reverse=reverse,
                state_dropout=state_dropout,
                dtype=self.dtype_policy,
                name=name,
            )
            setattr(self, name, recurrent)

    def _names_and_directions(self) -> list[tuple[str, bool]]:
        return [
            (f"{'backward' if reverse else 'forward'}_{layer}", reverse)
            for layer in range(self.layers)
            for reverse in self.directions
        ]

    @property
    def stack(self) -> list[list[Recurrent]]:
        """For each layer, the bottom one first, the list of its directions."""
        every = [getattr(self, name) for name, _ in self._names_and_directions()]
        width = len(self.directions)
        return [every[i : i + width] for i in range(0, len(every), width)]

    @property
    def annotation_size(self) -> int:
        """c: n for each direction."""
        return self.units * len(self.directions)

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """Shape of the annotations, for `summary`."""
        return None, None, self.annotation_size

    def compute_mask(
        self, embedded: tf.Tensor, mask: tf.Tensor | None = None
    ) -> tuple[tf.Tensor | None]:
        """The annotations, the first of `Encoded`, have the inputs' mask."""
        return (mask,)

    def encoded_shape(self) -> Encoded:
        """The shapes of what `call` returns."""
        states = tuple((None, size) for size in self.state_sizes)
        layers = (states,) * self.layers
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

    def call(
        self, embedded: tf.Tensor, mask: tf.Tensor | None = None, training: bool = False
    ) -> Encoded:
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
            "layers": self.layers,
            "state_dropout": self.state_dropout,
            "residual": self.residual,
        }


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class BidirectionalEncoder(_RecurrentEncoder):
    """The paper's encoder, which reads the source in both directions.

        h→_j = f(E x_j, h→_{j-1})    (A.2.1)
        h←_j = f(E x_j, h←_{j+1})
        h_j  = [h→_j ; h←_j]         (eq. 7)

    The initial states of both directions are zero. They share the embedding, not the weights.

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
