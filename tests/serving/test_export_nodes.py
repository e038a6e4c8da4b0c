"""Exports: few nodes, none of them twice, and how many a signature has."""

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format  # type: ignore[import-untyped]
from toys import english, french, toy_translator

from bahdanau_tf import Decoding
from bahdanau_tf.serving.saved_model import GRAPHS, count_nodes, read_graphs, slim


@pytest.fixture(scope="module")
def version(tmp_path_factory: Any) -> Path:
    translator = toy_translator(english(), french(), Decoding(beam_size=3, max_length=9))
    return translator.export(tmp_path_factory.mktemp("served"), n_best=2)


def functions(folder: Path) -> dict[str, Any]:
    (meta_graph,) = read_graphs(folder).meta_graphs
    library = meta_graph.graph_def.library
    return {function.signature.name: function for function in library.function}


def ops(function: Any) -> list[str]:
    return [node.op for node in function.node_def]


# Counts.

GRAPH = """
meta_graphs {
  graph_def {
    node { name: "x" op: "Placeholder" }
    node { name: "once" op: "PartitionedCall" input: "x"
           attr { key: "f" value { func { name: "twice" } } } }
    node { name: "loop" op: "While" input: "x" input: "^once"
           attr { key: "body" value { func { name: "three" } } }
           attr { key: "cond" value { func { name: "one" } } } }
    node { name: "alone" op: "NoOp" }
    library {
      function { signature { name: "one" } node_def { name: "a" } }
      function { signature { name: "three" }
                 node_def { name: "a" } node_def { name: "b" }
                 node_def { name: "c" } }
      function { signature { name: "twice" }
        node_def { name: "a" attr { key: "branches" value { list {
          func { name: "three" } func { name: "three" } } } } } }
      function { signature { name: "slope" }
                 node_def { name: "a" } node_def { name: "b" } }
      registered_gradients { gradient_func: "slope"
                             registered_op_type: "CustomGradient-1" }
    }
  }
  signature_def { key: "call" value {
    outputs { key: "y" value { name: "once:0" } } } }
  signature_def { key: "both" value {
    outputs { key: "y" value { name: "loop:0" } }
    outputs { key: "x" value { name: "x:0" } } } }
  signature_def { key: "__saved_model_init_op" value {
    outputs { key: "y" value { name: "alone" } } } }
}
"""


def test_nodes_are_counted_where_functions_are_called(tmp_path: Path, version: Path) -> None:
    saved = text_format.Parse(GRAPH, type(read_graphs(version))())
    (tmp_path / GRAPHS).write_bytes(saved.SerializeToString())
    nodes = count_nodes(tmp_path)
    assert nodes.total == 4 + 1 + 3 + 1 + 2
    # x, the call, its node, which calls two of three; the loop, its functions
    assert nodes.signatures == {"call": 1 + 1 + 1 + 6, "both": 9 + 1 + 3 + 1}
    assert nodes.gradients == 2


# Whole exports.


def test_an_export_has_no_gradients(version: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert count_nodes(version).gradients == 0
    with caplog.at_level(logging.WARNING):
        tf.saved_model.load(str(version))
    assert "gradient" not in caplog.text


def test_every_attribute_has_a_value(version: Path) -> None:
    """Python loads a graph where one has none; the C++ runtime does not."""
    for function in functions(version).values():
        for node in function.node_def:
            for name, value in node.attr.items():
                assert value.WhichOneof("value"), (node.name, name)


def test_one_search_serves_all_signatures_with_a_beam(version: Path) -> None:
    """The others are those of `greedy` and `complete`, without a record of weights.

    A step, the body of a loop, has at most 158 ops, without constants.
    """
    every = functions(version)
    bodies = [
        ops(every[node.attr["body"].func.name])
        for function in every.values()
        for node in function.node_def
        if node.op in ("While", "StatelessWhile")
    ]
    searches = [body for body in bodies if "TopKV2" in body]
    assert len(searches) == 3
    assert sum("TensorListSetItem" in body for body in searches) == 1
    for body in searches:
        assert len([op for op in body if op not in ("Const", "Identity")]) <= 158


def test_few_rows_meet_output_weights_in_columns(version: Path) -> None:
    """A product with rows for words is transposed, and slow for few rows."""
    products = [
        node
        for name, function in functions(version).items()
        if "body" in name and "TopKV2" in ops(function)
        for node in function.node_def
        if node.op == "MatMul"
    ]
    assert products
    assert not any(node.attr["transpose_b"].b for node in products)


def test_a_signature_reads_its_text_once(version: Path) -> None:
    """Characters are read by a function of all languages, once a text."""
    every = functions(version)
    readers = [
        name for name, function in every.items() if "UnicodeDecodeWithOffsets" in ops(function)
    ]
    assert len(readers) == 1

    def calls(name: str) -> int:
        called = [
            value.func.name
            for node in every[name].node_def
            for value in node.attr.values()
            if value.HasField("func")
        ]
        return sum(callee in readers for callee in called) + sum(map(calls, called))

    counts = {
        next(key for key in count_nodes(version).signatures if f"_{key}_" in name): calls(name)
        for name in every
        if name.startswith("__inference_")
        and any(f"_{key}_" in name for key in count_nodes(version).signatures)
    }
    assert counts == {
        "align": 1, "complete": 2, "greedy": 1, "n_best": 1, "score": 2,
        "serving_default": 1,
    }  # fmt: skip


# Slimming.


class Varied(tf.Module):
    """Nodes that must stay beside such that need not."""

    def __init__(self) -> None:
        super().__init__()
        self.count = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
    def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        before = self.count.read_value()
        self.count.assign_add(tf.size(x) + 1)
        after = self.count.read_value()
        _, kept, total = tf.while_loop(
            lambda i, *_: i < tf.size(x) + 1,
            lambda i, kept, total: (i + 1, kept, total + x[0] * tf.identity(x[0])),
            (0, x, x[0]),
        )
        return {
            "same": tf.identity(tf.identity(x)),
            "kept": kept,
            "total": total,
            "steps": after - before,
            "draws": tf.stack([tf.random.uniform([]), tf.random.uniform([])]),
            "slope": squared(x),
        }


@tf.custom_gradient
def squared(x: tf.Tensor) -> Any:
    return x * x, lambda upstream: 2 * x * upstream


def test_a_slim_graph_computes_the_same(tmp_path: Path) -> None:
    module = Varied()
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, str(tmp_path), module.serve, options)
    before = count_nodes(tmp_path).total
    slim(tmp_path)
    assert count_nodes(tmp_path).total < before - 10
    for function in functions(tmp_path).values():
        assert not any("_gradient_op_type" in n.attr for n in function.node_def)
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    for row in ([3.0, 4.0], [1.0]):
        outputs = {k: v.numpy() for k, v in served(x=tf.constant(row)).items()}
        assert outputs["same"].tolist() == outputs["kept"].tolist() == row
        steps = len(row) + 1
        assert outputs["steps"] == steps
        assert outputs["total"] == row[0] + steps * row[0] ** 2
        assert outputs["slope"].tolist() == [x**2 for x in row]
        assert len(np.unique(outputs["draws"])) == 2


class Alike(tf.Module):
    """Calls three functions, of which two do the same."""

    @tf.function(input_signature=[tf.TensorSpec([None], name="x")])
    def serve(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        def times(factor: float) -> Any:
            return tf.function(lambda x: tf.tanh(factor * x))

        double, same, triple = times(2.0), times(2.0), times(3.0)
        return {"y": tf.stack([double(x), same(x), triple(x)])}


def test_of_equal_functions_one_is_left(tmp_path: Path) -> None:
    module = Alike()
    tf.saved_model.save(module, str(tmp_path), module.serve)
    before = sum("Tanh" in ops(x) for x in functions(tmp_path).values())
    slim(tmp_path)
    after = sum("Tanh" in ops(x) for x in functions(tmp_path).values())
    assert (before, after) == (3, 2)
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    x = np.array([0.5, -1.0], np.float32)
    wanted = np.tanh([2 * x, 2 * x, 3 * x])
    np.testing.assert_allclose(served(x=tf.constant(x))["y"], wanted, 1e-6)


RESHAPED = """
meta_graphs { graph_def { library { function {
  signature { name: "f" input_arg { name: "x" type: DT_FLOAT }
    output_arg { name: "same" type: DT_FLOAT }
    output_arg { name: "other" type: DT_FLOAT }
    output_arg { name: "unknown" type: DT_FLOAT } }
  node_def { name: "n" op: "Tanh" input: "x" SHAPE(-1,3) }
  node_def { name: "u" op: "Sinh" input: "x" SHAPE(-1,-1) }
  node_def { name: "s" op: "Placeholder" }
  node_def { name: "a" op: "Reshape" input: "n:y:0" input: "s:o:0"
    SHAPE(3,-1) }
  node_def { name: "b" op: "Reshape" input: "a:output:0" input: "s:o:0"
    SHAPE(-1,3) }
  node_def { name: "c" op: "Reshape" input: "u:y:0" input: "s:o:0"
    SHAPE(-1,-1) }
  ret { key: "same" value: "b:output:0" }
  ret { key: "other" value: "a:output:0" }
  ret { key: "unknown" value: "c:output:0" } } } } }
"""


def test_a_reshape_that_changes_nothing_is_left_out(version: Path, tmp_path: Path) -> None:
    """Of tensors with one unknown size at most; two may have changed."""

    def shape(match: re.Match) -> str:
        sizes = "".join(f" dim {{ size: {n} }}" for n in match[1].split(","))
        value = f"list {{ shape {{{sizes} }} }}"
        return f'attr {{ key: "_output_shapes" value {{ {value} }} }}'

    text = re.sub(r"SHAPE\((.*)\)", shape, RESHAPED)
    saved = text_format.Parse(text, type(read_graphs(version))())
    (tmp_path / GRAPHS).write_bytes(saved.SerializeToString())
    slim(tmp_path)
    (function,) = functions(tmp_path).values()
    assert function.ret["same"] == "n:y:0"
    assert function.ret["other"] == "a:output:0"
    assert function.ret["unknown"] == "c:output:0"
    assert sorted(ops(function)) == [*("Placeholder", "Reshape", "Reshape", "Sinh", "Tanh")]
