"""The loss and perplexity, compared with NumPy."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from hypothesis import given, settings, strategies as st
from refusals import refused

from bahdanau_tf.losses import Perplexity, TokenCrossentropy


def example(
    rows: int, steps: int, words: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets, logits and token weights with padding at the end."""
    random = np.random.default_rng(seed)
    target = random.integers(1, words, (rows, steps)).astype("int32")
    lengths = random.integers(1, steps + 1, (rows, 1))
    weights = (np.arange(steps) < lengths).astype("float32")
    logits = random.normal(0, 3, (rows, steps, words)).astype("float32")
    return (target * weights).astype("int32"), logits, weights


def smoothed_cost(target: np.ndarray, logits: np.ndarray, smoothing: float) -> np.ndarray:
    """-Σ_k q_k log p_k with q = (1 - ε) onehot + ε / K."""
    log_p = reference.log_softmax(logits.astype("float64"))
    words = logits.shape[-1]
    q = (1 - smoothing) * np.eye(words)[target] + smoothing / words
    return -(q * log_p).sum(-1)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(2, 9), st.data())
@settings(max_examples=25)
def test_loss_is_the_sum_of_smoothed_costs_of_real_words(rows, steps, words, data):
    smoothing = data.draw(st.sampled_from([0.0, 0.1, 0.9]))
    target, logits, weights = example(rows, steps, words, seed=rows)
    loss = TokenCrossentropy(smoothing)
    actual = loss(target, logits, sample_weight=weights)
    cost = smoothed_cost(target, logits, smoothing)
    np.testing.assert_allclose(actual, (cost * weights).sum(), rtol=1e-5)


def test_reductions_and_divisor_equal_numpys():
    target, logits, weights = example(3, 4, 7)
    cost = smoothed_cost(target, logits, 0.0) * weights
    for options, wanted in (
        ({}, cost.sum()),
        ({"divisor": 128}, cost.sum() / 128),
        ({"reduction": "mean_with_sample_weight"}, cost.sum() / weights.sum()),
        ({"reduction": None}, cost),
    ):
        loss = TokenCrossentropy(**options)
        actual = loss(target, logits, sample_weight=weights)
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)
    config = keras.saving.serialize_keras_object(TokenCrossentropy(0.1, divisor=128))
    again = keras.saving.deserialize_keras_object(config)
    assert (again.label_smoothing, again.divisor) == (0.1, 128)


def test_padding_has_no_gradient():
    target, logits, weights = example(3, 4, 7)
    logits = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        cost = TokenCrossentropy(0.1)(target, logits, sample_weight=weights)
    gradient = tape.gradient(cost, logits).numpy()
    assert not gradient[weights == 0].any()
    p = np.exp(reference.log_softmax(logits.numpy().astype("float64")))
    q = 0.9 * np.eye(7)[target] + 0.1 / 7
    wanted = (p - q) * weights[..., None]
    np.testing.assert_allclose(gradient, wanted, atol=1e-6)


def test_extreme_logits_and_bfloat16_give_finite_float32_costs():
    target = np.array([[1, 0]], "int32")
    logits = np.array([[[-1e30, 1e30], [-1e30, 1e30]]], "float32")
    cost = TokenCrossentropy(reduction=None)(target, logits).numpy()
    assert cost[0, 0] == 0
    assert np.isfinite(cost).all()
    low = tf.constant([[[0.0, 1.0]]], tf.bfloat16)
    cost = TokenCrossentropy()(target[:, :1], low)
    assert cost.dtype == tf.float32
    np.testing.assert_allclose(cost, np.log1p(np.exp(-1)), rtol=1e-5)


def test_perplexity_is_of_the_words_of_all_batches():
    metric, cost, words = Perplexity(), 0.0, 0.0
    for seed, steps in enumerate((1, 4, 9)):
        target, logits, weights = example(3, steps, 7, seed)
        metric.update_state(target, logits, weights)
        cost += (smoothed_cost(target, logits, 0.0) * weights).sum()
        words += weights.sum()
    np.testing.assert_allclose(metric.result(), np.exp(cost / words), rtol=1e-5)
    metric.reset_state()
    metric.update_state(target, np.zeros((3, 9, 7), "float32"))
    np.testing.assert_allclose(metric.result(), 7, rtol=1e-5)
    metric.reset_state()
    metric.update_state(target, logits, [2.0, 0.0, 1.0])  # of each sentence
    weights *= np.array([[2.0], [0.0], [1.0]])
    cost = (smoothed_cost(target, logits, 0.0) * weights).sum()
    wanted = np.exp(cost / weights.sum())
    np.testing.assert_allclose(metric.result(), wanted, rtol=1e-5)


@pytest.mark.parametrize("reduction", ["sum", "mean_with_sample_weight", None])
def test_a_weight_of_a_sentence_is_that_of_all_its_words(reduction):
    target, logits, weights = example(3, 4, 7)
    of_sentences = np.array([2.0, 0.0, 0.5], "float32")
    weights *= of_sentences[:, None]
    wanted = smoothed_cost(target, logits, 0.0) * weights
    if reduction:
        wanted = wanted.sum()
    if reduction == "mean_with_sample_weight":
        wanted /= weights.sum()
    loss = TokenCrossentropy(reduction=reduction)
    for weight in (of_sentences, of_sentences[:, None], weights):
        np.testing.assert_allclose(loss(target, logits, weight), wanted, rtol=1e-5)
    specs = ([None, None], tf.int32), ([None, None, 7], tf.float32), ([None], tf.float32)
    graph = tf.function(loss, input_signature=[tf.TensorSpec(*spec) for spec in specs])
    np.testing.assert_allclose(graph(target, logits, of_sentences), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label_smoothing": 1.0}, "TokenCrossentropy label_smoothing 1.0"),
        ({"label_smoothing": -0.1}, "label_smoothing -0.1 0"),
        ({"divisor": 0}, "TokenCrossentropy 0 divisor"),
    ],
)
def test_bad_options_are_refused(options, words):
    refused(lambda: TokenCrossentropy(**options), *words.split())
