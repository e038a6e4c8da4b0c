"""Word embeddings with one summed gradient for each word."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from bahdanau_tf.layers.weights import ConfiguredLayer, Initializer, KerasOptions, for_kernel
from bahdanau_tf.system.ranges import size
from bahdanau_tf.system.tensors import Shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


@tf.custom_gradient
def _rows(
    table: tf.Tensor, ids: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, None]]]:
    """Looks up rows; the gradient is dense, each row the sum of its uses.

    TensorFlow's own gradient is sparse (`IndexedSlices`), and a word that was used twice has two
    rows in it. Keras' optimizers and `tf.linalg.global_norm` do not add such rows up, so norm
    and update would be wrong.
    """

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        return tf.math.unsorted_segment_sum(upstream, ids, tf.shape(table)[0]), None

    return tf.gather(table, ids), gradient


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class WordEmbedding(ConfiguredLayer):
    """Maps word ids to vectors: E x + b.

    The bias b is shared by all words; the original code has it, the paper does not. Unlike that
    of `keras.layers.Embedding`, the gradient is one dense tensor in which the uses of a word are
    summed, so clipping and adaptive optimizers see the true gradient.

    Args:
        vocabulary_size: K, number of ids.
        embedding_dim: m.
        use_bias: Whether to add b.
        embeddings_initializer: Initializer of E.
        mask_zero: Whether id 0 is padding, as in `keras.layers.Embedding`: Keras then passes a
            mask to the layers that follow.

    Call arguments:
        ids: int32 [...].

    Returns:
        float [..., m].

    Reference:
        Bahdanau et al. 2015, arXiv 1409.0473, appendix A.2.1 (E, E-bar).
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int,
        use_bias: bool = False,
        embeddings_initializer: Initializer = None,
        mask_zero: bool = False,
        **kwargs: Unpack[KerasOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.autocast = False  # in half precision ids would be rounded
        self.vocabulary_size = size("WordEmbedding", "vocabulary_size", vocabulary_size)
        self.embedding_dim = size("WordEmbedding", "embedding_dim", embedding_dim)
        self.use_bias = use_bias
        self.embeddings_initializer = for_kernel(embeddings_initializer)
        self.mask_zero = mask_zero
        self.supports_masking = mask_zero

    def compute_mask(self, ids: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor | None:
        """True on words; None unless `mask_zero`."""
        return keras.ops.not_equal(ids, 0) if self.mask_zero else None

    @property
    def output_shape(self) -> tuple[int | None, ...]:
        """Shape of a batch of embedded sentences, for `summary`."""
        return None, None, self.embedding_dim

    def build(self, input_shape: Shape | None = None) -> None:
        shape, start = (self.vocabulary_size, self.embedding_dim), self.embeddings_initializer
        # In mixed precision only the rows that are looked up are cast, and the gradients of
        # a word are summed in float32.
        self.embeddings = self.new_weight("embeddings", shape, start, autocast=False)
        self.bias = None
        if self.use_bias:
            self.bias = self.new_weight("bias", (self.embedding_dim,), "zeros")

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        if ids.dtype not in (tf.int32, tf.int64):
            ids = tf.cast(ids, tf.int32)  # Keras with replicas passes floats
        vectors = _rows(tf.convert_to_tensor(self.embeddings), ids)
        vectors = tf.cast(vectors, self.compute_dtype)
        return vectors if self.bias is None else vectors + tf.cast(self.bias, vectors.dtype)
