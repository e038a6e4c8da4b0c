"""Names the device that a computation runs on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import tensorflow as tf


def describe_device(cores: int | None = None) -> str:
    """Names the GPUs that TensorFlow sees or, without one, the processor.

    Args:
        cores: Number of cores in use; all that this process may use if None.
    """
    gpus = [
        tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    if gpus:
        return ", ".join(gpus)
    count = cores or len(available_cores())
    return f"{count} core{'s' * (count > 1)}, {_processor()}"


def has_fast_bfloat16() -> bool:
    """Whether products of bfloat16 are faster than those of float32.

    They are on GPUs of compute capability 8 or more; on processors, as Linux
    describes them, with AMX or AVX-512 for bfloat16.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = map(tf.config.experimental.get_device_details, gpus)
        return all(
            one.get("compute_capability", (0, 0)) >= (8, 0) for one in details
        )
    return not {"amx_bf16", "avx512_bf16"}.isdisjoint(
        _of_processor("flags").split()
    )


def available_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def threads() -> int:
    """The number of threads that TensorFlow divides an operation among."""
    given = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    return (
        int(tf.config.threading.get_intra_op_parallelism_threads())
        or int(given if given.isdecimal() else 0)
        or len(available_cores())
    )


def _processor() -> str:
    """The processor's name."""
    return (
        _of_processor("model name")
        or platform.processor()
        or platform.machine()
    )


def _of_processor(what: str) -> str:
    """What Linux tells of the first core in /proc/cpuinfo; "" elsewhere."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8").split("\n") if path.is_file() else []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == what:
            return value.strip()
    return ""
