"""What RNNsearch-50 on WMT14 costs: operations, memory, hours, from counts.

    python benchmarks/wmt14.py
    python benchmarks/wmt14.py --measure

Prints the tables of docs/wmt14.md. Operations and weights are counted from the paper's equations.
Rates are assumed or measured (one by `training.py --size=paper --factored_output`); the help of
each flag says which. `--measure` makes updates at 30,000 words on one core and prints the measured
peak of memory beside the counted one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl import app, flags
from machine import cpu_seconds
from peers.job import peak_gib
from sizes import SIZES, Size
from training import make_batch, make_step, step_flops

FLAGS = flags.FLAGS

flags.DEFINE_integer("pairs", 12_000_000, "Sentence pairs of an epoch.")
flags.DEFINE_float("epochs", 5.0, "Epochs; the paper's RNNsearch-50* has 5.0.")
flags.DEFINE_float("source_words", 25.0, "Mean length, end symbol included.")
flags.DEFINE_float("target_words", 29.0, "Mean length, end symbol included.")
flags.DEFINE_bool("measure", False, "Measure memory at 30,000 words instead.")
flags.DEFINE_float(
    "core_gflops",
    85.1,
    "Measured: operations of an update at 30,000 words by its seconds, in "
    "which the pass over the weights is contained.",
)
flags.DEFINE_float("gpu_tflops", 989.0, "Datasheet: an H100 SXM's products in bfloat16.")
flags.DEFINE_float("gpu_share", 0.1, "Assumed: share of these in an update.")
flags.DEFINE_float("gpu_gbytes", 3350.0, "Datasheet: its memory, GB/s.")
flags.DEFINE_float("kernel_us", 5.0, "Assumed: time of a small GPU kernel.")
flags.DEFINE_integer("kernels", 20, "Assumed: kernels of a step, forward.")
flags.DEFINE_float("loopback_gbytes", 0.21, "Measured: all-reduce between two processes, GB/s.")
flags.DEFINE_list(
    "networks", ["1.25", "12.5"], "Assumed: GB/s of one device, such as 1.25 of 10 Gbit/s Ethernet."
)

FLOAT = 4  # bytes
GIB = 2**30 / 1e9  # GB
SUMS = 2  # all-reduces of an update: before clipping, and by Keras
SLOTS = 2  # of Adadelta, and of Adam
# Floats of each weight that an update reads or writes: its gradient is
# written, read for the norm, read and written by clipping, and read; weight
# and slots are read and written.
PASSES = 1 + 1 + 2 + 1 + 2 * (1 + SLOTS)
VOCABULARIES = (30_000, 500_000)
DEVICES = (1, 8, 64)


class Cost(NamedTuple):
    """What one update costs.

    Attributes:
        weights: Number of weights.
        flops: Operations of the matrix products.
        steps: Number of steps that follow one another, forward.
        bytes: Bytes that the pass over weights, slots and gradients moves.
        kept: Bytes of weights and slots.
        peak: Bytes at the end of the backward pass, all gradients twice (unclipped and clipped) and
            the activations besides.
    """

    weights: int
    flops: float
    steps: float
    bytes: int
    kept: int
    peak: int


def weight_count(size: Size) -> int:
    """Number of weights of RNNsearch with a factored output.

    The letters are the paper's: m, n, n', l and K. As in the authors' code, gates have no bias.
    """
    m, n, a, maxout, vocabulary = size[:5]
    embeddings = 2 * (vocabulary * m + m)
    encoder = 2 * ((m + n) * 3 * n + n)
    attention = n * a + 2 * n * a + a
    bridge = n * n + n
    decoder = (m + n + 2 * n) * 3 * n + n
    readout = (m + n + 2 * n) * 2 * maxout + 2 * maxout
    output = maxout * m + vocabulary * m + vocabulary
    return embeddings + encoder + attention + bridge + decoder + readout + output


def activation_count(size: Size, source: float, target: float) -> int:
    """Floats that the backward pass reads, of a sentence.

    Of a source word: its embedding, three pre-activations, gates and a state in each direction, the
    key and annotation. Of a target word the same of one direction, context, query and readout; and
    the scores of each pair.
    """
    m, n, a, maxout, _ = size[:5]
    of_source = m + 2 * (3 * n + 3 * n + n) + 2 * n + a
    of_target = m + 3 * n + 3 * n + n + 2 * n + a + 2 * maxout + maxout + m
    return int(source * of_source + target * of_target + 2 * source * target)


def cost_of(size: Size, source: float, target: float) -> Cost:
    """The cost of an update with sentences of these lengths."""
    FLAGS.factored_output = True
    lengths = (np.full(size.batch, x) for x in (source, target))
    weights = weight_count(size)
    activations = size.batch * activation_count(size, source, target)
    kept = FLOAT * weights * (1 + SLOTS)
    return Cost(
        weights,
        step_flops(size, *lengths),
        2 * source + target,
        FLOAT * weights * PASSES,
        kept,
        kept + FLOAT * (2 * weights + activations),
    )


def reduced_bytes(weights: int, devices: int) -> float:
    """Bytes that each device sends in a ring all-reduce of dense gradients."""
    return 2 * (devices - 1) / devices * FLOAT * weights


def sparse_bytes(size: Size, devices: int, words: float) -> float:
    """The same if both embeddings sent only the rows that were used.

    Rows differ between devices, so each device sends its own to all others. The output matrix has a
    gradient in every row and stays dense.
    """
    rows = 2 * size.vocabulary_size * size.embedding_dim
    dense = reduced_bytes(weight_count(size) - rows, devices)
    used = size.batch * words * size.embedding_dim
    return dense + (devices - 1) * FLOAT * used


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table of Markdown."""
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    print()


def core_seconds(cost: Cost) -> float:
    """Seconds of an update on one core."""
    return cost.flops / (FLAGS.core_gflops * 1e9)


def gpu_seconds(cost: Cost) -> list[float]:
    """Seconds on a GPU: products, pass over the weights, and small kernels.

    Steps come one after the other, in each direction of the encoder and in the decoder;
    back-propagation has twice as many kernels.
    """
    return [
        cost.flops / (FLAGS.gpu_tflops * 1e12 * FLAGS.gpu_share),
        cost.bytes / (FLAGS.gpu_gbytes * 1e9),
        cost.steps * 3 * FLAGS.kernels * FLAGS.kernel_us * 1e-6,
    ]


def print_updates(costs: dict[int, Cost]) -> None:
    """Prints memory and time of an update."""

    def row(name: str, text: Callable[[Cost], str]) -> list[str]:
        return [name, *map(text, costs.values())]

    def on_gpu(cost: Cost) -> str:
        return " + ".join(f"{1e3 * x:.1f}" for x in gpu_seconds(cost))

    table(
        ["", *(f"{k:,} words" for k in costs)],
        [
            row("weights, millions", lambda c: f"{c.weights / 1e6:.1f}"),
            row("operations, 10^9", lambda c: f"{c.flops / 1e9:,.0f}"),
            row("weights and slots, GB", lambda c: f"{c.kept / 1e9:.2f}"),
            row("with gradients, GB", lambda c: f"{c.peak / 1e9:.2f}"),
            row("moved by the optimizer, GB", lambda c: f"{c.bytes / 1e9:.1f}"),
            row("seconds on a core", lambda c: f"{core_seconds(c):.1f}"),
            row("milliseconds on a GPU", on_gpu),
        ],
    )


def print_hours(size: Size, costs: dict[int, Cost]) -> None:
    """Prints the hours of all epochs on several devices."""
    words = FLAGS.source_words + FLAGS.target_words
    networks = [float(x) for x in FLAGS.networks]
    rows = []
    for vocabulary, cost in costs.items():
        own = size._replace(vocabulary_size=vocabulary)
        for devices in DEVICES:
            updates = FLAGS.epochs * FLAGS.pairs / size.batch / devices
            dense = SUMS * reduced_bytes(cost.weights, devices) / 1e9
            sparse = SUMS * sparse_bytes(own, devices, words) / 1e9
            core, gpu = core_seconds(cost), sum(gpu_seconds(cost))
            speeds = [FLAGS.loopback_gbytes, *networks]
            seconds = [core + dense / speed for speed in speeds]
            seconds += [gpu + dense / speed for speed in networks]
            hours = (updates * x / 3600 for x in seconds)
            row = [f"{vocabulary:,}", devices, f"{updates:,.0f}"]
            row += [f"{dense:.2f}", f"{sparse:.2f}"]
            rows.append(row + [f"{x:,.0f}" if x >= 10 else f"{x:.1f}" for x in hours])
    names = [f"{8 * x:g} Gbit/s" for x in networks]
    head = ["words", "devices", "updates", "dense GB", "sparse GB"]
    head += [f"core, {x}" for x in ("loopback", *names)]
    table(head + [f"GPU, {x}" for x in names], rows)


def measure(size: Size) -> None:
    """Makes updates; prints the memory that they took, and that was counted."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    FLAGS.factored_output = True
    batch, *_ = make_batch(size)
    before = peak_gib("self") * GIB
    step = make_step(size)
    for _ in range(2):
        seconds = cpu_seconds(step, *batch)
    memory = peak_gib("self") * GIB - before
    counted = cost_of(size, size.source_length, size.target_length).peak / 1e9
    print(
        f"the second update: {seconds:.2f} s of processor time; memory: "
        f"{memory:.2f} GB beside {before:.2f} before the model was made; "
        f"counted: {counted:.2f} GB"
    )


def main(_: Sequence[str]) -> None:
    """Prints the tables."""
    size = SIZES["paper"]
    if FLAGS.measure:
        measure(size)
        return
    longest = {k: cost_of(size._replace(vocabulary_size=k), 50, 50) for k in VOCABULARIES}
    mean = {
        k: cost_of(size._replace(vocabulary_size=k), FLAGS.source_words, FLAGS.target_words)
        for k in VOCABULARIES
    }
    print(f"An update of {size.batch} pairs of 50 to 50 words:\n")
    print_updates(longest)
    print(
        f"An update of {size.batch} pairs of {FLAGS.source_words:g} to "
        f"{FLAGS.target_words:g} words:\n"
    )
    print_updates(mean)
    print(f"Hours of {FLAGS.epochs:g} epochs of {FLAGS.pairs:,} pairs:\n")
    print_hours(size, mean)


if __name__ == "__main__":
    app.run(main)
