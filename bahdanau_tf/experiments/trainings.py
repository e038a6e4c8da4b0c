"""Trains systems, several at a time, each in its own process.

Each training is a command `bahdanau-tf train`, so that anybody can repeat it;
it continues from its last checkpoint. Finished systems are not trained again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from bahdanau_tf.system.device import available_cores
from bahdanau_tf.system.device import describe_device
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.system.terminal import ProgressLine

COMMAND = (sys.executable, "-m", "bahdanau_tf.experiments.child", "train")
# Exit codes of a training that was stopped.
STOPPED = (130, -signal.SIGTERM, -signal.SIGINT)
_RECORD = "trained.json"


@dataclass(frozen=True)
class Plan:
    """A system to train.

    Attributes:
        name: Its name.
        flags: The flags of `bahdanau-tf train`, without --model_dir.
        counterpart: The paper's system that it corresponds to, or "".
    """

    name: str
    flags: tuple[str, ...]
    counterpart: str = ""

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return self.name.replace("*", "-longer").replace(" ", "-")


@dataclass(frozen=True)
class Record:
    """The record of a training.

    Attributes:
        seconds: Time spent, including start and evaluation on the dev set.
        device: The device it ran on.
        is_over: Whether it is finished, and not only out of time.
        flags: Those of its plan.
    """

    seconds: float = 0.0
    device: str = ""
    is_over: bool = False
    flags: tuple[str, ...] = ()

    @classmethod
    def read(cls, model_dir: Path) -> Record:
        """Reads the record that `train_all` wrote beside a model."""
        path = model_dir / _RECORD
        known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        return cls(**known | {"flags": tuple(known.get("flags", ()))})


class Logged(TypedDict, total=False):
    """The entries of a line of a training's log that a report uses."""

    step: int
    epoch: float
    seconds: float
    device: str


def last_evaluation(model_dir: Path) -> Logged:
    """The last line of the training's log; empty if there is none.

    What stands behind the last line end is half a line, being written.
    """
    path = model_dir / "log.jsonl"
    text = path.read_text("utf-8", "replace") if path.is_file() else ""
    lines = text.split("\n")[:-1]
    found: Logged = json.loads(lines[-1]) if lines else {}
    return found


def train_all(
    plans: Sequence[Plan], folder: Path, minutes: float, jobs: int
) -> dict[str, Path]:
    """Trains the systems that are not finished.

    One that is finished with other flags is trained on, if `train` can do that.

    Args:
        plans: The systems.
        folder: Gets a folder for each system, with a `train.log` in it.
        minutes: Longest time that one system is trained for in this call, 0
            for any; then it is stopped, and the next call continues it.
        jobs: Number of systems trained at a time; they share the cores.

    Returns:
        The folders of the systems that have a model.

    Raises:
        ValueError: A training failed. The message has its last line.
    """
    folders = {plan.name: folder / plan.folder for plan in plans}
    left = [p for p in plans if not _is_finished(p, folders[p.name])]
    ours = available_cores()
    free = [ours[job::jobs] or ours for job in range(jobs)]
    total = 100 * len(plans)
    done = total - 100 * len(left)
    line = ProgressLine(total, done)
    longest = 60 * minutes or math.inf
    with _stopped_at_the_end() as running:
        while left or running:
            while left and free:
                plan = left.pop(0)
                cores = free.pop(0)
                running.append(_Training(plan, folders[plan.name], cores))
                line.note(f"training {plan.name}: {running[-1].log}")
            time.sleep(0.2)
            for one in [one for one in running if one.has_ended(longest)]:
                running.remove(one)
                free.append(one.cores)
                line.note(one.conclude())
                done += 100
            percent = done + sum(one.percent() for one in running)
            names = " and ".join(one.name for one in running)
            line.update(min(percent, total - 1), f"% trained, now {names}")
    return {n: path for n, path in folders.items() if (path / "best").is_dir()}


def _is_finished(plan: Plan, model_dir: Path) -> bool:
    record = Record.read(model_dir)
    return record.is_over and record.flags == plan.flags


class _Training:
    """A training in its own process."""

    def __init__(self, plan: Plan, model_dir: Path, cores: list[int]) -> None:
        self.name, self.model_dir, self.cores = plan.name, model_dir, cores
        self.flags = plan.flags
        model_dir.mkdir(parents=True, exist_ok=True)
        self.log = model_dir / "train.log"
        self.start = time.monotonic()
        self.is_stopping = False
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*COMMAND, *plan.flags, f"--model_dir={model_dir}"],
                stdin=subprocess.PIPE,  # it stops when this is closed
                stdout=log,
                stderr=log,
                env=os.environ | {"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
            )
        if hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(self.process.pid, cores)

    def percent(self) -> int:
        """Progress, from lines such as "40/120 loss ..." of its log."""
        written = self.log.read_bytes()[-2000:]
        steps = re.findall(rb"^(\d+)/(\d+) ", written, re.MULTILINE)
        done, total = map(int, steps[-1]) if steps else (0, 1)
        return 100 * done // total

    def has_ended(self, seconds: float) -> bool:
        """Whether it has ended; after `seconds` it is told to stop."""
        if not self.is_stopping and time.monotonic() - self.start > seconds:
            self.is_stopping = True
            self.process.terminate()
        return self.process.poll() is not None

    def conclude(self) -> str:
        """Writes the record, and returns a sentence on the training."""
        self.process.communicate()  # closes the pipe
        status = self.process.returncode
        if status not in (0, *STOPPED):
            last = self.log.read_text("utf-8", "replace").rstrip().split("\n")
            raise ValueError(
                f"train_all: the training of {self.name} failed, see "
                f"{self.log}: {last[-1]}"
            )
        seconds = Record.read(self.model_dir).seconds
        seconds += time.monotonic() - self.start
        device = describe_device(len(self.cores))
        record = Record(seconds, device, not status, self.flags)
        written = json.dumps(asdict(record)).encode()
        write_atomically(self.model_dir / _RECORD, written)
        how = "stopped when its time was up" if status else "trained"
        return f"{self.name}: {how}, {seconds / 60:.1f} minutes in all"


@contextlib.contextmanager
def _stopped_at_the_end() -> Iterator[list[_Training]]:
    """Stops the running trainings after an error, Ctrl-C or SIGTERM."""
    running: list[_Training] = []
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(
            signal.SIGTERM, lambda number, _: sys.exit(128 + number)
        )
    try:
        yield running
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
        for one in running:
            one.process.terminate()
        for one in running:
            one.process.communicate()
