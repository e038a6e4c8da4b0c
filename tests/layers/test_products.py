"""Products in half precision, and trainings with them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import keras
import letters
import numpy as np
import pytest
import tensorflow as tf
from letters import RECIPE, plain_step, scored, train

from bahdanau_tf import RNNSearch, Translator, layers
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.optimizers import SGD
from bahdanau_tf.system import device, tensors
from bahdanau_tf.system.tensors import operand, product, products_in
from bahdanau_tf.training import callbacks, update
from bahdanau_tf.training.update import train_step, words_loss

files = letters.files
STEP = 2**-8  # bfloat16's relative distance to the next number, at most


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """Rounds to the nearest bfloat16, to the even one of two, in bits."""
    bits = np.float32(x).view(np.uint32)
    bits = bits + 0x7FFF + (bits >> 16 & 1)
    return (bits & 0xFFFF0000).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
def test_operands_and_results_are_rounded(transposed):
    random = np.random.default_rng(1)
    pair = [random.normal(size=size).astype(np.float32) for size in ((7, 300), (300, 5))]
    left, right = (to_bfloat16(x).astype(np.float64) for x in pair)
    a, b = (x.T if is_turned else x for x, is_turned in zip(pair, transposed, strict=True))
    with products_in(tf.bfloat16):
        rounded = product(a, b, *transposed)
        again = product(operand(a), operand(b), *transposed)
    assert rounded.dtype == tf.float32
    np.testing.assert_allclose(rounded, left @ right, rtol=STEP, atol=1e-3)
    np.testing.assert_array_equal(rounded, again)
    assert not np.array_equal(rounded, product(a, b, *transposed))


def test_nothing_is_rounded_outside_of_the_block():
    a = tf.constant([[1.0, 1e-3]])
    with products_in(tf.bfloat16):
        assert operand(a).dtype == tf.bfloat16
        with products_in(tf.float32):
            assert operand(a) is a
    assert operand(a) is a
    half = tf.cast(a, tf.float16)
    assert product(half, tf.transpose(a)).dtype == tf.float16


def make_model(**options: Any) -> RNNSearch:
    keras.utils.set_random_seed(7)
    sizes = dict.fromkeys(("units", "embedding_dim", "attention_units", "maxout_units"), 32)
    return RNNSearch(40, 50, **sizes, kernel_initializer="glorot_uniform", **options)


def make_batch() -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    random = np.random.default_rng(3)
    source = tf.constant(random.integers(1, 40, (6, 7)), tf.int32)
    target = random.integers(1, 50, (6, 8)).astype(np.int32)
    target[:3, 5:] = 0
    weights = tf.constant(np.float32(target != 0))
    target = tf.constant(target)
    return {"source": source, "target": target}, target, weights


@pytest.mark.parametrize(
    ("dtype", "cell", "step_order"),
    [
        ("bfloat16", "GRUCell", "original"),
        ("bfloat16", "GRUCell", "conditional"),
        ("bfloat16", "LSTMCell", "original"),
        ("float16", "GRUCell", "conditional"),
    ],
)
def test_gradients_are_those_of_float32_up_to_rounding(dtype, cell, step_order):
    """Of the step written by hand, and of the plain loop.

    The readout is not the maxout, where rounding may change which of two units
    is the larger one.
    """
    readout = layers.TanhReadout(50, 32, kernel_initializer="glorot_uniform")
    model = make_model(cell=getattr(layers, cell)(32), readout=readout, step_order=step_order)
    energy = model.decoder.attention.energy.kernel
    energy.assign(tf.ones_like(energy) / 8)  # zero at first, as in the paper
    batch, loss = make_batch(), TokenCrossentropy(label_smoothing=0.1)

    def run(dtype: str) -> tuple[float, list[np.ndarray]]:
        with products_in(dtype), tf.GradientTape() as tape:
            cost = words_loss(model, loss, *batch)
        with products_in(dtype):
            gradients = tape.gradient(cost, model.trainable_variables)
        return float(cost), [np.asarray(tf.convert_to_tensor(g)) for g in gradients]

    step = {"bfloat16": STEP, "float16": 2**-11}[dtype]
    (exact, wanted), (cost, gradients) = run("float32"), run(dtype)
    assert cost != exact
    assert cost == pytest.approx(exact, rel=step)
    for gradient, other in zip(gradients, wanted, strict=True):
        assert gradient.dtype == np.float32
        assert np.linalg.norm(gradient - other) <= 4 * step * np.linalg.norm(other) + 1e-6


def test_the_graph_of_an_update_has_rounded_products_only_if_asked(monkeypatch):
    monkeypatch.setattr(tensors, "adds_up_in_float32", lambda dtype: True)

    def types(dtype: str) -> list[tf.DType]:
        step = plain_step(make_model(), SGD(0.1), TokenCrossentropy(), dtype)
        definition = step.get_concrete_function().graph.as_graph_def()
        nodes = [node for function in definition.library.function for node in function.node_def]
        products = [node for node in (*definition.node, *nodes) if node.op == "MatMul"]
        return [tf.as_dtype(node.attr["T"].type) for node in products]

    assert set(types("float32")) == {tf.float32}
    # What is left is products with a vector, and the keys.
    rounded = types("bfloat16")
    assert rounded.count(tf.bfloat16) > 3 * rounded.count(tf.float32)


def test_models_of_another_precision_are_refused():
    model = make_model(dtype="mixed_float16")
    with pytest.raises(ValueError, match="product_dtype is bfloat16"):
        plain_step(model, SGD(0.1), TokenCrossentropy(), "bfloat16")


@pytest.mark.parametrize(
    ("dtype", "own", "is_fast", "wanted"),
    [
        ("float32", "float32", True, "float32"),
        ("auto", "float32", True, "bfloat16"),
        ("auto", "bfloat16", True, "float32"),  # it rounds its products itself
        ("auto", "float32", False, "float32"),
        ("bfloat16", "float32", False, "bfloat16"),
        ("float16", "float32", False, "float16"),
    ],
)
def test_products_are_rounded_if_asked_or_if_it_is_faster(monkeypatch, dtype, own, is_fast, wanted):
    monkeypatch.setattr(update, "has_fast_bfloat16", lambda: is_fast)
    recipe = replace(RECIPE, product_dtype=dtype)
    assert update.product_dtype(recipe, SimpleNamespace(compute_dtype=own)) == wanted


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_training_reports_rounding_and_saves_float32(files, tmp_path, monkeypatch, capsys, dtype):
    asked = []

    def spy(model: Any, optimizer: Any, *others: Any) -> Any:
        asked.append(others[1])
        return letters.stand_in_step(model, optimizer)

    monkeypatch.setattr(update, "train_step", spy)
    monkeypatch.setattr(callbacks, "evaluate", lambda *_: scored(1.0, 1.0))
    recipe = replace(RECIPE, updates=1, product_dtype=dtype)
    train(letters.restarted(), files, recipe, tmp_path)
    assert asked == [dtype]
    reports = "products are rounded to" in capsys.readouterr().err
    assert reports == (dtype != "float32")
    best = Translator.load(tmp_path / "best")
    assert {w.dtype for w in best.model.trainable_variables} == {"float32"}


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [("fpu avx512_bf16 rtm", True), ("amx_bf16 amx_tile", True), ("avx2 bf16", False), ("", False)],
)
def test_processors_that_multiply_bfloat16_faster(monkeypatch, flags, wanted):
    monkeypatch.setattr(device, "_cpuinfo", lambda what: flags)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert device.has_fast_bfloat16() is wanted
    assert device.adds_up_in_float32(tf.bfloat16) is wanted
    assert not device.adds_up_in_float32(tf.float16)


def test_the_rate_of_a_product_is_that_of_the_fastest():
    """Seconds by a clock that is given; m x m x m multiply-adds each."""
    ticks = iter([t for start in range(100) for t in (10 * start, 10 * start + 4.0)])
    assert device.product_rate(lambda: next(ticks)) == 2 * 512**3 / 4
    slow_first = iter([0.0, 9.0, *(t / 2 for t in range(1000))])
    assert device.product_rate(lambda: next(slow_first)) == 2 * 512**3 / 0.5


@pytest.mark.parametrize(("capability", "wanted"), [((7, 5), False), ((9, 0), True)])
def test_gpus_that_multiply_bfloat16_faster(monkeypatch, capability, wanted):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["x"])
    monkeypatch.setattr(
        tf.config.experimental, "get_device_details", lambda gpu: {"compute_capability": capability}
    )
    assert device.has_fast_bfloat16() is wanted


# Float16, with a scale of the loss.


def updated(
    optimizer: keras.optimizers.Optimizer, dtype: str, divisor: float, policy: str = "float32"
) -> tuple[float, np.ndarray]:
    """The loss of one update, and how it moved the weights."""
    model = make_model(dtype=policy)
    before = model.get_weights()
    step = plain_step(model, optimizer, TokenCrossentropy(divisor=divisor), dtype)
    cost = float(step.python_function(*make_batch()))  # not traced
    moves = (np.float64(a) - b for a, b in zip(model.get_weights(), before, strict=True))
    return cost, np.concatenate([np.ravel(move) for move in moves])


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_small_gradients_survive_float16_with_a_scale(policy):
    """The loss is divided by 10^7, and the rate multiplied by it."""
    divisor = 1e7
    dtype = "float16" if policy == "float32" else "float32"
    wanted_cost, wanted = updated(SGD(divisor), "float32", divisor)
    scaled = keras.optimizers.LossScaleOptimizer(SGD(divisor))
    cost, moved = updated(scaled, dtype, divisor, policy)
    _, lost = updated(SGD(divisor), dtype, divisor, policy)
    assert cost == pytest.approx(wanted_cost, rel=0.01)
    size = np.linalg.norm(wanted)
    assert np.linalg.norm(moved - wanted) < 0.05 * size
    assert np.linalg.norm(lost - wanted) > 0.3 * size


def test_an_overflow_halves_the_scale_and_skips_one_update():
    """The divergence of a training does not count it."""
    model, batch = make_model(), make_batch()
    inner = SGD(0.1, max_norm=1.0)
    optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=2**17)
    loss = TokenCrossentropy()
    step = plain_step(model, optimizer, loss, "float16")
    before = model.get_weights()
    history = []
    for _ in range(9):
        assert np.isfinite(float(step.python_function(*batch)))  # not traced
        pairs = zip(before, model.get_weights(), strict=True)
        moved = any((old != new).any() for old, new in pairs)
        history.append((moved, float(optimizer.dynamic_scale), int(inner.iterations)))
    skipped = sum(not moved for moved, *_ in history)
    assert 0 < skipped < 8
    for number, (moved, scale, updates) in enumerate(history, 1):
        assert moved == (number > skipped)
        assert scale == 2.0 ** (17 - min(number, skipped))
        assert updates == max(number - skipped, 0)
    assert int(inner.skipped_updates) == 0


def test_a_training_in_float16_is_resumed_with_its_scale(files, tmp_path, monkeypatch):
    """Its checkpoints have the scale, and the slots of the optimizer."""
    optimizers: list[Any] = []

    def noting(make_step: Any) -> Any:
        def noted(model: Any, optimizer: Any, *others: Any) -> Any:
            optimizers.append(optimizer)
            return make_step(model, optimizer, *others)

        return noted

    monkeypatch.setattr(callbacks, "evaluate", lambda *_: scored(1.0, 1.0))
    half = replace(RECIPE, product_dtype="float16")

    def untraced(*arguments: Any) -> Any:
        return train_step(*arguments).python_function

    for updates, make_step in ((6, untraced), (7, letters.stand_in_step)):
        monkeypatch.setattr(update, "train_step", noting(make_step))
        train(letters.restarted(), files, replace(half, updates=updates), tmp_path)
    first, restored = optimizers
    assert float(restored.dynamic_scale) == float(first.dynamic_scale)
    assert float(restored.dynamic_scale) < 2.0**15  # it was halved
    assert int(restored.step_counter) == int(first.step_counter)
    pairs = zip(*(o.inner_optimizer.variables for o in optimizers), strict=True)
    for wanted, value in pairs:
        if "momentum" in value.path:
            np.testing.assert_array_equal(value, wanted)


def test_float16_needs_one_replica():
    strategy = SimpleNamespace(num_replicas_in_sync=2)
    model = SimpleNamespace(compute_dtype="float32", distribute_strategy=strategy)
    optimizer = SGD(0.1)
    for dtype in ("float32", "bfloat16"):
        assert update.with_loss_scale(optimizer, model, dtype) is optimizer
    with pytest.raises(ValueError, match="float16 on 2 replicas"):
        update.with_loss_scale(optimizer, model, "float16")


def test_float16_needs_one_batch_for_an_update():
    """Else one that overflows is left out, and updates lag behind."""
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    optimizer = SGD(0.1, gradient_accumulation_steps=2)
    with pytest.raises(ValueError, match="float16 with 2 batches"):
        update.with_loss_scale(optimizer, model, "float16")
    with pytest.raises(ValueError, match="accumulate is 2, wanted 1 with product_dtype"):
        replace(RECIPE, accumulate=2, product_dtype="float16")
