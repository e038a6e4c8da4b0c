"""Keras' export to ONNX by tf2onnx: the same numbers in the ONNX Runtime."""

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracle import close, randomized

from bahdanau_tf import layers, models

N, M, K = 4, 3, 9
SOURCE = np.array([[2, 3, 5, 1], [4, 1, 0, 0]], "int32")
TARGET = np.array([[7, 1, 0], [5, 6, 1]], "int32")


def encoder(cell: Any) -> Any:
    embedded = keras.Input([None, M])
    encoded = layers.BidirectionalEncoder(cell(N))(embedded)
    states = encoded.forward_states, encoded.backward_states
    outputs = tf.nest.flatten((encoded.annotations, states))
    return randomized(keras.Model(embedded, outputs))


def search_model(**options: Any) -> Any:
    return randomized(models.RNNSearch(K, K, N, M, 5, 2, **options))


EMBEDDED = np.random.default_rng(1).normal(size=[2, 5, M]).astype("float32")
WORDS = {"source": SOURCE, "target": TARGET}
CASES = {
    "encoder": (lambda: encoder(layers.GRUCell), EMBEDDED),
    "encoder of LSTM": (lambda: encoder(layers.LSTMCell), EMBEDDED),
    "RNNSearch": (search_model, WORDS),
    "conditional": (lambda: search_model(step_order="conditional"), WORDS),
}


def loops(graph: Any) -> Any:
    """The bodies of the loops of a graph."""
    definition = graph.graph.as_graph_def()
    functions = {x.signature.name: x for x in definition.library.function}
    every = (definition.node, *(function.node_def for function in functions.values()))
    nodes = [node for body in every for node in body if node.op in ("While", "StatelessWhile")]
    return [functions[name] for name in {node.attr["body"].func.name for node in nodes}]


@pytest.mark.parametrize("name", CASES)
def test_loops_write_one_position_after_the_other(name):
    """What tf2onnx takes for granted: it appends whatever a loop writes."""
    make, inputs = CASES[name]
    graph = tf.function(make(), autograph=False).get_concrete_function(
        tf.nest.map_structure(lambda x: tf.TensorSpec([None, None, *x.shape[2:]], x.dtype), inputs)
    )
    written = 0
    for body in loops(graph):
        arguments = {argument.name for argument in body.signature.input_arg}
        nodes = {node.name: node for node in body.node_def}
        for node in nodes.values():
            if node.op == "TensorListSetItem":
                written += 1
                position = node.input[1].partition(":")[0]
                while position in nodes and nodes[position].op == "Identity":
                    position = nodes[position].input[0].partition(":")[0]
                assert position in arguments  # the loop's counter
    assert written


@pytest.mark.filterwarnings("ignore")  # of tf2onnx and of Keras about it
@pytest.mark.parametrize("name", CASES)
def test_onnx_runtime_gives_the_same_numbers(name, tmp_path):
    pytest.importorskip("tf2onnx", reason="needs tf2onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    make, inputs = CASES[name]
    model = make()
    wanted = tf.nest.flatten(model(inputs))
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    names = [x.name for x in session.get_inputs()]
    outputs = session.run(None, dict(zip(names, tf.nest.flatten(inputs), strict=True)))
    for output, tensor in zip(outputs, wanted, strict=True):
        close(output, tensor.numpy(), 1e-5)
