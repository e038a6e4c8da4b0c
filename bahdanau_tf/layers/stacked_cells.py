"""Deep recurrences: several cells on top of one another as one cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.layers.cell import Cell
from bahdanau_tf.layers.cell import States
from bahdanau_tf.layers.keras_cell import as_cell
from bahdanau_tf.layers.weights import build_once
from bahdanau_tf.system.tensors import Shape


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class StackedCells(Cell):
    """Cells on top of one another: each cell's output is the next one's input.

    The states are those of all cells, the *top* cell's first, so that the
    first state is the output, as in every cell of this package.

    Args:
        cells: Cells from the bottom to the top, of this package or of Keras.

    Call arguments:
        inputs: float [batch, m].
        states: States of the top cell, ..., of the bottom cell.
    """

    def __init__(
        self, cells: Sequence[keras.layers.Layer], **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if not cells:
            raise ValueError("StackedCells: cells is empty, wanted one or more")
        self.depth = len(cells)
        for index, cell in enumerate(cells):
            # Attributes, not a list: checkpoints and exports of TensorFlow
            # lack the weights of Keras layers that are in a list.
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
        return [
            size
            for cell in reversed(self.cells)
            for size in tf.nest.flatten(cell.state_size)
        ]

    def get_initial_state(self, batch_size: int | tf.Tensor) -> list[tf.Tensor]:
        """The cells' own initial states, top cell first."""
        return [
            state
            for cell in reversed(self.cells)
            for state in cell.get_initial_state(batch_size)
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

    def step(
        self,
        projected: tf.Tensor,
        states: States,
        dropped: States | None = None,
    ) -> States:
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

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "cells": [
                keras.saving.serialize_keras_object(cell) for cell in self.cells
            ],
        }
