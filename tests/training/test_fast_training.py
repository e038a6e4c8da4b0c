"""Gradients written by hand, compared with plain loops and full logits."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from letters import plain_step
from oracle import randomized
from refusals import refused

from bahdanau_tf import RNNSearch, layers, losses
from bahdanau_tf.layers import recurrent as recurrent_module
from bahdanau_tf.layers.decoder import STEP_ORDERS
from bahdanau_tf.layers.readout import pair_maximum
from bahdanau_tf.layers.recurrent import has_own_gradient
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.optimizers import Adadelta, Adam
from bahdanau_tf.training.update import words_loss

B, TX, TY, M, N, A, K = 4, 5, 6, 3, 7, 8, 11
SOURCE_MASK = np.arange(TX) < np.array([5, 3, 1, 0])[:, None]
dropouts = pytest.mark.parametrize("dropout", [False, True])


def normal(*shape: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=shape))


def dropout_masks(dropout: bool) -> tuple[tf.Tensor, ...] | None:
    if not dropout:
        return None
    kept = np.random.default_rng(5).choice([0.0, 2.0], (B, N))
    return (tf.constant(kept),)


def values_and_gradients(
    function: Callable[..., Any], inputs: list[tf.Tensor], weights: list[Any]
) -> list[np.ndarray]:
    """Outputs, their gradients, and second derivatives."""
    watched = [*inputs, *(w.value for w in weights)]
    with tf.GradientTape() as second, tf.GradientTape() as first:
        for tape in (first, second):
            tape.watch(watched)
        outputs = tf.nest.flatten(function(*inputs))
        total = tf.add_n(
            [tf.reduce_sum(tf.sin(y) * normal(*y.shape, seed=i)) for i, y in enumerate(outputs)]
        )
        gradients = first.gradient(total, watched)
        lengths = tf.add_n([tf.reduce_sum(g**2) for g in gradients])
    curvatures = second.gradient(lengths, watched)
    return [t.numpy() for t in (*outputs, *gradients, *curvatures)]


def equal(actual: list[Any], wanted: list[Any], rtol: float) -> None:
    for ours, theirs in zip(actual, wanted, strict=True):
        atol = rtol * np.abs(theirs).max(initial=1e-30)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


@dropouts
def test_encoder_gradients_equal_those_of_the_plain_loop(dropout):
    layer = layers.Recurrent(
        layers.GRUCell(N, use_gate_bias=True, dtype="float64"), dtype="float64"
    )
    layer.build((None, None, M))
    weights = randomized(layer).trainable_weights
    inputs = [normal(B, TX, M), normal(B, N, seed=1)]
    ours, wanted = (
        values_and_gradients(
            lambda x, state, way=way: way(
                x, tf.constant(SOURCE_MASK), (state,), dropout_masks(dropout)
            ),
            inputs,
            weights,
        )
        for way in (layer._recurrence, layer._plain_loop)
    )
    equal(ours, wanted, 1e-12)


def make_decoder(step_order: str, kind: type = layers.AttentionDecoder) -> Any:
    parts = (
        layers.GRUCell(N, dtype="float64"),
        layers.BahdanauAttention(A, use_bias=True, dtype="float64"),
    )
    decoder = (
        layers.ConditionalDecoder(*parts, dtype="float64")
        if step_order == "conditional"
        else kind(*parts, step_order, dtype="float64")
    )
    decoder.build((None, None, M), memory_shape=((None, None, 4), None, None))
    return randomized(decoder)


def run_decoder(decoder: Any, way: Any, inputs: Sequence[tf.Tensor], dropout: bool = False) -> Any:
    embedded, state, annotations = inputs
    memory = layers.Memory(
        annotations, decoder.attention.project(annotations), tf.constant(SOURCE_MASK)
    )
    return way(embedded, (state,), memory, dropout_masks(dropout))


def decoder_inputs(words: int = TY) -> list[tf.Tensor]:
    return [normal(B, words, M), normal(B, N, seed=1), normal(B, TX, 4, seed=2)]


@pytest.mark.parametrize(
    ("step_order", "dropout"),
    [("original", False), *((order, True) for order in (*STEP_ORDERS, "conditional"))],
)
def test_decoder_gradients_equal_those_of_the_plain_loop(step_order, dropout):
    decoder = make_decoder(step_order)
    ours, wanted = (
        values_and_gradients(
            lambda *inputs, way=way: run_decoder(decoder, way, inputs, dropout),
            decoder_inputs(),
            decoder.trainable_weights,
        )
        for way in (decoder._recurrence, decoder._plain_loop)
    )
    equal(ours, wanted, 3e-6)  # the plain loop has float32 energies


def test_a_decoder_of_ones_own_computes_what_it_overrides():
    """Its context term is 0; so is that of the paper's decoder if C is 0."""

    class WithoutTerm(layers.AttentionDecoder):
        def context_term(self, context: tf.Tensor) -> tf.Tensor:
            return 0.0 * super().context_term(context)

    embedded, *inputs = decoder_inputs()
    own, papers = (
        make_decoder("original", kind) for kind in (WithoutTerm, layers.AttentionDecoder)
    )
    papers.context_kernel.assign(0.0 * papers.context_kernel)
    ours, wanted = (
        run_decoder(
            decoder,
            lambda words, states, memory, _, decoder=decoder: decoder(
                words, words[:, 0], states, memory
            ),
            [embedded, *inputs],
        )
        for decoder in (own, papers)
    )
    equal(tf.nest.flatten(ours), tf.nest.flatten(wanted), 3e-6)


@pytest.mark.parametrize("step_order", ["original", "main-text"])
def test_decoder_gradients_of_a_single_word(step_order):
    """Loops of one step, in a graph of any number of words, too."""
    decoder = make_decoder(step_order)
    inputs = decoder_inputs(words=1)
    weights = [w.value for w in decoder.trainable_weights]

    def gradients(way: Any, *inputs: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = tf.nest.flatten(run_decoder(decoder, way, inputs))
            total = tf.add_n([tf.reduce_sum(tf.sin(y)) for y in outputs])
        return [*outputs, *tape.gradient(total, [*inputs, *weights], unconnected_gradients="zero")]

    shapes = ([None, None, M], [None, N], [None, None, 4])
    graph = tf.function(
        lambda *inputs: gradients(decoder._recurrence, *inputs),
        input_signature=[tf.TensorSpec(s, tf.float64) for s in shapes],
        autograph=False,
    )
    wanted = gradients(decoder._plain_loop, *inputs)
    equal(gradients(decoder._recurrence, *inputs), wanted, 3e-6)
    equal(graph(*inputs), wanted, 3e-6)


@pytest.mark.parametrize("step_order", STEP_ORDERS)
@pytest.mark.parametrize(("attention", "dropout"), [("fixed", True), ("none", False)])
def test_gradients_without_attention_equal_those_of_the_plain_loop(attention, step_order, dropout):
    fixed = layers.FixedContext(dtype="float64")
    decoder = layers.AttentionDecoder(
        layers.GRUCell(N, dtype="float64"),
        fixed if attention == "fixed" else None,
        step_order=step_order,
        dtype="float64",
    )
    decoder.build((None, None, M), memory_shape=(None, 4))
    randomized(decoder)
    inputs = [normal(B, TY, M), normal(B, N, seed=1)]
    inputs += [normal(B, 4, seed=2)] if attention == "fixed" else []

    def run(way: Any, embedded: Any, state: Any, *memory: Any) -> Any:
        (memory,) = memory or ((),)
        glimpse = way(embedded, (state,), memory, dropout_masks(dropout))
        return [x for x in glimpse if x is not None]

    ours, wanted = (
        values_and_gradients(
            lambda *inputs, way=way: run(way, *inputs), inputs, decoder.trainable_weights
        )
        for way in (decoder._fixed_recurrence, decoder._plain_loop)
    )
    equal(ours, wanted, 1e-12)


def test_only_our_gru_in_full_precision_has_its_own_gradient():
    class OwnCell(layers.GRUCell):
        pass

    assert has_own_gradient(layers.GRUCell(N), tf.float32)
    assert not has_own_gradient(layers.GRUCell(N), tf.float16)
    assert not has_own_gradient(layers.LSTMCell(N), tf.float32)
    assert not has_own_gradient(OwnCell(N), tf.float32)


def test_pair_maximum_passes_gradients_of_ties_to_the_first():
    x = tf.constant([[1.0, 2.0, 5.0, 5.0], [4.0, 3.0, 0.0, -1.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pair_maximum(x)
    np.testing.assert_array_equal(y, [[2, 5], [4, 0]])
    gradient = tape.gradient(y, x, tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(gradient, [[0, 1, 2, 0], [3, 0, 4, 0]])


# The loss.


def loss_of_all(
    loss: TokenCrossentropy, factors: list[tf.Tensor], labels: Any, weights: Any
) -> tf.Tensor:
    features, kernel, bias, *odds = factors
    logits = tf.matmul(features, kernel, transpose_b=True) + bias
    if not odds:
        return loss(labels, logits, weights)
    log_probs = tf.nn.log_softmax(logits)
    of_label = tf.gather(log_probs, labels, batch_dims=1)
    copied = tf.math.log((tf.exp(of_label) + tf.exp(odds[0])) / (1 + tf.exp(odds[1])))
    smoothing, uniform = loss.label_smoothing, tf.reduce_mean(log_probs, -1)
    each = (1 - smoothing) * copied + smoothing * uniform
    return -tf.reduce_sum(weights * each) / loss.divisor


SMOOTHED = {"label_smoothing": 0.1, "divisor": 3.0}


@pytest.mark.parametrize(
    ("options", "chunk_logits", "words", "copies"),
    [
        *(({}, *sizes) for sizes in ((2**24, 0, 0), (3 * K, 7, 0), (1, 1, 0), (3 * K, 7, 1))),
        *((SMOOTHED, *sizes) for sizes in ((2**24, 7, 1), (3 * K, 7, 0), (1, 7, 0))),
    ],
)
def test_loss_in_chunks_equals_loss_of_all_logits(
    monkeypatch, options, chunk_logits, words, copies
):
    monkeypatch.setattr(losses, "CHUNK_LOGITS", chunk_logits)
    loss = TokenCrossentropy(**options)
    shapes = ((words, N), (K, N), (K,))
    shapes += ((words,), (words,)) * copies
    factors = [tf.cast(normal(*s, seed=9), tf.float32) for s in shapes]
    labels = tf.constant(np.arange(words) % K, tf.int32)
    weights = tf.constant(np.linspace(0.5, 2, words), tf.float32)
    gradients = {}
    chunks = tf.function(
        lambda: loss.of_words(*factors[:3], labels, weights, factors[3:]), autograph=False
    )
    for name, function in (
        ("chunks", chunks),
        ("all", lambda: loss_of_all(loss, factors, labels, weights)),
    ):
        with tf.GradientTape() as tape:
            tape.watch(factors)
            cost = 2.0 * function()
        gradients[name] = [cost, *tape.gradient(cost, factors)]
    equal(gradients["chunks"], gradients["all"], 3e-6)


def test_loss_of_words_with_probability_zero_is_finite():
    """If the probability is 0 in float32, the cost is still finite."""
    logits = tf.constant([[0.0, 300.0, 1.0]])
    for label, wanted in ((0, 300.0), (1, 0.0), (2, 299.0)):
        cost = TokenCrossentropy().of_words(
            tf.ones([1, 1]), tf.transpose(logits), tf.zeros(3), [label], tf.ones(1)
        )
        assert float(cost) == pytest.approx(wanted)


def test_loss_of_words_refuses_means_and_second_derivatives():
    loss = TokenCrossentropy(reduction="mean_with_sample_weight")
    ones = tf.ones([1, 1])
    refused(
        lambda: loss.of_words(ones, ones, tf.ones(1), [0], tf.ones(1)), "'mean_with_", "reduction"
    )
    features = tf.Variable(ones)
    with tf.GradientTape() as second:
        with tf.GradientTape() as first:
            cost = TokenCrossentropy().of_words(features, ones, tf.ones(1), [0], tf.ones(1))
        gradient = first.gradient(cost, features)
    refused(lambda: second.gradient(gradient, features), "InplaceSub", by=LookupError)


# The training step.

MODELS: dict[str, dict[str, Any]] = {
    "original": {},
    "appendix": {"step_order": "appendix", "factored_output": False},
    "main-text": {"step_order": "main-text"},
    "tied": {"tie_embeddings": True},
    "no-attention": {"attention": layers.FixedContext()},
    "copying": {"copying": "hint", "step_order": "conditional"},
    "readout": {"readout": layers.LinearReadout(K, terms=("state",))},
    "lstm": {"cell": layers.LSTMCell(N), "bridge": layers.ZeroBridge([N, N], M)},
}
QUICK = "original", "copying"


def make_model(**options: Any) -> Any:
    model = randomized(RNNSearch(K, K, N, M, A, 4, **options), 3)
    if model.copying is not None:
        model.copying.copies.assign([0, *(word * (-1) ** word for word in range(1, K))])
    return model


def make_batch() -> tuple[Any, tf.Tensor, tf.Tensor]:
    random = np.random.default_rng(1)
    sides = []
    for lengths in ((5, 3, 1), (4, 6, 1)):
        ids = random.integers(1, K, (3, max(lengths)))
        ids *= np.arange(max(lengths)) < np.array(lengths)[:, None]
        sides.append(tf.constant(ids, tf.int32))
    source, target = sides
    weights = tf.cast(target != 0, tf.float32)
    return {"source": source, "target": target}, target, weights


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(x, marks=pytest.mark.slow) for x in MODELS if x not in QUICK)]
)
def test_fast_loss_and_gradients_of_a_model_equal_plain_ones(monkeypatch, name):
    model = make_model(**MODELS[name])
    inputs, target, weights = make_batch()
    # Keras' loss also smooths what is copied.
    loss = TokenCrossentropy(label_smoothing=0.1 * (model.copying is None))
    variables = [v.value for v in model.trainable_variables]

    def gradients(cost_of: Callable[[], tf.Tensor]) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            cost = cost_of()
        return [cost, *tape.gradient(cost, variables)]

    signature = tf.nest.map_structure(
        lambda t: tf.TensorSpec([None, None], t.dtype), (inputs, target, weights)
    )
    fast = tf.function(
        lambda *batch: gradients(lambda: words_loss(model, loss, *batch)),
        input_signature=signature,
        autograph=False,
    )(inputs, target, weights)
    monkeypatch.setattr(recurrent_module, "has_own_gradient", lambda *_: False)
    plain = gradients(lambda: loss(target, model(inputs, training=True), weights))
    equal(fast, plain, 1e-5)


def test_logits_are_computed_only_for_real_words(monkeypatch):
    model, (inputs, target, weights) = make_model(), make_batch()
    rows = []
    of_words = TokenCrossentropy.of_words

    def spy(loss: Any, features: tf.Tensor, *others: Any) -> tf.Tensor:
        rows.append(features.shape[0])
        return of_words(loss, features, *others)

    monkeypatch.setattr(TokenCrossentropy, "of_words", spy)
    words_loss(model, TokenCrossentropy(), inputs, target, weights)
    assert rows == [4 + 6 + 1]


@pytest.mark.parametrize(
    "policy", ["mixed_bfloat16", pytest.param("mixed_float16", marks=pytest.mark.slow)]
)
def test_a_training_step_in_half_precision(policy):
    """The loss is that of float32 up to rounding; all weights change."""
    exact = make_model()
    model = make_model(dtype=policy)
    batch, loss = make_batch(), TokenCrossentropy()
    wanted = float(words_loss(exact, loss, *batch))
    before = model.get_weights()
    # Eagerly: its graph would take seconds to make.
    step = plain_step(model, Adam(0.01), loss).python_function
    assert float(step(*batch)) == pytest.approx(wanted, rel=0.03)
    after = model.get_weights()
    for start, end in zip(before, after, strict=True):
        assert start.dtype == np.float32
        assert np.isfinite(end).all()
        assert (start != end).any()


# Optimizers.


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Adam(0.01), keras.optimizers.Adam(0.01)),
        (Adam(0.01, amsgrad=True), keras.optimizers.Adam(0.01, amsgrad=True)),
        (Adadelta(0.5, max_norm=None), keras.optimizers.Adadelta(0.5, 0.95)),
    ],
)
def test_updates_and_optimizer_state_equal_those_of_keras(ours, theirs):
    ours.epsilon = theirs.epsilon
    pairs = []
    for optimizer in (ours, theirs):
        weights = [keras.Variable(normal(*s)) for s in ((5, 3), (2,))]
        for step in range(4):
            optimizer.apply(
                [tf.cast(normal(*w.shape, seed=step), w.dtype) for w in weights], weights
            )
        counted = ("gradient_norm", "skipped_updates", "learning_rate")
        state = [v for v in optimizer.variables if v.name not in counted]
        pairs.append([*weights, *state])
    for our_value, their_value in zip(*pairs, strict=True):
        assert our_value.shape == their_value.shape
        np.testing.assert_allclose(our_value.numpy(), their_value.numpy(), rtol=2e-5)
