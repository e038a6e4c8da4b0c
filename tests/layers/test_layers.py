"""Every layer compared with the NumPy reference, eagerly and in graphs."""

import itertools
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from conformance import CASES, normal
from oracle import (
    ACTIVATIONS,
    ATTENTIONS,
    CELLS,
    array,
    attention_parameters,
    cell_parameters,
    close,
    decoder_parameters,
    encoder_parameters,
    everywhere,
    randomized,
    readout_parameters,
)
from refusals import refused

from bahdanau_tf import layers
from bahdanau_tf.layers.decoder import STEP_ORDERS
from bahdanau_tf.layers.readout import OutputColumns, OutputWeights

B, T, M, N = 4, 5, 3, 6
MAKE_CELLS = {
    "GRUCell-bias": lambda n=N: layers.GRUCell(n, use_gate_bias=True),
    **{owner.__name__: lambda n=N, owner=owner: owner(n) for owner in CELLS},
}
cells = pytest.mark.parametrize("make_cell", MAKE_CELLS.values(), ids=MAKE_CELLS)


def lengths_mask(*lengths: int, time: int = T) -> np.ndarray:
    return np.arange(time) < np.array(lengths)[:, None]


MASK = lengths_mask(5, 3, 1, 0)  # the last row is all padding


def built(layer: Any, *shapes: Any, seed: int = 0) -> Any:
    layer.build(*shapes)
    return randomized(layer, seed)


def states_of(cell: Any, batch: int = B) -> tuple[tf.Tensor, ...]:
    """Random states in the tuple that the cell expects."""
    return tuple(
        tf.constant(normal(batch, size, seed=9 + i))
        for i, size in enumerate(tf.nest.flatten(cell.state_size))
    )


def as_reference(states: Any) -> Any:
    """LSTM states as a pair, those of other cells as one array."""
    states = tuple(np.asarray(s, np.float64) for s in states)
    return states if len(states) > 1 else states[0]


# Cells.


@cells
@pytest.mark.parametrize(("batch", "units"), [(0, N), (4, N), (4, 1)])
def test_cells_equal_the_reference(make_cell, batch, units):
    cell = built(make_cell(units), (None, M))
    x, states = normal(batch, M), states_of(cell, batch)
    output, new = everywhere(cell, x, list(states))
    p = cell_parameters(cell)
    wanted = CELLS[type(cell)][0](x, as_reference(states), p)
    close(output, reference.output(wanted))
    close(new, wanted)
    close(cell.step(cell.project(tf.constant(x)), states), wanted)


@cells
def test_cells_work_in_keras_rnn(make_cell):
    cell = make_cell()
    loop = keras.layers.RNN(cell, return_sequences=True)
    x, mask = normal(B, T, M), lengths_mask(5, 3, 1, 2)
    loop.build((None, None, M))
    randomized(loop)
    ours, _ = layers.Recurrent(cell)(x, mask=mask)
    close(ours, np.asarray(loop(x, mask=mask)), 1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(layers.GRUResetAfterCell, keras.layers.GRUCell), (layers.LSTMCell, keras.layers.LSTMCell)],
)
def test_cells_with_the_weights_of_keras_equal_keras(ours, theirs):
    cell, other = built(ours(N), (None, M)), theirs(N)
    other.build((None, M))
    values = cell.get_weights()
    if len(values) == 4:  # Keras keeps both biases in one matrix
        values[2:] = [np.stack(values[2:])]
    other.set_weights(values)
    x, states = normal(B, M), list(states_of(cell))
    if theirs is keras.layers.GRUCell:
        states = states[0]
    _, wanted = other(x, states)
    _, actual = cell(x, states)
    close(actual, tf.nest.map_structure(np.asarray, wanted), 1e-6)


def test_the_papers_update_gate_is_one_minus_that_of_keras():
    cell = built(layers.GRUCell(N), (None, M))
    other = keras.layers.GRUCell(N, reset_after=False)
    other.build((None, M))
    kernel, recurrent, bias = cell.get_weights()
    sign = np.where(np.arange(3 * N) < N, -1, 1)
    bias = np.concatenate([np.zeros(2 * N), bias])
    other.set_weights([kernel * sign, recurrent * sign, bias])
    x, (state,) = normal(B, M), states_of(cell)
    close(cell(x, state)[0], np.asarray(other(x, state)[0]), 1e-6)


def test_stacked_cells_equal_the_reference():
    stack = layers.StackedCells([layers.LSTMCell(4), layers.GRUCell(5), layers.LSTMCell(6)])
    built(stack, (None, M))
    x, states = normal(B, M), states_of(stack)
    assert stack.state_size == [6, 6, 5, 4, 4]  # the top cell's states first
    output, new = everywhere(stack, x, list(states))
    bottom, middle, top = map(cell_parameters, stack.cells)
    low = reference.lstm_step(x, as_reference(states[3:]), bottom)
    mid = reference.gru_step(low[0], as_reference(states[2:3]), middle)
    high = reference.lstm_step(mid, as_reference(states[:2]), top)
    close(output, high[0])
    close(new, [*high, mid, *low])


def test_a_stack_starts_with_the_initial_states_of_its_cells():
    class Ones(keras.layers.SimpleRNNCell):
        def get_initial_state(self, batch_size: Any = None) -> list[tf.Tensor]:
            return [tf.ones([batch_size, self.units])]

    stack = layers.StackedCells([Ones(3), layers.LSTMCell(4)])
    wanted = [np.zeros([2, 4]), np.zeros([2, 4]), np.ones([2, 3])]
    close(stack.get_initial_state(2), wanted, 0)


# Recurrences and encoders.


@cells
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrent_equals_the_reference(make_cell, reverse):
    layer = layers.Recurrent(make_cell(), reverse=reverse)
    built(layer, (None, None, M))
    x, step = normal(B, T, M), CELLS[type(layer.cell)][0]
    outputs, last = everywhere(lambda x, mask: layer(x, mask=mask), x, MASK)
    wanted, state = reference.unroll(
        step, cell_parameters(layer.cell), x, MASK, reference.zero_state(step, B, N), reverse
    )
    close(outputs, wanted)
    close(last, state)
    close(outputs[3], np.zeros((T, N)), 0)  # no word was read


def test_recurrent_accepts_one_word_no_mask_and_no_rows():
    layer = built(layers.Recurrent(layers.GRUCell(N)), (None, None, M))
    outputs, last = layer(normal(B, 1, M))
    close(outputs[:, 0], last[0].numpy(), 0)
    everywhere(lambda x: layer(x), normal(0, T, M))
    assert layer(normal(0, T, M))[0].shape == (0, T, N)
    masked = layer(normal(B, T, M), mask=np.ones((B, T), bool))
    close(layer(normal(B, T, M)), tf.nest.map_structure(np.asarray, masked), 0)


@pytest.mark.parametrize(
    ("kind", "make_cell", "depth", "residual"),
    [
        (layers.BidirectionalEncoder, layers.GRUCell, 1, False),
        (layers.BidirectionalEncoder, layers.LSTMCell, 3, True),
        (layers.UnidirectionalEncoder, layers.GRUCell, 3, True),
        (layers.UnidirectionalEncoder, layers.LSTMCell, 2, False),
    ],
)
def test_encoders_equal_the_reference(kind, make_cell, depth, residual):
    cell = make_cell(N)
    encoder = built(kind(cell, layers=depth, residual=residual), (None, None, M))
    step = CELLS[type(cell)][0]
    x = normal(B, T, M)
    encoded = everywhere(lambda x, mask: encoder(x, mask=mask), x, MASK)
    hidden = x
    both = kind is layers.BidirectionalEncoder
    ends: dict[str, Any] = {}  # of each direction, the output at its last word
    for level, p in enumerate(encoder_parameters(encoder)):
        outputs = []
        for name, last in (
            ("forward", encoded.forward_states[level]),
            ("backward", encoded.backward_states[level] if both else None),
        ):
            if last is not None:
                zero = reference.zero_state(step, B, N)
                output, state = reference.unroll(
                    step, p[name], hidden, MASK, zero, name == "backward"
                )
                h, *memory = state if isinstance(state, tuple) else (state,)
                ends[name] = ends[name] + h if p["residual"] else h
                close(last, (ends[name], *memory))
                outputs.append(output)
        below = hidden if p["residual"] else 0.0
        hidden = below + np.concatenate(outputs, -1)
    close(encoded.annotations, hidden)
    assert encoder.annotation_size == encoded.annotations.shape[-1]
    assert len(encoded.backward_states) == (depth if both else 0)


# Attention.

SCORES = {
    "additive": layers.BahdanauAttention(7),
    "normalized": layers.BahdanauAttention(7, normalize=True),
    **{
        owner.__name__: CASES[owner.__name__].make()
        for owner in ATTENTIONS
        if issubclass(owner, layers.Attention)
    },
}


def test_every_cell_and_every_attention_has_a_reference():
    public = {value for value in vars(layers).values() if isinstance(value, type)}
    described = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    for base, cases in ((layers.RecurrentCell, CELLS), (layers.Attention, ATTENTIONS)):
        kinds = {kind for kind in public if issubclass(kind, base)} - {base}
        assert kinds <= set(cases), "ATTENTIONS or CELLS of tests/oracle.py"
        names = {kind.__name__ for kind in kinds - {layers.FixedContext}}  # that of RNNencdec
        assert not [name for name in names if f"`{name}`" not in described], "docs/models.md"


def encoded_of(annotations: Any, mask: Any) -> layers.Encoded:
    """The output of an encoder; its states are first and last annotations."""
    n = annotations.shape[-1] // 2
    last = reference.last_annotation(np.asarray(annotations), np.asarray(mask))
    return layers.Encoded(
        tf.constant(annotations),
        ((tf.constant(last[:, :n]),),),
        ((tf.constant(annotations[:, 0, n:]),),),
        tf.constant(mask),
    )


def copy_of(layer: Any) -> Any:
    return type(layer).from_config(layer.get_config())


@pytest.mark.parametrize("name", SCORES)
def test_attention_equals_the_reference_for_a_query_and_for_those_of_a_beam(name):
    part = SCORES[name]
    attention = built(copy_of(part), (None, N), [(None, None, N)])
    annotations, queries = normal(B, T, N), normal(B, 3, N, seed=1)
    memory = attention.memory(encoded_of(annotations, MASK))
    contexts, alphas = everywhere(attention, queries, memory)
    assert contexts.shape == (B, 3, N)
    for k in range(3):
        query, p = queries[:, k], attention_parameters(attention)
        wanted = ATTENTIONS[type(part)][0](query, annotations, MASK, p)
        context, weights = everywhere(attention, query, memory)
        close((context, weights), wanted)
        close((contexts[:, k], alphas[:, k]), wanted)
    sums = tf.reduce_sum(weights, -1).numpy()
    if isinstance(part, layers.MonotonicAttention):
        assert (sums[:3] < 1).all()  # the reader may pass the last word
    else:
        np.testing.assert_allclose(sums, 1, atol=1e-6)
    assert not weights.numpy()[:3][~MASK[:3]].any()


def test_huge_scores_stay_finite():
    attention = layers.DotAttention()
    annotations = np.full((1, 3, 2), 1e18, "float32")
    mask = np.array([[True, True, False]])
    memory = attention.memory(encoded_of(annotations, mask))
    _, weights = attention(tf.constant([[1e18, 1e18]]), memory)
    close(weights, [[0.5, 0.5, 0.0]], 1e-6)


def test_fixed_context_returns_the_same_context_for_every_query():
    attention = layers.FixedContext()
    memory = attention.memory(list(encoded_of(normal(B, T, N), MASK)))
    context, weights = attention(normal(B, N), memory)
    close(context, memory.numpy(), 0)
    assert weights is None
    contexts, _ = attention(normal(B, 3, N), memory)
    close(contexts, np.repeat(memory.numpy()[:, None], 3, 1), 0)


# Bridges.

ENCODED_SHAPE = layers.Encoded((None, None, 2 * N), (((None, N),),), (((None, N),),), (None, None))


def test_zero_bridge_returns_zeros_and_the_start_vector():
    bridge = built(layers.ZeroBridge([N, 4], M), ENCODED_SHAPE)
    encoded = encoded_of(normal(B, T, 2 * N), MASK)
    states, first = everywhere(bridge, encoded)
    close(states, [np.zeros((B, N)), np.zeros((B, 4))], 0)
    close(first, np.tile(array(bridge.start_vector), (B, 1)))


# Readouts.

WIDTHS = {"state": N, "previous": M, "context": 2 * N}


@pytest.mark.parametrize(
    ("terms", "tied", "factor_units"),
    [
        (tuple(WIDTHS), False, None),
        (("state",), False, None),
        (("state", "previous"), False, M),
        (("previous", "context"), True, M),
        (tuple(WIDTHS), True, None),
    ],
)
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_readouts_equal_the_reference(kind, terms, tied, factor_units):
    if kind is layers.LinearReadout and tied and not factor_units:
        return  # it has no width of its own: see the error tests
    options = {} if kind is layers.LinearReadout else {"units": M}
    readout = kind(11, factor_units=factor_units, terms=terms, tied=tied, **options)
    shapes = [(None, WIDTHS[term]) for term in WIDTHS]
    built(readout, *shapes)
    embeddings = tf.Variable(normal(11, M, seed=5))
    rank3 = {term: normal(B, T, WIDTHS[term], seed=6) for term in WIDTHS}
    p = readout_parameters(readout, WIDTHS, embeddings)

    def logits(s: tf.Tensor, y: tf.Tensor, c: tf.Tensor) -> tf.Tensor:
        return readout(s, y, c, embeddings if tied else None)

    wanted = reference.readout(
        *(rank3[term].astype("float64") for term in WIDTHS), p, ACTIVATIONS[kind]
    )
    close(everywhere(logits, *rank3.values()), wanted)
    close(logits(*(v[:, 0] for v in map(tf.constant, rank3.values()))), wanted[:, 0])


# Decoder.


def reference_glimpses(
    decoder: Any, embedded: Any, first: Any, states: Any, encoded: Any
) -> tuple[Any, Any, Any]:
    """The states that are read, contexts and weights of each step."""
    annotations, mask = encoded.annotations.numpy(), encoded.mask.numpy()
    if isinstance(decoder.attention, layers.FixedContext):
        annotations = annotations[..., :N]  # it reads the forward states
    function, parameters = ATTENTIONS[type(decoder.attention)]
    attend = reference.attends(function, annotations, mask, parameters(decoder.attention))
    cell, real = CELLS[type(decoder.cell)][0], np.ones(embedded.shape[:2])
    # A readout whose logits are the state.
    p = {"decoder": decoder_parameters(decoder), "readout": {"U_o": np.eye(N)}}
    begin, order, plain = as_reference(states), decoder.step_order, reference.identity
    rows = reference.decode(p, embedded, real, begin, attend, order, first, cell, plain)
    read, weights, contexts, _ = zip(*rows, strict=True)
    return read, contexts, weights


CONTEXTS = ["attention", "fixed", "none"]


@pytest.mark.parametrize(
    ("make_cell", "context", "order"),
    [
        *itertools.product([layers.GRUCell], CONTEXTS, STEP_ORDERS),
        # Another cell with each context and with each order.
        *zip([layers.LSTMCell] * 3, CONTEXTS, STEP_ORDERS, strict=True),
        (layers.GRUCell, "attention", "conditional"),
        (layers.GRUCell, "fixed", "conditional"),
        (layers.LSTMCell, "attention", "conditional"),
        *itertools.product(
            [layers.GRUCell], ["location", "monotonic"], [*STEP_ORDERS, "conditional"]
        ),
    ],
)
def test_decoder_equals_the_reference(make_cell, context, order):
    attention = {
        "attention": layers.BahdanauAttention(7),
        "location": layers.LocationAttention(7, filters=2, kernel_size=3),
        "monotonic": layers.MonotonicAttention(7, layers.GeneralAttention()),
        "fixed": layers.FixedContext(),
        "none": None,
    }[context]
    parts = make_cell(N), copy_of(attention) if attention else None
    decoder = (
        layers.ConditionalDecoder(*parts)
        if order == "conditional"
        else layers.AttentionDecoder(*parts, order)
    )
    decoder.build_for(M, ENCODED_SHAPE)
    randomized(decoder)
    if context in ("location", "monotonic"):
        assert decoder.slow_part == type(attention).__name__
    encoded = encoded_of(normal(B, T, 2 * N), MASK)
    memory = () if attention is None else decoder.attention.memory(encoded)
    embedded, first = normal(B, 4, M, seed=3), normal(B, M, seed=4)
    states = states_of(decoder.cell)
    glimpse = everywhere(decoder, embedded, first, states, memory)
    columns = reference_glimpses(decoder, embedded, first, states, encoded)
    for actual, column in zip(glimpse, columns, strict=True):
        assert (actual is None) == (column[0] is None)
        if actual is not None:
            close(actual, np.stack(column, 1))
    # `step`, one word at a time, gives the same.
    state = tf.nest.map_structure(lambda t: t[:, None], decoder.initial_state(states, memory))
    memory = decoder.step_memory(memory, readout_term=tf.identity)
    previous = first
    for i in range(embedded.shape[1]):
        is_first = tf.fill([B, 1], i == 0)
        now, state = decoder.step(tf.constant(previous[:, None]), is_first, state, memory)
        if now.weights is not None:
            now = now._replace(weights=now.weights[:, 0])
        for at_once, whole in zip(now, glimpse, strict=True):
            assert (at_once is None) == (whole is None)
            if at_once is not None:
                close(at_once, whole[:, i].numpy(), 1e-6)
        previous = embedded[:, i]


# Output weights.


def test_output_weights_in_rows_and_in_columns_give_the_same_logits():
    kernel, bias, features = normal(9, 5), normal(9, seed=1), normal(2, 3, 5)
    wanted = features.astype(np.float64) @ kernel.T + bias
    rows = OutputWeights(kernel, bias)
    columns = OutputColumns.of(rows)
    for output in (rows, columns):
        close(output.logits(tf.constant(features)), wanted)
        close(output.logits(tf.constant(features[0])), wanted[0])


# Embedding.


def test_embedding_and_the_gradient_of_a_repeated_word():
    embedding = built(layers.WordEmbedding(5, M, use_bias=True), None)
    ids = np.array([[1, 1, 4], [1, 0, 4]], "int32")
    table, bias = (array(w) for w in embedding.weights)
    close(everywhere(embedding, ids), table[ids] + bias)
    upstream = normal(2, 3, M)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(embedding(ids) * upstream)
    gradient, bias_gradient = tape.gradient(total, [w.value for w in embedding.weights])
    wanted = np.zeros((5, M))
    np.add.at(wanted, ids, upstream)
    assert isinstance(gradient, tf.Tensor)
    close(gradient, wanted)
    close(bias_gradient, upstream.sum((0, 1)))


def test_ids_of_any_kind_are_looked_up_exactly():
    embedding = layers.WordEmbedding(300, M, dtype="mixed_bfloat16")
    wanted = embedding(np.array([256, 257], "int32"))
    vectors = embedding(np.array([256.0, 257.0], "float32"))
    np.testing.assert_array_equal(vectors, wanted)
    assert (wanted[0] != wanted[1]).numpy().any()
    few = np.array([0, 255], "uint8")
    np.testing.assert_array_equal(embedding(few), embedding(few.astype(int)))


# Initial weights.


def test_initial_weights_are_distributed_as_in_the_paper():
    """Those of all other layers are in the test of a whole model."""
    cell = layers.GRUCell(64)
    cell.build((None, 300))
    u_z, u_r, u = blocks = np.split(array(cell.recurrent_kernel), 3, -1)
    for block in blocks:
        close(block @ block.T, np.eye(64), 1e-5)
    assert np.abs(u_z - u_r).max() > 0.1 < np.abs(u_r - u).max()
    assert array(cell.kernel).std() == pytest.approx(0.01, rel=0.05)
    assert abs(array(cell.kernel).mean()) < 2e-4
    assert not cell.bias.numpy().any()


def test_one_initializer_gives_each_kernel_different_values():
    start = keras.initializers.RandomNormal(stddev=1.0)
    cell = layers.GRUCell(4, kernel_initializer=start)
    encoder = layers.BidirectionalEncoder(cell, layers=2)
    encoder.build((None, None, 8))
    blocks = [
        block.tobytes()
        for layer in encoder.stack
        for recurrent in layer
        for block in np.split(recurrent.cell.kernel.numpy(), 3, -1)
    ]
    assert len(set(blocks)) == 12


@pytest.mark.parametrize(
    ("start", "different"),
    [
        (keras.initializers.RandomNormal(seed=7), 4),
        (keras.initializers.Orthogonal(seed=keras.random.SeedGenerator(7)), 8),
    ],
)
def test_a_seed_gives_each_gate_other_values_and_a_seed_generator_each_cell(start, different):
    cells = [
        layers.LSTMCell(4, kernel_initializer=start, recurrent_initializer=start) for _ in range(2)
    ]
    for cell in cells:
        cell.build((None, 4))
    for name in ("kernel", "recurrent_kernel"):
        blocks = np.split(np.concatenate([getattr(cell, name) for cell in cells], -1), 8, -1)
        assert len({block.tobytes() for block in blocks}) == different


def test_an_initializer_may_be_a_function_or_the_default():
    cell = layers.GRUCell(
        4,
        kernel_initializer=lambda shape, dtype=None: tf.fill(shape, 2.0),
        recurrent_initializer=None,
    )
    cell.build((None, 8))
    assert (array(cell.kernel) == 2).all()
    u = array(cell.recurrent_kernel)[:, :4]
    close(u @ u.T, np.eye(4), 1e-5)


# Dropout.


@pytest.mark.parametrize("cell", [layers.TanhCell(40), layers.LSTMCell(40)])
def test_state_dropout_is_one_mask_for_all_steps(cell):
    """All steps use one mask; its values are 0 and 1 / (1 - rate)."""
    masks = layers.recurrent.state_dropout_masks(
        (tf.ones([500, 40]),) * cell.state_count, 0.25, True, keras.random.SeedGenerator(1)
    )
    assert len(masks) == cell.state_count
    values, counts = np.unique(masks[0].numpy(), return_counts=True)
    close(values, [0, 1 / 0.75], 1e-6)
    assert counts[0] / counts.sum() == pytest.approx(0.25, abs=0.02)


def test_state_dropout_equals_the_reference():
    """h U is (h ∘ d) U with one d for all steps, found among all masks d."""
    layer = layers.Recurrent(layers.TanhCell(N), state_dropout=0.5)
    built(layer, (None, None, M))
    x = normal(1, 6, M)
    close(layer(x)[0], np.asarray(layer(x, training=False)[0]), 0)
    p = cell_parameters(layer.cell)
    actual = layer(x, training=True)[0].numpy().astype("float64")
    candidates = []
    for bits in range(2**N):
        d = np.array([2.0 * (bits >> i & 1) for i in range(N)])
        h, rows = np.zeros((1, N)), []
        for t in range(6):
            h = np.tanh(x[:, t] @ p["W"] + (h * d) @ p["U"] + p["b"])
            rows.append(h)
        candidates.append(np.abs(np.stack(rows, 1) - actual).max())
    assert np.sort(candidates)[0] < 1e-5 < 1e-2 < np.sort(candidates)[1]


def test_a_stack_of_different_sizes_can_have_state_dropout():
    stack = layers.StackedCells([layers.TanhCell(3), layers.LSTMCell(5)])
    layer = layers.Recurrent(stack, state_dropout=0.5)
    assert layer(normal(B, T, M), training=True)[0].shape == (B, T, 5)


# Errors.


@pytest.mark.parametrize(
    ("owner", "arguments", "said"),
    [
        (layers.GRUCell, (0,), "units is 0"),
        (layers.GRUCell, (2.5,), "units is 2.5"),
        (layers.LSTMCell, (True,), "units is True"),
        (layers.StackedCells, ([],), "cells is empty"),
        (layers.BidirectionalEncoder, (layers.GRUCell(2), 0), "layers is 0"),
        (layers.BahdanauAttention, (0,), "units is 0"),
        (layers.BahdanauAttention, ("8",), "units is '8'"),
        (layers.LocationAttention, (5, 0), "filters is 0"),
        (layers.MonotonicAttention, (5, layers.LocationAttention(5)), "content is Location"),
        (layers.MonotonicAttention, (5, layers.FixedContext()), "content is FixedContext"),
        (layers.WordEmbedding, (9, "4"), "embedding_dim is '4'"),
        (layers.WordEmbedding, (9, 0), "embedding_dim is 0"),
        (layers.MaxoutReadout, ("9", 4), "vocabulary_size is '9'"),
        (layers.MaxoutReadout, (9, 4, None, ("stat",)), "terms is ['stat']"),
        (layers.TanhReadout, (9, -1), "units is -1"),
        (layers.TanhReadout, (9, 4, "2"), "factor_units is '2'"),
        (layers.AttentionDecoder, (layers.GRUCell(2), None, "late"), "step_order is 'late', w"),
        (layers.ConditionalDecoder, (layers.GRUCell(2),), "attention is None"),
    ],
)
def test_arguments_that_no_layer_takes_are_refused(owner, arguments, said):
    refused(lambda: owner(*arguments), owner.__name__, said)


@pytest.mark.parametrize(
    ("kind", "inputs", "method"),
    [
        (layers.Readout, np.ones([2, 1, 2]), "activation"),
        (layers.Bridge, np.ones([1, 4, 2, 3]), "call"),
    ],
)
def test_a_part_of_ones_own_without_a_method_names_it(kind, inputs, method):
    part = type("Mine", (kind,), {})(3, 2)
    refused(lambda: part(*inputs), "Mine: there is no", method, "(", by=NotImplementedError)


READ = (None, 5), (None, 3), None  # by a readout


@pytest.mark.parametrize(
    ("layer", "shapes", "said"),
    [
        (layers.DotAttention(), [(None, 4), [(None, None, 8)]], ("units (4)", "annotations (8")),
        (layers.TanhReadout(9, 4, terms=("context",)), READ, ("terms is ['context']",)),
        (layers.MaxoutReadout(9, 4, tied=True), READ, ("units (4) and embedding_dim (3)",)),
        (layers.TanhReadout(9, 4, 5, tied=True), READ, ("factor_units (5) and embedding_dim (3",)),
        (layers.LinearReadout(9, terms=("state",), tied=True), READ, ("terms (5) and embedding",)),
        (layers.SentenceBridge(N, M), [ENCODED_SHAPE], ("dim (3) and the encoder's units (6)",)),
        (layers.CopyBridge([N, N], M), [ENCODED_SHAPE], ("sizes [6])", "cell's (sizes [6, 6]")),
        (
            layers.BackwardBridge(N, M),
            [ENCODED_SHAPE._replace(backward_states=())],
            ("encoder=Bid",),
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(layer, shapes, said):
    refused(lambda: layer.build(*shapes), type(layer).__name__, *said)


def test_attention_without_a_memory_says_what_it_reads():
    attention, query = layers.BahdanauAttention(5), tf.ones([1, 2])
    for batch in (2, 4):  # as many as `Encoded` has parts
        annotations = tf.ones([batch, 5, 7])
        refused(lambda x=annotations: attention.memory(x), "encoded is a tensor", "(")
    encoded = layers.Encoded(annotations, (), (), None)
    assert layers.BahdanauAttention(3).memory(encoded).keys.shape == (4, 5, 3)
    refused(lambda: attention(query, encoded), "Memory of three parts")
    refused(lambda: attention([query, encoded]), "attention(query, memory)")
    refused(lambda: attention(query, tf.ones([1, 3, 4])), "has type", "Tensor")
    context, _ = attention(query, layers.Memory(tf.ones([1, 3, 4]), (), ()))
    np.testing.assert_array_equal(context, tf.ones([1, 4]))


def test_a_size_may_be_a_number_of_numpy():
    attention = layers.BahdanauAttention(np.int64(5))
    attention(tf.ones([1, 2]), layers.Memory(tf.ones([1, 3, 4]), None, None))
    assert type(attention.get_config()["units"]) is int
