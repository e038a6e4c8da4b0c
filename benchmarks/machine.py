"""Processor time of a call, and the machine's rate of matrix products."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Processor time of a call until its result is computed."""
    started = time.process_time()
    tf.nest.map_structure(np.asarray, function(*arguments))
    return time.process_time() - started


def matrix_rate(sides: Sequence[int] = (1024, 2048)) -> float:
    """Operations per second of a square product, at the better of two sizes."""
    rates = []
    for side in sides:
        a, b = tf.random.normal([side, side]), tf.random.normal([side, side])
        product = tf.function(lambda a, b: tf.reduce_sum(tf.matmul(a, b)))
        product(a, b)
        rates += [2 * side**3 / cpu_seconds(product, a, b) for _ in range(3)]
    return max(rates)
