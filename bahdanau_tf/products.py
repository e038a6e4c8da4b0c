"""Matrix products, whose operands may be rounded to bfloat16.

Some processors and all newer GPUs multiply bfloat16 several times as fast as
float32. Only the operands of products are rounded, and the results are float32
again: sums, nonlinearities, weights and their updates stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import tensorflow as tf

_is_rounding = ContextVar("is_rounding", default=False)


@contextmanager
def rounding_to_bfloat16(is_on: bool = True) -> Iterator[None]:
    """Rounds the operands of products that are made in the block."""
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
    """a b, in the dtype of a, or in float32 where operands are rounded.

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
