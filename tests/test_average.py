"""The moving average of the weights, compared with NumPy."""

from dataclasses import replace

import keras
import letters
import numpy as np
import tensorflow as tf
from comparisons import all_close
from letters import RECIPE, make_translator, weights

from bahdanau_tf import Translator
from bahdanau_tf.optimizers import Adam
from bahdanau_tf.training import loop, train
from bahdanau_tf.training.callbacks import averaged
from bahdanau_tf.training.dev import Evaluation

files = letters.files  # the fixture
DECAY = 0.8


class Weights(keras.callbacks.Callback):
    """Keeps the weights after each update."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[list[np.ndarray]] = []

    def on_train_batch_end(self, batch, logs=None):
        self.values.append([weight.numpy() for weight in self.model.trainable_weights])


def average(values: list[list[np.ndarray]]) -> list[np.ndarray]:
    """In float64, from the weights after each update."""
    mean = [np.float64(value) for value in values[0]]
    for after in values[1:]:
        mean = [DECAY * old + (1 - DECAY) * new for old, new in zip(mean, after, strict=True)]
    return mean


def assert_close(arrays: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    all_close(arrays, wanted, atol=2e-6)


def test_the_average_is_evaluated_and_saved_and_goes_on(files, tmp_path, monkeypatch):
    """Over two runs; the update is the fast one. Training has the weights."""
    evaluated = []

    def evaluate(_, translator: Translator) -> Evaluation:
        evaluated.append(weights(translator))
        return Evaluation(float(len(evaluated)), 1.0, [])

    monkeypatch.setattr(loop.DevSet, "evaluate", evaluate)
    recipe = replace(RECIPE, average=DECAY, evaluate_every=7)
    seen = Weights()
    for epochs in (1.2, 2):  # 12 updates, then 8 more
        translator = make_translator()
        recipe = replace(recipe, epochs=epochs)
        train(translator, files, recipe, tmp_path, callbacks=[seen])
        assert_close(weights(translator), seen.values[-1])
        best = Translator.load(tmp_path / "best")
        assert_close(weights(best), average(seen.values))
    assert len(seen.values) == 20
    # Evaluations after 7, 12, 14 and 20 updates.
    for step, at_step in zip((7, 12, 14, 20), evaluated, strict=True):
        assert_close(at_step, average(seen.values[:step]))
    # It is another one than the weights.
    for mean, weight in zip(evaluated[-1], seen.values[-1], strict=True):
        assert np.abs(mean - weight).max() > 1e-4


def test_an_error_gives_the_weights_back():
    model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    optimizer = Adam(0.1, use_ema=True, ema_momentum=0.5)
    optimizer.build(model.trainable_variables)
    before = model.get_weights()
    with averaged(model, optimizer):
        assert_close(model.get_weights(), before)  # no update yet
    gradients = [tf.ones_like(one.value) for one in model.trainable_variables]
    for _ in range(2):
        optimizer.apply(gradients)
    after = model.get_weights()
    try:
        with averaged(model, optimizer):
            assert np.all(model.get_weights()[0] > after[0] + 0.01)
            raise KeyError
    except KeyError:
        pass
    assert_close(model.get_weights(), after)
