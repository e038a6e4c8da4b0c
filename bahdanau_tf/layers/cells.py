"""Recurrent cells: those of the papers and of cuDNN, cells of Keras, and cells in a stack.

Every cell has the same three methods:

    call(inputs, states) -> output, states    one step, as a Keras cell
    project(inputs) -> projected              the part that needs inputs alone
    step(projected, states) -> states         the part that needs the states

so a layer projects a whole sequence with one matrix product, and its loop runs `step` alone.
Other terms may be added to what `project` returns: a decoder adds C c_i, the context's term of
the gates, before `step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from bahdanau_tf.layers import weights
from bahdanau_tf.layers.gru import gru_step, kernel_parts
from bahdanau_tf.system.ranges import OptionError, size
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

States = tuple[tf.Tensor, ...]


class Cell(weights.ConfiguredLayer):
    """Base class of all cells: a Keras cell made of `project` and `step`.

    A subclass defines these two, and sets `projection_size` and the attributes below.
    """

    units: int  # n, the width of the output
    state_count: int  # the first state is the output
    # Whether a decoder's context is a part of the input; if not, it adds C c_i to the projection.
    context_as_input: bool

    @property
    def state_size(self) -> int | list[int]:
        """Sizes of the states, as `keras.layers.RNN` wants them."""
        return self.units if self.state_count == 1 else [self.units] * self.state_count

    @property
    def output_size(self) -> int:
        """n."""
        return self.units

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The part that needs inputs alone: [..., m] -> [..., p]."""
        raise NotImplementedError

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        """One step of the recurrence: the new states, a tuple of float [..., n].

        `projected` is float [..., p]. `dropped` has a dropout mask for each state, float [...,
        n], the same at all steps, or is None; that of the output is applied to h_{t-1} in the
        recurrent products.
        """
        raise NotImplementedError

    def call(
        self, inputs: tf.Tensor, states: Nest, training: bool = False
    ) -> tuple[tf.Tensor, Nest]:
        flat = tuple(tf.nest.flatten(states))
        new = self.step(self.project(inputs), flat)
        return new[0], tf.nest.pack_sequence_as(states, new)

    def get_initial_state(self, batch_size: int | tf.Tensor) -> list[tf.Tensor]:
        """Zeros, one [batch, n] for each state."""
        sizes = tf.nest.flatten(self.state_size)
        return [tf.zeros((batch_size, size), self.compute_dtype) for size in sizes]


class RecurrentCell(Cell):
    """Base class of the cells here: W, U and b for some gates, and config.

    A subclass sets `gates` and `state_count`, and defines `step`. If its gates are σ(W x + U h +
    b), `gate_names` and `update_equation` let `trace` show them. They hold for the class itself,
    not for classes derived from it.

    Args:
        units: n.
        kernel_initializer: Initializer of each input matrix W [m, n].
        recurrent_initializer: Initializer of each recurrent matrix U [n, n].
        bias_initializer: Initializer of the biases.

    Call arguments:
        inputs: float [batch, m].
        states: float [batch, n], h_{t-1}; a list if there are several.

    Raises:
        ValueError: `units` is less than 1.
    """

    gates = 1
    state_count = 1
    context_as_input = False
    gate_names: tuple[str | None, ...] = ()  # as in the kernel; None: no gate
    update_equation = ""

    def __init__(
        self,
        units: int,
        kernel_initializer: weights.Initializer = None,
        recurrent_initializer: weights.Initializer = "orthogonal",
        bias_initializer: weights.Initializer = "zeros",
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.units = size(type(self).__name__, "units", units)
        self.kernel_initializer = weights.for_kernel(kernel_initializer)
        self.recurrent_initializer = weights.fresh(recurrent_initializer or "orthogonal")
        self.bias_initializer = weights.fresh(bias_initializer)

    @property
    def projection_size(self) -> int:
        """Width of what `project` returns: gates x n."""
        return self.gates * self.units

    def build(self, input_shape: Shape) -> None:
        wide = self.projection_size
        start = weights.per_block(self.kernel_initializer, self.gates)
        self.kernel = self.add_weight((input_shape[-1], wide), start, name="kernel")
        start = weights.per_block(self.recurrent_initializer, self.gates)
        self.recurrent_kernel = self.add_weight((self.units, wide), start, name="recurrent_kernel")
        self.bias = self.new_weight("bias", (self._bias_size(),), self.bias_initializer)

    def _bias_size(self) -> int:
        return self.projection_size

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """W x + b for all gates, [..., m] -> [..., gates x n]."""
        return weights.linear(inputs, self.kernel, self.bias)


def _visible(states: States, dropped: States | None) -> tf.Tensor:
    """h_{t-1} after dropout, the input of the recurrent products."""
    return states[0] if dropped is None else states[0] * dropped[0]


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class TanhCell(RecurrentCell):
    """The plain recurrence.

        h_t = tanh(W x_t + U h_{t-1} + b)

    Args, call arguments: see `RecurrentCell`.
    """

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        recurrent = weights.linear(_visible(states, dropped), self.recurrent_kernel)
        return (tf.tanh(projected + recurrent),)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class GRUCell(RecurrentCell):
    """The paper's gated unit: r_t is applied before the recurrent product.

        z_t  = σ(W_z x_t + U_z h_{t-1})                     (A.1.1, A.2.1)
        r_t  = σ(W_r x_t + U_r h_{t-1})
        h~_t = tanh(W x_t + U [r_t ∘ h_{t-1}] + b)
        h_t  = (1 - z_t) ∘ h_{t-1} + z_t ∘ h~_t

    z gates the *new* state, as in the paper: it is one minus the gate of `keras.layers.GRUCell`
    and of most textbooks, which is the same function with W_z and U_z negated. Like the original
    code, the gates have no bias unless `use_gate_bias`.

    Weights: `kernel` [m, 3n] = [W_z | W_r | W], `recurrent_kernel` [n, 3n] = [U_z | U_r | U],
    `bias` [n], or [3n] with gate biases.

    Args:
        units: n.
        use_gate_bias: Whether z and r also have biases.
        kernel_initializer: As the other initializers, see `RecurrentCell`.

    Call arguments: see `RecurrentCell`.

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, appendix A.1.1 and A.2.
    """

    gates = 3
    gate_names = ("update", "reset", None)
    update_equation = "s' = (1 - update) ∘ s + update ∘ candidate(reset ∘ s)"

    def __init__(
        self,
        units: int,
        use_gate_bias: bool = False,
        kernel_initializer: weights.Initializer = None,
        recurrent_initializer: weights.Initializer = "orthogonal",
        bias_initializer: weights.Initializer = "zeros",
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        initializers = kernel_initializer, recurrent_initializer, bias_initializer
        super().__init__(units, *initializers, **kwargs)
        self.use_gate_bias = use_gate_bias

    def _bias_size(self) -> int:
        return self.projection_size if self.use_gate_bias else self.units

    @property
    def projected_bias(self) -> tf.Tensor:
        """The biases of all gates, float [3n]; 0 where there is none."""
        missing = self.projection_size - self._bias_size()
        return tf.pad(tf.convert_to_tensor(self.bias), [[missing, 0]])

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        return weights.linear(inputs, self.kernel, self.projected_bias)

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        kernels = kernel_parts(tf.convert_to_tensor(self.recurrent_kernel))
        new, _ = gru_step(projected, states[0], _visible(states, dropped), kernels)
        return (new,)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class GRUResetAfterCell(RecurrentCell):
    """The gated unit of cuDNN: r_t is applied after the recurrent product.

        z_t  = σ(W_z x_t + U_z h_{t-1} + b_z)
        r_t  = σ(W_r x_t + U_r h_{t-1} + b_r)
        h~_t = tanh(W x_t + b + r_t ∘ (U h_{t-1} + b_U))
        h_t  = z_t ∘ h_{t-1} + (1 - z_t) ∘ h~_t

    It gives the same numbers as `keras.layers.GRUCell(reset_after=True)` and follows its gate order
    and convention for z (it keeps the *old* state), so weights can be moved to and from a cuDNN
    kernel.

    Weights: `kernel` [m, 3n], `recurrent_kernel` [n, 3n], `bias` [3n] and `recurrent_bias` [3n],
    each in the order z, r, h.

    Args, call arguments: see `RecurrentCell`.
    """

    gates = 3
    gate_names = ("update", "reset", None)
    update_equation = "s' = update ∘ s + (1 - update) ∘ candidate(reset ∘ U s)"

    def build(self, input_shape: Shape) -> None:
        super().build(input_shape)
        shape, start = (self.projection_size,), weights.fresh(self.bias_initializer)
        self.recurrent_bias = self.new_weight("recurrent_bias", shape, start)

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        (state,), n = states, self.units
        visible = _visible(states, dropped)
        recurrent = weights.linear(visible, self.recurrent_kernel, self.recurrent_bias)
        gates = tf.sigmoid(projected[..., : 2 * n] + recurrent[..., : 2 * n])
        update, reset = tf.split(gates, 2, axis=-1)
        candidate = tf.tanh(projected[..., 2 * n :] + reset * recurrent[..., 2 * n :])
        return (candidate + update * (state - candidate),)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class LSTMCell(RecurrentCell):
    """Long short-term memory without peepholes.

        i, f, o = σ(W_{i,f,o} x_t + U_{i,f,o} h_{t-1} + b_{i,f,o})
        c~_t    = tanh(W_c x_t + U_c h_{t-1} + b_c)
        c_t     = f ∘ c_{t-1} + i ∘ c~_t
        h_t     = o ∘ tanh(c_t)

    Weights: `kernel` [m, 4n], `recurrent_kernel` [n, 4n], `bias` [4n], in Keras' order i, f, c,
    o. All biases start at zero, the forget gate's too.

    Args, call arguments: see `RecurrentCell`; the states are h_{t-1} and c_{t-1}.

    Reference:
        Graves 2013, arXiv 1308.0850, as used by Sutskever et al. 2014.
    """

    gates = 4
    gate_names = ("input", "forget", None, "output")
    update_equation = "m' = forget ∘ m + input ∘ candidate, s' = output ∘ tanh(m')"
    state_count = 2

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        gates = projected + weights.linear(_visible(states, dropped), self.recurrent_kernel)
        i, f, c, o = tf.split(gates, 4, axis=-1)
        memory = tf.sigmoid(f) * states[1] + tf.sigmoid(i) * tf.tanh(c)
        return tf.sigmoid(o) * tf.tanh(memory), memory


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class KerasCell(Cell):
    """A cell of `keras.layers.RNN` with `project` and `step`.

    Encoders and decoders wrap Keras cells themselves. Such a cell does all its work in one call, so
    its input products stay in the loop, and a decoder's context is part of its input, [E y_i ;
    c_i]. This is the same function as with a cell of this package: the Keras cell's kernel is W
    stacked on C.

    Args:
        cell: `keras.layers.GRUCell`, `LSTMCell`, `SimpleRNNCell` or any layer with a
            `state_size` and `call(inputs, states)` that returns its output and its new states;
            the first state must be the output.

    Call arguments:
        inputs: float [batch, m].
        states: float [batch, n], one or as many as the cell has.

    Raises:
        ValueError: `cell` is not such a cell, or has its own dropout.
    """

    context_as_input = True

    def __init__(self, cell: keras.layers.Layer, **kwargs: Unpack[weights.KerasOptions]) -> None:
        cell = weights.deserialized(cell)
        if not is_keras_cell(cell):
            wanted = "a cell of keras.layers.RNN whose first state is its output"
            raise OptionError("KerasCell", "cell", weights.described(cell), wanted)
        kind = type(cell).__name__
        for name in ("dropout", "recurrent_dropout"):
            if rate := getattr(cell, name, 0):
                raise ValueError(f"KerasCell: {name} of the {kind} is {rate}, wanted 0")
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
        weights.build_once(self.cell, input_shape)

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The inputs, padded with zeros where the context will be added."""
        missing = self.projection_size - inputs.shape[-1]
        return tf.pad(inputs, [[0, 0]] * (inputs.shape.rank - 1) + [[0, missing]])

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        name = type(self.cell).__name__
        if dropped is not None:
            raise ValueError(
                f"KerasCell: {name} does not support state_dropout, wanted 0 "
                "or a cell of this package"
            )
        inputs, *rows = map(weights.as_rows, (projected, *states))
        output, new = self.cell(inputs, rows)
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

    def __init__(
        self, cells: Sequence[keras.layers.Layer], **kwargs: Unpack[weights.KerasOptions]
    ) -> None:
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
        return [x for cell in reversed(self.cells) for x in cell.get_initial_state(batch_size)]

    def build(self, input_shape: Shape) -> None:
        width = input_shape[-1]
        for cell in self.cells:
            weights.build_once(cell, (None, width))
            width = cell.units
        self.projection_size = self.cells[0].projection_size

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The bottom cell's projection."""
        return self.cells[0].project(inputs)

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        new: States = ()
        end = len(states)
        for index, cell in enumerate(self.cells):
            start = end - cell.state_count
            if index:
                projected = cell.project(new[0])
            masks = None if dropped is None else dropped[start:end]
            new = cell.step(projected, states[start:end], masks) + new
            end = start
        return new


def is_keras_cell(cell: object) -> bool:
    """Whether it is one cell for `keras.layers.RNN`, not a stack of cells."""
    if isinstance(cell, (keras.layers.RNN, keras.layers.StackedRNNCells)):
        return False
    return isinstance(cell, keras.layers.Layer) and hasattr(cell, "state_size")


def as_cell(owner: str, cell: object) -> Cell:
    """A cell with `project` and `step`, given it or its config; wraps a cell of Keras.

    Raises ValueError if `cell`, an argument of the class `owner`, is neither.
    """
    layer: Cell = weights.deserialized(cell)
    is_cell = all(hasattr(layer, name) for name in ("project", "step", "state_size"))
    if is_cell and not isinstance(layer, type):
        return layer
    if is_keras_cell(layer):
        return KerasCell(layer)
    wanted = "a cell such as GRUCell or keras.layers.GRUCell, or several in StackedCells"
    raise OptionError(owner, "cell", weights.described(layer), wanted)


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
