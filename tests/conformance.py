"""Every public layer and model, with inputs to test it on.

`test_conformance.py` runs the same tests over all of them, and fails if a public class is
missing here.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf import layers, models

K, M, N = 9, 3, 4
LONGEST = 8


class Size(NamedTuple):
    """The size of the inputs."""

    rows: int = 3  # B
    length: int = 4  # T, the length of the first row; the others are shorter
    padding: int = 0  # number of masked positions after T
    garbage: int = 1  # seed of the values at masked positions


class Case(NamedTuple):
    """A layer and how to call it."""

    make: Callable[[], Any]  # not built
    inputs: Callable[[Size], tuple[Any, ...]]  # its arguments, nests of tensors
    has_time: bool = True  # whether the inputs have a time axis that may be padded
    call: Callable[..., Any] = lambda layer, *inputs: layer(*inputs)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def mask_of(size: Size) -> np.ndarray:
    lengths = size.length - np.arange(size.rows) % size.length
    return np.arange(size.length + size.padding) < lengths[:, None]


def vectors(size: Size, width: int, seed: int = 0) -> tf.Tensor:
    """float [B, T, width] with random values at masked positions."""
    time = size.length + size.padding
    shape = (size.rows, LONGEST, width)
    words = normal(*shape, seed=seed)[:, :time]
    garbage = 100 * normal(*shape, seed=size.garbage)[:, :time]
    return tf.constant(np.where(mask_of(size)[..., None], words, garbage))


def unmasked(size: Size, width: int) -> tf.Tensor:
    """float [B, T, width], no padding."""
    shape = (size.rows, LONGEST, width)
    return tf.constant(normal(*shape, seed=3)[:, : size.length])


def ids(size: Size, seed: int = 0) -> tf.Tensor:
    """int32 [B, T], padded with 0."""
    random = np.random.default_rng(seed)
    words = random.integers(1, K, (size.rows, LONGEST))
    words = words[:, : size.length + size.padding] * mask_of(size)
    return tf.constant(words, tf.int32)


def row(size: Size, width: int, seed: int = 0) -> tf.Tensor:
    """float [B, width]."""
    return tf.constant(normal(size.rows, width, seed=seed))


def encoded(size: Size) -> layers.Encoded:
    return layers.Encoded(
        vectors(size, 2 * N),
        ((row(size, N, 1),),),
        ((row(size, N, 2),),),
        tf.constant(mask_of(size)),
    )


def cell(make: Callable[[], Any], states: int) -> Case:
    def inputs(size: Size) -> tuple[Any, ...]:
        return row(size, M), [row(size, N, i + 1) for i in range(states)]

    return Case(make, inputs, has_time=False)


def masked(make: Callable[[], Any]) -> Case:
    return Case(make, lambda size: (vectors(size, M), tf.constant(mask_of(size))))


def attention(make: Callable[[], Any]) -> Case:
    return Case(
        make,
        lambda size: (row(size, 2 * N), encoded(size)),
        call=lambda layer, query, h: layer(query, layer.memory(h)),
    )


def remembering(make: Callable[[], Any]) -> Case:
    """An attention with a state, called for two steps."""

    def call(layer: Any, query: tf.Tensor, h: layers.Encoded) -> Any:
        layer(query, layer.memory(h))  # Keras builds it
        query, h = tf.nest.map_structure(
            lambda x: tf.cast(x, layer.compute_dtype) if x.dtype.is_floating else x, (query, h)
        )
        memory = layer.completed(layer.memory(h))
        *_, state = layer.step(query, memory, layer.initial_state(memory))
        return layer.step(2 * query, memory, state)[:2]

    return attention(make)._replace(call=call)


def bridge(make: Callable[[], Any]) -> Case:
    return Case(make, lambda size: (encoded(size),))


def readout(make: Callable[[], Any]) -> Case:
    def inputs(size: Size) -> tuple[Any, ...]:
        return tuple(unmasked(size, width) for width in (N, M, 2 * N))

    return Case(make, inputs, has_time=False)


def model(make: Callable[[], Any]) -> Case:
    return Case(make, lambda size: ({"source": ids(size), "target": ids(size, 1)},))


def decoder_inputs(size: Size) -> tuple[Any, ...]:
    """The target keeps its length; only the source is padded."""
    target = unmasked(size, M)
    return target, row(size, M, 4), (row(size, N, 5),), encoded(size)


def call_decoder(decoder: Any, *inputs: Any) -> Any:
    *others, h = inputs
    return decoder(*others, decoder.attention.memory(h))


def call_copying(layer: Any, features: Any, energies: Any, source: Any, target: Any) -> Any:
    """Energies are [B, T_x, 8], since the last axis of vectors has a fixed size."""
    energies = tf.transpose(energies, [0, 2, 1])[:, : tf.shape(features)[1]]
    alignment = tf.nn.softmax(tf.cast(energies, tf.float32))
    if not layer.built:
        layer.build(features.shape)
    hinted = layer.hinted(features, layer.of_sentences(source, target, alignment))
    return layer(hinted, alignment, source, target)


MODEL = {"units": N, "embedding_dim": M}

CASES: dict[str, Case] = {
    "AttentionCell": Case(
        lambda: layers.AttentionCell(
            layers.GRUCell(N), layers.BahdanauAttention(5), attention_layer_size=6
        ),
        lambda size: (unmasked(size, M), encoded(size)),
        call=lambda layer, x, h: keras.layers.RNN(layer, return_sequences=True)(
            x, initial_state=layer.initial_state(h)
        ),
    ),
    "AttentionDecoder": Case(
        lambda: layers.AttentionDecoder(layers.GRUCell(N), layers.BahdanauAttention(5)),
        decoder_inputs,
        call=call_decoder,
    ),
    "BackwardBridge": bridge(lambda: layers.BackwardBridge(N, M)),
    "BahdanauAttention": attention(
        lambda: layers.BahdanauAttention(5, use_bias=True, normalize=True)
    ),
    "BidirectionalEncoder": masked(
        lambda: layers.BidirectionalEncoder(layers.GRUCell(N), layers=2, residual=True)
    ),
    "ConditionalDecoder": Case(
        lambda: layers.ConditionalDecoder(layers.GRUCell(N), layers.BahdanauAttention(5)),
        decoder_inputs,
        call=call_decoder,
    ),
    "CopyBridge": bridge(lambda: layers.CopyBridge(N, M)),
    "Copying": Case(
        lambda: layers.Copying(K, N, kernel_initializer="glorot_uniform"),
        lambda size: (
            unmasked(size, N),
            vectors(size, LONGEST),
            ids(size),
            ids(size._replace(padding=0), 1),
        ),
        has_time=False,
        call=call_copying,
    ),
    "DotAttention": attention(layers.DotAttention),
    "FixedContext": Case(
        layers.FixedContext, lambda size: (row(size, N), row(size, N, 1)), has_time=False
    ),
    "ForwardBridge": bridge(lambda: layers.ForwardBridge(N, M)),
    "GRUCell": cell(lambda: layers.GRUCell(N, use_gate_bias=True), 1),
    "GRUResetAfterCell": cell(lambda: layers.GRUResetAfterCell(N), 1),
    "GeneralAttention": attention(layers.GeneralAttention),
    "KerasCell": cell(lambda: layers.KerasCell(keras.layers.LSTMCell(N)), 2),
    "LSTMCell": cell(lambda: layers.LSTMCell(N), 2),
    "LinearReadout": readout(lambda: layers.LinearReadout(K)),
    "LocationAttention": remembering(lambda: layers.LocationAttention(5, filters=2, kernel_size=3)),
    "MaxoutReadout": readout(lambda: layers.MaxoutReadout(K, 5, factor_units=M)),
    "MonotonicAttention": remembering(lambda: layers.MonotonicAttention(5)),
    "Recurrent": masked(lambda: layers.Recurrent(layers.LSTMCell(N), reverse=True)),
    "SentenceBridge": bridge(lambda: layers.SentenceBridge(N, N)),
    "StackedCells": cell(lambda: layers.StackedCells([layers.GRUCell(N), layers.LSTMCell(N)]), 3),
    "TanhCell": cell(lambda: layers.TanhCell(N), 1),
    "TanhReadout": readout(lambda: layers.TanhReadout(K, 5)),
    "UnidirectionalEncoder": masked(lambda: layers.UnidirectionalEncoder(layers.TanhCell(N))),
    "WordEmbedding": Case(
        lambda: layers.WordEmbedding(K, M, use_bias=True), lambda size: (ids(size),)
    ),
    "ZeroBridge": bridge(lambda: layers.ZeroBridge(N, M)),
    "Ensemble": model(
        lambda: models.Ensemble(
            [
                # Its members are tested below; here they are the smallest.
                models.RNNEncDec(K, K, **MODEL, maxout_units=5),
                models.RNNEncDec(K, K, **MODEL, maxout_units=2),
            ]
        )
    ),
    "RNNEncDec": model(lambda: models.RNNEncDec(K, K, **MODEL, maxout_units=5)),
    "RNNSearch": model(lambda: models.RNNSearch(K, K, **MODEL, attention_units=5, maxout_units=5)),
    "Seq2SeqLSTM": model(lambda: models.Seq2SeqLSTM(K, K, **MODEL, layers=2)),
}

# Base classes, which cannot be called.
ABSTRACT = {"Attention", "Bridge", "EncoderDecoder", "Readout", "RecurrentCell", "StepwiseModel"}


def public_layers() -> set[str]:
    """Names of all public classes that are Keras layers."""
    return {
        name
        for package in (layers, models)
        for name, value in vars(package).items()
        if isinstance(value, type) and issubclass(value, keras.layers.Layer)
    }
