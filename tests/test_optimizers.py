"""Optimizers, compared with NumPy, alone and in `fit`; schedules."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from comparisons import all_close, all_equal
from oracle import randomized
from refusals import refused

from bahdanau_tf.layers import WordEmbedding
from bahdanau_tf.losses import Perplexity, TokenCrossentropy
from bahdanau_tf.optimizers import (
    SGD,
    Adadelta,
    Adam,
    HalvedEveryHalfEpoch,
    InverseSquareRoot,
    KerasOptions,
    WarmupLinearDecay,
)

# Raised by Keras' `model.save` with NumPy 2.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't:DeprecationWarning"
)

# A batch with repeated words, within a sentence and across sentences.
SOURCE = np.array([[2, 2, 3, 2, 1], [3, 4, 1, 0, 0]], "int32")
TARGET = np.array([[5, 5, 5, 1], [5, 2, 1, 0]], "int32")
WEIGHTS = (TARGET != 0).astype("float32")


def tiny_model(seed: int = 0) -> keras.Model:
    """Words of the source and the word at the place: quickly traced."""
    source, target = (
        keras.Input([None], dtype="int32", name=name) for name in ("source", "target")
    )
    read = keras.ops.mean(WordEmbedding(6, 3)(source), 1, keepdims=True)
    state = keras.ops.tanh(WordEmbedding(7, 3)(target) + read)
    inputs = {"source": source, "target": target}
    model = keras.Model(inputs, keras.layers.Dense(7)(state))
    return randomized(model, seed, scale=0.4)


def batch() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    return {"source": SOURCE, "target": TARGET}, TARGET, WEIGHTS


@functools.cache
def gradients() -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    """A function from weights to the gradients of the batch, in float64."""
    inputs, target, weights = batch()
    model = tiny_model()

    @tf.function(autograph=False)
    def compute() -> Any:
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            cost = TokenCrossentropy()(target, logits, sample_weight=weights)
        slopes = tape.gradient(cost, model.trainable_variables)
        assert all(isinstance(g, tf.Tensor) for g in slopes)
        return slopes

    def at(values: list[np.ndarray]) -> list[np.ndarray]:
        for weight, value in zip(model.trainable_variables, values, strict=True):
            weight.assign(value)
        return [g.numpy().astype("float64") for g in compute()]

    return at


def values_of(model: Any) -> list[np.ndarray]:
    return [w.numpy().astype("float64") for w in model.trainable_variables]


def adadelta_oracle(value: Any, g: Any, slots: Any, step: int) -> tuple:
    value, *slots = reference.adadelta(value, g, *(slots or (0.0, 0.0)))
    return value, slots


def adam_oracle(value: Any, g: Any, slots: Any, step: int) -> tuple:
    m, v = slots or (0.0, 0.0)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    rate = 0.01 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    return value - rate * m / (np.sqrt(v) + 1e-7), (m, v)


OPTIMIZERS = {
    "adadelta": (Adadelta, adadelta_oracle),
    "adam": (lambda: Adam(0.01, max_norm=1.0), adam_oracle),
    "sgd": (lambda: SGD(0.7, max_norm=1.0), lambda value, g, slots, _: (value - 0.7 * g, slots)),
}
optimizers = pytest.mark.parametrize("name", OPTIMIZERS)


def by_numpy(name: str, values: list, steps: int) -> list[np.ndarray]:
    """Weights after some updates by the rules of the reference."""
    update, slots = OPTIMIZERS[name][1], {}
    for step in range(1, steps + 1):
        slopes = dict(enumerate(gradients()(values)))
        slopes = reference.clip_by_global_norm(slopes, 1.0)
        for i, g in slopes.items():
            values[i], slots[i] = update(values[i], g, slots.get(i), step)
    return values


def equal_weights(model: Any, wanted: list[np.ndarray], atol: float) -> None:
    all_close(values_of(model), wanted, rtol=0, atol=atol)


def test_fit_with_repeated_words_equals_numpy() -> None:
    """Gradient, norm, clipping and update; then a loss that overflows."""
    model = tiny_model()
    wanted = by_numpy("adadelta", values_of(model), 3)
    optimizer = Adadelta()
    model.compile(optimizer, TokenCrossentropy())
    data = tf.data.Dataset.from_tensors(batch()).repeat(3)
    model.fit(data, verbose=0, shuffle=False)
    equal_weights(model, wanted, 2e-5)
    assert int(optimizer.skipped_updates.numpy()) == 0
    assert int(optimizer.iterations.numpy()) == 3

    before = model.get_weights()
    weights = np.where(WEIGHTS > 0, np.inf, 0).astype("float32")
    too_much = tf.data.Dataset.from_tensors((*batch()[:2], weights))
    model.fit(too_much, verbose=0, shuffle=False)
    all_equal(before, model.get_weights())
    assert int(optimizer.skipped_updates.numpy()) == 1


@optimizers
def test_apply_equals_numpy(name: str) -> None:
    model = tiny_model()
    wanted = by_numpy(name, values_of(model), 3)
    optimizer = OPTIMIZERS[name][0]()
    for _ in range(3):
        slopes = gradients()(values_of(model))
        norm = reference.global_norm(dict(enumerate(slopes)))
        optimizer.apply([tf.constant(g, tf.float32) for g in slopes], model.trainable_variables)
        assert float(optimizer.gradient_norm.numpy()) == pytest.approx(norm, rel=1e-5)
    equal_weights(model, wanted, 2e-5)


@optimizers
def test_sparse_gradients_are_merged(name: str) -> None:
    """Rows that occur twice in a sparse gradient are summed."""
    table = keras.Variable(np.ones((4, 2)), dtype="float32")
    dense = keras.Variable(np.ones((4, 2)), dtype="float32")
    slices = tf.IndexedSlices(
        tf.constant([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]]),
        tf.constant([2, 2, 0]),
        tf.constant([4, 2]),
    )
    merged = tf.constant([[-1.0, 0.5], [0, 0], [4.0, 6.0], [0, 0]])
    for variable, gradient in ((table, slices), (dense, merged)):
        optimizer = OPTIMIZERS[name][0]()
        for _ in range(2):
            optimizer.apply([gradient], [variable])
        assert float(optimizer.gradient_norm.numpy()) == pytest.approx(
            float(np.sqrt(1 + 0.25 + 16 + 36)), rel=1e-6
        )
    np.testing.assert_allclose(table.numpy(), dense.numpy(), rtol=1e-6)


def applying(optimizer: Any, weight: Any) -> Callable:
    return lambda gradient: optimizer.apply([gradient], [weight])


@pytest.mark.parametrize("in_graph", [False, True])
@optimizers
def test_accumulated_gradients_give_one_step_of_their_mean(name: str, in_graph: bool) -> None:
    """One step with the mean of two batches equals two accumulated steps."""
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 3, 4)).astype("float32")
    after = []
    for steps in (None, 2):
        weight = keras.Variable(np.ones((3, 4), "float32"))
        optimizer = {"adam": Adam, "adadelta": Adadelta, "sgd": SGD}[name](
            rate, max_norm=1.0, gradient_accumulation_steps=steps
        )
        optimizer.build([weight])
        config = optimizer.get_config()
        assert type(optimizer).from_config(config).accumulation_steps == steps

        step = applying(optimizer, weight)
        step = tf.function(step, autograph=False) if in_graph else step
        bad = tf.fill([3, 4], np.nan)
        for pair in ((first, second), (second, first), (bad, first)):
            if steps is None:
                step(tf.constant((pair[0] + pair[1]) / 2))
            else:
                before = weight.numpy()
                step(tf.constant(pair[0]))
                np.testing.assert_array_equal(weight.numpy(), before)
                step(tf.constant(pair[1]))
        assert int(optimizer.iterations.numpy()) == 2
        assert int(optimizer.skipped_updates.numpy()) == 1
        after.append(weight.numpy())
    np.testing.assert_allclose(*after, rtol=1e-6)
    assert np.abs(after[0] - 1).max() > 1e-4


@pytest.mark.parametrize("kind", [Adadelta, Adam, SGD])
def test_the_signature_has_every_argument_of_keras(kind: type) -> None:
    of_keras = inspect.signature(getattr(keras.optimizers, kind.__name__)).parameters
    own = inspect.signature(kind).parameters
    assert {*of_keras} == {*own, *KerasOptions.__annotations__} - {"max_norm"}
    if kind is not Adadelta:  # whose defaults are the paper's
        assert all(own[name].default == of_keras[name].default for name in {*own} & {*of_keras})


def test_a_weight_of_another_model_is_refused():
    optimizer = Adam(gradient_accumulation_steps=2)
    optimizer.build([keras.Variable([1.0])])
    other = keras.Variable([1.0], name="other")
    refused(lambda: optimizer.apply([tf.constant([1.0])], [other]), "weight")


def test_a_gradient_that_is_missing_in_a_step_counts_as_zero() -> None:
    weights = [keras.Variable([0.0]), keras.Variable([0.0])]
    optimizer = SGD(1.0, gradient_accumulation_steps=2)
    optimizer.apply([tf.constant([2.0]), tf.constant([2.0])], weights)
    optimizer.apply([None, tf.constant([2.0])], weights)
    assert [float(weight.numpy()[0]) for weight in weights] == [-1.0, -2.0]


def test_a_loss_scale_is_undone_before_clipping() -> None:
    for scale in (1.0, 1024.0):
        weight = keras.Variable([0.0, 0.0])
        optimizer = SGD(1.0, max_norm=2.5, loss_scale_factor=scale)
        optimizer.apply([tf.constant([3.0, 4.0]) * scale], [weight])
        np.testing.assert_allclose(weight.numpy(), [-1.5, -2.0], rtol=1e-6)
        assert float(optimizer.gradient_norm.numpy()) == pytest.approx(5.0)


def test_decay_and_moving_average_go_on_in_a_skipped_update() -> None:
    weight = keras.Variable([1.0])
    optimizer = Adam(0.5, weight_decay=0.1, use_ema=True, ema_momentum=0.75)
    optimizer.apply([tf.constant([2.0])], [weight])
    # Adam's first step is the rate; decay is rate · 0.1 · weight before it.
    after = 1.0 * (1 - 0.5 * 0.1) - 0.5
    assert float(weight.numpy()[0]) == pytest.approx(after, rel=1e-5)
    average = after  # it begins with the first value
    optimizer.apply([tf.constant([np.nan])], [weight])
    after *= 1 - 0.5 * 0.1
    average = 0.75 * average + 0.25 * after
    assert float(weight.numpy()[0]) == pytest.approx(after, rel=1e-5)
    optimizer.finalize_variable_values([weight])
    assert float(weight.numpy()[0]) == pytest.approx(average, rel=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@optimizers
def test_a_gradient_that_is_not_finite_changes_nothing(name: str, bad: float) -> None:
    weights = [keras.Variable(np.ones(3)), keras.Variable(np.ones((2, 2)))]
    optimizer = OPTIMIZERS[name][0]()
    good = [tf.fill([3], 0.5), tf.fill([2, 2], 0.25)]
    step = tf.function(lambda *g: optimizer.apply(list(g), weights), autograph=False)
    optimizer.build(weights)
    step(*good)
    counted = {"gradient_norm", "skipped_updates"}
    kept = [v for v in optimizer.variables if v.name not in counted]
    before = [v.numpy() for v in [*weights, *kept]]
    step(good[0], tf.tensor_scatter_nd_update(good[1], [[0, 1]], [bad]))
    all_equal([*weights, *kept], before)
    assert int(optimizer.skipped_updates.numpy()) == 1
    assert int(optimizer.iterations.numpy()) == 1
    step(*good)
    assert int(optimizer.skipped_updates.numpy()) == 1
    assert (weights[0].numpy() != before[0]).all()


def test_small_gradients_are_not_scaled_up() -> None:
    weight = keras.Variable(np.zeros(2))
    SGD(1.0, max_norm=5.0).apply([tf.constant([0.3, 0.4])], [weight])
    np.testing.assert_allclose(weight.numpy(), [-0.3, -0.4], rtol=1e-6)
    SGD(1.0, max_norm=0.25).apply([tf.constant([0.3, 0.4])], [weight])
    np.testing.assert_allclose(weight.numpy(), [-0.45, -0.6], rtol=1e-6)
    SGD(1.0).apply([tf.constant([300.0, 400.0])], [weight])
    np.testing.assert_allclose(weight.numpy(), [-300.45, -400.6], rtol=1e-6)


@optimizers
def test_apply_needs_variables_if_the_optimizer_is_not_built(name: str) -> None:
    optimizer = OPTIMIZERS[name][0]()
    kind = type(optimizer).__name__
    refused(lambda: optimizer.apply([tf.ones(2)]), "apply", str(kind))
    weight = keras.Variable(np.ones(2))
    optimizer.build([weight])
    optimizer.apply([tf.ones(2)])
    assert (weight.numpy() < 1).all()


# `compile` and `fit`.


def copying_data() -> tf.data.Dataset:
    """A toy language in which the target equals the source."""
    random = np.random.default_rng(0)
    ids = np.pad(random.integers(2, 6, (64, 3)), [[0, 0], [0, 1]])
    ids[:, 3] = 1
    ids = ids.astype("int32")
    weights = np.ones(ids.shape, "float32")
    data = (ids, ids, weights)
    return tf.data.Dataset.from_tensor_slices(data).shuffle(64, 1).batch(16)


def test_compile_and_fit_learn_with_callbacks(tmp_path: Path) -> None:
    model = keras.Sequential([WordEmbedding(6, 8), keras.layers.Dense(6)])
    model.compile(Adam(0.02, max_norm=1.0), TokenCrossentropy(), weighted_metrics=[Perplexity()])
    best = tmp_path / "best.keras"
    history = model.fit(
        copying_data(),
        epochs=12,
        shuffle=False,
        verbose=0,
        validation_data=copying_data(),
        callbacks=[
            keras.callbacks.ModelCheckpoint(best, save_best_only=True),
            keras.callbacks.EarlyStopping(patience=5),
            keras.callbacks.CSVLogger(tmp_path / "log.csv"),
            keras.callbacks.TerminateOnNaN(),
        ],
    ).history
    assert history["perplexity"][-1] < 0.5 * history["perplexity"][0]
    loaded = keras.models.load_model(best)
    scores = loaded.evaluate(copying_data(), verbose=0, return_dict=True)
    assert scores["perplexity"] == pytest.approx(min(history["val_perplexity"]), rel=1e-3)
    assert isinstance(loaded.optimizer, Adam)
    assert loaded.optimizer.max_norm == 1.0


# Schedules.


def test_halved_every_half_epoch_halves_the_rate() -> None:
    rate = HalvedEveryHalfEpoch(0.7, steps_per_epoch=10)
    rates = {0: 0.7, 4.9: 0.7, 5: 0.35, 5.4: 0.35, 5.5: 0.175, 7.4: 0.7 / 32}
    for epoch, wanted in rates.items():
        step = round(epoch * 10)
        assert float(rate(tf.constant(step))) == pytest.approx(wanted), epoch
    odd = HalvedEveryHalfEpoch(1.0, steps_per_epoch=3, constant_epochs=1)
    odd_rates = [float(odd(step)) for step in range(9)]
    assert odd_rates == [1, 1, 1, 1 / 2, 1 / 2, 1 / 4, 1 / 8, 1 / 8, 1 / 16]
    half = HalvedEveryHalfEpoch(1.0, steps_per_epoch=1.5, constant_epochs=2)
    half_rates = [float(half(step)) for step in range(6)]  # epochs 0, 2/3, 4/3, ..
    assert half_rates == [1, 1, 1, 1 / 2, 1 / 4, 1 / 8]
    large = HalvedEveryHalfEpoch(1.0, 2**25, constant_epochs=1)
    assert float(large(tf.constant(2**25 - 1, tf.int64))) == 1.0
    assert float(large(tf.constant(2**25, tf.int64))) == 0.5
    config = keras.saving.serialize_keras_object(rate)
    again = keras.saving.deserialize_keras_object(config)
    assert again.get_config() == rate.get_config()
    refused(lambda: HalvedEveryHalfEpoch(0.7, 0), "steps_per_epoch", "0")


def test_inverse_square_root_is_the_transformer_s_rate() -> None:
    """Vaswani et al. 2017, equation 3, with their d_model and warm-up."""
    width, warmup = 512, 4000
    rate = InverseSquareRoot((width * warmup) ** -0.5, warmup)
    updates = np.array([1, 100, 3999, 4000, 4001, 16000, 10**6])
    wanted = width**-0.5 * np.minimum(updates**-0.5, updates * warmup**-1.5)
    rates = [float(rate(tf.constant(n - 1, tf.int64))) for n in updates]
    np.testing.assert_allclose(rates, wanted, rtol=1e-5)
    config = keras.saving.serialize_keras_object(rate)
    again = keras.saving.deserialize_keras_object(config)
    assert again.get_config() == rate.get_config()
    assert float(InverseSquareRoot(2.0, 0)(0)) == 2.0


def test_the_training_of_sutskever_et_al_in_fit_equals_numpy() -> None:
    """SGD on the sum divided by 128, norm of at most 5, halved rate."""
    model = tiny_model()
    values = values_of(model)
    rate = HalvedEveryHalfEpoch(0.7, steps_per_epoch=1, constant_epochs=1)
    model.compile(SGD(rate, max_norm=5.0), TokenCrossentropy(divisor=128))
    data = tf.data.Dataset.from_tensors(batch()).repeat(3)
    model.fit(data, verbose=0, shuffle=False)
    for step_rate in (0.7, 0.35, 0.35 / 4):
        slopes = gradients()(values)
        values = [value - step_rate * g / 128 for value, g in zip(values, slopes, strict=True)]
    equal_weights(model, values, 1e-5)


def test_warmup_linear_decay_rises_stays_and_falls() -> None:
    rate = WarmupLinearDecay(2.0, 100, warmup_steps=10, constant_share=0.5, final_share=0.1)
    rates = {0: 0.2, 4: 1.0, 9: 2.0, 50: 2.0, 75: 2.0 * 0.55, 100: 0.2, 900: 0.2}
    for step, wanted in rates.items():
        assert float(rate(tf.constant(step))) == pytest.approx(wanted), step
    config = keras.optimizers.schedules.serialize(rate)
    again = keras.optimizers.schedules.deserialize(config)
    for step in (4, 50, 75, 900):
        assert float(again(step)) == float(rate(step))
    rate = WarmupLinearDecay(2.0, 100)  # the default of `Recipe`: to 2 % of the peak
    assert float(rate(tf.constant(100))) == pytest.approx(0.04)
