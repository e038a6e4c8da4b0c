"""How the cost of a training step and of a search grows with each size.

    taskset -c 0 python benchmarks/curves.py

Each line gives the processor time of size SMALL with one number changed, and
this time per operation of the matrix products, relative to size SMALL
unchanged: 1.00 means that time grew as the number of operations did.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import training
from absl import app, flags
from machine import cpu_seconds
from sizes import SIZES

from bahdanau_tf import Decoding, RNNSearch

FLAGS = flags.FLAGS
flags.DEFINE_integer("rounds", 5, "measurements of each, of which the median")

SMALL = SIZES["small"]
TRAINING = {
    "source_length": (7, 13, 26, 52, 104),
    "vocabulary_size": (2_500, 5_000, 10_000, 20_000, 40_000),
    "batch": (20, 40, 80, 160),
    "units": (128, 256, 512, 1024),
}
SEARCH = {
    "beam": (1, 2, 5, 12, 24),
    "steps": (5, 10, 20, 40, 80),
    "batch": (1, 8, 32, 64),
}
BASE = {"beam": 5, "steps": 20, "batch": 32}


class _Text:
    """The special ids that a search needs."""

    pad_id = 0
    eos_id = 1
    unk_id = 2


def training_steps(
    name: str, values: Sequence[int]
) -> Iterator[tuple[int, Callable[[], Any], float]]:
    """Yields each value, a training step of that size, and its operations."""
    for value in values:
        size = SMALL._replace(**{name: value})
        batch, source, target = training.make_batch(size)
        step = training.make_step(size)
        flops = training.step_flops(size, source, target)
        yield value, lambda step=step, batch=batch: step(*batch), flops


def searches(
    model: RNNSearch, name: str, values: Sequence[int]
) -> Iterator[tuple[int, Callable[[], Any], float]]:
    """Yields each value, a search of that size, and its operations.

    A search always takes all its steps: the length limits forbid to end
    earlier.
    """
    random = np.random.default_rng(0)
    for value in values:
        beam, steps, batch = ({**BASE, name: value}[key] for key in BASE)
        shape = (batch, SMALL.source_length)
        source = random.integers(3, SMALL.vocabulary_size, shape)
        decoding = Decoding(
            beam_size=beam,
            max_length=steps,
            max_length_ratio=1e6,
            min_length_ratio=1e6,
        )

        @tf.function(autograph=False)
        def search(ids: tf.Tensor, decoding: Decoding = decoding) -> Any:
            memory, state = model.encode(ids)
            step = model.decode_step
            return decoding.search(step, state, memory, ids, 0, _Text)

        ids = tf.constant(source, tf.int32)
        words = np.full(batch, SMALL.source_length)
        flops = search_flops(words, beam * steps)
        yield value, lambda search=search, ids=ids: search(ids), flops


def search_flops(words: np.ndarray, hypotheses: int) -> float:
    """Operations of a plain search: a third of those of training."""
    target = np.full(len(words), hypotheses)
    return training.step_flops(SMALL, words, target) / 3


def measured(
    cases: Iterator[tuple[int, Callable[[], Any], float]], base: int
) -> Iterator[tuple[int, float, float]]:
    """Yields each value, its seconds, and its relative time per operation.

    Every round measures all cases, so that a busy minute of the machine slows
    all of them alike.
    """
    values, functions, flops = zip(*cases, strict=True)
    for function in functions:
        cpu_seconds(function)
    rounds = [[cpu_seconds(function) for function in functions] for _ in range(FLAGS.rounds)]
    seconds = np.median(rounds, axis=0)
    unit = seconds[values.index(base)] / flops[values.index(base)]
    for value, taken, operations in zip(values, seconds, flops, strict=True):
        yield value, float(taken), float(taken / operations / unit)


def report(what: str, rows: Iterator[tuple[int, float, float]]) -> None:
    """Prints a curve."""
    for value, seconds, ratio in rows:
        print(f"{what} {value:6}: {seconds * 1e3:8.1f} ms, {ratio:.2f}")
    print(flush=True)


def main(_: Sequence[str]) -> None:
    """Measures and prints."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    started = time.monotonic()
    for name, values in TRAINING.items():
        base = getattr(SMALL, name)
        rows = measured(training_steps(name, values), base)
        report(f"training, {name}", rows)
    model = training.make_model(SMALL, kernel_initializer="glorot_uniform")
    for name, values in SEARCH.items():
        rows = measured(searches(model, name, values), BASE[name])
        report(f"search, {name}", rows)
    print(f"{time.monotonic() - started:.0f} s in all")


if __name__ == "__main__":
    app.run(main)
