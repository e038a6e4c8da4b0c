"""Trainings side by side, each on a core of its own, that may be resumed."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}


def train(cells: Mapping[Path, Sequence[str]], jobs: int) -> None:
    """Trains what is missing, or goes on where it was broken off.

    Args:
        cells: Flags of `bahdanau-tf train` by folder, which gets `model`,
            `output`, `flags`, and `over` once the training has ended itself.
        jobs: How many run side by side.
    """
    for folder, given in cells.items():
        _keep(folder / "flags", "".join(f"{flag}\n" for flag in given))
    cores: queue.Queue[int] = queue.Queue()
    for core in sorted(os.sched_getaffinity(0))[:jobs]:
        cores.put(core)

    def one(folder: Path) -> None:
        if (folder / "over").exists():
            return
        core = cores.get()
        try:
            status = _run(folder, cells[folder], core)
        finally:
            cores.put(core)
        print(f"{folder.name}: status {status}", flush=True)

    with ThreadPoolExecutor(jobs) as side_by_side:
        list(side_by_side.map(one, cells))


def _keep(path: Path, flags: str) -> None:
    """Writes the flags of a cell, or refuses other ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_text("utf-8") != flags:
        sys.exit(f"{path.parent} has other flags; name another --out_dir")
    path.write_text(flags, "utf-8")


def _run(folder: Path, flags: Sequence[str], core: int) -> int:
    command = [sys.executable, "-m", "bahdanau_tf", "train", *flags]
    with (folder / "output").open("ab") as output:
        status = subprocess.run(
            [*command, f"--model_dir={folder / 'model'}"],
            stdout=output,
            stderr=output,
            env=os.environ | ONE_THREAD,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            check=False,
        ).returncode
    if status == 0:
        (folder / "over").touch()
    return status


def log(folder: Path) -> list[dict[str, float]]:
    """The evaluations of a training that is over; else empty."""
    if not (folder / "over").exists():
        return []
    lines = (folder / "model" / "log.jsonl").read_text("utf-8")
    return [json.loads(line) for line in lines.splitlines()]
