"""What more cores bring, in training and in the translation of many lines.

    python benchmarks/threads.py --size=small --repeats=9 --peers=joeynmt
    python benchmarks/threads.py --size=paper --repeats=3
    python benchmarks/threads.py --job=translation --size=small --repeats=5

A process is started for each of `--threads`. Then they do the same job in turns: an update on the
batch of `training.py`, whose flags are those of this program, too; or the translation of random
lines by beam search, up to 20 words each. Times are wall-clock times, so nothing else may run.
Peers are measured afterwards on the same batch, with one thread by their processor time.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import peers
import table
import training
from absl import app, flags
from peers.job import peak_gib
from sizes import SIZES, Size
from table import Figure

FLAGS = flags.FLAGS

flags.DEFINE_list("threads", ["1", "2"], "Numbers of threads, in turns.")
flags.register_validator(
    "threads",
    lambda counts: all(count.isdigit() and int(count) for count in counts),
    "wanted numbers from 1",
)
flags.DEFINE_enum("job", "training", ["training", "translation"], "What to measure.")
flags.DEFINE_integer("lines", 640, "Number of lines to translate.")
flags.DEFINE_integer("child", None, "The threads of a process started here.")

# The time of two threads as a share of that of one, at most.
GOALS = {"training": 0.6, "translation": 0.55}


def training_job(size: Size) -> Callable[[], object]:
    """An update of the weights."""
    batch, *_ = training.make_batch(size)
    step, *_ = training.new_step(size, parts=FLAGS.child)
    return lambda: float(step(*batch))


def translation_job(size: Size) -> Callable[[], object]:
    """A translation of lines of 5 to 30 words by an untrained model."""
    from untrained import make_lines, make_translator

    from bahdanau_tf.options import Decoding

    translator = make_translator(size)
    translator.decoding = Decoding(beam_size=5, max_length=20)
    lines = make_lines(FLAGS.lines, shortest=5, longest=30)
    return lambda: translator.translate(lines)


def work(size: Size) -> None:
    """Does the job once for each line of standard input; prints seconds."""
    from bahdanau_tf.system.device import use_threads

    use_threads(FLAGS.child)
    job = (training_job if FLAGS.job == "training" else translation_job)(size)
    job(), job()
    print("ready", flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        job()
        print(time.perf_counter() - started, flush=True)


def in_turns(counts: Sequence[int]) -> dict[int, list[float]]:
    """The seconds that processes of these numbers of threads take."""
    processes = {
        count: subprocess.Popen(
            [sys.executable, *sys.argv, f"--child={count}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for count in counts
    }
    for process in processes.values():
        while process.stdout.readline() != "ready\n":
            if process.poll() is not None:
                raise RuntimeError("a process ended before it was ready")
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(FLAGS.repeats):
        for count, process in processes.items():
            print(file=process.stdin, flush=True)
            seconds[count].append(float(process.stdout.readline()))
    for count, process in processes.items():
        print(f"peak memory of {count} threads: {peak_gib(process.pid):.2f} GiB")
        process.communicate()
    return seconds


def main(_: Sequence[str]) -> None:
    """Measures and prints."""
    peers.check_peers(FLAGS.peers)
    size = SIZES[FLAGS.size]
    if FLAGS.child is not None:
        work(size)
        return
    counts = [*map(int, FLAGS.threads)]
    times = in_turns(counts)
    medians = {count: statistics.median(each) for count, each in times.items()}
    for count, seconds in medians.items():
        print(
            f"{FLAGS.job}, {FLAGS.size}, {count} threads: median "
            f"{seconds:.3f} s, {min(times[count]):.3f} to "
            f"{max(times[count]):.3f}, {seconds / medians[counts[0]]:.2f} of "
            f"the time of {counts[0]}",
            flush=True,
        )
    table.add(
        Figure(
            f"{FLAGS.job}, size {FLAGS.size}: time with {count} threads over that with {counts[0]}",
            medians[count] / medians[counts[0]],
            at_most=GOALS[FLAGS.job] if [counts[0], count] == [1, 2] else None,
        )
        for count in counts[1:]
    )
    for peer in FLAGS.peers if FLAGS.job == "training" else ():
        batch, *_ = training.make_batch(size)
        for count in counts:
            figures = training.peer_figures(peer, size, batch[0].values(), count)
            seconds = figures["seconds_per_update"]
            print(
                f"{peer}, {count} threads: {seconds:.3f} s an update; this "
                f"package is {seconds / medians[count]:.2f} times as fast",
                flush=True,
            )


if __name__ == "__main__":
    app.run(main)
