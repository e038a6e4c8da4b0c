"""Where the operations of a training step are, and for what the host waits.

    python benchmarks/placement.py --size=small

Needs a GPU that TensorFlow sees. Prints the number of operations on each
device, then the tensors that are copied from the GPU to the host: the host
waits for each of them.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
import training
from absl import app, flags
from sizes import SIZES
from tensorflow.python.eager import context

from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.training.step import train_step

FLAGS = flags.FLAGS
NO_WORK = ("_Arg", "_Retval", "Const", "NoOp", "_Recv", "_HostRecv")
SENDS = ("_Send", "_HostSend")


class Placement(NamedTuple):
    """Attributes: operations by device, tensors copied from GPU to host."""

    operations: collections.Counter[str]
    to_host: list[str]


def placement(function: tf.types.experimental.PolymorphicFunction, *arguments: object) -> Placement:
    """Reads how TensorFlow divides a function among devices.

    TensorFlow has no public function for this.

    Args:
        function: A function that was not called before.
        *arguments: Its arguments.
    """
    context.enable_run_metadata()
    try:
        function(*arguments)
    except tf.errors.OpError:  # TensorFlow has divided the graph nevertheless
        tf.function(lambda x: x + 1.0)(tf.zeros([]))
    metadata = context.export_run_metadata()
    context.disable_run_metadata()
    graphs = max(  # others are of single operations
        ([*each.partition_graphs] for each in metadata.function_graphs),
        key=lambda partitions: sum(len(graph.node) for graph in partitions),
    )
    nodes = [node for graph in graphs for node in graph.node]
    return Placement(
        collections.Counter(
            node.device.rpartition("/device:")[2]
            for node in nodes
            if node.op not in (*NO_WORK, *SENDS)
        ),
        [node.attr["tensor_name"].s.decode() for node in nodes if node.op == "_Send"],
    )


def main(_: Sequence[str]) -> None:
    """Prints the placement of an update."""
    if not tf.config.list_physical_devices("GPU"):
        raise app.UsageError("TensorFlow sees no GPU")
    size = SIZES[FLAGS.size]
    batch, *_ = training.make_batch(size)
    model = training.make_model(size)
    optimizer = training.make_optimizer(size)
    step = train_step(model, optimizer, TokenCrossentropy())
    operations, to_host = placement(step, *batch)
    for device, count in operations.most_common():
        print(f"{device}: {count} operations")
    print(f"{len(to_host)} copies to the host")
    for name in to_host:
        print(f"  {name}")


if __name__ == "__main__":
    app.run(main)
