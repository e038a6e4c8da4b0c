"""The training step of the GPU benchmark equals that of training."""

import importlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracle import randomized
from refusals import refused
from worker import mean_model

from bahdanau_tf import Recipe, RNNSearch
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.optimizers import Adam
from bahdanau_tf.training.update import (
    StaticShapes,
    logits_loss,
    make_update,
    train_step,
    words_loss,
)

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
COUNTED = {"words": 8, "flops": 2.5e9, "dtype": "float32"}
UPDATES = 3
POLICIES = ["float32", "mixed_bfloat16", "mixed_float16"]


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[Any]:
    """Imports a module of benchmarks/ by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield importlib.import_module


def make_batch() -> Any:
    """A batch of sentences of different lengths."""
    source = tf.constant([[3, 4, 5, 6], [7, 8, 0, 0]])
    target = tf.constant([[5, 3, 9, 10, 1], [4, 4, 1, 0, 0]])
    weights = tf.cast(target != 0, tf.float32)
    return {"source": source, "target": target}, target, weights


def rnnsearch(policy: str) -> RNNSearch:
    keras.utils.set_random_seed(1)  # for the seeds of dropout, which are variables
    return RNNSearch(11, 12, 3, 4, 5, 2, embedding_bias=False, copying="hint", dtype=policy)


def make_step(model: keras.Model, is_compiled: bool) -> tuple[Any, list[keras.Variable]]:
    """A training step, and all variables that it reads and changes."""
    randomized(model)
    optimizer = Adam(0.01, max_norm=1.0)
    cost = partial(logits_loss if is_compiled else words_loss, model, TokenCrossentropy())
    step = train_step(model, optimizer, cost, is_compiled=is_compiled)
    return step, [*model.variables, *optimizer.variables]


@pytest.fixture(scope="module", params=POLICIES)
def trained(request: Any, benchmarks: Any) -> SimpleNamespace:
    """Both steps after some updates; the compiled one was lowered before."""
    lower_step, policy = benchmarks("lower_step"), request.param
    batch = make_batch()
    compiled, variables = make_step(rnnsearch(policy), is_compiled=True)
    seeds = [lower_step.STORED] * len(variables)
    lowered = lower_step.lower(compiled, batch, variables, seeds, **COUNTED)
    plain, others = make_step(rnnsearch(policy), is_compiled=False)
    plain = plain.python_function  # tracing would take seconds
    return SimpleNamespace(
        policy=policy,
        lowered=lowered,
        compiled=[float(compiled(*batch)) for _ in range(UPDATES)],
        plain=[float(plain(*batch)) for _ in range(UPDATES)],
        variables=[v.numpy() for v in variables],
        plain_variables=[v.numpy() for v in others],
    )


@pytest.mark.slow
def test_the_compiled_step_equals_the_training_step(trained):
    """In half precision XLA rounds differently: only losses are compared."""
    is_exact = trained.policy == "float32"
    rtol = 1e-5 if is_exact else 0.02
    np.testing.assert_allclose(trained.compiled, trained.plain, rtol=rtol)
    assert trained.compiled[-1] < trained.compiled[0]
    for compiled, plain in zip(trained.variables, trained.plain_variables, strict=True):
        assert compiled.dtype == plain.dtype
        if is_exact:  # an update is about 0.01
            np.testing.assert_allclose(compiled, plain, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "is_eager"),  # a small model is compiled; the whole one in the slow tests
    [(lambda: mean_model(12), False), (lambda: rnnsearch("float32"), True)],
)
def test_padding_to_fixed_shapes_changes_no_update(make, is_eager):
    """Two rows become five, lengths 4 and 5 become 6."""
    batch = make_batch()
    padded = StaticShapes(rows=5, width=3).padded(batch)
    inputs, target, weights = padded
    assert inputs["source"].shape == target.shape == weights.shape == (5, 6)
    assert weights.sum() == 8
    compiled, variables = make_step(make(), is_compiled=True)
    plain, others = make_step(make(), is_compiled=False)
    plain = plain.python_function
    compiled = compiled.python_function if is_eager else compiled
    for _ in range(UPDATES):
        np.testing.assert_allclose(float(compiled(*padded)), float(plain(*batch)), rtol=1e-5)
    for ours, wanted in zip(variables, others, strict=True):
        np.testing.assert_allclose(ours.numpy(), wanted.numpy(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("obstacle", [{"max_length": 0}, {"token_budget": 9}, {"risk_samples": 2}])
def test_what_cannot_be_compiled_is_refused(obstacle):
    ((name, value),) = obstacle.items()
    refused(lambda: Recipe(jit_compile="on", **obstacle), "jit_compile is 'on'", f"{name}={value}")


def test_nothing_is_compiled_for_several_devices():
    model = SimpleNamespace(distribute_strategy=SimpleNamespace(num_replicas_in_sync=2))
    recipe = Recipe(jit_compile="on")
    refused(
        lambda: make_update(SimpleNamespace(model=model), None, recipe), "jit_compile is 'on'", "2"
    )


@pytest.mark.slow
def test_jax_gives_the_losses_of_tensorflow(trained, benchmarks, tmp_path):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    trained.lowered.save(tmp_path / "step.npz")
    lowered = benchmarks("lowered").LoweredStep.load(tmp_path / "step.npz")
    losses, seconds = benchmarks("run_step").train(lowered, jax.devices("cpu")[0], UPDATES)
    np.testing.assert_allclose(losses, trained.compiled, rtol=1e-6)
    assert len(seconds) == UPDATES


def test_a_lowered_step_is_saved_and_loaded(benchmarks, tmp_path):
    lowered = benchmarks("lowered")
    weight = lowered.drawn(5, (40, 30))
    step = lowered.LoweredStep(
        hlo=b"\0HLO\0",
        batch=[np.array([[3, 0]], np.int32), np.array([[1.0, 0.0]])],
        variables=[np.array(7), weight, np.zeros(3, np.float32)],
        seeds=[lowered.STORED, 5, lowered.STORED],
        replaced=[1, 0],
        **COUNTED,
    )
    step.save(tmp_path / "step.npz")
    assert (tmp_path / "step.npz").stat().st_size < weight.nbytes
    loaded = lowered.LoweredStep.load(tmp_path / "step.npz")
    for name, value in step._asdict().items():
        np.testing.assert_equal(getattr(loaded, name), value)
        assert type(getattr(loaded, name)) is type(value)
