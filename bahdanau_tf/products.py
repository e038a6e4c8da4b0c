"""Matrix products, which may be computed in bfloat16.

Some processors and all newer GPUs multiply bfloat16 faster than float32. Only
products are: their operands and their results are rounded to bfloat16, while
they add up in float32. All else, weights and their updates too, is float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import tensorflow as tf

_is_rounding = ContextVar("is_rounding", default=False)


@contextmanager
def rounding_to_bfloat16(is_on: bool = True) -> Iterator[None]:
    """Computes products that are made in the block in bfloat16."""
    token = _is_rounding.set(is_on)
    try:
        yield
    finally:
        _is_rounding.reset(token)


def operand(x: tf.Tensor) -> tf.Tensor:
    """What products read of a tensor; for weights, once before a loop."""
    x = tf.convert_to_tensor(x)
    if _is_rounding.get() and x.dtype == tf.float32:
        return tf.cast(x, tf.bfloat16)
    return x


def product(
    a: tf.Tensor,
    b: tf.Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> tf.Tensor:
    """a b, in the dtype of a, or in float32 where products are rounded.

    TensorFlow has no product of bfloat16 with float32 results on processors.

    Args:
        a: float [..., p, q].
        b: float [..., q, r]; it may be an `operand` already.
        transpose_a: Whether to transpose a.
        transpose_b: Whether to transpose b.
    """
    if not _is_rounding.get():
        return tf.matmul(a, tf.cast(b, a.dtype), transpose_a, transpose_b)
    outputs = tf.matmul(operand(a), operand(b), transpose_a, transpose_b)
    return tf.cast(outputs, tf.float32)
