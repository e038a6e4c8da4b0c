"""Moves out of the loops of a SavedModel what is the same at every step.

TensorFlow runs all nodes of a loop's body at every step, also those that only
pad a bias or take a matrix apart, as Python code likes to write them where
they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from bahdanau_tf.serving.nodes import SHAPES
from bahdanau_tf.serving.nodes import callees_first
from bahdanau_tf.serving.nodes import in_order
from bahdanau_tf.serving.nodes import node_of
from bahdanau_tf.serving.nodes import references

# Ops that cannot fail, so that they may run before a loop that makes no step,
# and the attribute that is the dtype of their output.
_MOVABLE = {
    "Cast": "DstT",
    "Pack": "T",
    "Pad": "T",
    "ReadVariableOp": "dtype",
    "Shape": "out_type",
    "StridedSlice": "T",
}
_READS = {"LookupTableFindV2", "ReadVariableOp"}
_WRITING = ("Assign", "LookupTableI")  # ImportV2, InsertV2
_LOOPS = ("While", "StatelessWhile")
_TAKEN = "shrink_axis_mask"  # axes of which one element is taken
_INPUTS = "_input_shapes"  # of a function


def lift(functions: Iterable[Any]) -> None:
    """Moves invariant nodes of loops to where the loops are called.

    Args:
        functions: All functions of a graph, each a FunctionDef.
    """
    writing = _forget_reads(functions)
    named = {one.signature.name: one for one in functions}
    for function in callees_first(named.values()):  # inner loops first
        for node in list(function.node_def):
            if node.op in _LOOPS:
                body, condition = (
                    named[node.attr[part].func.name]
                    for part in ("body", "cond")
                )
                both = {function.signature.name, body.signature.name}
                movable = set(_MOVABLE) - (_READS if both & writing else set())
                _lift(function, node, body, condition, movable)


def _forget_reads(functions: Iterable[Any]) -> set[str]:
    """Lets nothing wait for reads where nothing is written.

    What a function waits for last, its control outputs, are its effects; a
    function without any only reads, too.

    Returns:
        The names of the functions that write.
    """
    effects = {x.signature.name: x.control_ret for x in functions}
    writing: set[str] = set()
    for function in callees_first(functions):
        nodes = function.node_def
        called = {x.name: [f.name for f in references(x)] for x in nodes}
        if any(
            x.op.startswith(_WRITING) or writing.intersection(called[x.name])
            for x in nodes
        ):
            writing.add(function.signature.name)
            continue
        idle = {x.name for x in nodes if x.op in _READS}
        idle |= {
            name
            for name, callees in called.items()
            if callees and not any(effects[x] for x in callees)
        }
        for node in in_order(nodes):
            node.input[:] = (x for x in node.input if x[1:] not in idle)
            if node.op == "NoOp" and not node.input:
                idle.add(node.name)
        for name, awaited in list(function.control_ret.items()):
            if awaited in idle:
                del function.control_ret[name]
                function.signature.control_output.remove(name)
    return writing


def _lift(
    function: Any, loop: Any, body: Any, condition: Any, movable: set[str]
) -> None:
    """Moves invariant nodes of a loop to the function that has the loop."""
    invariants = dict(_invariants(loop, body))
    nodes = in_order(body.node_def)
    constants = {x.name: x for x in nodes if x.op == "Const"}
    moved: dict[str, Any] = {}
    for node in nodes:
        read = [node_of(one) for one in node.input]
        known = (moved, constants, invariants)
        if (
            node.op in movable
            and all(any(x in k for k in known) for x in read)
            and not _may_fail(node, moved)
        ):
            moved |= {x: constants[x] for x in read if x in constants}
            moved[node.name] = node
    needed = {
        one: moved[node_of(one)]
        for node in nodes
        if node.name not in moved
        for one in node.input
        if node_of(one) in moved and node_of(one) not in constants
    }

    def outside(name: str) -> str:
        return f"{loop.name}/{name}"

    for node in moved.values():
        copy = function.node_def.add()
        copy.CopyFrom(node)
        copy.name = outside(node.name)
        copy.input[:] = [
            invariants.get(one, outside(one)) for one in node.input
        ]
    inside = {
        one: _added(loop, body, condition, outside(one), node)
        for one, node in needed.items()
    }
    for node in nodes:
        node.input[:] = [inside.get(one, one) for one in node.input]


def _invariants(loop: Any, body: Any) -> Iterator[tuple[str, str]]:
    """The arguments of a body that it returns, and what the loop gives."""
    identities = {
        node.name: node.input[0]
        for node in body.node_def
        if node.op == "Identity"
    }
    signature = body.signature
    for given, result, value in zip(
        signature.input_arg, signature.output_arg, loop.input, strict=False
    ):
        returned = body.ret[result.name]
        if identities.get(node_of(returned), returned) == given.name:
            yield given.name, value


def _may_fail(node: Any, moved: Mapping[str, Any]) -> bool:
    """Whether it takes an element out of a tensor that may have none."""
    # A look at an attribute that is not there would make an invalid one.
    takes = _TAKEN in node.attr and node.attr[_TAKEN].i
    if node.op != "StridedSlice" or not takes:
        return False
    source = moved.get(node_of(node.input[0]))
    return source is None or source.op != "Shape"


def _added(loop: Any, body: Any, condition: Any, value: str, node: Any) -> str:
    """Gives a loop one more invariant, the output of a node; its name."""
    dtype = tf.int32.as_datatype_enum  # of a shape that has no note of it
    if _MOVABLE[node.op] in node.attr:
        dtype = node.attr[_MOVABLE[node.op]].type
    name = f"invariant_{len(body.signature.input_arg)}"
    for function in (body, condition):
        function.signature.input_arg.add(name=name, type=dtype)
    body.signature.output_arg.add(name=f"{name}_out", type=dtype)
    body.ret[f"{name}_out"] = name
    loop.attr["T"].list.type.append(dtype)
    shape = node.attr[SHAPES].list.shape[0]
    for noted, attribute in (
        (loop, "output_shapes"),
        (loop, SHAPES),
        (body, _INPUTS),
        (condition, _INPUTS),
    ):
        if attribute in noted.attr:
            noted.attr[attribute].list.shape.append(shape)
    controls = [one for one in loop.input if one.startswith("^")]
    given = [one for one in loop.input if not one.startswith("^")]
    loop.input[:] = [*given, value, *controls]
    return name
