"""Attention: which source positions matter for the next target word.

An attention layer makes the memory of a sentence once from the encoder's output (`memory`) and
reads it at every step (`call`; `step` if it has a state). Memory and state are arguments and
return values; no layer stores tensors of a batch. The memory is not repeated for the K
hypotheses of a beam: queries are [B, K, n], the memory is [B, T_x, .].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import tensorflow as tf

from bahdanau_tf.layers import weights
from bahdanau_tf.layers.recurrent import Encoded, Mask, as_encoded, as_mask
from bahdanau_tf.system.ranges import OptionError, Refusal, size
from bahdanau_tf.system.tensors import Nest, Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Context(weights.ConfiguredLayer):
    """What a decoder reads from the source at every step."""

    has_alignment: bool

    def __init__(self, **kwargs: Unpack[weights.KerasOptions]) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, query_shape: Shape, memory_shape: Sequence[Shape]) -> None:
        """Makes the weights: none, unless a subclass has some."""

    def compute_mask(self, query: tf.Tensor, mask: Mask = None) -> tuple[Mask, None]:
        """The contexts have the mask of the queries, the weights have none."""
        return mask, None

    def initial_state(self, memory: Nest) -> Nest:
        """The state before the first step, a nest of [B, ...]; () without one."""
        return ()

    def step(
        self, query: tf.Tensor, memory: Nest, state: Nest, values: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor | None, Nest]:
        """`call` with a state, [B, ...] or [B, K, ...] as the query; also returns the new state.

        Unlike a call it casts nothing. The first state is that of `initial_state`.
        """
        return *self(query, memory, values), state


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class FixedContext(_Context):
    """RNNencdec's context: the same sentence vector c = h_Tx at every step.

    It takes the place of an attention layer and returns None as weights.

    Call arguments:
        query: float [B, n] or [B, K, n]; only its shape is used.
        memory: float [B, c], from `memory(encoded)`.
        values: float [B, v], returned in place of c.

    Returns:
        context, float [B, c] or [B, K, c], and None.

    Reference:
        Cho et al. 2014, arXiv 1406.1078; Bahdanau et al. 2015, section 2.1.
    """

    has_alignment = False

    def context_size(self, encoded_shape: Encoded) -> int:
        """n, the width of h_Tx."""
        return int(encoded_shape.forward_states[-1][0][-1])

    def memory(self, encoded: Encoded) -> tf.Tensor:
        """h_Tx, the top layer's last forward state."""
        encoded = as_encoded(type(self).__name__, encoded)
        return encoded.forward_states[-1][0]

    def call(
        self, query: tf.Tensor, memory: tf.Tensor, values: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, None]:
        context = memory if values is None else values
        if query.shape.rank == 2:
            return context, None
        shape = tf.concat([tf.shape(query)[:2], tf.shape(context)[1:]], 0)
        return tf.broadcast_to(context[:, None], shape), None


class Memory(NamedTuple):
    """What an attention layer reads.

    Attributes:
        annotations: float [B, T_x, c], h_1 .. h_Tx.
        keys: float [B, T_x, n'], the annotations as `score` takes them; () or None if the
            reading layer must compute them.
        mask: bool [B, T_x], True on real source positions; () or None if all are. (Keras before
            3.13 cannot build a layer that is given None.)
    """

    annotations: tf.Tensor
    keys: Nest  # a tensor, () or None
    mask: Nest


class Attention(_Context):
    """Weights positions by a score and averages their annotations.

        α_ij = exp(e_ij) / Σ_k exp(e_ik)    over real positions k (eq. 6)
        c_i  = Σ_j α_ij h_j                 (eq. 5)

    Subclasses define `project` (annotations to keys) and `score` (e_ij). Their weights belong
    to sublayers, or `build` makes them; it builds layers that `project` calls by `build_keys`.
    If they override `call`, it must accept `values`, which search passes, and read
    `completed(memory)`.

    An attention whose weights depend on those of the previous step has a *state*, a nest of tensors
    that each step passes to the next: it defines `initial_state`, and `energies` or `align` or
    both.

    Call arguments:
        query: float [B, n] or, for beams, [B, K, n]; s_{i-1}.
        memory: `Memory`, from `memory(encoded)`.
        values: float [B, T_x, v], what is averaged in place of the h_j.
    """

    has_alignment = True

    def build_keys(self, layer: keras.layers.Layer, memory_shape: Sequence[Shape]) -> None:
        """Builds a layer that `project` calls by `keys_by`."""
        weights.build_once(layer, tuple(memory_shape[0]))

    def keys_by(self, layer: keras.layers.Layer, annotations: tf.Tensor) -> tf.Tensor | tuple[()]:
        """The keys by a layer of `build_keys`, for `project`; () in a functional model."""
        if keras.backend.is_keras_tensor(annotations):
            return ()
        is_dense = isinstance(layer, keras.layers.Dense) and layer.built
        if is_dense and tf.is_tensor(annotations):
            # Dense itself reads shapes from a GPU, for which the host waits.
            return weights.linear(annotations, layer.kernel, layer.bias)
        return layer(annotations)

    def project(self, annotations: tf.Tensor) -> tf.Tensor | tuple[()]:
        """Keys of the annotations, [B, T_x, c] -> [B, T_x, n']."""
        raise NotImplementedError

    def memory(self, encoded: Encoded) -> Memory:
        """Projects the keys once for all target steps.

        In a functional model it leaves them to the layer that reads the memory. Keras would make a
        layer that is called here one of the model's own, neither saved nor frozen with this one.
        """
        encoded = as_encoded(type(self).__name__, encoded)
        annotations, mask = encoded.annotations, encoded.mask
        is_symbolic = keras.backend.is_keras_tensor(annotations)
        keys = () if is_symbolic else self.project(annotations)
        return Memory(annotations, keys, () if mask is None else mask)

    def completed(
        self, memory: Sequence[Nest], memory_mask: Sequence[Mask] | None = None
    ) -> Memory:
        """A memory, or a list of its parts, with keys, and with a bool mask or None.

        `memory_mask` has Keras' masks of its parts, of which that of the annotations is used if the
        memory has none. Raises ValueError if the mask does not fit the annotations.
        """
        # In a reloaded functional model it is a list, as is ().
        annotations, keys, mask = (None if isinstance(x, (tuple, list)) else x for x in memory)
        mask = memory_mask[0] if mask is None and memory_mask else mask
        keys = self.project(annotations) if keys is None else keys
        return Memory(annotations, keys, as_mask(type(self).__name__, mask, annotations))

    def score(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        """Energies e_ij, ([B, K, n], [B, T_x, n']) -> [B, K, T_x]."""
        raise NotImplementedError

    def energies(self, query: tf.Tensor, keys: tf.Tensor, state: Nest) -> tf.Tensor:
        """e_ij, float [B, K, T_x], if they depend on the state, a nest of [B, K, ...]."""
        return self.score(query, keys)

    def align(self, energies: tf.Tensor, mask: Mask, state: Nest) -> tuple[tf.Tensor, Nest]:
        """The weights α_ij, [B, K, T_x], and the state for the next step.

        The energies are float32 [B, K, T_x] (float64 in a float64 model), the mask is bool [B, 1,
        T_x], or None if all positions are real, the state a nest of [B, K, ...].
        """
        return weights.masked_softmax(energies, mask), state

    def __call__(
        self, query: tf.Tensor, memory: Memory | None = None, *values: Any, **keywords: Any
    ) -> Any:
        if not isinstance(memory, tuple | list) or len(memory) != len(Memory._fields):
            raise Refusal(
                type(self).__name__,
                f"memory has type {type(memory).__name__}, wanted attention(query, memory) with a "
                "Memory of three parts, such as Memory(annotations, (), mask) or "
                "attention.memory(encoder(..))",
            )
        return super().__call__(query, memory, *values, **keywords)

    def call(
        self,
        query: tf.Tensor,
        memory: Memory,
        values: tf.Tensor | None = None,
        memory_mask: Sequence[Mask] | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        memory = self.completed(memory, memory_mask)
        state = self.initial_state(memory)
        if query.shape.rank == 3:
            times = tf.shape(query)[1]
            state = tf.nest.map_structure(lambda x: tf.repeat(x[:, None], times, 1), state)
        context, alignment, _ = self._read(query, memory, state, values)
        return context, alignment

    def step(
        self, query: tf.Tensor, memory: Nest, state: Nest, values: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor | None, Nest]:
        """As above; without a state it is `call`, which a subclass may override."""
        if not tf.nest.flatten(state):
            return super().step(query, memory, state, values)
        return self._read(query, self.completed(memory), state, values)

    def _read(
        self, query: tf.Tensor, memory: Memory, state: Nest, values: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor, Nest]:
        """Makes the result of `step`."""
        if values is None:
            values = memory.annotations
        if not (is_beam := query.shape.rank == 3):
            query, state = tf.nest.map_structure(lambda x: x[:, None], (query, state))
        energies = exact(self.energies(query, memory.keys, state))
        positions = memory.annotations.shape
        energies.set_shape([positions[0], query.shape[1], positions[1]])
        mask = None if memory.mask is None else memory.mask[:, None]
        alignment, state = self.align(energies, mask, state)
        outputs = tf.matmul(tf.cast(alignment, values.dtype), values), alignment, state
        return outputs if is_beam else tf.nest.map_structure(lambda x: x[:, 0], outputs)


def exact(x: tf.Tensor) -> tf.Tensor:
    """Converts half precision to float32."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 else x


class _Projection(keras.layers.Dense):
    """A product with a kernel, which the attention may also read itself."""

    def quantize(self, *args: object, **kwargs: object) -> None:
        """Not supported; Keras' `Model.quantize` warns and skips the layer."""
        raise NotImplementedError(
            f"BahdanauAttention: {self.path} is not quantized, since the attention reads its "
            "kernel as it is"
        )


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class BahdanauAttention(Attention):
    """The paper's additive attention.

        e_ij = v_a · tanh(W_a s_{i-1} + U_a h_j)    (A.1.2)
        α_ij = exp(e_ij) / Σ_k exp(e_ik)            (eq. 6)
        c_i  = Σ_j α_ij h_j                         (eq. 5)

    Unlike `keras.layers.AdditiveAttention`, query and annotations have learned projections W_a and
    U_a. Weights are initialized as in appendix B.1: W_a and U_a from N(0, 0.001²), v_a zero, so
    that attention is uniform at first. (Since v_a is zero, W_a and U_a get no gradient in the first
    update.)

    Args:
        units: n', size of the alignment model.
        use_bias: Whether to add b_a inside the tanh (the paper has none).
        kernel_initializer: Initializer of W_a and U_a.
        energy_initializer: Initializer of v_a; None for zeros, or Glorot's uniform one if
            `normalize`.
        normalize: Whether v_a is g v / |v| with a learned g, first √(1 / n'), and b_a is added
            (Salimans and Kingma 2016, arXiv 1602.07868).

    Call arguments: see `Attention`.

    Masking:
        Positions where `memory.mask` is False or 0 get weight 0. A row without any real position
        gets uniform weights, never NaN.

    Returns:
        context, float [B, 2n] or [B, K, 2n], and weights, float32 (float64 in a float64 model)
        [B, T_x] or [B, K, T_x].

    Example:

    ```python
    attention = BahdanauAttention(1000)
    keys = attention.project(annotations)  # U_a h_j, once a sentence
    context, weights = attention(state, Memory(annotations, keys, mask))
    ```

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, section 3.1, appendix A.1.2.
    """

    def __init__(
        self,
        units: int,
        use_bias: bool = False,
        kernel_initializer: weights.Initializer = None,
        energy_initializer: weights.Initializer = None,
        normalize: bool = False,
        **kwargs: Unpack[weights.KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.units = units = size("BahdanauAttention", "units", units)
        self.use_bias = use_bias
        self.kernel_initializer = weights.fresh(
            kernel_initializer or keras.initializers.RandomNormal(stddev=0.001)
        )
        start = energy_initializer or ("glorot_uniform" if normalize else "zeros")
        self.energy_initializer = weights.fresh(start)
        self.normalize = normalize

        def projection(
            name: str, units: int, initializer: weights.Initializer, use_bias: bool = False
        ) -> _Projection:
            start = weights.fresh(weights.initial(initializer))
            own = {"name": name, "dtype": self.dtype_policy}
            return _Projection(units, use_bias=use_bias, kernel_initializer=start, **own)

        self.query_projection = projection("query_projection", units, self.kernel_initializer)
        # A functional model may have several attentions, so the name of the keys is not fixed.
        keys = f"{self.name}_keys"
        has_bias = use_bias or normalize
        self.key_projection = projection(keys, units, self.kernel_initializer, has_bias)
        self.energy = projection("energy", 1, self.energy_initializer)

    def build(self, query_shape: Shape, memory_shape: Sequence[Shape]) -> None:
        weights.build_once(self.query_projection, tuple(query_shape))
        weights.build_once(self.energy, (None, self.units))
        if self.normalize:
            start = keras.initializers.Constant(self.units**-0.5)
            self.gain = self.new_weight("gain", (), start)
        self.build_keys(self.key_projection, memory_shape)
        weights.stay_frozen(self)

    @property
    def energy_kernel(self) -> weights.Weight:
        """v_a, [n', 1]."""
        v = self.energy.kernel
        if not self.normalize:
            return v
        return tf.cast(self.gain, v.dtype) * tf.math.l2_normalize(tf.convert_to_tensor(v))

    def project(self, annotations: tf.Tensor) -> tf.Tensor | tuple[()]:
        """U_a h_j (+ b_a), [B, T_x, 2n] -> [B, T_x, n']."""
        return self.keys_by(self.key_projection, annotations)

    def score(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        """e_ij; the keys of hypotheses may differ, [B, K, T_x, n']."""
        is_shared = keys.shape.rank == 3
        projected = weights.linear(weights.as_rows(query), self.query_projection.kernel)
        projected = weights.reshaped(projected, query, 1, self.units)
        hidden = tf.tanh(projected + (keys[:, None] if is_shared else keys))
        energies = weights.linear(weights.as_rows(hidden), self.energy_kernel)
        if query.shape[1] is None or not is_shared:
            return weights.reshaped(energies, hidden)
        sizes = tf.shape(keys)  # which a loop over steps does not change
        sizes = tf.stack([sizes[0], query.shape[1], sizes[1]])
        return tf.reshape(energies, sizes)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class DotAttention(Attention):
    """Luong's dot score.

        e_ij = s_{i-1} · h_j

    It has no weights, so the state must be as wide as the annotations: a bidirectional encoder with
    n units per direction needs a decoder with 2n.

    Call arguments, masking and returns: see `BahdanauAttention`.

    Reference:
        Luong et al. 2015, arXiv 1508.04025, section 3.1.
    """

    def build(self, query_shape: Shape, memory_shape: Sequence[Shape]) -> None:
        annotations_shape = memory_shape[0]
        if query_shape[-1] != annotations_shape[-1]:
            raise Refusal(
                "DotAttention",
                f"the cell's units ({query_shape[-1]}) and the encoder's annotations "
                f"({annotations_shape[-1]} wide) must be the same size; GeneralAttention takes any",
            )

    def project(self, annotations: tf.Tensor) -> tf.Tensor:
        """The annotations themselves."""
        return annotations

    def score(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        return tf.matmul(query, keys, transpose_b=True)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class GeneralAttention(Attention):
    """Luong's general score.

        e_ij = s_{i-1} · (W h_j)

    Args:
        kernel_initializer: Initializer of W.

    Call arguments, masking and returns: see `BahdanauAttention`.

    Reference:
        Luong et al. 2015, arXiv 1508.04025, section 3.1.
    """

    def __init__(
        self, kernel_initializer: weights.Initializer = None, **kwargs: Unpack[weights.KerasOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.kernel_initializer = weights.for_kernel(kernel_initializer)

    def build(self, query_shape: Shape, memory_shape: Sequence[Shape]) -> None:
        shape = query_shape[-1], memory_shape[0][-1]
        self.kernel = self.new_weight("kernel", shape, self.kernel_initializer)

    def project(self, annotations: tf.Tensor) -> tf.Tensor:
        """The annotations themselves; W is applied to the query."""
        return annotations

    def score(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        return tf.matmul(weights.linear(query, self.kernel), keys, transpose_b=True)


def as_attention(owner: str, attention: object) -> Attention | FixedContext | None:
    """An attention layer, `FixedContext` or None, given it or its config.

    Raises ValueError if `attention`, an argument of the class `owner`, is something else.
    """
    attention = weights.deserialized(attention)
    if isinstance(attention, (Attention, FixedContext, type(None))):
        return attention
    wanted = "a subclass of Attention such as BahdanauAttention, FixedContext, or None"
    raise OptionError(owner, "attention", weights.described(attention), wanted)
