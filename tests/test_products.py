"""Products whose operands are rounded to bfloat16, and trainings with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import keras
import letters
import numpy as np
import pytest
import tensorflow as tf
from letters import RECIPE

from bahdanau_tf import RNNSearch
from bahdanau_tf import Translator
from bahdanau_tf import device
from bahdanau_tf import layers
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.optimizers import SGD
from bahdanau_tf.products import operand
from bahdanau_tf.products import product
from bahdanau_tf.products import rounding_to_bfloat16
from bahdanau_tf.training import loop
from bahdanau_tf.training import train
from bahdanau_tf.training.step import train_step
from bahdanau_tf.training.step import words_loss

files = letters.files
STEP = 2**-8  # bfloat16's relative distance to the next number, at most


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Rounds to the nearest bfloat16, to the even one of two, in bits."""
    bits = np.float32(x).view(np.uint32)
    bits = bits + 0x7FFF + (bits >> 16 & 1)
    return (bits & 0xFFFF0000).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (0, 1)])
def test_operands_and_results_are_rounded(transposed):
    random = np.random.default_rng(1)
    shapes = [(7, 300)[:: -1 if transposed[0] else 1], (300, 5)]
    shapes[1] = shapes[1][:: -1 if transposed[1] else 1]
    a, b = (random.normal(size=s).astype(np.float32) for s in shapes)
    left, right = (
        to_bfloat16(x).astype(np.float64).T
        if is_transposed
        else to_bfloat16(x).astype(np.float64)
        for x, is_transposed in zip((a, b), transposed, strict=True)
    )
    with rounding_to_bfloat16():
        found = product(a, b, *map(bool, transposed))
        again = product(operand(a), operand(b), *map(bool, transposed))
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, left @ right, rtol=STEP, atol=1e-3)
    np.testing.assert_array_equal(found, again)
    exact = product(a, b, *map(bool, transposed))
    assert not np.array_equal(found, exact)


def test_nothing_is_rounded_outside_of_the_block():
    a = tf.constant([[1.0, 1e-3]])
    with rounding_to_bfloat16():
        assert operand(a).dtype == tf.bfloat16
        with rounding_to_bfloat16(False):
            assert operand(a) is a
    assert operand(a) is a
    half = tf.cast(a, tf.float16)
    assert product(half, tf.transpose(a)).dtype == tf.float16


def make_model(**options: Any) -> RNNSearch:
    keras.utils.set_random_seed(7)
    sizes = ("units", "embedding_dim", "attention_units", "maxout_units")
    return RNNSearch(
        *(40, 50),
        **dict.fromkeys(sizes, 32),
        kernel_initializer="glorot_uniform",
        **options,
    )


def make_batch() -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    random = np.random.default_rng(3)
    source = tf.constant(random.integers(1, 40, (6, 7)), tf.int32)
    target = random.integers(1, 50, (6, 8)).astype(np.int32)
    target[:3, 5:] = 0
    inputs = {"source": source, "target": tf.constant(target)}
    return inputs, tf.constant(target), tf.constant(np.float32(target != 0))


@pytest.mark.parametrize(
    ("cell", "step_order"),
    [
        ("GRUCell", "original"),
        ("GRUCell", "conditional"),
        ("LSTMCell", "original"),
    ],
)
def test_gradients_are_those_of_float32_up_to_rounding(cell, step_order):
    """Of the step written by hand, and of the plain loop.

    The readout is not the maxout, where rounding may change which of two units
    is the larger one.
    """
    readout = layers.TanhReadout(50, 32, kernel_initializer="glorot_uniform")
    model = make_model(
        cell=getattr(layers, cell)(32), readout=readout, step_order=step_order
    )
    energy = model.decoder.attention.energy.kernel
    energy.assign(tf.ones_like(energy) / 8)  # zero at first, as in the paper
    batch, loss = make_batch(), TokenCrossentropy(label_smoothing=0.1)

    def run(is_on: bool) -> tuple[float, list[np.ndarray]]:
        with rounding_to_bfloat16(is_on), tf.GradientTape() as tape:
            cost = words_loss(model, loss, *batch)
        with rounding_to_bfloat16(is_on):
            found = tape.gradient(cost, model.trainable_variables)
        return float(cost), [np.asarray(tf.convert_to_tensor(g)) for g in found]

    (exact, wanted), (cost, found) = run(False), run(True)
    assert cost != exact
    assert cost == pytest.approx(exact, rel=STEP)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float32
        size = np.linalg.norm(other)
        assert np.linalg.norm(one - other) <= 4 * STEP * size + 1e-6


def test_the_graph_of_an_update_has_rounded_products_only_if_asked():
    def types(rounds: bool) -> list[tf.DType]:
        model = make_model()
        step = train_step(model, SGD(0.1), TokenCrossentropy(), rounds=rounds)
        definition = step.get_concrete_function().graph.as_graph_def()
        nodes = [
            node
            for function in definition.library.function
            for node in function.node_def
        ]
        return [
            tf.as_dtype(node.attr["T"].type)
            for node in (*definition.node, *nodes)
            if node.op == "MatMul"
        ]

    assert set(types(False)) == {tf.float32}
    # What is left is products with a vector, and the keys.
    assert types(True).count(tf.bfloat16) > 3 * types(True).count(tf.float32)


def test_models_of_another_precision_are_refused():
    model = make_model(dtype="mixed_float16")
    with pytest.raises(ValueError, match="product_dtype is not float32"):
        train_step(model, SGD(0.1), TokenCrossentropy(), rounds=True)


@pytest.mark.parametrize(
    ("dtype", "is_fast", "wanted"),
    [
        ("float32", True, False),
        ("auto", True, True),
        ("auto", False, False),
        ("bfloat16", False, True),
    ],
)
def test_training_rounds_if_asked_or_if_it_is_faster(
    files, tmp_path, monkeypatch, capsys, dtype, is_fast, wanted
):
    """It says so, and the model that it saves has float32 weights."""
    asked = []

    def spy(model: Any, optimizer: Any, *others: Any) -> Any:
        asked.append(others[-1])
        return letters.stand_in_step(model, optimizer)

    monkeypatch.setattr(loop, "has_fast_bfloat16", lambda: is_fast)
    monkeypatch.setattr(loop, "train_step", spy)
    recipe = replace(RECIPE, epochs=1, product_dtype=dtype)
    train(letters.restarted(), files, recipe, tmp_path / "model")
    assert asked == [wanted]
    assert ("rounded to bfloat16" in capsys.readouterr().err) == wanted
    best = Translator.load(tmp_path / "model" / "best")
    assert {w.dtype for w in best.model.trainable_variables} == {"float32"}


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ("fpu avx512_bf16 rtm", True),
        ("amx_bf16 amx_tile", True),
        ("avx2 bf16", False),
        ("", False),
    ],
)
def test_processors_that_multiply_bfloat16_faster(monkeypatch, flags, wanted):
    monkeypatch.setattr(device, "_of_processor", lambda what: flags)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert device.has_fast_bfloat16() is wanted


@pytest.mark.parametrize(
    ("capability", "wanted"), [((7, 5), False), ((9, 0), True)]
)
def test_gpus_that_multiply_bfloat16_faster(monkeypatch, capability, wanted):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["x"])
    monkeypatch.setattr(
        tf.config.experimental,
        "get_device_details",
        lambda gpu: {"compute_capability": capability},
    )
    assert device.has_fast_bfloat16() is wanted
