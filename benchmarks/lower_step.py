"""Compiles the training step with XLA and writes it to a file.

    python benchmarks/lower_step.py --size=paper --output=paper.npz
    python benchmarks/lower_step.py --size=small --output=small.npz --repeats=5

Other flags are those of `training.py`. With `--repeats` both kinds of `train_step` are
measured in turn, on one thread.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import training
from absl import app, flags
from lowered import STORED, LoweredStep, drawn
from sizes import SIZES, Size
from tensorflow.compiler.xla.service import hlo_pb2

FLAGS = flags.FLAGS

flags.DEFINE_enum(
    "policy",
    "float32",
    ["float32", "mixed_bfloat16", "mixed_float16"],
    "Dtype policy of the model.",
)
flags.DEFINE_enum(
    "product_dtype",
    "float32",
    ["float32", "bfloat16", "float16"],
    "What operands of products are rounded to, as by `train`; with the policy float32.",
)
flags.DEFINE_string("output", None, "The .npz to write.", required=True)
FLAGS.set_default("repeats", 0)


def draw(variables: Sequence[keras.Variable]) -> list[int]:
    """Draws new values for weight matrices; returns each variable's seed."""
    seeds = [STORED] * len(variables)
    for i, variable in enumerate(variables):
        if variable.trainable and len(variable.shape) > 1:
            seeds[i] = i
            variable.assign(drawn(i, variable.shape))
    return seeds


def lower(
    step: Any, batch: Any, variables: Sequence[keras.Variable], seeds: Sequence[int], **counted: Any
) -> LoweredStep:
    """A compiled `train_step` as an HLO module with its inputs, the arguments `batch`.

    The variables, weights and the optimizer's, are not yet updated; their seeds are from `draw`, or
    `STORED`. `counted` are `words`, `flops` and `dtype` of `LoweredStep`.
    """
    ir = step.experimental_get_compiler_ir(*batch)
    # Which output replaces which input: "{output}: (input, {}, may-alias), ..."
    head = ir(stage="hlo").partition("\n")[0]
    inputs = [int(i) for i in re.findall(r"\{\d+\}: \((\d+), \{\}", head)]
    places = {v.value.handle.ref(): i for i, v in enumerate(variables)}
    captured = step.get_concrete_function(*batch).captured_inputs
    order = [places[handle.ref()] for handle in captured]
    arrays = [tensor.numpy() for tensor in tf.nest.flatten(batch)]
    return LoweredStep(
        hlo=without_copies(ir(stage="hlo_serialized")),
        batch=arrays,
        variables=[variables[i].numpy() for i in order],
        seeds=[seeds[i] for i in order],
        replaced=[i - len(arrays) for i in inputs],
        **counted,
    )


def without_copies(hlo: bytes) -> bytes:
    """The HLO module with reshapes to the same shape in place of copies.

    StableHLO, the form in which JAX passes programs to a GPU, has no copy.
    """
    module = hlo_pb2.HloModuleProto.FromString(hlo)
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode == "copy":
                instruction.opcode = "reshape"
    return module.SerializeToString()


def make_step(size: Size, is_compiled: bool) -> tuple[Any, list[keras.Variable], list[int]]:
    """The step of a new model, the variables of model and optimizer, and their seeds."""
    step, model, optimizer = training.new_step(
        size, FLAGS.product_dtype, is_compiled=is_compiled, dtype=FLAGS.policy
    )
    variables = [*model.variables, *optimizer.variables]
    return step, variables, draw(variables)


def compare(size: Size, compiled: Any, batch: Any) -> None:
    """Measures the plain step and the compiled one in turn."""
    plain, *_ = make_step(size, is_compiled=False)
    seconds = []
    for number in range(1 + FLAGS.repeats):
        taken = []
        for name, step in (("plain", plain), ("compiled", compiled)):
            started = time.process_time()
            loss = float(step(*batch))
            taken.append(time.process_time() - started)
            print(f"update {number}, {name}: loss {loss:.7g}, {taken[-1]:.3f} s")
        seconds.append(taken)
    plain_seconds, compiled_seconds = np.median(seconds[1:], axis=0)
    print(
        f"median: {plain_seconds:.3f} s plain, {compiled_seconds:.3f} s compiled, which is "
        f"{plain_seconds / compiled_seconds:.2f} times as fast"
    )


def main(_: Sequence[str]) -> None:
    """Lowers the step, writes it and, with `--repeats`, measures it."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    size = SIZES[FLAGS.size]
    compute_dtype = keras.dtype_policies.get(FLAGS.policy).compute_dtype
    dtype = compute_dtype if FLAGS.product_dtype == "float32" else FLAGS.product_dtype
    batch, source, target = training.make_batch(size)
    step, variables, seeds = make_step(size, is_compiled=True)
    lowered = lower(
        step,
        batch,
        variables,
        seeds,
        words=int(target.sum()),
        flops=training.step_flops(size, source, target),
        dtype=dtype,
    )
    lowered.save(FLAGS.output)
    print(
        f"{FLAGS.output}: {FLAGS.size}, products in {dtype}, {lowered.words} target "
        f"words an update, {lowered.flops / 1e9:.1f} GFLOP; TensorFlow "
        f"{tf.__version__}"
    )
    if FLAGS.repeats:
        compare(size, step, batch)


if __name__ == "__main__":
    app.run(main)
