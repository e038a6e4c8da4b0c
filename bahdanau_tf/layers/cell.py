"""A recurrent cell whose input projection can be done once for all steps.

Every cell has the same three methods:

    call(inputs, states) -> output, states    one step, as a Keras cell
    project(inputs) -> projected              the part that needs inputs alone
    step(projected, states) -> states         the part that needs the states

so a layer projects a whole sequence with one matrix product, and its loop runs
`step` alone. Other terms may be added to what `project` returns: a decoder adds
C c_i, the context's term of the gates, before `step`.
"""

from __future__ import annotations

import keras
import tensorflow as tf

from bahdanau_tf.system.tensors import Nest

States = tuple[tf.Tensor, ...]


class Cell(keras.layers.Layer):
    """Base class of all cells: a Keras cell made of `project` and `step`.

    A subclass defines these two and `state_size`, and sets `projection_size`
    and the attributes below.

    Attributes:
        units: n, the width of the output.
        state_count: Number of states; the first is the output.
        context_as_input: Whether a decoder's context is a part of the input;
            if not, the decoder adds C c_i to the projection.
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

    def step(
        self,
        projected: tf.Tensor,
        states: States,
        dropped: States | None = None,
    ) -> States:
        """One step of the recurrence.

        Args:
            projected: float [..., p], what `project` returned.
            states: Tuple of float [..., n]; the first is the output.
            dropped: For each state a dropout mask, float [..., n], the same
                at all steps; that of the output is applied to h_{t-1} in the
                recurrent products. Or None.

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
