"""Leaves out of a SavedModel's graphs what no server needs.

Whoever loads a graph pays for each of its nodes. Each constant that Python
code mentions is a node of its own, each size that it asks for twice is two,
and identities say what belongs to which loop. Nodes with a gradient of their
own name it, and TensorFlow warns if it is not there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bahdanau_tf.serving.as_written import run_as_written
from bahdanau_tf.serving.invariants import lift
from bahdanau_tf.serving.merging import merge
from bahdanau_tf.serving.nodes import SHAPES
from bahdanau_tf.serving.nodes import behind
from bahdanau_tf.serving.nodes import in_order
from bahdanau_tf.serving.nodes import meaning
from bahdanau_tf.serving.nodes import node_of
from bahdanau_tf.serving.nodes import references
from bahdanau_tf.serving.saved_model import GRAPHS
from bahdanau_tf.serving.saved_model import read_graphs

# Two nodes of such an op with equal inputs have equal outputs.
_PURE = """
AddV2 All Any Cast ConcatV2 Const Cumsum DecodeRaw EnsureShape Equal ExpandDims
Fill FloorDiv GatherV2 Greater GreaterEqual Less LogicalAnd LogicalNot LogicalOr
Max Maximum Min Minimum Mul Neg NotEqual OnesLike Pack PartitionedCall Range
Reshape SelectV2 Shape Size Slice Squeeze StridedSlice StringLength Sub Substr
Sum Tile Transpose Where ZerosLike
"""
PURE = frozenset(_PURE.split())
_SAME = ("Identity", "IdentityN")  # their outputs are their inputs
_GRADIENT = "_gradient_op_type"
# TensorFlow's hash of the graphs, which are no longer those.
_FINGERPRINT = "fingerprint.pb"


def slim(folder: Path) -> None:
    """Writes the functions of a SavedModel anew, with fewer nodes."""
    saved = read_graphs(folder)
    for meta_graph in saved.meta_graphs:
        library = meta_graph.graph_def.library
        lift(library.function)
        for function in library.function:
            _slim(function)
        merge(library, _roots(meta_graph))
        run_as_written(library.function)
    (folder / GRAPHS).write_bytes(saved.SerializeToString())
    (folder / _FINGERPRINT).unlink(missing_ok=True)


def _roots(meta_graph: Any) -> set[str]:
    """The functions that are called from outside the library."""
    called = (x.name for n in meta_graph.graph_def.node for x in references(n))
    return {*meta_graph.object_graph_def.concrete_functions, *called}


def _slim(function: Any) -> None:
    """Removes nodes of a FunctionDef; what it computes stays the same."""
    awaited = _awaited(function)
    passing = _passing(function, awaited)
    shapes = {node.name: _shape(node) for node in function.node_def}
    now = _Names()
    first: dict[object, str] = {}  # of equal nodes
    flat: dict[str, str] = {}  # what the reshapes read
    kept = []
    for node in in_order(function.node_def):
        node.input[:] = map(now.of, node.input)
        if node.op == "Reshape":  # of another one, too
            tensor = node.input[0]
            flat[node.name] = node.input[0] = flat.get(node_of(tensor), tensor)
            shape = shapes[node.name]
            if shape and shape == shapes.get(node_of(node.input[0])):
                passing |= {node.name} - awaited
        if node.name in passing:
            now.passed[node.name] = list(node.input)
            continue
        node.attr.pop(_GRADIENT, None)
        if node.op in PURE:
            same = first.setdefault((meaning(node), *node.input), node.name)
            if same != node.name:
                now.same[node.name] = same
                continue
        kept.append(node)
    for given in (function.ret, function.control_ret):
        for name, result in list(given.items()):
            given[name] = now.of(result)
    results = *function.ret.values(), *function.control_ret.values()
    del function.node_def[:]
    function.node_def.extend(behind(kept, results))


class _Names:
    """What nodes and tensors are called when others are removed.

    Attributes:
        same: For the name of a removed node that of an equal one.
        passed: For the name of one that only passes tensors on, their names.
    """

    def __init__(self) -> None:
        self.same: dict[str, str] = {}
        self.passed: dict[str, list[str]] = {}

    def of(self, reference: str) -> str:
        """The name now: of a tensor "node:output:0", or "^node"."""
        control = reference[: reference.startswith("^")]
        name, *output = reference.removeprefix("^").split(":")
        if name in self.passed:
            return self.passed[name][int(output[-1])]
        return ":".join([control + self.same.get(name, name), *output])


def _shape(node: Any) -> list[int] | None:
    """The shape of a node's only output, if one size at most is unknown."""
    if SHAPES not in node.attr:
        return None
    outputs = node.attr[SHAPES].list.shape
    if len(outputs) != 1 or outputs[0].unknown_rank:
        return None
    sizes = [dim.size for dim in outputs[0].dim]
    return None if sizes.count(-1) > 1 or 0 in sizes else sizes


def _awaited(function: Any) -> set[str]:
    """The names of the nodes that others wait for."""
    return {
        one.removeprefix("^")
        for node in function.node_def
        for one in node.input
        if one.startswith("^")
    }.union(function.control_ret.values())


def _passing(function: Any, awaited: set[str]) -> set[str]:
    """The names of the nodes that only pass tensors on.

    Not of those that wait for other nodes or others for them, nor of those by
    which a function returns its argument.
    """
    arguments = {one.name for one in function.signature.input_arg}
    results = set(map(node_of, function.ret.values()))
    return {
        node.name
        for node in function.node_def
        if node.op in _SAME
        and node.name not in awaited
        and not any(one.startswith("^") for one in node.input)
        and not (node.name in results and arguments.intersection(node.input))
    }
