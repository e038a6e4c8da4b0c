"""The device that a computation runs on: its name, its cores and threads."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

INTRA_OP = "TF_NUM_INTRAOP_THREADS"  # variables that TensorFlow reads
INTER_OP = "TF_NUM_INTEROP_THREADS"
_SQUARE, _PRODUCTS = 512, 20  # width, and number, of what is measured


def describe_device(cores: int | None = None) -> str:
    """Names the GPUs that TensorFlow sees or, without one, the processor.

    Args:
        cores: Number of cores in use; if None as many as TensorFlow uses.
    """
    gpus = [
        tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    if gpus:
        return ", ".join(gpus)
    count = cores or max(threads(), operations_at_once())
    return f"{count} core{'s' * (count > 1)}, {_processor()}"


def has_fast_bfloat16() -> bool:
    """Whether products of bfloat16 are faster than those of float32.

    They are on GPUs of compute capability 8 or more; on processors, as Linux
    describes them, with AMX or AVX-512 for bfloat16.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = map(tf.config.experimental.get_device_details, gpus)
        return all(one.get("compute_capability", (0, 0)) >= (8, 0) for one in details)
    return not {"amx_bf16", "avx512_bf16"}.isdisjoint(_of_processor("flags").split())


def has_gpu() -> bool:
    """Whether TensorFlow sees a GPU."""
    return bool(tf.config.list_physical_devices("GPU"))


def product_rate(clock: Callable[[], float] = time.perf_counter) -> float:
    """Measures how fast a product is: operations a second, the fastest of some.

    It is one of square matrices of float32, computed as operations are, by
    one thread after `use_threads`. Takes a tenth of a second.

    Args:
        clock: Returns seconds.
    """
    matrix = tf.ones([_SQUARE, _SQUARE])
    seconds = []
    for _ in range(_PRODUCTS):
        start = clock()
        tf.matmul(matrix, matrix).numpy()
        seconds.append(clock() - start)
    return 2 * _SQUARE**3 / max(min(seconds), 1e-9)


def adds_up_in_float32(dtype: tf.DType) -> bool:
    """Whether products of a dtype in half precision add up in float32.

    They do on GPUs and, those of bfloat16, where `has_fast_bfloat16`. On other
    processors TensorFlow rounds the sums of parts, too.
    """
    if has_gpu():
        return True
    return dtype == tf.bfloat16 and has_fast_bfloat16()


def available_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def use_threads(count: int | None = None) -> None:
    """Computes with some threads, one an operation; call it before any.

    Several cores are used by operations that do not depend on each other, those
    of parts of a batch, or of several batches. That is faster than operations
    that are each divided among the cores.

    Args:
        count: Number of threads. If None it is that of the cores that this
            process may use; but what TensorFlow's environment variables say
            is kept, its defaults where there is a GPU, and its threads if it
            runs already.

    Raises:
        ValueError: TensorFlow runs already, with other threads.
    """
    if count is None and (os.environ.get(INTRA_OP) or os.environ.get(INTER_OP) or has_gpu()):
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(count or len(available_cores()))
    except RuntimeError:
        if count is not None:
            raise ValueError(
                f"use_threads: threads is {count}, but TensorFlow runs already "
                "with other threads, wanted a new process"
            ) from None


def threads() -> int:
    """The number of threads that TensorFlow divides an operation among."""
    given = tf.config.threading.get_intra_op_parallelism_threads()
    return _threads(given, INTRA_OP)


def operations_at_once() -> int:
    """The number of operations that TensorFlow computes at once; 1 on a GPU."""
    if has_gpu():
        return 1
    given = tf.config.threading.get_inter_op_parallelism_threads()
    return _threads(given, INTER_OP)


def _threads(given: int, variable: str) -> int:
    """As TensorFlow decides: set, or in the environment, or the cores."""
    found = os.environ.get(variable, "")
    return int(given) or int(found if found.isdecimal() else 0) or len(available_cores())


def _processor() -> str:
    """The processor's name."""
    return _of_processor("model name") or platform.processor() or platform.machine()


def _of_processor(what: str) -> str:
    """What Linux tells of the first core in /proc/cpuinfo; "" elsewhere."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8").split("\n") if path.is_file() else []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == what:
            return value.strip()
    return ""
