"""Cells that contain cells: a cell of Keras, and cells on top of one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.layers.cells import Cell, States
from bahdanau_tf.layers.weights import build_once, described, deserialized
from bahdanau_tf.system.tensors import Shape


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class KerasCell(Cell):
    """A cell of `keras.layers.RNN` with `project` and `step`.

    Encoders and decoders wrap a Keras cell by themselves. Such a cell does all its work in one
    call, so its input products stay in the loop, and a decoder's context is a part of its input,
    [E y_i ; c_i]. This is the same function as with a cell of this package: the Keras cell's
    kernel is W stacked on C.

    Args:
        cell: `keras.layers.GRUCell`, `LSTMCell`, `SimpleRNNCell` or any layer with a
            `state_size` and `call(inputs, states)` that returns its output and its new states;
            the first state must be the output.

    Call arguments:
        inputs: float [batch, m].
        states: float [batch, n], one or as many as the cell has.

    Raises:
        ValueError: `cell` is not such a cell, or has dropout of its own.
    """

    context_as_input = True

    def __init__(self, cell: keras.layers.Layer, **kwargs: Any) -> None:
        cell = deserialized(cell)
        if not is_keras_cell(cell):
            raise ValueError(
                f"KerasCell: cell is {described(cell)}, wanted a cell of "
                "keras.layers.RNN whose first state is its output"
            )
        for name in ("dropout", "recurrent_dropout"):
            if getattr(cell, name, 0):
                raise ValueError(
                    f"KerasCell: {name} of the {type(cell).__name__} is "
                    f"{getattr(cell, name)}, wanted 0"
                )
        super().__init__(**{"dtype": cell.dtype_policy, **kwargs})
        self.cell = cell
        sizes = tf.nest.flatten(cell.state_size)
        self.units, self.state_count = sizes[0], len(sizes)

    @property
    def state_size(self) -> int | list[int]:
        """Sizes of the states, as `keras.layers.RNN` wants them."""
        sizes = list(tf.nest.flatten(self.cell.state_size))
        return sizes if self.state_count > 1 else self.units

    def build(self, input_shape: Shape) -> None:
        self.projection_size = input_shape[-1]
        build_once(self.cell, input_shape)

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The inputs, padded with zeros where the context will be added."""
        missing = self.projection_size - inputs.shape[-1]
        return tf.pad(inputs, [[0, 0]] * (inputs.shape.rank - 1) + [[0, missing]])

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        """One step; see `Cell.step`.

        Raises:
            ValueError: `dropped` is not None, the cell's output is not its first state, or has
                another dtype than its inputs.
        """
        name = type(self.cell).__name__
        if dropped is not None:
            raise ValueError(
                f"KerasCell: {name} does not support state_dropout, wanted 0 "
                "or a cell of this package"
            )
        rows = [tf.reshape(x, [-1, x.shape[-1]]) for x in (projected, *states)]
        output, new = self.cell(rows[0], rows[1:])
        flat = tf.nest.flatten(new)
        if output is not flat[0]:
            raise ValueError(
                f"KerasCell: the output of {name} is not its first state, "
                "wanted a cell that returns the same tensor as both"
            )
        if output.dtype != projected.dtype:
            raise ValueError(
                f"KerasCell: {name} computes in {output.dtype.name}, and its inputs are "
                f"{projected.dtype.name}; wanted a cell with the dtype of the model"
            )
        batch = tf.shape(projected)[:-1]
        return tuple(tf.reshape(x, tf.concat([batch, x.shape[-1:]], 0)) for x in flat)

    def get_initial_state(self, batch_size: int | tf.Tensor) -> list[tf.Tensor]:
        """The cell's own initial states, zeros if it has none."""
        if hasattr(self.cell, "get_initial_state"):
            return list(tf.nest.flatten(self.cell.get_initial_state(batch_size)))
        return super().get_initial_state(batch_size)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class StackedCells(Cell):
    """Cells on top of one another: each cell's output is the next one's input.

    The states are those of all cells, the *top* cell's first, so that the first state is the
    output, as in every cell of this package.

    Args:
        cells: Cells from the bottom to the top, of this package or of Keras.

    Call arguments:
        inputs: float [batch, m].
        states: States of the top cell, ..., of the bottom cell.
    """

    def __init__(self, cells: Sequence[keras.layers.Layer], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not cells:
            raise ValueError("StackedCells: cells is empty, wanted one or more")
        self.depth = len(cells)
        for index, cell in enumerate(cells):
            # Attributes, not a list: checkpoints and exports of TensorFlow lack the weights of
            # Keras layers that are in a list.
            setattr(self, f"cell_{index}", as_cell("StackedCells", cell))
        self.units = self.cells[-1].units
        self.state_count = sum(cell.state_count for cell in self.cells)
        self.context_as_input = self.cells[0].context_as_input

    @property
    def cells(self) -> list[Cell]:
        """The cells from the bottom to the top."""
        return [getattr(self, f"cell_{index}") for index in range(self.depth)]

    @property
    def state_size(self) -> list[int]:
        """Sizes of the states, top cell first."""
        return [size for cell in reversed(self.cells) for size in tf.nest.flatten(cell.state_size)]

    def get_initial_state(self, batch_size: int | tf.Tensor) -> list[tf.Tensor]:
        """The cells' own initial states, top cell first."""
        return [
            state for cell in reversed(self.cells) for state in cell.get_initial_state(batch_size)
        ]

    def build(self, input_shape: Shape) -> None:
        width = input_shape[-1]
        for cell in self.cells:
            build_once(cell, (None, width))
            width = cell.units
        self.projection_size = self.cells[0].projection_size

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The bottom cell's projection."""
        return self.cells[0].project(inputs)

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        """One step through all cells; see `Cell.step`."""
        new: States = ()
        end = len(states)
        for index, cell in enumerate(self.cells):
            start = end - cell.state_count
            if index:
                projected = cell.project(new[0])
            own = slice(start, end)
            masks = None if dropped is None else dropped[own]
            new = cell.step(projected, states[own], masks) + new
            end = start
        return new


def is_keras_cell(cell: object) -> bool:
    """Whether it is one cell for `keras.layers.RNN`, not a stack of cells."""
    several = (keras.layers.RNN, keras.layers.StackedRNNCells)
    return (
        isinstance(cell, keras.layers.Layer)
        and hasattr(cell, "state_size")
        and not isinstance(cell, several)
    )


def as_cell(owner: str, cell: object) -> Cell:
    """Returns a cell with `project` and `step`; wraps a cell of Keras.

    Args:
        owner: Name of the class with the argument `cell`, for the error.
        cell: A cell of this package or of Keras, or its config.

    Raises:
        ValueError: It is neither.
    """
    layer: Cell = deserialized(cell)
    is_cell = all(hasattr(layer, name) for name in ("project", "step", "state_size"))
    if is_cell and not isinstance(layer, type):
        return layer
    if is_keras_cell(layer):
        return KerasCell(layer)
    raise ValueError(
        f"{owner}: cell is {described(layer)}, wanted a cell such as "
        "GRUCell or keras.layers.GRUCell, or several in StackedCells"
    )


def new_cell(cell: Cell) -> Cell:
    """A new cell like this one, with weights and a name of its own."""
    config = apart(cell.get_config())
    config.pop("name", None)  # Keras then gives it one
    new: Cell = type(cell).from_config(config)
    return new


def apart(config: object) -> Any:
    """A config without the ids by which Keras makes several layers one."""
    if isinstance(config, dict):
        return {key: apart(value) for key, value in config.items() if key != "shared_object_id"}
    if isinstance(config, list):
        return [apart(value) for value in config]
    return config
