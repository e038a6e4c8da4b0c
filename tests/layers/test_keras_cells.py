"""Cells of Keras and of users in encoders, decoders and models."""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracle import close, randomized
from refusals import refused
from test_models import stepwise

from bahdanau_tf import layers, models
from bahdanau_tf.layers.decoder import STEP_ORDERS

K, N, M, B, T = 9, 6, 3, 3, 4
MASK = np.arange(T) < np.array([[4], [2], [1]])
IDS = np.array([[2, 3, 5, 1], [4, 1, 0, 0], [1, 0, 0, 0]], "int32")


def normal(*shape: int, seed: int = 0) -> tf.Tensor:
    values = np.random.default_rng(seed).normal(size=shape)
    return tf.constant(values, tf.float32)


@keras.saving.register_keras_serializable(package="bahdanau_tf_tests")
class UserCell(keras.layers.Layer):
    """h_t = tanh(W x_t + U h_{t-1}) and a count of steps."""

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.state_size = [units, 1]

    def build(self, input_shape: Any) -> None:
        shape = (input_shape[-1], self.units)
        self.kernel = self.add_weight(shape=shape)
        self.recurrent_kernel = self.add_weight(shape=(self.units, self.units))

    def call(self, inputs: Any, states: Any) -> Any:
        state, count = states
        state = keras.ops.tanh(
            keras.ops.matmul(inputs, self.kernel) + keras.ops.matmul(state, self.recurrent_kernel)
        )
        return state, [state, count + 1.0]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}


CELLS: dict[str, Callable] = {
    "gru": lambda: keras.layers.GRUCell(N),
    "lstm": lambda: keras.layers.LSTMCell(N),
    "simple": lambda: keras.layers.SimpleRNNCell(N),
    "user": lambda: UserCell(N),
}
every_cell = pytest.mark.parametrize("name", CELLS)


@every_cell
def test_an_encoder_equals_keras_rnn(name):
    encoder = layers.BidirectionalEncoder(CELLS[name]())
    words = normal(B, T, M)
    encoder.build((None, None, M))
    forward, backward = randomized(encoder).stack[0]
    encoded = tf.function(encoder)(words, mask=tf.constant(MASK))
    for half, recurrent in ((0, forward), (1, backward)):
        loop = keras.layers.RNN(recurrent.cell.cell, return_sequences=True, go_backwards=half == 1)
        for row, length in enumerate(MASK.sum(1)):
            wanted = loop(words[row : row + 1, :length])[0]
            wanted = wanted[::-1] if half else wanted
            states = encoded.annotations[row, :length, half * N :][:, :N]
            close(states, wanted, 1e-6)


def decoders(order: str) -> tuple[Any, Any]:
    """Decoders with Keras' cell and with ours, with the same weights.

    Keras' kernel is [W ; C], ours are W and C.
    """
    kind = (
        layers.ConditionalDecoder
        if order == "conditional"
        else partial(layers.AttentionDecoder, step_order=order)
    )
    theirs, ours = (
        kind(cell, layers.BahdanauAttention(5))
        for cell in (keras.layers.GRUCell(N), layers.GRUResetAfterCell(N))
    )
    shape = layers.Encoded((None, None, 2 * N), (((None, N),),), (((None, N),),), (None, None))
    for decoder in (theirs, ours):
        decoder.build_for(M, shape)
    randomized(ours)
    theirs.attention.set_weights(ours.attention.get_weights())
    if order == "conditional":
        carry(ours.context_cell, theirs.context_cell)
        carry(ours.cell, theirs.cell)
    else:
        carry(ours.cell, theirs.cell, np.asarray(ours.context_kernel))
    return theirs, ours


def carry(cell: Any, theirs: Any, *context_kernel: np.ndarray) -> None:
    """Gives Keras' cell the weights of ours."""
    theirs.cell.set_weights(
        [
            np.concatenate([cell.kernel, *context_kernel]),
            np.asarray(cell.recurrent_kernel),
            np.stack([cell.bias, cell.recurrent_bias]),
        ]
    )


@pytest.mark.parametrize("order", [*STEP_ORDERS, "conditional"])
def test_a_decoder_with_keras_gru_equals_one_with_ours(order):
    words, first, state = normal(B, T, M), normal(B, M), normal(B, N)
    glimpses, steps = [], []
    for decoder in decoders(order):
        annotations = normal(B, T, 2 * N, seed=1)
        encoded = layers.Encoded(annotations, (), (), tf.constant(MASK))
        memory = decoder.attention.memory(encoded)
        glimpses.append(decoder(words, first, (state,), memory))
        before = decoder.initial_state((state[:, None],), memory)
        if before.cell_term != ():
            before = before._replace(cell_term=before.cell_term[:, None])
        is_first = tf.zeros([B, 1], tf.bool)
        memory = decoder.step_memory(memory, tf.identity)
        steps.append(decoder.step(first[:, None], is_first, before, memory)[0])
    for theirs, ours in zip(*glimpses, strict=True):
        close(theirs, ours.numpy(), 1e-6)
    for theirs, ours in zip(*steps, strict=True):
        close(theirs, ours.numpy(), 1e-6)


@every_cell
def test_a_model_of_such_cells_is_decoded_stepwise_saved_and_loaded(name, tmp_path):
    make = CELLS[name]
    encoder = layers.BidirectionalEncoder(layers.StackedCells([make(), layers.GRUCell(N)]))
    sizes = {"units": N, "embedding_dim": M, "attention_units": 5, "maxout_units": 2}
    model = randomized(models.RNNSearch(K, K, **sizes, encoder=encoder, cell=make()))
    target = np.array([[2, 3, 5, 1], [4, 1, 7, 8], [1, 6, 2, 3]], "int32")
    batch = {"source": tf.constant(IDS), "target": tf.constant(target)}
    wanted = model(batch)
    close(stepwise(model, IDS, target[:, None])[0][:, 0], wanted.numpy(), 2e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == len(model.weights)
    close(loaded(batch), wanted.numpy(), 1e-6)


@pytest.mark.parametrize(
    ("name", "part", "said"),
    [
        ("attention", keras.layers.AdditiveAttention(), "attention is Add"),
        ("attention", "additive", "attention is 'additive'"),
        ("attention", "Attention", "attention is 'Attention'"),
        ("attention", layers.BahdanauAttention, "the class BahdanauAttention itself, not an inst"),
        ("encoder", keras.layers.Bidirectional(keras.layers.GRU(4)), "wanted an encoder such as"),
        ("encoder", layers.BidirectionalEncoder, "the class BidirectionalEncoder itself, not"),
        ("cell", layers.GRUCell, "AttentionDecoder: cell is the class GRUCell itself, not an"),
        ("cell", keras.layers.GRUCell, "cell is the class GRUCell itself, not an instance"),
        ("cell", keras.layers.Dense(4), "AttentionDecoder: cell is Dense"),
        ("cell", keras.layers.GRU(4), "cell is GRU"),
        ("readout", keras.layers.Dense(K), "RNNSearch: readout is Dense"),
        ("bridge", keras.layers.Dense(4), "RNNSearch: bridge is Dense"),
    ],
)
def test_parts_of_another_kind_are_refused(name, part, said):
    refused(
        lambda: models.RNNSearch(K, K, units=4, embedding_dim=3, maxout_units=2, **{name: part}),
        said,
    )


REFUSED = {
    "BidirectionalEncoder: cell is Dense, wanted a cell": lambda: layers.BidirectionalEncoder(
        keras.layers.Dense(4)
    ),
    "AttentionDecoder: cell is StackedRNNCells, .* in StackedCells": lambda: (
        layers.AttentionDecoder(keras.layers.StackedRNNCells([keras.layers.GRUCell(4)]))
    ),
    "AttentionDecoder: attention is Attention, wanted a subclass of": lambda: (
        layers.AttentionDecoder(layers.GRUCell(4), keras.layers.Attention())
    ),
    "KerasCell: dropout of the LSTMCell is 0.5, wanted 0": lambda: layers.KerasCell(
        keras.layers.LSTMCell(4, dropout=0.5)
    ),
    "KerasCell: GRUCell does not support state_dropout, wanted 0": lambda: layers.Recurrent(
        keras.layers.GRUCell(4), state_dropout=0.5
    )(normal(B, T, M), training=True),
    "KerasCell: GRUCell computes in float32, .* inputs are float64": lambda: layers.Recurrent(
        keras.layers.GRUCell(4, dtype="float32"), dtype="float64"
    )(normal(B, T, M)),
}


@pytest.mark.parametrize("words", REFUSED)
def test_errors_name_argument_class_and_what_was_wanted(words):
    with pytest.raises(ValueError, match=words):
        REFUSED[words]()
