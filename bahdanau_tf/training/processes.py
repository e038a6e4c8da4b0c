"""Trains models, several at a time, each in its own process.

Each training is a command `bahdanau-tf train`, so that anybody can repeat it; it resumes from its
last checkpoint. A finished one is not trained again.
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
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bahdanau_tf.system.cores import available_cores
from bahdanau_tf.system.device import describe_device
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.system.terminal import ProgressLine, handling
from bahdanau_tf.training.folder import Log

# A command, such as `train`, which stops, as after SIGTERM, when its standard input, a pipe that
# its parent holds open, is closed: even if the parent is killed.
_STOPS_WITH_PARENT = """
import os, runpy, signal, sys, threading

def stop_with_parent():
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=stop_with_parent, daemon=True).start()
runpy.run_module("bahdanau_tf", run_name="__main__", alter_sys=True)
"""
COMMAND = (sys.executable, "-c", _STOPS_WITH_PARENT)
# Exit codes of a training that was stopped.
STOPPED = (130, 143, -signal.SIGTERM, -signal.SIGINT)
_RECORD = "trained.json"


@dataclass(frozen=True)
class Plan:
    """A model to train."""

    name: str
    flags: tuple[str, ...]  # of `bahdanau-tf train`, without --model_dir
    counterpart: str = ""  # the paper's system that it corresponds to, of a report

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return self.name.replace("*", "-longer").replace(" ", "-")


@dataclass(frozen=True)
class Record:
    """The record of a training."""

    seconds: float = 0.0  # including start and evaluation on the dev set
    device: str = ""
    is_over: bool = False  # finished, not just out of time
    flags: tuple[str, ...] = ()  # of its plan

    @classmethod
    def read(cls, model_dir: Path) -> Record:
        """Reads the record that `train_all` wrote beside a model."""
        path = model_dir / _RECORD
        fields = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        return cls(**fields | {"flags": tuple(fields.get("flags", ()))})


def last_evaluation(model_dir: Path) -> dict[str, Any]:
    """The last line of the training's log; empty if there is none."""
    return next(reversed(Log(model_dir / "log.jsonl").records()), {})


def train_all(plans: Sequence[Plan], folder: Path, minutes: float, jobs: int) -> dict[str, Path]:
    """Trains the models that are not finished.

    If the flags of a finished one have changed, `train` resumes it or refuses them. After `minutes`
    (0: no limit) a training is stopped, and the next call resumes it. `jobs` of them at a time
    share the cores. Each has a folder, with its `train.log`, in `folder`; those that have a model
    are returned. If a training fails, raises ValueError with the last line of its log.
    """
    folders = {plan.name: folder / plan.folder for plan in plans}
    records = {plan: Record.read(folders[plan.name]) for plan in plans}
    left = [x for x in plans if not records[x].is_over or records[x].flags != x.flags]
    cores = available_cores()
    free = [cores[job::jobs] or cores for job in range(jobs)]
    total, done = 100 * len(plans), 100 * (len(plans) - len(left))
    line = ProgressLine(total, done)
    longest = 60 * minutes or math.inf
    with _stopped_at_the_end() as running:
        while left or running:
            while left and free:
                plan = left.pop(0)
                running.append(_Training(plan, folders[plan.name], free.pop(0)))
                line.note(f"training {plan.name}: {running[-1].log}")
            time.sleep(0.2)
            for training in [each for each in running if each.has_ended(longest)]:
                running.remove(training)
                free.append(training.cores)
                line.note(training.conclude())
                done += 100
            percents, rates = zip((0, 0), *(each.progress() for each in running), strict=True)
            now = "; now " * bool(running) + " and ".join(each.plan.name for each in running)
            rate = f", {sum(rates):,} words/s" * any(rates)
            count = f"{done // 100} of {len(plans)}"
            line.update(min(done + sum(percents), total - 1), f"trained{now}{rate}", count)
    return {name: path for name, path in folders.items() if (path / "best").is_dir()}


def progress(log: str, seconds: float) -> tuple[int, int]:
    """How far a training of so many seconds is, in percent, and its target words a second.

    They are read from the last line of its log such as "40/120 loss 1.500, 3000 words/s" or, if the
    time limit comes first, "40, loss 1.500, 3000 words/s, 12:30 left".
    """
    lines = re.findall(r"^\d+(?:/\d+|,) loss .*", log, re.MULTILINE)
    last = lines[-1] if lines else ""
    rate = re.search(r"(\d+) words/s", last)
    done, total = 0.0, 1.0
    if steps := re.match(r"(\d+)/(\d+)", last):
        done, total = map(float, steps.groups())
    elif clock := re.search(r"([\d:]+) left", last):
        parts = reversed(clock[1].split(":"))
        done, total = seconds, seconds + sum(int(x) * 60**n for n, x in enumerate(parts))
    return int(100 * done / total), int(rate[1]) if rate else 0


class _Training:
    def __init__(self, plan: Plan, model_dir: Path, cores: list[int]) -> None:
        self.plan, self.model_dir, self.cores = plan, model_dir, cores
        model_dir.mkdir(parents=True, exist_ok=True)
        self.log = model_dir / "train.log"
        self.start = time.monotonic()
        self.is_stopping = False
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "train", *plan.flags, f"--model_dir={model_dir}"],
                stdin=subprocess.PIPE,  # it stops when this is closed
                stdout=log,
                stderr=log,
                env=os.environ | {"TF_FORCE_GPU_ALLOW_GROWTH": "true"},
            )
        if hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(self.process.pid, cores)

    def progress(self) -> tuple[int, int]:
        """How far it is, in percent, and its target words a second."""
        log = self.log.read_bytes()[-2000:].decode("utf-8", "replace")
        return progress(log, time.monotonic() - self.start)

    def has_ended(self, seconds: float) -> bool:
        """Whether it has ended; stops it after `seconds`."""
        if not self.is_stopping and time.monotonic() - self.start > seconds:
            self.is_stopping = True
            self.process.terminate()
        return self.process.poll() is not None

    def conclude(self) -> str:
        """Writes the record, and returns a message about the training."""
        self.process.communicate()  # closes the pipe
        status, log = self.process.returncode, self.log.read_text("utf-8", "replace")
        if status not in (0, *STOPPED):
            last = log.rstrip().split("\n")
            what = f"the training of {self.plan.name} failed, see {self.log}: {last[-1]}"
            raise Refusal("train_all", what)
        seconds = Record.read(self.model_dir).seconds + time.monotonic() - self.start
        device = describe_device(len(self.cores))
        record = Record(seconds, device, not status, self.plan.flags)
        write_atomically(self.model_dir / _RECORD, json.dumps(asdict(record)).encode())
        how = "stopped when its time ran out" if status else "trained"
        best = re.findall(r"best model: (.+?);", log)[-1:]
        return f"{self.plan.name}: {', '.join([how, *best])}, {seconds / 60:.1f} minutes in all"


@contextlib.contextmanager
def _stopped_at_the_end() -> Iterator[list[_Training]]:
    """Stops the running trainings after an error, Ctrl-C or SIGTERM."""
    running: list[_Training] = []
    try:
        with handling({signal.SIGTERM: lambda number, _: sys.exit(128 + number)}):
            yield running
    finally:
        for training in running:
            training.process.terminate()
        for training in running:
            training.process.communicate()
