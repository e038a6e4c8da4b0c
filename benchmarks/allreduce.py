"""How fast processes on one machine add up their gradients.

    python benchmarks/allreduce.py --mbytes=400

Starts two processes with `MultiWorkerMirroredStrategy` on the loopback
interface. They all-reduce tensors of several sizes, as `fit` does with the
gradients of each update. Prints for each size the seconds by the clock, the
processor time of one process and the bytes that it sends a second: in a ring
of N each sends 2 (N - 1) / N of the tensor. No network card takes part: what
limits it is the processor, which copies and adds.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from absl import app, flags, logging

FLAGS = flags.FLAGS

flags.DEFINE_list("mbytes", ["4", "40", "400"], "Sizes of the tensors.")
flags.DEFINE_integer("repeats", 5, "All-reduces of each, after a first one.")
flags.DEFINE_integer("processes", 2, "Number of processes.")


def addresses(count: int) -> list[str]:
    """Free ports of the loopback interface."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return found


def work() -> None:
    """One process of the cluster; process 0 prints."""
    import tensorflow as tf

    logging.set_verbosity(logging.ERROR)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    count = strategy.num_replicas_in_sync

    @tf.function
    def reduced(value: tf.Tensor) -> tf.Tensor:
        def of_replica() -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            own = tf.identity(value)  # on the replica's device
            return context.all_reduce(tf.distribute.ReduceOp.SUM, own)

        return strategy.run(of_replica)

    for mbytes in map(float, FLAGS.mbytes):
        value = tf.ones([int(mbytes * 1e6 / 4)])
        found = reduced(value)
        if float(found[-1]) != count:
            raise ValueError(f"the sum of {count} ones is {float(found[-1])}")
        clock, used = [], []
        for _ in range(FLAGS.repeats):
            started, before = time.monotonic(), time.process_time()
            float(reduced(value)[-1])
            clock.append(time.monotonic() - started)
            used.append(time.process_time() - before)
        if strategy.cluster_resolver.task_id == 0:
            seconds, busy = statistics.median(clock), statistics.median(used)
            sent = 2 * (count - 1) / count * mbytes / 1e3
            print(
                f"{mbytes:g} MB: {seconds:.3f} s, processor "
                f"{busy:.3f} s, {sent / seconds:.2f} GB/s by the clock, "
                f"{sent / busy:.2f} GB/s of processor time",
                flush=True,
            )


def main(_: Sequence[str]) -> None:
    """Starts the processes, or is one of them."""
    if "TF_CONFIG" in os.environ:
        work()
        return
    workers = addresses(FLAGS.processes)
    started = [
        subprocess.Popen(
            [sys.executable, *sys.argv],
            env=os.environ
            | {
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "TF_CONFIG": json.dumps(
                    {
                        "cluster": {"worker": workers},
                        "task": {"type": "worker", "index": number},
                    }
                ),
            },
        )
        for number in range(FLAGS.processes)
    ]
    codes = [one.wait() for one in started]
    if any(codes):
        raise SystemExit(1)


if __name__ == "__main__":
    app.run(main)
