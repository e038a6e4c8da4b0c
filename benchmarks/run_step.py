"""Runs a lowered training step with JAX, on the first device of JAX.

    python benchmarks/run_step.py --step=paper.npz --updates=50

Needs jax, numpy and absl-py, but neither TensorFlow nor this package. The step was lowered by
TensorFlow (`lower_step.py`) and is compiled for the device here. All updates train on the same
batch, so the loss must fall. Times are wall-clock time, from passing the arrays until the results
are computed. The rate of a large square product is measured in the same run and dtype.
`--kernels=30` also prints how many kernels an update starts on the GPU, how long they take
together, and which 30 take longest.
"""

from __future__ import annotations

import collections
import gzip
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from absl import app, flags
from jax._src.lib import xla_client
from lowered import LoweredStep

FLAGS = flags.FLAGS

flags.DEFINE_string("step", None, "File of lower_step.py.", required=True)
flags.DEFINE_integer("updates", 50, "Updates to make.", lower_bound=1)
flags.DEFINE_integer("kernels", 0, "Kernels to print, those that take longest.")

jax.config.update("jax_enable_x64", True)  # Keras counts updates in 64 bits

WARM_UP = 3  # The first updates are not timed, if there are more.
SIDES = {"cpu": 2048}  # Side of the square product by platform, or else SIDE.
SIDE = 8192


def compiled(hlo: bytes, device: Any) -> Callable[..., list[Any]]:
    """A function of arrays on the device, from a serialized HLO module.

    JAX has no public function for a module that it did not lower itself. The private functions used
    here exist in JAX 0.10.2, 0.11.2 and 0.12.0.
    """
    computation = xla_client.XlaComputation(hlo)
    to_module = xla_client._xla.mlir.xla_computation_to_mlir_module  # noqa: SLF001
    executable = device.client.compile_and_load(
        to_module(computation), xla_client.DeviceList((device,)), xla_client.CompileOptions()
    )

    def run(*arrays: Any) -> list[Any]:
        results = executable.execute_sharded(arrays)
        outputs = results.disassemble_into_single_device_arrays()
        return [output for (output,) in outputs]

    return run


def train(
    step: LoweredStep, device: Any, updates: int, run: Callable[..., list[Any]] | None = None
) -> tuple[list[float], list[float]]:
    """Runs the step on its batch: the loss before each update, and the seconds of each update.

    `run` is the step as `compiled` returns it; it is compiled here if None.
    """
    run = run or compiled(step.hlo, device)
    batch = jax.device_put(step.batch, device)
    variables = jax.device_put(step.variables, device)
    losses, seconds = [], []
    for _ in range(updates):
        started = time.perf_counter()
        loss, *new = jax.block_until_ready(run(*batch, *variables))
        seconds.append(time.perf_counter() - started)
        losses.append(float(loss))
        for place, value in zip(step.replaced, new, strict=True):
            variables[place] = value
    return losses, seconds


def profile(
    step: LoweredStep, device: Any, updates: int, run: Callable[..., list[Any]]
) -> dict[str, list[float]]:
    """Runs the step, which has run before: the seconds of each kernel or copy on the GPU, by name.

    They are those of JAX's profiler.
    """
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            train(step, device, updates, run)
        (path,) = Path(folder).rglob("*.trace.json.gz")
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    processes = {
        event["pid"]: event["args"]["name"]
        for event in events
        if event.get("name") == "process_name"
    }
    threads = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event.get("name") == "thread_name"
    }
    seconds = collections.defaultdict(list)
    for event in events:
        thread = threads.get((event.get("pid"), event.get("tid")), "")
        is_on_device = "device:" in processes.get(event.get("pid"), "") and "Stream" in thread
        if event.get("ph") == "X" and is_on_device:
            seconds[event["name"]].append(event["dur"] / 1e6)
    return seconds


def print_profile(seconds: dict[str, list[float]], updates: int) -> None:
    """Prints what `profile` returned, for one update."""
    count = sum(map(len, seconds.values())) / updates
    total = sum(map(sum, seconds.values())) / updates
    print(f"an update: {count:.0f} kernels and copies, together {total * 1e3:.2f} ms")
    longest = sorted(seconds.items(), key=lambda kernel: -sum(kernel[1]))
    for name, times in longest[: FLAGS.kernels]:
        print(
            f"  {sum(times) / updates * 1e3:8.3f} ms, {len(times) / updates:6.0f} times, "
            f"{statistics.median(times) * 1e6:8.1f} us each: {name}"
        )


def matrix_rate(device: Any, dtype: str) -> float:
    """Operations per second of a large square product, the best of ten."""
    side = SIDES.get(device.platform, SIDE)
    keys = jax.random.split(jax.random.key(0))
    a, b = (jax.device_put(jax.random.normal(key, (side, side), dtype), device) for key in keys)
    product = jax.jit(jnp.matmul)
    jax.block_until_ready(product(a, b))
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        jax.block_until_ready(product(a, b))
        seconds.append(time.perf_counter() - started)
    return 2 * side**3 / min(seconds)


def main(_: Sequence[str]) -> None:
    """Trains, measures and prints."""
    device = jax.devices()[0]
    print(f"JAX {jax.__version__}, {device.device_kind} ({device.platform})")
    if device.platform == "cpu":
        print("no GPU: this run shows that the step works, not a GPU's speed")
    step = LoweredStep.load(FLAGS.step)
    run = compiled(step.hlo, device)
    losses, seconds = train(step, device, FLAGS.updates, run)
    print(f"loss at update 1: {losses[0]:.7g}, at update {len(losses)}: {losses[-1]:.7g}")
    taken = statistics.median(seconds[WARM_UP:] or seconds)
    rate = matrix_rate(device, step.dtype)
    print(
        f"median: {taken * 1e3:.3f} ms an update, {step.words / taken:.0f} "
        f"target words/s, {step.flops / taken / 1e12:.3f} TFLOP/s = "
        f"{step.flops / taken / rate:.1%} of the {step.dtype} matrix "
        f"product's {rate / 1e12:.3f}",
        flush=True,
    )
    if FLAGS.kernels:
        print_profile(profile(step, device, WARM_UP, run), WARM_UP)


if __name__ == "__main__":
    app.run(main)
