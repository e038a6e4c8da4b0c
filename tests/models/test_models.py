"""Whole models: compared with the NumPy reference, decoded, saved, sized."""

import functools
import re
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from comparisons import all_equal
from oracle import (
    ACTIVATIONS,
    ATTENTIONS,
    CELLS,
    array,
    cell_parameters,
    close,
    everywhere,
    model_parameters,
    randomized,
)
from refusals import refused

from bahdanau_tf import layers
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.models import (
    Ensemble,
    RNNEncDec,
    RNNSearch,
    Seq2SeqLSTM,
    from_preset,
    scoring,
    token_log_probs,
)
from bahdanau_tf.models.named import make_model
from bahdanau_tf.options import ModelOptions

K_X, K_Y, N, M = 11, 13, 6, 4
SIZES = {"units": N, "embedding_dim": M, "maxout_units": 3}
VOCABULARIES = {"source_vocabulary_size": K_X, "target_vocabulary_size": K_Y}

SOURCE = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 0, 0], [5, 0, 0, 0, 0]], "int32")
TARGET = np.array([[2, 7, 1, 8], [3, 0, 0, 0], [1, 8, 0, 0]], "int32")


def search(**options: Any) -> RNNSearch:
    arguments = {**SIZES, "attention_units": 5, **options}
    return RNNSearch(K_X, K_Y, **arguments)


def copying(**options: Any) -> RNNSearch:
    model = search(**options)
    model.copying.copies.assign([0, 0, 2, -8, 7, -1, 0, 3, -6, 4, 5])  # x_j as words of the target
    return model


def encdec(**options: Any) -> RNNEncDec:
    return RNNEncDec(K_X, K_Y, **{**SIZES, **options})


def lstm(**options: Any) -> Seq2SeqLSTM:
    arguments = {"units": N, "embedding_dim": M, "layers": 2, **options}
    return Seq2SeqLSTM(K_X, K_Y, **arguments)


def preset(name: str, **options: Any) -> Any:
    sizes = {"units": N, **VOCABULARIES}
    if name != "rnn-encdec":
        sizes |= {"embedding_dim": M, "attention_units": 5}
    return from_preset(name, **{**sizes, **options})


VARIANTS = {
    "paper": search,
    "appendix": partial(search, step_order="appendix"),
    "main-text": partial(search, step_order="main-text"),
    "conditional": partial(search, step_order="conditional"),
    "full-output": partial(search, factored_output=False),
    "tied": partial(search, tie_embeddings=True),
    "shared": lambda **options: RNNSearch(
        K_Y, K_Y, share_embeddings=True, tie_embeddings=True, **SIZES, **options
    ),
    "tied-full": partial(search, tie_embeddings=True, factored_output=False, maxout_units=M),
    "no-embedding-bias": partial(search, embedding_bias=False),
    "attention-bias": lambda: search(attention=layers.BahdanauAttention(5, use_bias=True)),
    "attention-normalized": lambda: search(attention=layers.BahdanauAttention(5, normalize=True)),
    "general": lambda: search(attention=layers.GeneralAttention()),
    "location": lambda: search(attention="LocationAttention"),
    "monotonic": lambda: search(attention="MonotonicAttention"),
    "dot": lambda: search(
        attention=layers.DotAttention(),
        cell=layers.GRUCell(2 * N),
        bridge=layers.ZeroBridge(2 * N, M),
    ),
    "lstm": lambda: search(
        cell=layers.LSTMCell(N), encoder=layers.BidirectionalEncoder(layers.LSTMCell(N))
    ),
    "gru-after": lambda: search(
        cell=layers.GRUResetAfterCell(N),
        encoder=layers.BidirectionalEncoder(layers.GRUResetAfterCell(N)),
    ),
    "deep-encoder": lambda: search(
        encoder=layers.BidirectionalEncoder(layers.GRUCell(N), layers=2)
    ),
    "residual-encoder": lambda: search(
        encoder=layers.BidirectionalEncoder(layers.GRUCell(N), layers=2, residual=True)
    ),
    "tanh-readout": lambda: search(readout=layers.TanhReadout(K_Y, 3)),
    "linear-readout": lambda: search(readout=layers.LinearReadout(K_Y, factor_units=3)),
    "copying": lambda: copying(copying="hint"),
    "copying-appendix": lambda: copying(
        copying="hint", factored_output=False, step_order="appendix"
    ),
    "forward-encoder": lambda: search(
        encoder=layers.UnidirectionalEncoder(layers.GRUCell(N)), bridge=layers.ForwardBridge(N, M)
    ),
    "encdec": encdec,
    "encdec-main-text": partial(encdec, step_order="main-text"),
    "encdec-conditional": partial(encdec, step_order="conditional"),
    "encdec-residual": lambda: encdec(
        encoder=layers.UnidirectionalEncoder(layers.GRUCell(N), layers=2, residual=True)
    ),
    "encdec-no-context": partial(encdec, use_context=False),
    "rnn-attention": partial(preset, "rnn-attention"),
    "gru-attention": partial(preset, "gru-attention"),
    "rnn-encdec": partial(preset, "rnn-encdec"),
}
MODELS = {**VARIANTS, "seq2seq-lstm": lstm, "ensemble": lambda: ensemble("log_probability")}
FEW = ["paper", "encdec", "seq2seq-lstm", "rnn-attention"]
few_models = pytest.mark.parametrize("name", FEW)


@functools.cache
def example(name: str) -> Any:
    """A shared model, for tests that do not change its weights."""
    return randomized(MODELS[name](), scale=0.6)


FULL_TARGET = np.where(TARGET == 0, 2, TARGET)  # no padding


@pytest.mark.parametrize(
    ("inputs", "description"),
    [
        ([SOURCE, TARGET], ("list",)),
        ({"src": SOURCE, "target": TARGET}, ("a dict with ['src', 'target']",)),
        ({"source": SOURCE, "target": TARGET, "mask": SOURCE}, ("a dict with", "'mask']")),
    ],
)
def test_inputs_without_names_are_refused(inputs: Any, description: str) -> None:
    refused(lambda: encdec()(inputs), "RNNEncDec: inputs is", *description, "want")


@pytest.mark.parametrize("method", ["fit", "train_on_batch"])
def test_classes_have_no_weights(method: str) -> None:
    """Of a sentence Keras takes the class with the largest index, the argmax of its ids."""
    model = encdec()
    model.compile(loss=TokenCrossentropy())
    inputs = {"source": SOURCE, "target": TARGET}
    refused(
        lambda: getattr(model, method)(inputs, TARGET, class_weight={1: 2.0}),
        "RNNEncDec: class_weight",
        "sample_weight, float [B",
    )


def own_crossentropy(target: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """A loss of a user."""
    return keras.losses.sparse_categorical_crossentropy(target, logits, from_logits=True)


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        "crossentropy",
        ["sparse_categorical_crossentropy"],
        keras.losses.sparse_categorical_crossentropy,
        keras.losses.SparseCategoricalCrossentropy,
        keras.losses.SparseCategoricalCrossentropy(),
    ],
)
def test_a_loss_of_probabilities_is_refused(loss: Any) -> None:
    """The model returns logits, of which Keras would take the logarithm."""
    model = encdec()
    model.compile("adam", loss)
    inputs = {"source": SOURCE, "target": TARGET}
    refused(
        lambda: model.fit(inputs, TARGET, verbose=0),
        "RNNEncDec: the loss of compile is",
        "from_logits=True",
    )
    for right in (keras.losses.SparseCategoricalCrossentropy(from_logits=True), own_crossentropy):
        model.compile("adam", right)
        model.fit(inputs, TARGET, verbose=0)


def test_a_hint_of_copies_needs_the_term_of_the_context() -> None:
    readout = layers.TanhReadout(9, 6, terms=("state", "previous"))
    sizes = {"units": 4, "embedding_dim": 3, "attention_units": 5}
    refused(
        lambda: RNNSearch(9, 9, **sizes, readout=readout, copying="hint"),
        "RNNSearch: copying is 'hint'",
        "readout of the context",
    )


def test_frozen_parts_stay_frozen_in_a_file(tmp_path) -> None:
    model = encdec()
    model.encoder.trainable = model.source_embedding.trainable = False
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    shapes = [[x.shape for x in each.trainable_weights] for each in (model, loaded, encdec())]
    assert shapes[0] == shapes[1] != shapes[2]
    assert loaded.decoder.trainable


RAGGED = tf.ragged.constant([[2, 3, 1], [4]], dtype=tf.int32)


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (RAGGED, TARGET, ("source is ragged",)),
        (SOURCE, RAGGED, ("target is ragged",)),
        (SOURCE.astype(str), TARGET, ("source is string",)),
        (SOURCE[0], TARGET, ("source has the shape",)),
        (SOURCE, TARGET[0], ("target has the shape",)),
        (SOURCE[None], TARGET, ("source has the shape (1",)),
        (SOURCE, TARGET[..., None], ("target has the shape", "1")),
        (SOURCE[:, :0], TARGET, ("source has the shape", "0")),
        (SOURCE, TARGET[:, :0], ("target has the shape", "0")),
        (SOURCE[:1], TARGET, ("target has", "rows")),
        (SOURCE + 99, TARGET, ("source has ids from 99 to",)),
        (SOURCE, TARGET + 99, ("target has ids from 99 to",)),
        (SOURCE, TARGET - 1, ("target has ids from -1 to",)),
    ],
)
def test_ids_that_are_no_batch_are_refused(source: Any, target: Any, words: str) -> None:
    refused(lambda: example("paper")({"source": source, "target": target}), "RNNSearch", *words)


def batch_of(source: np.ndarray, target: np.ndarray) -> dict[str, tf.Tensor]:
    return {"source": tf.constant(source), "target": tf.constant(target)}


def oracle_parts(model: Any) -> dict[str, Any]:
    """The functions of the reference that correspond to a model's parts."""
    bridge = {
        layers.BackwardBridge: reference.backward_bridge,
        layers.ForwardBridge: reference.summary_bridge,
        layers.SentenceBridge: reference.copy_bridge,
        layers.ZeroBridge: lambda h, _m, _p: np.zeros((len(h), model.decoder.cell.units)),
    }[type(model.bridge)]
    return {
        "order": model.decoder.step_order,
        "cell": CELLS[type(model.decoder.cell)][0],
        "encoder_cell": CELLS[type(model.encoder.stack[0][0].cell)][0],
        "bridge": bridge,
        "attention": ATTENTIONS[type(model.decoder.attention)][0],
        "activation": ACTIVATIONS[type(model.readout)],
    }


def reference_forward(model: Any, source: np.ndarray, target: np.ndarray) -> reference.Forward:
    p, parts = model_parameters(model), oracle_parts(model)
    first = np.zeros(model.target_embedding.embedding_dim)
    if isinstance(model.bridge, layers.ZeroBridge):
        first = array(model.bridge.start_vector)
    elif isinstance(model.bridge, layers.SentenceBridge):
        annotations = reference.encode(p, source, source != 0, parts["encoder_cell"])
        first = reference.last_annotation(annotations, source != 0)
    return reference.forward(
        p,
        source,
        (source != 0).astype(float),
        target,
        np.ones(target.shape),
        first_input=first,
        **parts,
    )


@functools.cache
def example_logits(name: str) -> np.ndarray:
    """What the shared model gives for the batch of this file."""
    return example(name)(batch_of(SOURCE, TARGET)).numpy()


@pytest.mark.parametrize("name", VARIANTS)
def test_logits_and_alignment_equal_the_reference(name: str) -> None:
    model = example(name)
    wanted = reference_forward(model, SOURCE, TARGET)
    logits = example_logits(name)
    assert logits.dtype == np.float32
    close(logits, wanted.logits, 2e-5)
    _, glimpse = model.hidden(batch_of(SOURCE, TARGET))
    assert model.has_alignment == (wanted.weights is not None)
    if model.has_alignment:
        close(glimpse.weights, wanted.weights)
        close(glimpse.context, wanted.contexts)


# The textbook's loops: `h` are the encoder's states.


def textbook_encoder(model: Any, step: Any) -> list[np.ndarray]:
    """The states of each direction over a sentence without padding."""
    embedded = array(model.source_embedding.embeddings)[SOURCE[:1]]
    outputs = []
    for recurrent in model.encoder.stack[0]:
        p, h, states = cell_parameters(recurrent.cell), np.zeros((1, N)), {}
        steps = range(embedded.shape[1])
        for t in reversed(steps) if recurrent.reverse else steps:
            h = step(embedded[:, t], h, p)
            states[t] = h
        outputs.append(np.stack([states[t] for t in steps], 1))
    return outputs


def textbook_softmax(model: Any, s: np.ndarray) -> np.ndarray:
    logits = s @ array(model.readout.output_kernel).T
    return logits + array(model.readout.output_bias)


@pytest.mark.parametrize("name", ["rnn-attention", "gru-attention", "rnn-encdec"])
def test_presets_equal_the_textbooks_loop(name: str) -> None:
    model = randomized(preset(name), scale=0.6)
    step = negated_gru_step if name == "gru-attention" else reference.tanh_step
    h = np.concatenate(textbook_encoder(model, step), -1)[0]
    p = cell_parameters(model.decoder.cell)
    has_context = name != "rnn-encdec"
    if has_context:
        gates = CELLS[type(model.decoder.cell)][1]
        context_kernels = np.split(array(model.decoder.context_kernel), len(gates), -1)
        p |= {f"C{g}": c for g, c in zip(gates, context_kernels, strict=True)}
        w_a, u_a, v_a = (array(w) for w in model.decoder.attention.weights)
        s, y = np.zeros((1, N)), array(model.bridge.start_vector)[None]
    else:
        s = y = h[-1:]
        assert not [w for w in model.weights if "context" in w.path]
    logits = model(batch_of(SOURCE[:1], TARGET[:1]))
    context = None
    for i, word in enumerate(TARGET[0]):
        if has_context:
            scores = np.tanh(s @ w_a + h @ u_a) @ v_a[:, 0]
            alpha = np.exp(scores) / np.exp(scores).sum()
            context = (alpha @ h)[None]
        s = step(y, s, p, context)
        y = array(model.target_embedding.embeddings)[[word]]
        close(logits[:, i], textbook_softmax(model, s), 2e-5)


def negated_gru_step(
    x: np.ndarray, h: np.ndarray, p: dict, c: np.ndarray | None = None
) -> np.ndarray:
    """The textbook's z keeps the old state; ours, as the paper's, is 1 - z.

    Both are equal if the weights of z are negated: 1 - σ(a) = σ(-a).
    """
    p = {k: -v if k.endswith("_z") else v for k, v in p.items()}
    inputs = {
        g: x @ p[f"W{g}"] + p[f"b{g}"] + (0 if c is None else c @ p[f"C{g}"])
        for g in ("_z", "_r", "")
    }
    z = 1 / (1 + np.exp(-inputs["_z"] - h @ p["U_z"]))
    r = 1 / (1 + np.exp(-inputs["_r"] - h @ p["U_r"]))
    new = np.tanh(inputs[""] + (r * h) @ p["U"])
    return z * h + (1 - z) * new


def test_seq2seq_lstm_equals_its_equations() -> None:
    depth = 3
    model = randomized(lstm(layers=depth), scale=0.6)
    states = [(np.zeros((1, N)),) * 2] * depth
    encoder = [cell_parameters(layer[0].cell) for layer in model.encoder.stack]
    decoder = [cell_parameters(cell) for cell in model.decoder.cell.cells]

    def read(x: np.ndarray, stack: list) -> np.ndarray:
        for level, p in enumerate(stack):
            states[level] = reference.lstm_step(x, states[level], p)
            x = states[level][0]
        return x

    for word in SOURCE[1][SOURCE[1] != 0]:
        read(array(model.source_embedding.embeddings)[[word]], encoder)
    logits = everywhere(lambda x, y: model({"source": x, "target": y}), SOURCE, TARGET)
    y = array(model.bridge.start_vector)[None]
    for i, word in enumerate(TARGET[1]):
        wanted = textbook_softmax(model, read(y, decoder))
        close(logits[1:2, i], wanted, 2e-5)
        y = array(model.target_embedding.embeddings)[[word]]


# Decoding.


def stepwise(model: Any, source: Any, target: np.ndarray) -> tuple[Any, Any]:
    """`decode_step` with given targets [B, K, T_y] -> logits, weights."""
    memory, state = model.encode(tf.constant(source))
    beams = target.shape[1]
    state = tf.nest.map_structure(lambda t: tf.repeat(t[:, None], beams, axis=1), state)
    ids = tf.fill(target.shape[:2], model.start_id)
    logits, weights = [], []
    for i in range(target.shape[2]):
        scores, state, alpha = model.decode_step(ids, state, memory)
        logits.append(scores)
        weights.append(alpha)
        ids = tf.constant(target[:, :, i])
    return tf.stack(logits, 2), weights


@pytest.mark.parametrize("name", MODELS)
def test_hypotheses_of_a_beam_are_decoded_as_call_reads_sentences(name: str) -> None:
    model, sources = example(name), np.repeat(SOURCE, 3, 0)
    target = np.random.default_rng(3).integers(1, K_Y, (3, 3, 5)).astype("int32")
    batch = batch_of(sources, target.reshape(9, 5))
    logits, weights = stepwise(model, SOURCE, target)
    close(tf.reshape(logits, [9, 5, K_Y]), model(batch).numpy(), 2e-6)
    if model.has_alignment:
        alignment = model.features(batch)[1].numpy()
        close(tf.reshape(tf.stack(weights, 2), alignment.shape), alignment, 2e-6)
        if name != "monotonic":
            np.testing.assert_allclose(alignment.sum(-1), 1, atol=1e-6)
        assert not alignment.swapaxes(1, 2)[sources == 0].any()
    else:
        assert weights[0] is None


@few_models
def test_batches_without_rows_and_single_words_are_accepted(name: str) -> None:
    model = example(name)
    assert model(batch_of(SOURCE[:0], TARGET[:0])).shape == (0, 4, K_Y)
    memory, state = model.encode(tf.constant(SOURCE[:, :1]))
    state = tf.nest.map_structure(lambda t: t[:, None], state)
    logits, _, _ = model.decode_step(tf.zeros([3, 1], tf.int32), state, memory)
    close(logits, model(batch_of(SOURCE[:, :1], TARGET[:, :1])).numpy(), 2e-6)


@few_models
def test_token_log_probs_equal_the_reference(name: str) -> None:
    model = example(name)
    sources = [row[row != 0].tolist() for row in SOURCE]
    targets = [row[row != 0].tolist() for row in TARGET]
    log_probs = token_log_probs(model, sources, targets, batch_size=2)
    logits = model(batch_of(SOURCE, TARGET)).numpy().astype("float64")
    wanted = reference.token_log_probs(logits, TARGET)
    for row, actual in enumerate(log_probs):
        close(actual, wanted[row, : len(targets[row])])
    assert token_log_probs(model, [], []) == []
    (nothing,) = token_log_probs(model, sources[:1], [[]])
    assert nothing.shape == (0,)
    refused(lambda: token_log_probs(model, sources, targets[:2]), "3 sources and 2 targets")


def ensemble(average: str) -> Ensemble:
    return Ensemble([search(), encdec()], average)


@pytest.mark.parametrize("average", [None, "probability", "log_probability"])
def test_scoring_computes_logits_in_chunks(average: str | None, monkeypatch) -> None:
    """Of a model, and of ensembles."""
    model = randomized(ensemble(average) if average else search())
    logits = model(batch_of(SOURCE, TARGET)).numpy().astype("float64")
    counts = []

    plain = layers.OutputWeights.logits

    def spy(output: Any, features: tf.Tensor) -> tf.Tensor:
        counts.append(len(features))
        return plain(output, features)

    monkeypatch.setattr(layers.OutputWeights, "logits", spy)
    monkeypatch.setattr(scoring, "CHUNK_LOGITS", 3 * logits.shape[-1] + 1)
    log_probs = scoring.log_probs_and_alignment(model, SOURCE, TARGET)[0].numpy()
    close(log_probs, reference.token_log_probs(logits, TARGET) * (TARGET != 0))
    words = np.count_nonzero(TARGET)
    assert max(counts) == 3
    assert sum(counts) == words * len(getattr(model, "members", [model]))


# Sizes, presets, configs.


def rnnsearch_size(k_x: int, k_y: int, n: int, m: int, a: int, out: int) -> int:
    gru = 3 * n * (m + n) + n
    return (
        (k_x + k_y) * m
        + 2 * m
        + 3 * gru
        + 3 * 2 * n * n  # C of the three gates
        + n * n
        + n  # W_s
        + a * (n + 2 * n + 1)
        + 2 * out * (n + m + 2 * n + 1)
        + out * m
        + m * k_y
        + k_y
    )


def papers_size(k: int, n: int, m: int, a: int, out: int) -> tuple[int, int]:
    """RNNsearch by the formulas of appendix A: the numbers of its weights, and of its biases."""
    encoder = 2 * 3 * (n * m + n * n)
    decoder = 3 * (n * m + n * n + 2 * n * n) + n * n
    output = 2 * out * (n + m + 2 * n) + out * k
    weights = 2 * k * m + encoder + decoder + a * (n + 2 * n + 1) + output
    return weights, 2 * n + n + n + 2 * out + k


def rnnencdec_size(k_x: int, k_y: int, n: int, m: int, out: int) -> int:
    gru = 3 * n * (m + n) + n
    readout = 2 * out * (n + m + n + 1) + out * m + m * k_y + k_y
    embeddings = (k_x + k_y) * m + 2 * m
    return embeddings + 2 * gru + 3 * n * n + n * n + n + readout


def lstm_sizes(k_x: int, k_y: int, n: int, m: int, depth: int) -> tuple:
    """The number of all parameters, and of those in LSTM matrices."""
    layer = 4 * n * (n + n)
    matrices = 2 * (4 * n * (m + n) + (depth - 1) * layer)
    biases = 2 * depth * 4 * n
    embeddings = (k_x + k_y) * m
    return embeddings + matrices + biases + m + (n + 1) * k_y, matrices


def test_parameter_counts_of_the_paper() -> None:
    """The formulas hold for small models and give the paper's numbers."""
    random = np.random.default_rng(0)
    for _ in range(3):
        k_x, k_y, n, m, a, out, depth = map(int, random.integers(2, 9, 7))
        model = RNNSearch(k_x, k_y, n, m, a, out)
        assert model.count_params() == rnnsearch_size(k_x, k_y, n, m, a, out)
        sizes: Any = {"units": n, "embedding_dim": m, "attention_units": a, "maxout_units": out}
        options = ModelOptions(**sizes, factored_output=False, embedding_bias=False)
        model = make_model(options, k_x, k_x)
        assert model.count_params() == sum(papers_size(k_x, n, m, a, out))
        model = RNNEncDec(k_x, k_y, n, m, out)
        assert model.count_params() == rnnencdec_size(k_x, k_y, n, m, out)
        model = Seq2SeqLSTM(k_x, k_y, n, m, depth)
        total, matrices = lstm_sizes(k_x, k_y, n, m, depth)
        assert model.count_params() == total
        kernels = [w for w in model.weights if "cell" in w.path]
        kernels = [w for w in kernels if w.name.endswith("kernel")]
        assert sum(w.value.shape.num_elements() for w in kernels) == matrices
    assert rnnsearch_size(30_001, 30_001, 1000, 620, 1000, 500) == 84_349_101
    assert papers_size(30_000, 1000, 620, 1000, 500) == (80_401_000, 35_000)
    assert rnnencdec_size(30_001, 30_001, 1000, 620, 500) == 72_487_101
    total, matrices = lstm_sizes(160_000, 80_000, 1000, 1000, 4)
    assert matrices == 64_000_000
    # 384M in the paper; our count has biases and the vector y_0 as well.
    assert total == 384_000_000 + 80_000 + 32_000 + 1000


def test_presets_apply_overrides_to_all_their_parts() -> None:
    model = preset(
        "gru-attention",
        state_dropout=0.25,
        dtype="mixed_bfloat16",
        kernel_initializer="ones",
        recurrent_initializer="zeros",
        step_order="appendix",
    )
    assert model.encoder.state_dropout == model.decoder.state_dropout == 0.25
    assert model.decoder.step_order == "appendix"
    for layer in model._flatten_layers():
        assert layer.compute_dtype == "bfloat16"
    for weight in model.weights:
        if "cell" in weight.path and "kernel" in weight.name:
            wanted = 0.0 if "recurrent" in weight.name else 1.0
            assert (weight.numpy() == wanted).all(), weight.path
    assert preset("rnn-encdec", units=5).target_embedding.embedding_dim == 5
    assert preset("rnn-encdec", use_context=True).get_config()["use_context"]
    refused(lambda: from_preset("nmt"), "'nmt'", "sutskever")
    refused(lambda: RNNEncDec.from_preset("rnnsearch-50"), "RNNEncDec.from_preset: 'rnnsearch")


def test_sutskever_2014_has_uniform_initial_weights() -> None:
    model = from_preset("sutskever-2014", units=64, embedding_dim=32, **VOCABULARIES)
    assert len(model.encoder.stack) == len(model.decoder.cell.cells) == 4
    for weight in model.weights:
        values = array(weight)
        assert np.abs(values).max() <= 0.08
        if values.size > 1000:
            assert values.std() == pytest.approx(0.08 / 3**0.5, rel=0.1)
        assert values.any(), weight.path
        assert np.unique(values).size > 0.9 * values.size
    firsts = [array(weight).flat[0] for weight in model.weights]
    assert len(set(firsts)) == len(firsts)


def test_initial_weights_of_a_model_have_the_papers_deviations() -> None:
    model = RNNSearch(400, 300, 32, 24, 40, 16)
    attention = model.decoder.attention
    special = {
        id(attention.query_projection.kernel): 0.001,
        id(attention.key_projection.kernel): 0.001,
        id(attention.energy.kernel): 0.0,
    }
    for weight in model.weights:
        wanted = 0.0 if "bias" in weight.name else 0.01
        wanted = special.get(id(weight), wanted)
        if weight.name == "recurrent_kernel":
            wanted = 32**-0.5
        assert array(weight).std() == pytest.approx(wanted, rel=0.15)


def test_an_initializer_of_kernels_is_that_of_the_attention_too() -> None:
    """Glorot's limits are ±sqrt(6 / (rows + columns)); v_a stays zero."""
    model = RNNSearch(40, 30, 32, 24, 48, kernel_initializer="glorot_uniform")
    attention = model.decoder.attention
    for name, rows in (("query_projection", 32), ("key_projection", 64)):
        kernel = array(getattr(attention, name).kernel)
        limit = (6 / (rows + 48)) ** 0.5
        assert 0.95 * limit < np.abs(kernel).max() <= limit
    assert not array(attention.energy.kernel).any()


# Each option of a model, and each kind of its parts.
SAVED = ["conditional", "full-output", "shared", "no-embedding-bias", "general", "dot", "lstm"]
SAVED += ["tanh-readout", "encdec-no-context", "gru-attention", "seq2seq-lstm", "ensemble"]


@pytest.mark.parametrize("name", SAVED)
def test_saved_and_loaded_models_are_equal(name: str, tmp_path: Path) -> None:
    """By Keras, and by a checkpoint of TensorFlow."""
    model = example(name)
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.models.load_model(path, safe_mode=True)
    assert type(loaded) is type(model)
    assert [(w.name, w.shape) for w in loaded.weights] == [(w.name, w.shape) for w in model.weights]
    checkpoint = tf.train.Checkpoint(model=loaded).save(str(tmp_path / "model"))
    randomized(loaded, seed=2)
    tf.train.Checkpoint(model=loaded).restore(checkpoint).assert_consumed()
    all_equal(loaded.weights, model.weights)
    close(loaded(batch_of(SOURCE, TARGET)), example_logits(name), 0)


def test_the_gradient_of_shared_embeddings_is_that_of_both_sides() -> None:
    """It is the sum of the gradients of two equal, separate embeddings."""
    shared = example("shared")
    apart = RNNSearch(K_Y, K_Y, tie_embeddings=True, **SIZES)
    assert shared.source_embedding is shared.target_embedding

    def place(weight: Any) -> str:
        path = re.sub(r"_\d+", "", weight.path)  # Keras numbers the layers
        return path.replace("target_embedding", "source_embedding")

    values = {place(weight): weight.numpy() for weight in shared.weights}
    for weight in apart.weights:
        weight.assign(values[place(weight)])
    batch = batch_of(SOURCE, TARGET)
    sums: list[dict[str, np.ndarray]] = []
    for model in (shared, apart):
        with tf.GradientTape() as tape:
            loss = TokenCrossentropy()(batch["target"], model(batch))
        weights = model.trainable_variables
        gradients: dict[str, np.ndarray] = {}
        for weight, by in zip(weights, tape.gradient(loss, weights), strict=True):
            gradients[place(weight)] = gradients.get(place(weight), 0) + np.asarray(by)
        sums.append(gradients)
    assert sums[0].keys() == sums[1].keys()
    for path, gradient in sums[0].items():
        np.testing.assert_allclose(gradient, sums[1][path], atol=1e-5, rtol=1e-5)


# Dropout.


DROPOUTS = ("embedding_dropout", "annotation_dropout", "state_dropout", "readout_dropout")


@pytest.mark.parametrize(
    ("name", "dropout"),
    [
        *(("paper", dropout) for dropout in DROPOUTS),
        ("encdec", "annotation_dropout"),
        ("encdec", "readout_dropout"),
        *(("seq2seq-lstm", dropout) for dropout in DROPOUTS if dropout != "annotation_dropout"),
    ],
)
def test_dropout_is_applied_only_in_training(name: str, dropout: str) -> None:
    plain, model = example(name), MODELS[name](**{dropout: 0.5})
    model.set_weights(plain.get_weights())
    batch = batch_of(SOURCE, TARGET)
    wanted = example_logits(name)
    close(plain(batch, training=True), wanted, 0)
    close(model(batch), wanted, 0)
    first, second = (model(batch, training=True).numpy() for _ in range(2))
    assert np.abs(first - wanted).max() > 1e-3 < np.abs(first - second).max()


def test_embedding_dropout_is_that_of_both_sides() -> None:
    model = randomized(search(embedding_dropout=0.5, embedding_dim=64))
    ids = tf.constant(SOURCE)
    plain = model.target_embedding(ids).numpy()
    ratio = model.embedding_dropout(model.target_embedding(ids), training=True).numpy() / plain
    assert {*np.unique(ratio.round(4))} == {0.0, 2.0}
    plain = model._encoded(ids, False).annotations.numpy()
    assert np.abs(model._encoded(ids, True).annotations - plain).max() > 1e-3


def test_annotation_dropout_is_that_of_all_that_an_encoder_returns() -> None:
    model = randomized(search(annotation_dropout=0.5, units=64))
    plain, dropped = (model._encoded(SOURCE, flag) for flag in (False, True))
    for name in ("annotations", "forward_states", "backward_states"):
        pairs = [
            np.concatenate([np.ravel(x) for x in tf.nest.flatten(getattr(encoded, name))])
            for encoded in (plain, dropped)
        ]
        is_kept = pairs[0] != 0
        ratio = pairs[1][is_kept] / pairs[0][is_kept]
        assert {*np.unique(ratio.round(4))} == {0.0, 2.0}, name


@pytest.mark.parametrize("name", ["paper", "conditional", "main-text"])
def test_state_dropout_is_that_of_encoder_and_decoder(name: str) -> None:
    model = randomized(VARIANTS[name](state_dropout=0.5))
    plain = model._encoded(SOURCE, False).annotations.numpy()
    dropped = model._encoded(SOURCE, True).annotations.numpy()
    assert np.abs(plain - dropped).max() > 1e-3
    encoded = model._encoded(SOURCE, False)
    states, first = model.bridge(encoded)
    inputs = (model.target_embedding(TARGET), first, states, model._attended(encoded))
    kept, other = (model.decoder(*inputs, training=flag).state for flag in (False, True))
    assert np.abs(kept - other).max() > 1e-3


def test_readout_dropout_scales_the_kept_units() -> None:
    model = randomized(search(readout_dropout=0.2, maxout_units=200))
    kept, _ = model.hidden(batch_of(SOURCE, TARGET))
    dropped, _ = model.hidden(batch_of(SOURCE, TARGET), training=True)
    ratio = dropped.numpy() / kept.numpy()
    zero = ratio == 0
    np.testing.assert_allclose(ratio[~zero], 1.25, rtol=1e-5)
    assert zero.mean() == pytest.approx(0.2, abs=0.05)


# Summary, export, impossible combinations.


@pytest.mark.parametrize("name", ["paper", "encdec", "seq2seq-lstm"])
def test_summary_shows_every_shape(name: str) -> None:
    model, lines = example(name), []
    model.summary(expand_nested=True, print_fn=lambda line, **_: lines.append(line))
    text = "\n".join(lines)
    assert "?" not in text
    batch = batch_of(SOURCE, FULL_TARGET)
    encoded = model.encoder(model.source_embedding(batch["source"]))
    for layer, output in (
        (model.source_embedding, model.source_embedding(batch["source"])),
        (model.encoder, encoded.annotations),
        (model.decoder, model.hidden(batch)[1].state),
        (model.readout, model(batch)),
    ):
        shape = (None, None, output.shape[-1])
        assert layer.output_shape == shape
        assert str(shape) in text


def test_keras_export_needs_no_signature(tmp_path: Path) -> None:
    model = example("paper")
    model.export(str(tmp_path), verbose=False)
    batch = batch_of(SOURCE, TARGET)
    loaded = tf.saved_model.load(str(tmp_path))
    close(loaded.serve(batch), model(batch).numpy(), 1e-6)
    served = loaded.signatures["serving_default"](**batch)
    close(served["output_0"], model(batch).numpy(), 1e-6)


def test_ids_that_are_floats_are_not_rounded() -> None:
    model = RNNSearch(300, 300, **SIZES, dtype="mixed_bfloat16")
    source, target = np.full([1, 2], 257), np.full([1, 1], 3)
    wanted = model(batch_of(source, target)).numpy()
    logits = model(batch_of(source.astype("float32"), target)).numpy()
    np.testing.assert_array_equal(logits, wanted)


def encoder_of(kind: Any = layers.BidirectionalEncoder, **options: Any) -> Any:
    return kind(layers.GRUCell(N), **options)


REFUSED = {
    "source_vocabulary_size is 11 and target_vocabulary_size is 13": lambda: search(
        share_embeddings=True
    ),
    "tie_embeddings and readout are both set": lambda: search(
        tie_embeddings=True, readout=layers.TanhReadout(K_Y, 3)
    ),
    "factored_output and readout are both set": lambda: search(
        factored_output=False, readout=layers.TanhReadout(K_Y, 3)
    ),
    r"readout.vocabulary_size \(9\) and target_vocabulary_size \(13\)": lambda: search(
        readout=layers.TanhReadout(9, 3)
    ),
    r"encoder.state_dropout \(0.0\) and state_dropout \(0.5\)": lambda: search(
        state_dropout=0.5, encoder=encoder_of()
    ),
    "BackwardBridge: bridge .* encoder": lambda: search(
        encoder=encoder_of(layers.UnidirectionalEncoder)
    ),
    r"bridge.state_size \(\[5\]\) and cell.state_size \(\[6\]\)": lambda: search(
        bridge=layers.ZeroBridge(5, M)
    ),
    r"bridge.embedding_dim \(5\) and embedding_dim \(4\)": lambda: search(
        bridge=layers.ZeroBridge(N, 5)
    ),
    "ConditionalDecoder: attention is None": lambda: encdec(
        step_order="conditional", use_context=False
    ),
    "RNNSearch: units is 0": lambda: search(units=0),
    "RNNSearch: source_vocabulary_si": lambda: RNNSearch("10", 10),
    "Seq2SeqLSTM: layers is 0": lambda: lstm(layers=0),
    "Seq2SeqLSTM: got annotation_dropout, share_embeddings, which": lambda: lstm(
        share_embeddings=True, annotation_dropout=0.1
    ),
    r"attention.dtype \(float32\) and dtype \(bfloat16\)": lambda: search(
        attention=layers.GeneralAttention(), dtype="mixed_bfloat16"
    ),
    r"cell.dtype \(float32\) and dtype \(float16\)": lambda: search(
        cell=keras.layers.GRUCell(N), dtype="mixed_float16"
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_impossible_combinations_are_refused(words: str) -> None:
    with pytest.raises(ValueError, match=words):
        REFUSED[words]()


def test_the_parts_of_another_model_are_used_with_their_weights() -> None:
    """State dropout of the encoder must be that of the model."""
    other = search(state_dropout=0.5)
    model = search(encoder=other.encoder, readout=other.readout, state_dropout=0.5)
    assert model.readout.output_bias is other.readout.output_bias
    assert model.encoder.weights == other.encoder.weights


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_alignments_of_a_sentence_and_of_a_step_are_float32(policy: str) -> None:
    model = randomized(search(dtype=policy))
    _, glimpse = model.hidden(batch_of(SOURCE, TARGET))
    assert glimpse.weights.dtype == tf.float32
    sums = tf.reduce_sum(glimpse.weights, -1)
    np.testing.assert_allclose(sums, 1.0, atol=1e-6)
