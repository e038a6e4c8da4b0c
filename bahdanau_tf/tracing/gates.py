"""The gates of a decoder's update, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from bahdanau_tf.layers import StackedCells
from bahdanau_tf.layers.cells import Cell
from bahdanau_tf.layers.cells import States
from bahdanau_tf.layers.weights import linear
from bahdanau_tf.tracing.data import Gate


# Both are asked of a class itself: a subclass may compute otherwise.
def gate_convention(cell: Cell) -> str:
    """The meaning of a cell's gates, as an equation; "" without gates.

    Layers of a deep cell whose equations differ have a line each.
    """
    equations = {
        f"layer {number}": vars(type(layer)).get("update_equation", "")
        for number, layer in enumerate(_layers(cell), start=1)
        if _gate_names(layer)
    }
    if len(set(equations.values())) <= 1:
        return str(next(iter(equations.values()), ""))
    return "\n".join(f"{layer}: {it}" for layer, it in equations.items())


def _gate_names(cell: Cell) -> tuple[str | None, ...]:
    return tuple(vars(type(cell)).get("gate_names", ()))


def _layers(cell: Cell) -> list[Cell]:
    """The layers of a cell, the bottom one first."""
    return cell.cells if isinstance(cell, StackedCells) else [cell]


def update(
    cell: Cell, projected: tf.Tensor, states: States
) -> tuple[States, dict[str, Gate]]:
    """One update of all layers of a cell, and its gates.

    Args:
        cell: The cell.
        projected: float [1, p], what the cell's `step` takes.
        states: The cell's states, float [1, n] each.

    Returns:
        The new states, and the gates by name; for a deep cell "layer 1 input"
        and so on, from the bottom.
    """
    layers = _layers(cell)
    gates: dict[str, Gate] = {}
    new: States = ()
    end = len(states)
    for number, layer in enumerate(layers, start=1):
        start = end - layer.state_count  # the top layer's states come first
        own = states[start:end]
        if new:
            projected = layer.project(new[0])
        prefix = f"layer {number} " if len(layers) > 1 else ""
        for name, gate in _opened(layer, projected, own[0]):
            gates[prefix + name] = gate
        new = layer.step(projected, own) + new
        end = start
    return new, gates


def _opened(
    cell: Cell, projected: tf.Tensor, state: tf.Tensor
) -> Iterator[tuple[str, Gate]]:
    """Yields σ(W x + U h + b) of each gate of a cell, with its name."""
    names = _gate_names(cell)
    if not names:
        return
    bias = getattr(cell, "recurrent_bias", None)
    total = projected + linear(state, cell.recurrent_kernel, bias)
    for name, block in zip(names, tf.split(total, len(names), -1), strict=True):
        if name is not None:
            # A sum of many numbers in half precision stops growing.
            opened = tf.sigmoid(tf.cast(block, tf.float32)).numpy()
            yield (
                name,
                Gate(float(opened.mean()), float(np.linalg.norm(opened))),
            )
