"""Masks as Keras users expect them: padding is neither read nor counted."""

from typing import Any

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from comparisons import all_close
from oracle import close, randomized
from refusals import refused
from test_loading import K, N, rnnsearch, with_a_decoder

from bahdanau_tf import layers, losses, optimizers

M = 3
SOURCE = np.array([[2, 3, 5, 1], [4, 1, 0, 0]], "int32")
TARGET = np.array([[3, 1, 0, 0], [5, 6, 4, 1]], "int32")


def functional() -> Any:
    """A functional RNNsearch, without explicit masks."""
    model = with_a_decoder()
    return keras.Model(model.inputs, model.outputs[0])


def of_words(logits: Any) -> np.ndarray:
    """-log p of the target words without padding."""
    return -reference.token_log_probs(np.asarray(logits, "float64"), TARGET)[TARGET != 0]


def test_an_embedding_passes_its_mask_to_the_encoder():
    encoder = layers.BidirectionalEncoder(layers.GRUCell(N))
    embedding = layers.WordEmbedding(K, M, mask_zero=True, use_bias=True)
    encoded = encoder(embedding(SOURCE))
    wanted = encoder(embedding(SOURCE), mask=tf.constant(SOURCE != 0))
    np.testing.assert_array_equal(encoded.mask, SOURCE != 0)
    np.testing.assert_array_equal(encoded.annotations, wanted.annotations)
    silent = layers.WordEmbedding(K, M)
    assert encoder(silent(SOURCE)).mask.numpy().all()


def test_states_and_annotations_have_the_mask_of_their_words():
    words = layers.WordEmbedding(K, M, mask_zero=True)
    states, _ = layers.Recurrent(layers.GRUCell(N))(words(SOURCE))
    encoded = layers.BidirectionalEncoder(layers.GRUCell(N))(words(SOURCE))
    read = layers.TanhReadout(K, 5, terms=("state",))(states, states)
    for outputs in (states, encoded.annotations, read):
        np.testing.assert_array_equal(outputs._keras_mask, SOURCE != 0)


def test_a_tied_readout_is_refused_in_a_functional_model():
    """Keras would save the embeddings that it is given as a constant."""
    ids = keras.Input([None], dtype="int32")
    embedding = layers.WordEmbedding(K, M)
    words = embedding(ids)
    readout = layers.TanhReadout(K, M, terms=("state",), tied=True)
    refused(
        lambda: readout(words, words, None, embedding.embeddings),
        "TanhReadout: tied is True in a func",
    )


def test_a_functional_model_ignores_padding():
    model = randomized(functional())
    wider = np.pad(SOURCE, [[0, 0], [0, 3]])
    close(model([wider, TARGET]), model([SOURCE, TARGET]).numpy(), 1e-6)


@pytest.mark.filterwarnings("error")
def test_attention_between_keras_layers_passes_the_mask_on():
    source = keras.Input([None], dtype="int32")
    target = keras.Input([None], dtype="int32")
    words = keras.layers.Embedding(K, M, mask_zero=True)(source)
    encoder = keras.layers.LSTM(N, return_sequences=True)
    annotations = keras.layers.Bidirectional(encoder)(words)
    words = keras.layers.Embedding(K, M, mask_zero=True)(target)
    queries = keras.layers.GRU(N, return_sequences=True)(words)
    attention = layers.BahdanauAttention(5)
    mask = keras.ops.not_equal(source, 0)
    keys = attention.project(annotations)
    context, _ = attention(queries, layers.Memory(annotations, keys, mask))
    logits = keras.layers.Dense(K)(context)
    model = randomized(keras.Model([source, target], logits))
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    loss = model.evaluate([SOURCE, TARGET], TARGET, verbose=0)
    assert loss == pytest.approx(of_words(model([SOURCE, TARGET])).mean(), rel=1e-5)


@pytest.mark.parametrize("make", [layers.BahdanauAttention, layers.LocationAttention])
def test_keras_mask_of_the_annotations_is_that_of_the_memory(make):
    """As in `keras.layers.AdditiveAttention`; also in a functional model and in a decoder."""
    attention = make(5)
    words = keras.layers.Embedding(K, M, mask_zero=True)
    annotations = words(SOURCE)
    query = tf.random.stateless_normal([len(SOURCE), N], [1, 2])
    plain = tf.constant(annotations.numpy())  # without a mask
    wanted = attention(query, layers.Memory(plain, (), SOURCE != 0))
    for own, other in zip(
        attention(query, layers.Memory(annotations, (), ())), wanted, strict=True
    ):
        np.testing.assert_allclose(own, other, atol=1e-6)
    inputs = keras.Input([N]), keras.Input([None], dtype="int32")
    model = keras.Model(inputs, attention(inputs[0], layers.Memory(words(inputs[1]), (), ())))
    for own, other in zip(model([query, tf.constant(SOURCE)]), wanted, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-6)
    decoder = layers.AttentionDecoder(layers.GRUCell(N), attention)
    rest = tf.ones([len(SOURCE), 2, M]), tf.ones([len(SOURCE), M]), (query,)
    wanted = decoder(*rest, layers.Memory(plain, (), SOURCE != 0)).state
    own = decoder(*rest, layers.Memory(annotations, (), ())).state
    np.testing.assert_allclose(own, wanted, atol=1e-6)


def test_a_fixed_context_has_the_mask_of_its_queries():
    queries = layers.WordEmbedding(K, N, mask_zero=True)(TARGET)
    contexts, _ = layers.FixedContext()(queries, tf.ones([2, N]))
    np.testing.assert_array_equal(contexts._keras_mask, TARGET != 0)


@pytest.mark.parametrize("reduction", ["sum", "mean_with_sample_weight"])
def test_losses_and_perplexity_ignore_padding(reduction):
    logits = tf.random.stateless_normal([2, 4, K], seed=[1, 2])
    loss = losses.TokenCrossentropy(reduction=reduction)
    weights = (TARGET != 0).astype("float32")
    wanted = of_words(logits).sum() if reduction == "sum" else of_words(logits).mean()
    close(loss(TARGET, logits), wanted, 1e-5)
    close(loss(TARGET, logits, weights), wanted, 1e-5)
    perplexity = losses.Perplexity()
    perplexity.update_state(TARGET, logits)
    close(perplexity.result(), np.exp(of_words(logits).mean()), 1e-4)


@pytest.mark.parametrize("make", [rnnsearch, functional])
def test_losses_and_metrics_of_keras_ignore_padding(make):
    model = randomized(make())
    inputs: Any = [SOURCE, TARGET]
    if make is rnnsearch:
        inputs = {"source": SOURCE, "target": TARGET}
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="right")],
    )
    scores = model.evaluate(inputs, TARGET, verbose=0, return_dict=True)
    logits = np.asarray(model(inputs))
    assert scores["loss"] == pytest.approx(of_words(logits).mean(), rel=1e-5)
    if tuple(map(int, keras.version().split(".")[:2])) < (3, 12):
        return  # older metrics use a mask only with sample weights
    right = (logits.argmax(-1) == TARGET)[TARGET != 0].mean()
    assert scores["right"] == pytest.approx(right)


def test_fit_without_sample_weights_ignores_padding():
    after = []
    for weights in (None, (TARGET != 0).astype("float32")):
        words = layers.WordEmbedding(K, M, mask_zero=True)
        model = keras.Sequential([words, keras.layers.Dense(K)])
        model.build((None, None))
        randomized(model).compile(
            optimizers.SGD(0.1), losses.TokenCrossentropy(), metrics=[losses.Perplexity()]
        )
        model.fit(TARGET, TARGET, sample_weight=weights, verbose=0)
        after.append(model.get_weights())
    all_close(*after, rtol=0, atol=1e-7)


def test_attention_in_float64_is_exact_to_float64():
    """All is float64: in float32 the error would be 1e-8."""
    query, keys = (np.random.default_rng(s).normal(size=(2, N)) for s in (0, 1))
    annotations = np.stack([keys, keys + 1.0], axis=1)
    mask = tf.constant(True, shape=(2, 2))
    attention = layers.DotAttention(dtype="float64")
    memory = layers.Memory(annotations, annotations, mask)
    context, weights = attention(tf.constant(query), memory)
    energies = np.einsum("bn,btn->bt", query, annotations)
    wanted = np.exp(energies) / np.exp(energies).sum(-1, keepdims=True)
    np.testing.assert_allclose(weights, wanted, rtol=1e-13)
    contexts = np.einsum("bt,btn->bn", wanted, annotations)
    np.testing.assert_allclose(context, contexts, rtol=1e-12)


def attend(mask: Any) -> Any:
    """What an attention reads of five positions, under a mask."""
    random = np.random.default_rng(0)
    annotations = random.normal(size=(2, 5, N)).astype("float32")
    queries = random.normal(size=(2, 3, N)).astype("float32")
    attention = layers.BahdanauAttention(6)
    attention.build((None, N), [(None, None, N)])
    randomized(attention)
    encoded = layers.Encoded(tf.constant(annotations), (), (), mask)
    return attention(queries, attention.memory(encoded))


def decode(mask: Any, cell: Any) -> Any:
    """All that a decoder returns, and its gradients, under a mask."""
    decoder = layers.AttentionDecoder(cell(N), layers.BahdanauAttention(6))
    decoder.build((None, None, M), memory_shape=[(None, None, N)])
    randomized(decoder)
    states = (tf.ones([2, N]),) * decoder.cell.state_count
    words = tf.random.stateless_normal([2, 3, M], [1, 2])
    annotations = tf.random.stateless_normal([2, 5, N], [3, 4])
    with tf.GradientTape() as tape:
        tape.watch(annotations)
        memory = layers.Memory(annotations, (), mask)
        outputs = decoder(words, words[:, 0], states, memory)
        total = tf.add_n([tf.reduce_sum(tf.sin(x)) for x in outputs])
    return *outputs, tape.gradient(total, annotations)


def read(mask: Any) -> Any:
    annotations = np.random.default_rng(0).normal(size=(2, 5, M))
    encoder = layers.BidirectionalEncoder(layers.GRUCell(N))
    encoder.build((None, None, M))
    return randomized(encoder)(annotations.astype("float32"), mask=mask)


WITH_MASKS = {
    "attention": attend,
    "decoder": lambda mask: decode(mask, layers.GRUCell),
    "decoder of LSTM": lambda mask: decode(mask, layers.LSTMCell),
    "encoder": read,
}


MASK = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0]])


@pytest.mark.parametrize("name", WITH_MASKS)
@pytest.mark.parametrize(
    ("mask", "same"),
    [(None, tf.ones([2, 5], tf.bool)), (tf.constant(MASK), tf.constant(MASK == 1))],
)
def test_a_mask_may_be_missing_or_of_integers(name, mask, same):
    """Without a mask all positions are real."""
    outputs, wanted = (tf.nest.flatten(WITH_MASKS[name](this_mask)) for this_mask in (mask, same))
    all_close(outputs, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 4), (5,)])
@pytest.mark.parametrize("name", WITH_MASKS)
def test_a_mask_of_another_shape_is_refused(name, shape):
    refused(lambda: WITH_MASKS[name](tf.ones(shape, tf.bool)), "mask has the shape")


def test_bridges_need_no_mask():
    encoded = read(None)._replace(mask=())
    for kind in ("Backward", "Copy", "Forward", "Sentence", "Zero"):
        bridge = getattr(layers, f"{kind}Bridge")
        states, first = bridge(N, N if kind == "Sentence" else M)(encoded)
        assert states[0].shape == (2, N)
        assert first.shape[0] == 2


def test_a_functional_model_needs_no_mask(tmp_path):
    """Attention over the steps of a time series."""
    series, query = keras.Input([None, M]), keras.Input([N])
    encoded = layers.BidirectionalEncoder(layers.GRUCell(N))(series)
    attention = layers.GeneralAttention()
    memory = attention.memory(encoded._replace(mask=None))
    model = randomized(keras.Model([series, query], attention(query, memory)))
    inputs = [np.ones((2, 5, M), "float32"), np.ones((2, N), "float32")]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    close(loaded(inputs)[0], model(inputs)[0].numpy(), 1e-6)
