"""Kills workers of a training on several processes, and compares the end.

    python benchmarks/cluster.py --out_dir=cluster --workers=3 --kills=5

A tiny model is trained on a generated corpus by several processes of this
machine, once without interruption, and once while again and again a random worker
is killed or, with --freeze, stopped by SIGSTOP. The others must end by themselves;
the program measures how long that takes. Then the same command resumes the training.

The exit status is 1 unless the others end with status 2 and the message for
it, and all that training saves is equal bit for bit at the end.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from absl import app, flags
from tiny import differences, start, training, write_texts

FLAGS = flags.FLAGS
flags.DEFINE_string("out_dir", None, "a new folder", required=True)
flags.DEFINE_integer("workers", 3, "number of processes", lower_bound=2)
flags.DEFINE_integer("kills", 5, "number of kills", lower_bound=1)
flags.DEFINE_integer("updates", 150, "updates of the training")
flags.DEFINE_bool("freeze", False, "stop a worker by SIGSTOP, as if it hung")
flags.DEFINE_float("spread", 20.0, "seconds of training until a kill, at most")
flags.DEFINE_integer("seed", 1, "seed of the moments")

LONGEST = 1800  # seconds that a process may take
MESSAGE = "train: another worker has ended or cannot be reached"


class Workers:
    """The processes of a training, with the output of each in a file."""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        addresses = [f"127.0.0.1:{port}" for port in free_ports(FLAGS.workers)]
        self._outputs = [folder / f"output-{index}" for index in range(FLAGS.workers)]
        self._processes = []
        for index, output in enumerate(self._outputs):
            task = {"type": "worker", "index": index}
            config = json.dumps({"cluster": {"worker": addresses}, "task": task})
            command = ["-m", "bahdanau_tf", *words]
            self._processes.append(start(command, folder, output, TF_CONFIG=config))

    def output(self, index: int) -> str:
        """What a worker has written so far."""
        return self._outputs[index].read_text(errors="replace")

    def train(self) -> bool:
        """Waits for the first update; whether there is one."""
        end = time.monotonic() + LONGEST
        while " loss " not in self.output(0) and time.monotonic() < end:
            if self._processes[0].poll() is not None:
                return False
            time.sleep(0.05)
        return True

    def is_over_in(self, seconds: float) -> bool:
        """Waits so long; whether the chief has ended."""
        try:
            self._processes[0].wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self, index: int, number: signal.Signals) -> None:
        """Sends a signal to a worker."""
        self._processes[index].send_signal(number)

    def statuses(self, but: int | None = None) -> list[int]:
        """Waits for all workers, or all except one; their exit statuses."""
        others = (worker for index, worker in enumerate(self._processes) if index != but)
        return [worker.wait(LONGEST) for worker in others]

    def close(self) -> None:
        """Ends all processes."""
        for worker in self._processes:
            worker.kill()
            worker.wait()


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [each.getsockname()[1] for each in sockets]


def whole_training(data: Path, folder: Path) -> None:
    """Trains or resumes, to the end; RuntimeError if a worker fails."""
    with closing(Workers(training(data, folder, FLAGS.updates), folder)) as workers:
        for index, status in enumerate(workers.statuses()):
            if status:
                raise RuntimeError(f"worker {index}: {workers.output(index)[-2000:]}")


def killed_training(data: Path, folder: Path, chance: random.Random) -> Iterator[str]:
    """Trains with one kill after the other; yields what was wrong."""
    number = signal.SIGSTOP if FLAGS.freeze else signal.SIGKILL
    for count in range(1, FLAGS.kills + 1):
        with closing(Workers(training(data, folder, FLAGS.updates), folder)) as workers:
            victim = chance.randrange(FLAGS.workers)
            is_over = not workers.train()
            if is_over or workers.is_over_in(chance.uniform(0, FLAGS.spread)):
                print("the training was over before the next kill", flush=True)
                break
            workers.kill(victim, number)
            killed = time.monotonic()
            statuses = workers.statuses(but=victim)
            seconds = time.monotonic() - killed
            print(
                f"kill {count} of {FLAGS.kills}: worker {victim}; the others "
                f"ended {seconds:.1f} s later",
                flush=True,
            )
            others = (i for i in range(FLAGS.workers) if i != victim)
            for index, status in zip(others, statuses, strict=True):
                if status != 2 or MESSAGE not in workers.output(index):
                    yield f"worker {index} ended with {status}: {workers.output(index)[-500:]}"
    whole_training(data, folder)


def main(_: Sequence[str]) -> int:
    """Trains, kills, compares."""
    out, chance = Path(FLAGS.out_dir).absolute(), random.Random(FLAGS.seed)
    whole, killed = out / "whole", out / "killed"
    for folder in (out, whole, killed):
        folder.mkdir(parents=True)
    write_texts(out / "data")
    print(f"training without interruption: {whole}", flush=True)
    whole_training(out / "data", whole)
    wrong = [
        *killed_training(out / "data", killed, chance),
        *differences(killed / "model", whole / "model"),
    ]
    print("\n".join(wrong) or "equal bit for bit")
    return bool(wrong)


if __name__ == "__main__":
    app.run(main)
