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


def available_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _processor() -> str:
    """The processor's name; on Linux only /proc/cpuinfo has it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8").split("\n") if path.is_file() else []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()
