"""Writes SavedModels for TensorFlow Serving; reads, counts and slims their graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from google.protobuf import descriptor_pool, message_factory  # type: ignore[import-untyped]

GRAPHS = "saved_model.pb"
SHAPES = "_output_shapes"  # notes, which may differ between equal nodes
_INITIALIZER = "__saved_model_init_op"  # in the list of signatures
# Two nodes of such an op with equal inputs have equal outputs.
_PURE = """
AddV2 All Any Cast ConcatV2 Const Cumsum DecodeRaw EnsureShape Equal ExpandDims Fill FloorDiv
GatherV2 Greater GreaterEqual Less LogicalAnd LogicalNot LogicalOr Max Maximum Min Minimum Mul Neg
NotEqual OnesLike Pack PartitionedCall Range Reshape SelectV2 Shape Size Slice Squeeze StridedSlice
StringLength Sub Substr Sum Tile Transpose Where ZerosLike
"""
PURE = frozenset(_PURE.split())
_SAME = ("Identity", "IdentityN")  # their outputs are their inputs
_GRADIENT = "_gradient_op_type"
# TensorFlow's hash of the graphs, which are no longer those.
_FINGERPRINT = "fingerprint.pb"


def write_saved_model(
    folder: Path,
    signatures: Mapping[str, tf.types.experimental.ConcreteFunction],
    modules: Sequence[tf.Module],
) -> None:
    """Makes a folder with a SavedModel of the variables that its functions use.

    The modules own the tables that the functions use.
    """
    module = tf.Module()
    module.modules = list(modules)
    variables = (x for function in signatures.values() for x in function.variables)
    module.used = list({id(variable): variable for variable in variables}.values())
    # TensorFlow would make these with mode 755, whatever the umask.
    for name in ("assets", "variables"):
        (folder / name).mkdir(parents=True)
    # A server computes no gradients.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, str(folder), dict(signatures), options)


def read_graphs(folder: Path) -> Any:
    """The message SavedModel in a folder."""
    message = descriptor_pool.Default().FindMessageTypeByName("tensorflow.SavedModel")
    saved = message_factory.GetMessageClass(message)()
    saved.ParseFromString((folder / GRAPHS).read_bytes())
    return saved


class Nodes(NamedTuple):
    """The numbers of nodes in a SavedModel."""

    total: int  # of its graph and of all functions
    # For each signature those that run it, where each call of a function counts as often as it is
    # made: a runtime copies functions to where they are called.
    signatures: dict[str, int]
    gradients: int  # of functions that compute gradients


def count_nodes(folder: Path) -> Nodes:
    """Counts the nodes of a SavedModel."""
    (meta_graph,) = read_graphs(folder).meta_graphs
    graph = meta_graph.graph_def
    bodies = {function.signature.name: function.node_def for function in graph.library.function}

    @cache
    def of_function(name: str) -> int:
        return of_nodes(bodies[name])

    def of_nodes(nodes: Iterable[Any]) -> int:
        return sum(1 + sum(of_function(x.name) for x in references(node)) for node in nodes)

    return Nodes(
        total=len(graph.node) + sum(map(len, bodies.values())),
        signatures={
            name: of_nodes(behind(graph.node, (x.name for x in signature.outputs.values())))
            for name, signature in sorted(meta_graph.signature_def.items())
            if name != _INITIALIZER
        },
        gradients=sum(len(bodies[x.gradient_func]) for x in graph.library.registered_gradients),
    )


def callees_first(functions: Iterable[Any]) -> list[Any]:
    """The functions, each after those that it calls."""
    named = {function.signature.name: function for function in functions}
    return _ordered(named, lambda x: (f.name for n in x.node_def for f in references(n)))


def in_order(nodes: Iterable[Any]) -> list[Any]:
    """The nodes, each after those that it reads."""
    named = {node.name: node for node in nodes}
    return _ordered(named, lambda node: filter(named.__contains__, map(node_of, node.input)))


def _ordered(named: dict[str, Any], before: Callable[[Any], Iterable[str]]) -> list[Any]:
    """What has these names, each after those named by `before`."""
    graph = {name: [*before(value)] for name, value in named.items()}
    return [named[name] for name in TopologicalSorter(graph).static_order()]


def references(node: Any) -> Iterator[Any]:
    """The attributes of a node that name a function; a loop has two."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func
        yield from value.list.func


def meaning(node: Any) -> tuple[object, ...]:
    """What the outputs of a node depend on, except its inputs."""
    attributes = (
        (name, value.SerializeToString(deterministic=True))
        for name, value in node.attr.items()
        if name != SHAPES
    )
    return node.op, node.device, tuple(sorted(attributes))


def behind(nodes: Iterable[Any], outputs: Iterable[str]) -> list[Any]:
    """The nodes of a graph or function that compute some of its outputs."""
    named = {node.name: node for node in nodes}
    needed = set()
    left = list(outputs)
    while left:
        name = node_of(left.pop())
        if name in named and name not in needed:
            needed.add(name)
            left.extend(named[name].input)
    return [node for name, node in named.items() if name in needed]


def node_of(reference: str) -> str:
    """The name of the node or argument in "node:output:0" or "^node"."""
    return reference.removeprefix("^").split(":")[0]


def slim(folder: Path) -> None:
    """Leaves out of a SavedModel's graphs what no server needs.

    Every node slows loading. Each constant that Python code mentions is a node of its own, each
    size that it asks for twice is two, and identities say what belongs to which loop. Nodes with a
    gradient of their own name it, and TensorFlow warns if it is not there. TensorFlow writes a
    function for each branch and each loop of a signature, and for each tokenizer its own, though
    many of them do the same.
    """
    saved = read_graphs(folder)
    for meta_graph in saved.meta_graphs:
        library = meta_graph.graph_def.library
        for function in library.function:
            _slim(function)
        called = (x.name for n in meta_graph.graph_def.node for x in references(n))
        merge(library, {*meta_graph.object_graph_def.concrete_functions, *called})
    (folder / GRAPHS).write_bytes(saved.SerializeToString())
    (folder / _FINGERPRINT).unlink(missing_ok=True)


def merge(library: Any, roots: Collection[str]) -> None:
    """Removes functions that equal another one, which is called instead; the roots stay."""
    first: dict[object, str] = {}
    now: dict[str, str] = {}
    for function in callees_first(library.function):
        for node in function.node_def:
            for called in references(node):
                called.name = now.get(called.name, called.name)
        name = function.signature.name
        same = first.setdefault(_meaning(function), name)
        if same != name and name not in roots:
            now[name] = same
    kept = [x for x in library.function if x.signature.name not in now]
    del library.function[:]
    library.function.extend(kept)


def _meaning(function: Any) -> object:
    """What a function does, whatever its name and those of its nodes."""
    signature = function.signature
    names = {x.name: f"argument {i}" for i, x in enumerate(signature.input_arg)}
    names |= {x.name: f"node {i}" for i, x in enumerate(function.node_def)}

    def of(reference: str) -> str:
        return reference.replace(node_of(reference), names[node_of(reference)], 1)

    return (
        tuple(argument.type for argument in signature.input_arg),
        tuple(of(function.ret[argument.name]) for argument in signature.output_arg),
        tuple(sorted(map(of, function.control_ret.values()))),
        tuple((*map(of, node.input), meaning(node)) for node in function.node_def),
    )


def _slim(function: Any) -> None:
    """Removes nodes of a FunctionDef; what it computes stays the same."""
    controls = (x for node in function.node_def for x in node.input if x.startswith("^"))
    awaited = {*map(node_of, controls), *function.control_ret.values()}
    passing = _passing(function, awaited)
    shapes = {node.name: _shape(node) for node in function.node_def}
    first: dict[object, str] = {}  # of equal nodes
    same: dict[str, str] = {}  # for the name of a removed node that of an equal one
    passed: dict[str, list[str]] = {}  # of one that only passes tensors on, their names
    flat: dict[str, str] = {}  # what the reshapes read
    kept = []

    def now(reference: str) -> str:
        """What a tensor "node:output:0", or "^node", is called when others are removed."""
        name = node_of(reference)
        if name in passed:
            return passed[name][int(reference.split(":")[-1])]
        return reference.replace(name, same.get(name, name), 1)

    for node in in_order(function.node_def):
        node.input[:] = map(now, node.input)
        if node.op == "Reshape":  # of another one, too
            tensor = node.input[0]
            flat[node.name] = node.input[0] = flat.get(node_of(tensor), tensor)
            shape = shapes[node.name]
            if shape and shape == shapes.get(node_of(node.input[0])):
                passing |= {node.name} - awaited
        if node.name in passing:
            passed[node.name] = list(node.input)
            continue
        node.attr.pop(_GRADIENT, None)
        if node.op in PURE:
            equal = first.setdefault((meaning(node), *node.input), node.name)
            if equal != node.name:
                same[node.name] = equal
                continue
        kept.append(node)
    for results_by_name in (function.ret, function.control_ret):
        for name, result in list(results_by_name.items()):
            results_by_name[name] = now(result)
    results = *function.ret.values(), *function.control_ret.values()
    del function.node_def[:]
    function.node_def.extend(behind(kept, results))


def _shape(node: Any) -> list[int] | None:
    """The shape of a node's only output, if one size at most is unknown."""
    if SHAPES not in node.attr:
        return None
    outputs = node.attr[SHAPES].list.shape
    if len(outputs) != 1 or outputs[0].unknown_rank:
        return None
    sizes = [dim.size for dim in outputs[0].dim]
    return None if sizes.count(-1) > 1 or 0 in sizes else sizes


def _passing(function: Any, awaited: set[str]) -> set[str]:
    """The names of the nodes that only pass tensors on.

    Excludes nodes with control dependencies, and those by which a function returns its argument.
    """
    arguments = {argument.name for argument in function.signature.input_arg}
    results = set(map(node_of, function.ret.values()))
    return {
        node.name
        for node in function.node_def
        if node.op in _SAME
        and node.name not in awaited
        and not any(tensor.startswith("^") for tensor in node.input)
        and not (node.name in results and arguments.intersection(node.input))
    }
