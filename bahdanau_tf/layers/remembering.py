"""Attentions that remember: their weights depend on those of the step before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import tensorflow as tf
from keras import ops

from bahdanau_tf.layers import weights
from bahdanau_tf.layers.attention import Attention, BahdanauAttention, Memory, as_attention, exact
from bahdanau_tf.layers.recurrent import Mask
from bahdanau_tf.system.ranges import size
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class LocationAttention(BahdanauAttention):
    """Additive attention that sees where the previous step attended.

        f_i  = F * α_{i-1}                                         (section 2.2)
        e_ij = w · tanh(W s_{i-1} + V h_j + U f_ij + b)            (section 2.2)
        α_ij = exp(e_ij) / Σ_k exp(e_ik),  c_i = Σ_j α_ij h_j      (section 2.1)

    F * α is a convolution over the source: f_ij are k numbers computed from the weights of the r
    positions around j. Before the first step α_0 = 0. W, V and w are the W_a, U_a and v_a of
    `BahdanauAttention`.

    Args:
        units: n'.
        filters: k.
        kernel_size: r.
        use_bias: Whether to add b.
        kernel_initializer: Initializer of W and V; that of U and F is N(0, 0.01²).
        energy_initializer, normalize: As in `BahdanauAttention`, for w.

    Call arguments, masking and returns: see `BahdanauAttention`. The state of `step` is α_{i-1},
    float32 [B, T_x] or [B, K, T_x] (float64 in a float64 model); a call is a first step.

    Reference:
        Chorowski, Bahdanau, Serdyuk, Cho and Bengio 2015, Attention-Based Models for Speech
        Recognition, arXiv 1506.07503, section 2.2. It uses k = 10, r = 201 for frames of speech;
        words need fewer positions.
    """

    def __init__(
        self,
        units: int,
        filters: int = 10,
        kernel_size: int = 11,
        use_bias: bool = True,
        kernel_initializer: weights.Initializer = None,
        energy_initializer: weights.Initializer = None,
        normalize: bool = False,
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        own = use_bias, kernel_initializer, energy_initializer, normalize
        super().__init__(units, *own, **kwargs)
        self.filters = size("LocationAttention", "filters", filters)
        self.kernel_size = size("LocationAttention", "kernel_size", kernel_size)

    def build(self, query_shape: Shape, memory_shape: Sequence[Shape]) -> None:
        filters, shape = (self.kernel_size, 1, self.filters), (self.filters, self.units)
        self.location_filters = self.new_weight("location_filters", filters, weights.paper_kernel())
        self.location_kernel = self.new_weight("location_kernel", shape, weights.paper_kernel())
        super().build(query_shape, memory_shape)

    def initial_state(self, memory: Memory) -> tf.Tensor:
        """α_0 = 0."""
        return ops.zeros_like(_exact_column(memory))

    def energies(self, query: tf.Tensor, keys: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        """e_ij, given α_{i-1}."""
        shape = tf.shape(state)
        rows = tf.reshape(state, [-1, shape[2], 1])
        filters = tf.cast(self.location_filters, state.dtype)
        features = tf.nn.conv1d(rows, filters, stride=1, padding="SAME")
        located = weights.linear(tf.cast(features, keys.dtype), self.location_kernel)
        located = tf.reshape(located, tf.concat([shape, [self.units]], 0))
        return self.score(query, keys[:, None] + located)

    def align(self, energies: tf.Tensor, mask: Mask, state: Nest) -> tuple[tf.Tensor, Nest]:
        """α_i, which the next step sees."""
        alignment, _ = super().align(energies, mask, state)
        return alignment, alignment


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class MonotonicAttention(Attention):
    """Attention that moves over the source from left to right, with any score.

        e_ij = score(s_{i-1}, h_j) + r
        p_ij = σ(e_ij)                                      (section 2.2)
        q_ij = (1 - p_i,j-1) q_i,j-1 + α_{i-1,j}            (section 2.3)
        α_ij = p_ij q_ij,  c_i = Σ_j α_ij h_j,  α_0 = 1, 0, 0, ..

    α_ij is the probability that step i attends to position j: a reader starts where the previous
    step attended, stops at each position with probability p_ij, and otherwise moves on to the next
    one. If it passes the last word, no word is attended to: the weights of a step sum to at most 1.
    While all e are 0, as at first, it moves one word per step.

    The same expectation is used in training, scores and search. (A hard choice in search needs
    noise in training, section 2.5, which is not implemented.) The recurrence over j is computed
    in parallel, with S_j = Σ_{k<j} log(1 - p_ik), by sums of exponentials that cannot overflow:

        log q_ij = S_j + log Σ_{k≤j} exp(log α_{i-1,k} - S_k)

    Args:
        units: n' of the score.
        content: An attention without a state, whose `score` is used instead of
            `BahdanauAttention(units)`'s.
        kernel_initializer: Initializer of the kernels of that `BahdanauAttention`.
        bias_initializer: Initializer of r; a negative one lets the reader move faster.

    Call arguments, state and returns: see `LocationAttention`. Masked positions get weight 0; so
    do all positions of a row without any real one.

    Raises:
        ValueError: `content` is not such an attention.

    Reference:
        Raffel, Luong, Liu, Weiss and Eck 2017, Online and Linear-Time Attention by Enforcing
        Monotonic Alignments, arXiv 1704.00784.
    """

    def __init__(
        self,
        units: int,
        content: Attention | None = None,
        kernel_initializer: weights.Initializer = None,
        bias_initializer: weights.Initializer = "zeros",
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.units = size("MonotonicAttention", "units", units)
        self.kernel_initializer = kernel_initializer and weights.fresh(kernel_initializer)
        self.bias_initializer = weights.fresh(bias_initializer)
        self.content = as_attention("MonotonicAttention", content) or BahdanauAttention(
            units, kernel_initializer=self.kernel_initializer, dtype=self.dtype_policy
        )
        is_score = isinstance(self.content, Attention)
        if not is_score or type(self.content).initial_state is not Attention.initial_state:
            raise ValueError(
                f"MonotonicAttention: content is {type(self.content).__name__}, wanted an "
                "attention without a state, such as GeneralAttention"
            )

    def build(self, query_shape: Shape, memory_shape: Sequence[Shape]) -> None:
        weights.build_once(self.content, query_shape, memory_shape)
        self.bias = self.new_weight("bias", (), self.bias_initializer)
        weights.stay_frozen(self)

    def initial_state(self, memory: Memory) -> tf.Tensor:
        """α_0: all at the first word."""
        ones = ops.ones_like(_exact_column(memory))
        return ops.cast(ops.equal(ops.cumsum(ones, 1), 1), ones.dtype)

    def project(self, annotations: tf.Tensor) -> tf.Tensor | tuple[()]:
        """The keys of the score."""
        return self.content.project(annotations)

    def score(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        energies = exact(self.content.score(query, keys))
        return energies + tf.cast(self.bias, energies.dtype)

    def align(self, energies: tf.Tensor, mask: Mask, state: Nest) -> tuple[tf.Tensor, Nest]:
        """α_i from p_i and α_{i-1}."""
        if mask is not None:
            energies = tf.where(mask, energies, energies.dtype.min)  # p = 0
        passed = tf.cumsum(-tf.nn.softplus(energies), -1, exclusive=True)  # S
        before = tf.math.log(tf.maximum(exact(state), 1e-30))  # layers.RNN casts states
        reached = passed + tf.math.cumulative_logsumexp(before - passed, -1)
        alignment = tf.sigmoid(energies) * tf.exp(reached)
        return alignment, alignment


def _exact_column(memory: Memory) -> tf.Tensor:
    """[B, T_x] in the dtype of α; also for an input of a functional model."""
    column = memory.annotations[..., 0]
    return ops.cast(column, keras.backend.result_type(column.dtype, "float32"))
