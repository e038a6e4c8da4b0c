"""R-Drop, compared with a NumPy computation of its equation."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf

from bahdanau_tf import RNNSearch
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.losses import is_word
from bahdanau_tf.optimizers import SGD
from bahdanau_tf.training.r_drop import r_drop_loss
from bahdanau_tf.training.step import train_step
from bahdanau_tf.training.step import words_loss

SOURCE = np.array([[3, 4, 5, 2], [5, 6, 2, 0], [7, 2, 0, 0]], "int32")
TARGET = np.array([[3, 4, 2], [6, 2, 0], [5, 2, 0]], "int32")


def model_with(**dropout: float) -> RNNSearch:
    return oracle.randomized(RNNSearch(8, 9, 4, 3, 5, 6, **dropout))


def batch() -> tuple[Any, tf.Tensor, tf.Tensor]:
    target = tf.constant(TARGET)
    inputs = {"source": tf.constant(SOURCE), "target": target}
    return inputs, target, is_word(target)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.logaddexp.reduce(logits, -1, keepdims=True)


def test_without_dropout_r_drop_equals_the_plain_loss() -> None:
    model, loss = model_with(), TokenCrossentropy(0.1, divisor=2.0)
    wanted = words_loss(model, loss, *batch())
    oracle.close(r_drop_loss(model, loss, 3.0, *batch()), float(wanted), 1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_equals_the_equation_of_the_paper(
    smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy computes the loss from the features of both passes."""
    model = model_with(readout_dropout=0.5)
    seen = []
    features = model.features

    def noted(*args: Any, **kwargs: Any) -> Any:
        seen.append(features(*args, **kwargs))
        return seen[-1]

    monkeypatch.setattr(model, "features", noted)
    loss, alpha = TokenCrossentropy(smoothing), 5.0
    found = float(r_drop_loss(model, loss, alpha, *batch()))
    output = model.output_weights()
    rows = np.asarray(seen[0][0], np.float64)
    logits = rows @ oracle.array(output.kernel).T + oracle.array(output.bias)
    of_p, of_q = np.split(log_softmax(logits), 2)
    labels = TARGET[TARGET != 0]
    assert np.abs(of_p - of_q).max() > 0.1  # two dropout masks
    wanted = 0.0
    for p, q, label in zip(of_p, of_q, labels, strict=True):
        for one in (p, q):
            wanted -= (1 - smoothing) * one[label] / 2
            wanted -= smoothing * one.mean() / 2
        kl = (np.exp(p) * (p - q)).sum() + (np.exp(q) * (q - p)).sum()
        wanted += alpha / 4 * kl
    assert found == pytest.approx(wanted, rel=1e-5)


def test_training_with_r_drop_makes_predictions_more_alike() -> None:
    """With R-Drop, predictions vary less between dropout masks."""
    distances = []
    for alpha in (0.0, 20.0):
        keras.utils.set_random_seed(3)
        model = model_with(readout_dropout=0.5)
        step = train_step(model, SGD(0.02), TokenCrossentropy(), alpha)
        for _ in range(40):
            step(*batch())
        draw = tf.function(lambda: model(batch()[0], training=True))  # noqa: B023
        draws = [tf.nn.softmax(draw()) for _ in range(20)]
        distances.append(float(tf.reduce_mean(tf.math.reduce_std(draws, 0))))
    assert distances[1] < 0.7 * distances[0]
