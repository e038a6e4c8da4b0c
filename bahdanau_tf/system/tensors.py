"""Types of nests and shapes, and matrix products in reduced precision.

Some processors and all newer GPUs multiply bfloat16 faster than float32, and GPUs
since 2017 float16. Only the operands and results of products are rounded; they add
up in float32. Everything else is float32, weights and their updates included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import tensorflow as tf

from bahdanau_tf.system.device import adds_up_in_float32

# Tensors in tuples, records, lists and dictionaries, as `tf.nest` takes them;
# a single tensor is one, and so is ().
Nest: TypeAlias = Any

# The shape of a tensor, as `build` gets it; None where a size is unknown.
Shape: TypeAlias = tuple[int | None, ...]

_rounded_to: ContextVar[tf.DType] = ContextVar("rounded_to", default=tf.float32)


@contextmanager
def products_in(dtype: tf.DType) -> Iterator[None]:
    """Computes the products of the block in float32, bfloat16 or float16."""
    token = _rounded_to.set(tf.as_dtype(dtype))
    try:
        yield
    finally:
        _rounded_to.reset(token)


def operand(x: tf.Tensor) -> tf.Tensor:
    """Casts a float32 tensor to the dtype of products; weights once, before a loop."""
    x = tf.convert_to_tensor(x)
    return tf.cast(x, _rounded_to.get()) if x.dtype == tf.float32 else x


def product(
    a: tf.Tensor, b: tf.Tensor, transpose_a: bool = False, transpose_b: bool = False
) -> tf.Tensor:
    """a b, of float [..., p, q] and [..., q, r]; b may be an `operand` already.

    The result has the dtype of a, or float32 where products are rounded. TensorFlow has no product
    of bfloat16 with float32 results on processors.
    """
    if _rounded_to.get() == tf.float32:
        return tf.matmul(a, tf.cast(b, a.dtype), transpose_a, transpose_b)
    a, b = operand(a), operand(b)
    if adds_up_in_float32(a.dtype):
        outputs = tf.matmul(a, b, transpose_a, transpose_b)
    else:
        exact = (tf.cast(x, tf.float32) for x in (a, b))
        outputs = tf.matmul(*exact, transpose_a, transpose_b)
        outputs = tf.cast(outputs, a.dtype)
    return tf.cast(outputs, tf.float32)
