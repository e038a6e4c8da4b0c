"""The device that a computation runs on: its name, its cores and threads."""

from __future__ import annotations

import functools
import os
import platform
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from bahdanau_tf.system.cores import INTER_OP, INTRA_OP, available_cores, core_count
from bahdanau_tf.system.ranges import OptionError

_SQUARE, _PRODUCTS = 512, 20  # width and number of the products that are measured


def describe_device(cores: int | None = None) -> str:
    """Names the GPUs that TensorFlow sees or, without one, the processor and its cores in use.

    If `cores` is None, they are as many as TensorFlow uses.
    """
    if gpus := _gpus():
        return ", ".join(gpu.get("device_name", "GPU") for gpu in gpus)
    count = cores or max(threads(), operations_at_once())
    name = _cpuinfo("model name") or platform.processor() or platform.machine()
    return f"{count} core{'s' * (count > 1)}, {name}"


def has_fast_bfloat16() -> bool:
    """Whether products of bfloat16 are faster than those of float32.

    They are on GPUs of compute capability 8 or more, and on processors that Linux
    describes as having AMX or AVX-512 for bfloat16.
    """
    if gpus := _gpus():
        return all(gpu.get("compute_capability", (0, 0)) >= (8, 0) for gpu in gpus)
    return not {"amx_bf16", "avx512_bf16"}.isdisjoint(_cpuinfo("flags").split())


def _gpus() -> list[dict[str, Any]]:
    """What TensorFlow knows of each GPU."""
    devices = tf.config.list_physical_devices("GPU")
    return [*map(tf.config.experimental.get_device_details, devices)]


def has_gpu() -> bool:
    """Whether TensorFlow sees a GPU."""
    return bool(tf.config.list_physical_devices("GPU"))


def product_rate(clock: Callable[[], float] = time.perf_counter) -> float:
    """Operations per second of a square float32 product, the fastest of some.

    It is computed like any operation: by one thread after `use_threads`, in a tenth of a second.
    """
    matrix = tf.ones([_SQUARE, _SQUARE])
    seconds = []
    for _ in range(_PRODUCTS):
        start = clock()
        tf.matmul(matrix, matrix).numpy()
        seconds.append(clock() - start)
    return 2 * _SQUARE**3 / max(min(seconds), 1e-9)


def adds_up_in_float32(dtype: tf.DType) -> bool:
    """Whether products in a half-precision dtype add up in float32.

    They do on GPUs, and those of bfloat16 where `has_fast_bfloat16`. On other
    processors TensorFlow also rounds partial sums.
    """
    return has_gpu() or (dtype == tf.bfloat16 and has_fast_bfloat16())


def use_threads(count: int | None = None) -> None:
    """Sets the number of threads, one for each operation; call it before any.

    Operations that do not depend on each other (of parts of a batch, or of several batches) then
    use several cores. That is faster than dividing each operation among the cores. Without a count
    they are as many as the cores that this process may use, unless TensorFlow's environment
    variables are set, there is a GPU, or TensorFlow is running already: then nothing changes. With
    a count, a TensorFlow that is running with other threads raises a ValueError.
    """
    if count is None and (os.environ.get(INTRA_OP) or os.environ.get(INTER_OP) or has_gpu()):
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(count or core_count())
    except RuntimeError:
        if count is not None:
            why = "but TensorFlow is already running with other threads"
            raise OptionError("use_threads", "threads", count, "a new process", why) from None


def check_not_forked() -> None:
    """Raises a RuntimeError in a fork of a process that has called this.

    A fork lacks TensorFlow's threads, so an operation would wait for them without end.
    """
    if os.getpid() != _first_process():
        raise RuntimeError(
            "Translator: this process was forked from one that uses TensorFlow, whose threads a "
            'fork lacks; wanted a process of multiprocessing.get_context("spawn"), or '
            "bahdanau_tf.runtime.Translator.load in each process"
        )


@functools.cache
def _first_process() -> int:
    return os.getpid()


def threads() -> int:
    """The number of threads that TensorFlow divides an operation among."""
    return _threads(tf.config.threading.get_intra_op_parallelism_threads(), INTRA_OP)


def operations_at_once() -> int:
    """The number of operations that TensorFlow computes at once; 1 on a GPU."""
    if has_gpu():
        return 1
    return _threads(tf.config.threading.get_inter_op_parallelism_threads(), INTER_OP)


def _threads(configured: int, variable: str) -> int:
    """TensorFlow's number: as configured, else of the environment, else of the cores."""
    value = os.environ.get(variable, "")
    return int(configured) or int(value if value.isdecimal() else 0) or len(available_cores())


def _cpuinfo(key: str) -> str:
    """A value of the first core in Linux's /proc/cpuinfo; "" elsewhere."""
    path = Path("/proc/cpuinfo")
    text = path.read_text("utf-8") if path.is_file() else ""
    match = re.search(rf"^{key}\s*:(.*)", text, re.MULTILINE)
    return match[1].strip() if match else ""
