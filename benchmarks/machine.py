"""The machine: its description, its rate of matrix products, one thread for a process."""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1"
)
PACKAGES = ("tensorflow", "keras", "numpy")


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Processor time of a call until its result is computed."""
    import numpy as np
    import tensorflow as tf

    started = time.process_time()
    tf.nest.map_structure(np.asarray, function(*arguments))
    return time.process_time() - started


def matrix_rate(sides: Sequence[int] = (1024, 2048)) -> float:
    """Operations per second of a square product, at the better of two sizes."""
    import tensorflow as tf

    rates = []
    for side in sides:
        a, b = tf.random.normal([side, side]), tf.random.normal([side, side])
        product = tf.function(lambda a, b: tf.reduce_sum(tf.matmul(a, b)))
        product(a, b)
        rates += [2 * side**3 / cpu_seconds(product, a, b) for _ in range(3)]
    return max(rates)


def processor(key: str) -> str:
    """The first value of a key of /proc/cpuinfo, such as "model name"; "" elsewhere."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text("utf-8").split("\n"):
            if line.startswith(key):
                return line.partition(":")[2].strip()
    return ""


def description() -> str:
    """Date, processor, cores, load and versions in one line."""
    name = processor("model name") or platform.processor()
    packages = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return (
        f"{datetime.date.today()}, {name}, {len(os.sched_getaffinity(0))} cores, load "
        f"{os.getloadavg()[0]:.1f} at the start; Python {platform.python_version()}, {packages}"
    )
