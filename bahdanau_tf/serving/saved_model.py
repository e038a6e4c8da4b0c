"""Writes SavedModels for TensorFlow Serving, and reads their graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from google.protobuf import descriptor_pool, message_factory  # type: ignore[import-untyped]

GRAPHS = "saved_model.pb"


def write_saved_model(
    folder: Path,
    signatures: Mapping[str, tf.types.experimental.ConcreteFunction],
    modules: Sequence[tf.Module],
) -> None:
    """Writes a SavedModel with the variables that its functions use.

    Args:
        folder: The folder to make.
        signatures: A concrete function for each name.
        modules: The modules that own the tables used by the functions.
    """
    module = tf.Module()
    module.modules = list(modules)
    module.used = list(
        {
            id(variable): variable
            for function in signatures.values()
            for variable in function.variables
        }.values()
    )
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


SHAPES = "_output_shapes"  # notes, which may differ between equal nodes
_INITIALIZER = "__saved_model_init_op"  # in the list of signatures


class Nodes(NamedTuple):
    """The numbers of nodes in a SavedModel.

    Attributes:
        total: Of its graph and of all functions.
        signatures: For each signature those that run it, where each call of a function counts as
            often as it is made: a runtime copies functions to where they are called.
        gradients: Of functions that compute gradients.
    """

    total: int
    signatures: dict[str, int]
    gradients: int


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
    order: TopologicalSorter[str] = TopologicalSorter()
    for name, function in named.items():
        called = (x.name for n in function.node_def for x in references(n))
        order.add(name, *called)
    return [named[name] for name in order.static_order()]


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


def in_order(nodes: Iterable[Any]) -> list[Any]:
    """The nodes, each after those that it reads."""
    named = {node.name: node for node in nodes}
    order: TopologicalSorter[str] = TopologicalSorter()
    for name, node in named.items():
        order.add(name, *filter(named.__contains__, map(node_of, node.input)))
    return [named[name] for name in order.static_order()]


def node_of(reference: str) -> str:
    """The name of the node or argument in "node:output:0" or "^node"."""
    return reference.removeprefix("^").split(":")[0]
