"""Training speed: words per second, and the share of the peak arithmetic.

    taskset -c 0 python benchmarks/training.py --size=small
    taskset -c 0 python benchmarks/training.py --size=paper --repeats=3
    python benchmarks/training.py --size=tiny --repeats=1       # a smoke run
    python benchmarks/training.py --peers=joeynmt,marian,opennmt

One update is the step of `bahdanau_tf.training.train`, optimizer included, on one thread. Times are
processor time of this process. Before every update the rate of a matrix product is measured,
because a busy machine slows both alike. Operations are counted from the matrix products in the
paper's equations, for real words only, times three for training.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import keras
import machine
import numpy as np
import peers
import table
import tensorflow as tf
from absl import app, flags
from machine import cpu_seconds, matrix_rate
from peers.job import peak_gib
from sizes import SIZES, Size
from table import Figure

from bahdanau_tf import RNNSearch
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.training import Recipe
from bahdanau_tf.training.schedule import Schedule, make_optimizer as optimizer_of
from bahdanau_tf.training.update import logits_loss, train_step, words_loss

FLAGS = flags.FLAGS

flags.DEFINE_enum("size", "small", ["tiny", "small", "paper"], "Sizes of the model.")
flags.DEFINE_enum("optimizer", None, ["adadelta", "adam", "sgd"], "Default: by --size.")
flags.DEFINE_bool("factored_output", False, "Output layer of two matrices instead of one.")
flags.DEFINE_float("dropout", 0.0, "Dropout rate of embeddings, annotations and readout.")
flags.DEFINE_float(
    "shortest",
    1.0,
    "The shortest sentences as a share of the longest; lengths are uniform, "
    "and the batch is one of 20 that were sorted by length together.",
)
flags.DEFINE_integer("repeats", 5, "Updates to time, after a first one.")
flags.DEFINE_bool("bfloat16", False, "Whether to measure rounded products too, in turns.")
flags.DEFINE_list("peers", [], "Toolkits to measure on the same batch: joeynmt, marian, opennmt.")
flags.DEFINE_string("peer_dir", str(peers.PEER_DIR), "Folder of the peers' environments.")

POOL = 20  # batches sorted by length together
# Goals: how many times as fast as JoeyNMT, and with bfloat16 as float32.
OVER_JOEYNMT = {"small": 1.7, "paper": 1.8}
BFLOAT16 = 2.0


def step_flops(size: Size, source: np.ndarray, target: np.ndarray) -> float:
    """Operations of one training step: 2 per multiply-add, times 3.

    `source` and `target` are the numbers of words of the sentences.
    """
    m, n, a, maxout, vocabulary = size[:5]
    gates, annotation = 3 * n, 2 * n
    output = maxout * vocabulary
    if FLAGS.factored_output:
        output = maxout * m + m * vocabulary
    encoder = 2 * (m + n) * gates + annotation * a
    decoder = (m + n + annotation) * gates + n * a
    readout = (m + n + annotation) * 2 * maxout + output
    total = source.sum() * encoder
    total += target.sum() * (decoder + readout)
    total += (source * target).sum() * (a + annotation)  # e_ij and c_i
    total += len(source) * n * n  # s_0
    return 3 * 2 * float(total)


def make_batch(size: Size) -> tuple[Any, np.ndarray, np.ndarray]:
    """A batch of random words.

    Lengths are drawn for `POOL` batches and sorted; the batch has those in the middle.

    Returns:
        The batch (inputs, target, token weights), then the lengths of its source and target
        sentences.
    """
    random = np.random.default_rng(0)
    longest = (size.source_length, size.target_length)
    shares = random.uniform(FLAGS.shortest, 1.0, size.batch * POOL)
    shares = np.sort(shares)[size.batch * POOL // 2 :][: size.batch]
    sides, lengths = [], []
    for length in longest:
        words = np.maximum(np.rint(shares * length), 1).astype(int)
        words = words if FLAGS.shortest < 1 else np.full(size.batch, length)
        cells = (size.batch, words.max())
        ids = random.integers(2, size.vocabulary_size, cells)
        ids[np.arange(words.max()) >= words[:, None]] = 0
        sides.append(tf.constant(ids, tf.int32))
        lengths.append(words)
    source, target = sides
    inputs = {"source": source, "target": target}
    weights = tf.cast(target != 0, tf.float32)
    return (inputs, target, weights), *lengths


def make_model(size: Size, **options: Any) -> RNNSearch:
    """A new model of this size."""
    keras.utils.set_random_seed(1)
    return RNNSearch(
        *size.of_model,
        factored_output=FLAGS.factored_output,
        embedding_dropout=FLAGS.dropout,
        annotation_dropout=FLAGS.dropout,
        readout_dropout=FLAGS.dropout,
        **options,
    )


def make_optimizer(size: Size) -> keras.optimizers.Optimizer:
    """The optimizer of `--optimizer`, or else of the size."""
    name = FLAGS.optimizer or size.optimizer
    rate = 1.0 if name == "adadelta" else 0.001
    recipe = Recipe(optimizer=name, learning_rate=rate)
    return optimizer_of(recipe, Schedule(recipe, 1000))


def new_step(
    size: Size,
    product_dtype: str = "float32",
    parts: int = 1,
    is_compiled: bool = False,
    **options: Any,
) -> tuple[Callable[..., tf.Tensor], RNNSearch, keras.optimizers.Optimizer]:
    """The training step of a new model, the model, and its optimizer."""
    model, optimizer = make_model(size, **options), make_optimizer(size)
    cost = partial(logits_loss if is_compiled else words_loss, model, TokenCrossentropy())
    step = train_step(model, optimizer, cost, product_dtype, parts, is_compiled)
    return step, model, optimizer


def make_step(size: Size, product_dtype: str = "float32") -> Callable[..., tf.Tensor]:
    """The training step of a new model; prints its number of weights."""
    step, model, optimizer = new_step(size, product_dtype)
    weights = model.count_params() / 1e6
    print(f"{weights:.1f} million weights, {optimizer.name}, products in {product_dtype}")
    return step


def compare(peer: str, size: Size, batch: Any, step: Callable[..., tf.Tensor], words: int) -> None:
    """Measures a peer on the same batch and prints how it compares.

    This package's updates (`step`) are timed before and after it, since the speed of most machines
    changes within minutes. The batch, the inputs of a step, has so many target words.
    """
    seconds = [cpu_seconds(step, *batch) for _ in range(FLAGS.repeats)]
    theirs = peer_figures(peer, size, batch[0].values())
    seconds += [cpu_seconds(step, *batch) for _ in range(FLAGS.repeats)]
    # Of both the mean: a slow update counts for both.
    ratio = words / statistics.mean(seconds) / theirs["words_per_second"]
    print(
        f"{peer}: {theirs['seconds_per_update']:.3f} s an update, "
        f"{theirs['words_per_second']:.0f} target words/s; this package is "
        f"{ratio:.2f} times as fast; its peak memory "
        f"{theirs['peak_gib']:.2f} GiB"
    )
    goal = OVER_JOEYNMT.get(FLAGS.size) if peer == "joeynmt" else None
    what = f"training, size {FLAGS.size}: speed over that of {peer}"
    table.add([Figure(what, ratio, at_least=goal)])


def peer_figures(peer: str, size: Size, batch: Any, threads: int = 1) -> dict[str, float]:
    """The figures of `peers.measure` for a peer's training on one batch of ids, source and target.

    The last word of each sentence is left out, because the peer adds its `</s>`. The peer's model
    has these sizes, with its own kind of readout.
    """
    sides = [[row[row != 0][:-1] for row in ids.numpy()] for ids in batch]
    texts = [[row.astype(str).tolist() for row in rows] for rows in sides]
    words = [str(word) for word in range(2, size.vocabulary_size)]
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(zip(*texts, strict=True))
        peers.write_data(Path(folder), pairs, [words, words])
        return peers.measure(
            peer,
            "training",
            FLAGS.peer_dir,
            data=folder,
            model=folder,
            embedding_dim=size.embedding_dim,
            units=size.units,
            batch=size.batch,
            updates=1 + FLAGS.repeats,
            warm_up=1,
            dropout=FLAGS.dropout,
            threads=threads,
        )


def main(_: Sequence[str]) -> None:
    """Measures and prints."""
    peers.check_peers(FLAGS.peers)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    print(machine.description())
    size = SIZES[FLAGS.size]
    batch, source, target = make_batch(size)
    flops = step_flops(size, source, target)
    cells = sum(int(tf.size(ids)) for ids in batch[0].values())
    padding = 1 - (source.sum() + target.sum()) / cells
    print(
        f"{FLAGS.size}: {target.sum()} target words an update, padding "
        f"{padding:.1%}, {flops / 1e9:.1f} GFLOP"
    )
    steps = {"float32": make_step(size)}
    if FLAGS.bfloat16:
        steps["bfloat16"] = make_step(size, "bfloat16")
    medians, rate = in_turns(steps, batch)
    peak = peak_gib("self")
    for dtype, seconds in medians.items():
        print(
            f"median, {dtype}: {seconds:.3f} s an update, "
            f"{target.sum() / seconds:.0f} target words/s, "
            f"{flops / seconds / 1e9:.1f} GFLOP/s = {flops / seconds / rate:.1%} "
            f"of the matrix product's {rate / 1e9:.1f}; peak memory "
            f"{peak:.2f} GiB"
        )
    own = target.sum() / medians["float32"]
    table.add(figures(medians, own, flops / rate))
    for peer in FLAGS.peers:
        compare(peer, size, batch, steps["float32"], target.sum())


def in_turns(
    steps: Mapping[str, Callable[..., tf.Tensor]], batch: Any
) -> tuple[dict[str, float], float]:
    """Measures steps in turns, and a matrix product before each turn.

    Returns:
        The median seconds of each step, and of the product's operations a second.
    """
    for step in steps.values():
        print(f"first update: {cpu_seconds(step, *batch):.1f} s, with tracing")
    seconds: dict[str, list[float]] = {dtype: [] for dtype in steps}
    rates = []
    for number in range(FLAGS.repeats):
        rates.append(matrix_rate())
        for dtype, step in steps.items():
            seconds[dtype].append(cpu_seconds(step, *batch))
        last = ", ".join(f"{each[-1]:.3f} s" for each in seconds.values())
        print(f"update {number + 1}: {last}, matrix product {rates[-1] / 1e9:.1f} GFLOP/s")
    medians = {dtype: statistics.median(each) for dtype, each in seconds.items()}
    return medians, statistics.median(rates)


def figures(medians: Mapping[str, float], words: float, least: float) -> Iterator[Figure]:
    """The rows of the table.

    `medians` are seconds of an update by the dtype of products, `words` target words a second in
    float32, `least` the seconds of an update at the rate of a matrix product.
    """
    what = f"training, size {FLAGS.size}"
    yield Figure(what, words, "target words/s")
    row = f"{what}: operations over those of a matrix product"
    yield Figure(row, least / medians["float32"])
    if FLAGS.bfloat16:
        # Its goal is that of processors with products of bfloat16.
        goal = BFLOAT16 if "amx_bf16" in machine.processor("flags") else None
        ratio = medians["float32"] / medians["bfloat16"]
        row = f"{what}: speed with bfloat16 products over float32"
        yield Figure(row, ratio, at_least=goal)


if __name__ == "__main__":
    app.run(main)
