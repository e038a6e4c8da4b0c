"""`AttentionCell` in `keras.layers.RNN`: the models of other libraries, and saved models."""

from typing import Any

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from conformance import M, N, Size, encoded, unmasked
from oracle import ATTENTIONS, array, attention_parameters, cell_parameters, close, randomized
from refusals import refused

from bahdanau_tf import layers

SIZE = Size(padding=1)
X, H = unmasked(SIZE, M), encoded(SIZE)
SCORES = {
    "additive": lambda: layers.BahdanauAttention(5),
    "general": layers.GeneralAttention,
    "location": lambda: layers.LocationAttention(5, filters=2, kernel_size=3),
    "monotonic": lambda: layers.MonotonicAttention(5),
}


def run(cell: Any, states: list[Any], mask: Any = None) -> tuple[Any, Any]:
    """The outputs, and the alignments of all steps."""
    rnn = keras.layers.RNN(cell, return_sequences=True, return_state=True)
    outputs, *states = rnn(X, initial_state=states, mask=mask)
    return outputs, cell.alignment_history(states)


def test_the_outputs_are_those_of_the_equations():
    """With an attention layer, NumPy in float64; a masked step keeps everything."""
    cell = layers.AttentionCell(layers.GRUCell(N), layers.BahdanauAttention(5), 6)
    run(cell, cell.initial_state(H))
    randomized(cell)
    mask = np.ones(X.shape[:2], bool)
    mask[1, 1] = False
    outputs, history = run(cell, cell.initial_state(H, alignment_history=len(X[0]) + 1), mask)
    attend, _ = ATTENTIONS[layers.BahdanauAttention]
    p = [cell_parameters(cell.cell), attention_parameters(cell.attention)]
    rows, (h, real) = len(X), (array(x) for x in (H.annotations, H.mask))
    s, a, alignments = np.zeros([rows, N]), np.zeros([rows, 6]), [[np.zeros(real.shape[1])] * rows]
    for i in range(X.shape[1]):
        new = reference.gru_step(np.concatenate([array(X[:, i]), a], 1), s, p[0])
        c, alignment = attend(new, h, real > 0, p[1])
        attention = np.concatenate([new, c], 1) @ array(cell.attention_layer.kernel)
        on = mask[:, i, None]
        s, a = np.where(on, new, s), np.where(on, attention, a)
        alignments.append(alignment)
        close(outputs[:, i], a)
    close(history[0], np.stack(alignments)[:, 0])
    skipped = [alignments[i][1] for i in (0, 0, 1, 3, 4)]
    close(history[1], np.stack(skipped))


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_a_state_that_keras_casts_is_read(dtype):
    """α of `MonotonicAttention`."""
    own = layers.MonotonicAttention(5, dtype=dtype)
    cell = layers.AttentionCell(layers.GRUCell(N, dtype=dtype), own, 6, dtype=dtype)
    outputs = keras.layers.RNN(cell, dtype=dtype)(X, initial_state=cell.initial_state(H))
    assert outputs.shape == [len(X), 6]


def test_states_of_the_cell_are_counted():
    cell = layers.AttentionCell(keras.layers.LSTMCell(N), layers.BahdanauAttention(5), 6)
    state = tf.zeros([len(X), N])
    refused(lambda: cell.initial_state(H, [state]), "states has 1 tensors, wanted 2")
    one = layers.AttentionCell(layers.GRUCell(N), layers.BahdanauAttention(5), 6)
    assert one.initial_state(H, state)[0].shape == state.shape


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("kind", [layers.GRUCell, keras.layers.LSTMCell])
def test_it_equals_the_decoder(name, kind):
    """a_0 = c_1 gives the original step order, whose step i reads y_i after attending."""
    decoder = layers.AttentionDecoder(layers.KerasCell(kind(N)), SCORES[name]())
    start = list(H.forward_states[0] * len(decoder.cell.get_initial_state(1)))
    decoder(X, X[:, 0], tuple(start), decoder.attention.memory(H))
    randomized(decoder)
    wanted = decoder(X, X[:, 0], tuple(start), decoder.attention.memory(H))
    cell = layers.AttentionCell(kind(N), SCORES[name]())
    run(cell, cell.initial_state(H))
    cell.cell.set_weights(decoder.cell.get_weights())
    cell.attention.set_weights(decoder.attention.get_weights())
    states = cell.initial_state(H, start, alignment_history=X.shape[1])
    states[len(start)] = wanted.context[:, 0]
    states[len(start) + 4 : -1] = [wanted.weights[:, 0]] * (len(states) - len(start) - 5)
    outputs, history = run(cell, states)
    close(outputs[:, :-1], wanted.context[:, 1:])
    close(history[:, :-1], wanted.weights[:, 1:])


@keras.saving.register_keras_serializable(package="bahdanau_tf_tests")
def summed(x: tf.Tensor, attention: tf.Tensor) -> tf.Tensor:
    return x + attention


@pytest.mark.parametrize("name", ["general", "location"])
def test_a_functional_model_learns_and_is_saved(name, tmp_path):
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    words = layers.WordEmbedding(9, M, mask_zero=True)
    cell = layers.AttentionCell(
        keras.layers.LSTMCell(N), SCORES[name](), M, summed, output_attention=name == "general"
    )
    h = layers.BidirectionalEncoder(keras.layers.GRUCell(N))(words(source))
    states = keras.layers.RNN(cell, return_sequences=True)(
        words(target), initial_state=cell.initial_state(h)
    )
    model = keras.Model([source, target], keras.layers.Dense(9)(states))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    is_eager = name == "location"  # one graph is enough
    model.compile("adam", loss, run_eagerly=is_eager, jit_compile=False)
    x = [np.array([[2, 3, 4, 0], [5, 6, 0, 0]]), np.array([[2, 3, 4], [5, 6, 0]])]
    before = [array(w) for w in randomized(cell).weights]
    model.fit(x, x[1], verbose=0)
    assert all(np.any(array(w) != old) for w, old in zip(cell.weights, before, strict=True))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    wanted = model.predict(x, verbose=0)
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), wanted)
    model.export(tmp_path / "export", verbose=False)
    signature = tf.saved_model.load(str(tmp_path / "export")).signatures["serving_default"]
    keys = sorted(signature.structured_input_signature[1])
    close(next(iter(signature(**dict(zip(keys, x, strict=True))).values())), wanted)


def test_refusals():
    def make(attention, width=None):
        return layers.AttentionCell(layers.GRUCell(N), attention, width)

    score = layers.BahdanauAttention(5)
    refused(lambda: keras.layers.RNN(make(score))(X), "AttentionCell", "initial_state is lacking")
    refused(lambda: make(layers.FixedContext()), "attention", "FixedContext", "Attention")
    refused(lambda: make(score, 0), "attention_layer_size", "0")
