"""Where the operations of an update or a search are, and for what the host waits.

    python benchmarks/placement.py --size=small
    python benchmarks/placement.py --size=small --job=beam

Needs a GPU that TensorFlow sees. Prints the number of operations on each device, then the tensors
that are copied from the GPU to the host: the host waits for each of them. Those of a search's step
have `while/while` in their names. Last comes, for each loop, the number of operations on the GPU in
one step that compute something: each starts at most one kernel, and those on the counter none.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
import training
from absl import app, flags
from sizes import SIZES
from tensorflow.python.eager import context

from bahdanau_tf.models.stepwise import TranslationModel
from bahdanau_tf.search import beam_search
from bahdanau_tf.search.constraints import forbid
from bahdanau_tf.translation.shortlist import full_step

FLAGS = flags.FLAGS
flags.DEFINE_enum("job", "update", ["update", "greedy", "beam"], "What is placed.")
NO_WORK = ("_Arg", "_Retval", "Const", "NoOp", "_Recv", "_HostRecv")
SENDS = ("_Send", "_HostSend")
NO_KERNEL = ("Identity", "Reshape", "ExpandDims", "Shape", "TensorListSetItem", "Switch", "Merge")


class Placement(NamedTuple):
    """Attributes: operations by device, tensors copied from GPU to host, operations by loop."""

    operations: collections.Counter[str]
    to_host: list[str]
    of_step: collections.Counter[str]


def placement(function: tf.types.experimental.PolymorphicFunction, *arguments: object) -> Placement:
    """Reads how TensorFlow divides a function, which was not called before, among devices.

    TensorFlow has no public function for this.
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
        collections.Counter(
            loop[1]
            for node in nodes
            if (loop := re.match(r"(.*?while(?:_\d+)?)/body/", node.name))
            and "GPU" in node.device
            and node.op not in (*NO_WORK, *SENDS, *NO_KERNEL)
        ),
    )


def search(model: TranslationModel, beam: int) -> tf.types.experimental.PolymorphicFunction:
    """A search over all words, as a function of source ids and largest lengths."""

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)],
        autograph=False,
    )
    def hypotheses(source: tf.Tensor, longest: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        memory, state = model.encode(source)
        result = beam_search(
            full_step(model, model.output_weights()),
            state,
            memory,
            start_id=model.start_id,
            eos_id=1,
            max_length=longest,
            beam_size=beam,
            constraints=[forbid([0])],
        )
        return result.tokens, result.scores

    return hypotheses


def main(_: Sequence[str]) -> None:
    """Prints the placement of an update or a search."""
    if not tf.config.list_physical_devices("GPU"):
        raise app.UsageError("TensorFlow sees no GPU")
    size = SIZES[FLAGS.size]
    batch, *_ = training.make_batch(size)
    if FLAGS.job == "update":
        function, *_ = training.new_step(size)
    else:
        function = search(training.make_model(size), 5 if FLAGS.job == "beam" else 1)
        batch = batch[0]["source"], tf.fill([size.batch], size.target_length)
    operations, to_host, of_step = placement(function, *batch)
    for device, count in operations.most_common():
        print(f"{device}: {count} operations")
    print(f"{len(to_host)} copies to the host")
    for name in to_host:
        print(f"  {name}")
    for loop, count in of_step.items():
        print(f"{count} operations in a step of {loop}")


if __name__ == "__main__":
    app.run(main)
