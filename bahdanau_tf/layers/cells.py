"""Recurrent cells: those of the papers and of cuDNN.

Every cell has the same three methods:

    call(inputs, states) -> output, states    one step, as a Keras cell
    project(inputs) -> projected              the part that needs inputs alone
    step(projected, states) -> states         the part that needs the states

so a layer projects a whole sequence with one matrix product, and its loop runs `step` alone.
Other terms may be added to what `project` returns: a decoder adds C c_i, the context's term of
the gates, before `step`.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.layers.gru import gru_step, kernel_parts
from bahdanau_tf.layers.weights import (
    ConfiguredLayer,
    Initializer,
    fresh,
    initial,
    linear,
    paper_kernel,
    per_block,
)
from bahdanau_tf.system.ranges import size
from bahdanau_tf.system.tensors import Nest, Shape

States = tuple[tf.Tensor, ...]


class Cell(ConfiguredLayer):
    """Base class of all cells: a Keras cell made of `project` and `step`.

    A subclass defines these two and `state_size`, and sets `projection_size` and the attributes
    below.

    Attributes:
        units: n, the width of the output.
        state_count: Number of states; the first is the output.
        context_as_input: Whether a decoder's context is a part of the input; if not, the decoder
            adds C c_i to the projection.
    """

    units: int
    state_count: int
    context_as_input: bool

    @property
    def state_size(self) -> int | list[int]:
        """Sizes of the states, as `keras.layers.RNN` wants them."""
        raise NotImplementedError

    @property
    def output_size(self) -> int:
        """n."""
        return self.units

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """The part that needs inputs alone, [..., m] -> [..., p]."""
        raise NotImplementedError

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        """One step of the recurrence.

        Args:
            projected: float [..., p], what `project` returned.
            states: Tuple of float [..., n]; the first is the output.
            dropped: For each state a dropout mask, float [..., n], the same at all steps; that
                of the output is applied to h_{t-1} in the recurrent products. Or None.

        Returns:
            The new states, a tuple like `states`.
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
        return [
            tf.zeros((batch_size, size), self.compute_dtype)
            for size in tf.nest.flatten(self.state_size)
        ]


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
        kernel_initializer: Initializer = None,
        recurrent_initializer: Initializer = "orthogonal",
        bias_initializer: Initializer = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = size(type(self).__name__, "units", units)
        self.kernel_initializer = fresh(kernel_initializer or paper_kernel())
        self.recurrent_initializer = fresh(recurrent_initializer or "orthogonal")
        self.bias_initializer = fresh(bias_initializer)

    @property
    def state_size(self) -> int | list[int]:
        """Sizes of the states, as `keras.layers.RNN` wants them."""
        if self.state_count == 1:
            return self.units
        return [self.units] * self.state_count

    @property
    def projection_size(self) -> int:
        """Width of what `project` returns: gates x n."""
        return self.gates * self.units

    def build(self, input_shape: Shape) -> None:
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.projection_size),
            initializer=per_block(self.kernel_initializer, self.gates),
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.units, self.projection_size),
            initializer=per_block(self.recurrent_initializer, self.gates),
        )
        self.bias = self.add_weight(
            name="bias", shape=(self._bias_size(),), initializer=initial(self.bias_initializer)
        )

    def _bias_size(self) -> int:
        return self.projection_size

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """W x + b for all gates, [..., m] -> [..., gates x n]."""
        return linear(inputs, self.kernel, self.bias)


def _visible(states: States, dropped: States | None) -> tf.Tensor:
    """h_{t-1} as the recurrent products take it: after dropout."""
    return states[0] if dropped is None else states[0] * dropped[0]


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class TanhCell(RecurrentCell):
    """The plain recurrence.

        h_t = tanh(W x_t + U h_{t-1} + b)

    Args, call arguments: see `RecurrentCell`.
    """

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        visible = _visible(states, dropped)
        recurrent = linear(visible, self.recurrent_kernel)
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
        use_gate_bias: Whether z and r have biases too.
        **kwargs: Initializers of `RecurrentCell`.

    Call arguments: see `RecurrentCell`.

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, appendix A.1.1 and A.2.
    """

    gates = 3
    gate_names = ("update", "reset", None)
    update_equation = "s' = (1 - update) ∘ s + update ∘ candidate(reset ∘ s)"

    def __init__(self, units: int, use_gate_bias: bool = False, **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        self.use_gate_bias = use_gate_bias

    def _bias_size(self) -> int:
        return self.projection_size if self.use_gate_bias else self.units

    @property
    def projected_bias(self) -> tf.Tensor:
        """The biases of all gates, float [3n]; 0 where there is none."""
        missing = self.projection_size - self._bias_size()
        return tf.pad(tf.convert_to_tensor(self.bias), [[missing, 0]])

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        return linear(inputs, self.kernel, self.projected_bias)

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        (state,) = states
        visible = _visible(states, dropped)
        kernel = tf.convert_to_tensor(self.recurrent_kernel)
        new, _ = gru_step(projected, state, visible, kernel_parts(kernel))
        return (new,)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class GRUResetAfterCell(RecurrentCell):
    """The gated unit of cuDNN: r_t is applied after the recurrent product.

        z_t  = σ(W_z x_t + U_z h_{t-1} + b_z)
        r_t  = σ(W_r x_t + U_r h_{t-1} + b_r)
        h~_t = tanh(W x_t + b + r_t ∘ (U h_{t-1} + b_U))
        h_t  = z_t ∘ h_{t-1} + (1 - z_t) ∘ h~_t

    The same numbers as `keras.layers.GRUCell(reset_after=True)`, whose gate order and convention
    for z (it keeps the *old* state) it follows, so weights can be carried to and from a cuDNN
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
        self.recurrent_bias = self.add_weight(
            name="recurrent_bias",
            shape=(self.projection_size,),
            initializer=fresh(initial(self.bias_initializer)),
        )

    def step(self, projected: tf.Tensor, states: States, dropped: States | None = None) -> States:
        (state,) = states
        n = self.units
        recurrent = linear(_visible(states, dropped), self.recurrent_kernel, self.recurrent_bias)
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
        memory = states[1]
        visible = _visible(states, dropped)
        gates = projected + linear(visible, self.recurrent_kernel)
        i, f, c, o = tf.split(gates, 4, axis=-1)
        memory = tf.sigmoid(f) * memory + tf.sigmoid(i) * tf.tanh(c)
        return tf.sigmoid(o) * tf.tanh(memory), memory
