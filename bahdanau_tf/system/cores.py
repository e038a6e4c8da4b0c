"""The cores that this process may use; without TensorFlow."""

from __future__ import annotations

import math
import os
from pathlib import Path

INTRA_OP = "TF_NUM_INTRAOP_THREADS"  # variables that TensorFlow reads
INTER_OP = "TF_NUM_INTEROP_THREADS"
CGROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def available_cores() -> list[int]:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def core_count() -> int:
    """How many cores this process may use: those it may run on, within the quota of a container."""
    return max(1, min([len(available_cores()), *map(math.ceil, _quotas())]))


def asked_threads() -> int:
    """The larger of TensorFlow's variables for threads; 0 if neither is set."""
    values = (os.environ.get(variable, "") for variable in (INTRA_OP, INTER_OP))
    return max(int(value) if value.isdecimal() else 0 for value in values)


def _quotas() -> list[float]:
    """The limits that Linux's control groups of this process and those above it set, in cores."""
    quotas = []
    lines = OWN.read_text("utf-8").split("\n") if OWN.is_file() else []
    for line in filter(None, lines):
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # In a container the path may be the host's; its own group is then the top.
        group = Path(CGROUPS, "cpu" if controllers else "", path.lstrip("/"))
        for folder in (group, *group.parents):
            if (both := folder / "cpu.max").is_file():
                quota, period = both.read_text("utf-8").split()
            elif (first := folder / "cpu.cfs_quota_us").is_file():
                files = first, folder / "cpu.cfs_period_us"
                quota, period = (file.read_text("utf-8").strip() for file in files)
            else:
                continue
            if quota.isdecimal():  # else "max", or -1
                quotas.append(int(quota) / int(period))
    return quotas
