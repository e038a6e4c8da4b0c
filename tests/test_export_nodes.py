"""Exports: few nodes, none of them twice, and how many a signature has."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format  # type: ignore[import-untyped]
from toys import english
from toys import french
from toys import toy_translator

from bahdanau_tf import Decoding
from bahdanau_tf.serving.nodes import count_nodes
from bahdanau_tf.serving.saved_model import GRAPHS
from bahdanau_tf.serving.saved_model import read_graphs
from bahdanau_tf.serving.slimming import slim


@pytest.fixture(scope="module")
def version(tmp_path_factory: Any) -> Path:
    translator = toy_translator(
        english(), french(), Decoding(beam_size=3, max_length=9)
    )
    return translator.export(tmp_path_factory.mktemp("served"), n_best=2)


def functions(folder: Path) -> dict[str, Any]:
    (meta_graph,) = read_graphs(folder).meta_graphs
    library = meta_graph.graph_def.library
    return {one.signature.name: one for one in library.function}


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


def test_nodes_are_counted_where_functions_are_called(
    tmp_path: Path, version: Path
) -> None:
    saved = text_format.Parse(GRAPH, type(read_graphs(version))())
    (tmp_path / GRAPHS).write_bytes(saved.SerializeToString())
    found = count_nodes(tmp_path)
    assert found.total == 4 + 1 + 3 + 1 + 2
    # x, the call, its node, which calls two of three; the loop, its functions
    assert found.signatures == {"call": 1 + 1 + 1 + 6, "both": 9 + 1 + 3 + 1}
    assert found.gradients == 2


# Whole exports.


def test_an_export_has_no_gradients(
    version: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert count_nodes(version).gradients == 0
    with caplog.at_level(logging.WARNING):
        tf.saved_model.load(str(version))
    assert "gradient" not in caplog.text


def test_one_search_serves_all_signatures_with_a_beam(version: Path) -> None:
    """The others are those of `greedy` and `complete`, without a record."""
    every = functions(version)
    bodies = [
        every[node.attr["body"].func.name]
        for function in every.values()
        for node in function.node_def
        if node.op in ("While", "StatelessWhile")
    ]
    searches = [ops(one) for one in bodies if "TopKV2" in ops(one)]
    assert len(searches) == 3
    assert sum("TensorListSetItem" in one for one in searches) == 1


def test_a_signature_reads_its_text_once(version: Path) -> None:
    """A text is split by a function; a signature calls it once a text."""
    every = functions(version)
    splitters = [
        name
        for name, one in every.items()
        if "UnicodeDecodeWithOffsets" in ops(one)
    ]
    assert len(splitters) == 2

    def calls(name: str) -> int:
        called = [
            value.func.name
            for node in every[name].node_def
            for value in node.attr.values()
            if value.HasField("func")
        ]
        return sum(one in splitters for one in called) + sum(map(calls, called))

    found = {
        next(
            key for key in count_nodes(version).signatures if f"_{key}_" in name
        ): calls(name)
        for name in every
        if name.startswith("__inference_")
        and any(f"_{key}_" in name for key in count_nodes(version).signatures)
    }
    assert found == {
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
            lambda i, kept, total: (
                i + 1,
                kept,
                total + x[0] * tf.identity(x[0]),
            ),
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
        found = {k: v.numpy() for k, v in served(x=tf.constant(row)).items()}
        assert found["same"].tolist() == found["kept"].tolist() == row
        steps = len(row) + 1
        assert found["steps"] == steps
        assert found["total"] == row[0] + steps * row[0] ** 2
        assert found["slope"].tolist() == [one**2 for one in row]
        assert len(np.unique(found["draws"])) == 2
