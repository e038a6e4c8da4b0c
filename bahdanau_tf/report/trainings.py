"""Trains systems, several at a time, each in its own process.

Each training is a command `bahdanau-tf train`, so that anybody can repeat it; it resumes from its
last checkpoint. Finished systems are not trained again.

The quick suite takes about 15 minutes on two cores, the full one several hours. Both stop a system
when its time is over, and resume when they are run again.
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple, TypedDict

from bahdanau_tf.options import ModelOptions
from bahdanau_tf.system.cores import available_cores
from bahdanau_tf.system.device import describe_device
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.system.terminal import ProgressLine

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
    """A system to train."""

    name: str
    flags: tuple[str, ...]  # of `bahdanau-tf train`, without --model_dir
    counterpart: str = ""  # the paper's system that it corresponds to

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


class Logged(TypedDict, total=False):
    """The entries of a line of a training's log that a report uses."""

    step: int
    epoch: float
    seconds: float
    device: str


def last_evaluation(model_dir: Path) -> Logged:
    """The last line of the training's log; empty if there is none."""
    path = model_dir / "log.jsonl"
    text = path.read_text("utf-8", "replace") if path.is_file() else ""
    lines = text.split("\n")[:-1]  # without one that is being written
    entries: Logged = json.loads(lines[-1]) if lines else {}
    return entries


def train_all(plans: Sequence[Plan], folder: Path, minutes: float, jobs: int) -> dict[str, Path]:
    """Trains the systems that are not finished.

    If the flags of a finished one have changed, `train` resumes it or refuses them. After `minutes`
    (0: no limit) a training is stopped, and the next call resumes it. `jobs` systems at a time
    share the cores. Each has a folder, with its `train.log`, in `folder`; those that have a model
    are returned. If a training fails, raises ValueError with the last line of its log.
    """
    folders = {plan.name: folder / plan.folder for plan in plans}
    left = []
    for plan in plans:
        record = Record.read(folders[plan.name])
        if not record.is_over or record.flags != plan.flags:
            left.append(plan)
    cores = available_cores()
    free = [cores[job::jobs] or cores for job in range(jobs)]
    total = 100 * len(plans)
    done = total - 100 * len(left)
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
    """A training in its own process."""

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
            raise Refusal(
                "train_all", f"the training of {self.plan.name} failed, see {self.log}: {last[-1]}"
            )
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
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield running
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
        for training in running:
            training.process.terminate()
        for training in running:
            training.process.communicate()


class Files(NamedTuple):
    """The paths of text files; those that `bahdanau-tf train` reads are named like its flags."""

    train_source: str | None = None
    train_target: str | None = None
    dev_source: str | None = None
    dev_target: str | None = None
    source: str | None = None
    reference: str | None = None
    alignments: str | None = None


class Budget(NamedTuple):
    """How long a system is trained."""

    longest: int  # sentence, in the unit of `Suite.limit`; longer ones are left out
    epochs: float = 0.0  # if `updates` is 0
    updates: int = 0

    def flags(self) -> list[str]:
        """The flags of `bahdanau-tf train` that limit a training."""
        if not self.updates:
            return [f"--epochs={self.epochs:g}"]
        return [f"--updates={self.updates}", "--epochs=10000", "--minutes=0"]


@dataclass(frozen=True)
class Suite:
    """Systems to train."""

    # Budgets of RNNsearch and RNNencdec, by the suffix in the names of the paper's systems, the
    # longest first. The paper has no RNNencdec-50*.
    attention: Mapping[str, Budget]
    lstm: Budget  # of each LSTM
    reversed_count: int  # LSTMs with a reversed source; one more reads it forward
    minutes: float  # longest training of a system in one call
    common: str  # flags of every training; each model gets those that it uses
    limit: str = "max_length"  # the flag of the longest sentence: this, in tokens, or "max_words"
    # Sentence pairs of the built-in corpus in "train", "dev" and "test"; empty for a user's corpus.
    pairs: Mapping[str, int] = field(default_factory=dict)

    @property
    def longest(self) -> int:
        """Number of words of the longest training sentence."""
        return max(budget.longest for budget in self.attention.values())

    def plans(self, files: Files, more: Sequence[str] = ()) -> list[Plan]:
        """The systems, the longest trainings first; `more` has flags for all that use them."""
        corpus = [f"--{name}={getattr(files, name)}" for name in Files._fields[:4]]
        plans = []
        for name, counterpart, model, budget, own in self._systems():
            flags = (
                *corpus,
                *self.common.split(),
                f"--model={model}",
                f"--{self.limit}={budget.longest}",
                *budget.flags(),
                *own,
                *more,
            )
            unused = ModelOptions(model=model).unused()  # type: ignore[arg-type]
            refused = {f"--{no}{flag}" for flag in unused for no in ("", "no")}
            flags = tuple(flag for flag in flags if flag.partition("=")[0] not in refused)
            plans.append(Plan(name, flags, counterpart))
        return plans

    def _systems(self) -> Iterator[tuple[str, str, str, Budget, list[str]]]:
        """Name, the paper's system, model, budget and flags of its own."""
        for limit, budget in self.attention.items():
            star = "*" * limit.endswith("*")
            for model in ("RNNsearch", "RNNencdec")[: 1 if star else 2]:
                name = f"{model}-{budget.longest}{star}"
                # All except the longer trained one make the same number of updates.
                own = ["--patience=10000"] * bool(budget.updates and not star)
                yield name, f"{model}-{limit}", model.lower(), budget, own
        for number in range(1 + self.reversed_count):
            name = f"LSTM reversed {number}" if number else "LSTM forward"
            own = [f"--seed={max(number, 1)}"]
            own.append(f"--{'' if number else 'no'}reverse_source")
            yield name, "", "seq2seq-lstm", self.lstm, own


_COMMON = "--recipe=paper --optimizer=adam --schedule=linear --shuffle=each_epoch --shuffle_pool"
_MODELS = "--nofactored_output --initialization=glorot --layers=2"
# Without the rare words of the built-in corpus, so that there are unknown words.
_GRAMMAR = "--source_vocabulary_size=200 --target_vocabulary_size=260"
_LARGE = "--units=256 --embedding_dim=256 --learning_rate=0.002"
_LARGE_MODELS = f"{_MODELS} --attention_units=256 --maxout_units=256"

QUICK = Suite(
    attention={"50": Budget(30, 3.5), "30": Budget(15, 5.0)},
    lstm=Budget(15, 4.0),
    reversed_count=1,
    minutes=3.2,
    common=f"{_COMMON} {_GRAMMAR} --units=128 --embedding_dim=64 --learning_rate=0.004 "
    f"--warmup_steps=50 --batch_size=64 {_MODELS} --attention_units=64 --maxout_units=64",
    pairs={"train": 20_000, "dev": 100, "test": 300},
)
# The paper's, in the step order of its code; `train` chooses the sizes.
_PAPER_FORM = (
    "--tokenizer=word --step_order=original --factored_output --notie_embeddings "
    "--initialization=paper --embedding_dropout=0 --annotation_dropout=0 --readout_dropout=0 "
    "--optimizer=adadelta --learning_rate=1.0 --schedule=constant --product_dtype=float32 "
    "--label_smoothing=0 --batch_size=80 --shuffle=once --noshuffle_pool"
)
# The paper's -50* made 2.3 times as many updates as its -50.
FULL = Suite(
    attention={
        "50*": Budget(50, updates=18_000),
        "50": Budget(50, updates=8_000),
        "30": Budget(30, updates=8_000),
    },
    lstm=Budget(50, updates=8_000),
    reversed_count=5,
    minutes=120.0,
    common=_PAPER_FORM,
    limit="max_words",
)
FULL_GRAMMAR = Suite(
    attention={"50*": Budget(30, 16.0), "50": Budget(30, 8.0), "30": Budget(15, 8.0)},
    lstm=Budget(30, 8.0),
    reversed_count=5,
    minutes=120.0,
    common=f"{_COMMON} {_LARGE} {_GRAMMAR} {_LARGE_MODELS}",
    pairs={"train": 100_000, "dev": 500, "test": 3_000},
)
