"""Bridges: from the encoder to the decoder's first state and first input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from bahdanau_tf.layers import weights
from bahdanau_tf.layers.cells import States
from bahdanau_tf.layers.recurrent import Encoded
from bahdanau_tf.system.ranges import Refusal

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Bridge(weights.ConfiguredLayer):
    """Computes the decoder's s_0 and the vector used in place of E y_0.

    Args:
        state_size: The decoder cell's `state_size`.
        embedding_dim: m, width of a target embedding.
        kernel_initializer: Initializer of the weights, N(0, 0.01²) if None.

    Call arguments:
        encoded: `Encoded`.

    A subclass defines `build(encoded_shape)` and `call(encoded)`.

    Returns:
        The initial states, a tuple of float [B, n], and the first input, float [B, m].
    """

    def __init__(
        self,
        state_size: int | Sequence[int],
        embedding_dim: int,
        kernel_initializer: weights.Initializer = None,
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.state_size = state_size
        self.embedding_dim = embedding_dim
        self.kernel_initializer = weights.for_kernel(kernel_initializer)
        self.supports_masking = True

    def compute_mask(self, *unused: object) -> None:
        """None: what it returns has no positions."""

    @property
    def sizes(self) -> list[int]:
        """Widths of the initial states."""
        return list(tf.nest.flatten(self.state_size))

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """Shape of the first state, for `summary`."""
        return None, self.sizes[0]

    def _add_start_vector(self) -> None:
        shape = (self.embedding_dim,)
        self.start_vector = self.new_weight("start_vector", shape, self.kernel_initializer)

    def _states(self, encoded: Encoded) -> States:
        raise NotImplementedError(
            f"{type(self).__name__}: there is no call(encoded), wanted a method that returns the "
            "initial states and the first input"
        )

    def _first_input(self, encoded: Encoded) -> tf.Tensor:
        """The learned vector, repeated for the batch: float [B, m]."""
        batch = tf.shape(encoded.annotations)[0]
        vector = tf.cast(self.start_vector, self.compute_dtype)
        return tf.repeat(vector[None], batch, axis=0)

    def call(self, encoded: Encoded) -> tuple[States, tf.Tensor]:
        encoded = Encoded(*encoded)  # a list in a reloaded functional model
        return self._states(encoded), self._first_input(encoded)


class _TanhBridge(Bridge):
    """s_0 = tanh(W_s h + b_s); the vector in place of E y_0 is zero."""

    def _summary(self, encoded: Encoded) -> tf.Tensor:
        raise NotImplementedError

    def build(self, encoded_shape: Encoded) -> None:
        width, units = self._summary(Encoded(*encoded_shape))[-1], self.sizes[0]
        self.kernel = self.new_weight("kernel", (width, units), self.kernel_initializer)
        self.bias = self.new_weight("bias", (units,), "zeros")

    def call(self, encoded: Encoded) -> tuple[States, tf.Tensor]:
        summary = self._summary(Encoded(*encoded))
        state = tf.tanh(weights.linear(summary, self.kernel, self.bias))
        batch = tf.shape(summary)[0]
        others = tuple(tf.zeros([batch, size], state.dtype) for size in self.sizes[1:])
        first = tf.zeros([batch, self.embedding_dim], state.dtype)
        return (state, *others), first


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class BackwardBridge(_TanhBridge):
    """RNNsearch's first state, from the encoder's last backward state.

        s_0 = tanh(W_s h←_1 + b_s)    (A.2.2)

    h←_1 is the backward state at the first word, after the whole sentence was read. There is no
    start symbol: in the first readout the term of the previous word is zero, as in the original
    code (the paper does not say). The bias b_s is in the code, not in the paper. Other states of
    the cell (an LSTM's c_0) are zero.

    Args, call arguments, returns: see `Bridge`.

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, appendix A.2.2.
    """

    def _summary(self, encoded: Encoded) -> tf.Tensor:
        if not encoded.backward_states:
            raise Refusal(
                "BackwardBridge",
                "bridge needs a backward state, which the encoder does not have; "
                "wanted encoder=BidirectionalEncoder or another bridge",
            )
        return encoded.backward_states[-1][0]


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class ForwardBridge(_TanhBridge):
    """RNNencdec's first state, and zeros in place of E y_0.

        s_0 = tanh(W_s h→_Tx + b_s)

    Args, call arguments, returns: see `Bridge`.

    Reference:
        Cho et al. 2014, arXiv 1406.1078, appendix A.1.2.
    """

    def _summary(self, encoded: Encoded) -> tf.Tensor:
        return encoded.forward_states[-1][0]


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class ZeroBridge(Bridge):
    """The textbook's start: s_0 = 0, a learned vector in place of E y_0.

    Args, call arguments, returns: see `Bridge`.
    """

    def build(self, encoded_shape: Encoded) -> None:
        self._add_start_vector()

    def _states(self, encoded: Encoded) -> States:
        batch = tf.shape(encoded.annotations)[0]
        return tuple(tf.zeros([batch, size], self.compute_dtype) for size in self.sizes)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class CopyBridge(Bridge):
    """The encoder's last states are the decoder's first (Sutskever et al.).

    They are those of all encoder layers, the top one first as in `StackedCells`, and must have
    the sizes of the decoder's. A learned start vector is used in place of E y_0.

    Args, call arguments, returns: see `Bridge`.

    Reference:
        Sutskever et al. 2014, arXiv 1409.3215, section 2.
    """

    def build(self, encoded_shape: Encoded) -> None:
        sizes = [shape[-1] for shape in self._states(Encoded(*encoded_shape))]
        if sizes != self.sizes:
            raise Refusal(
                type(self).__name__,
                f"the encoder's states (sizes {sizes}) "
                f"cannot become the cell's (sizes {self.sizes})",
            )
        self._add_start_vector()

    def _states(self, encoded: Encoded) -> States:
        return tuple(state for layer in reversed(encoded.forward_states) for state in layer)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class SentenceBridge(CopyBridge):
    """The textbook's RNNencdec: h_Tx is the first state and the first input.

        s_0 = h→_Tx,  E y_0 = h→_Tx

    So embeddings must be as wide as the encoder's states.

    Args, call arguments, returns: see `Bridge`.
    """

    def build(self, encoded_shape: Encoded) -> None:
        width = self._states(Encoded(*encoded_shape))[0][-1]
        if width != self.embedding_dim:
            raise Refusal(
                "SentenceBridge",
                f"embedding_dim ({self.embedding_dim}) and the encoder's units "
                f"({width}) must be equal, since the sentence's vector is the first input",
            )
        super().build(encoded_shape)

    def _add_start_vector(self) -> None:
        """Adds none: h_Tx is used in its place."""

    def _first_input(self, encoded: Encoded) -> tf.Tensor:
        return encoded.forward_states[-1][0]
