"""Counts the nodes that a server loads and runs for each signature."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from typing import NamedTuple

from bahdanau_tf.serving.saved_model import read_graphs

_INITIALIZER = "__saved_model_init_op"  # in the list of signatures


class Nodes(NamedTuple):
    """The numbers of nodes in a SavedModel.

    Attributes:
        total: Of its graph and of all functions.
        signatures: For each signature those that run it, where each call of a
            function counts as often as it is made: a runtime copies functions
            to where they are called.
        gradients: Of functions that compute gradients.
    """

    total: int
    signatures: dict[str, int]
    gradients: int


def count_nodes(folder: Path) -> Nodes:
    """Counts the nodes of a SavedModel."""
    (meta_graph,) = read_graphs(folder).meta_graphs
    graph = meta_graph.graph_def
    bodies = {
        one.signature.name: one.node_def for one in graph.library.function
    }

    @cache
    def of_function(name: str) -> int:
        return of_nodes(bodies[name])

    def of_nodes(nodes: Iterable[Any]) -> int:
        return sum(1 + sum(map(of_function, _called(node))) for node in nodes)

    return Nodes(
        total=len(graph.node) + sum(map(len, bodies.values())),
        signatures={
            name: of_nodes(
                behind(graph.node, (x.name for x in signature.outputs.values()))
            )
            for name, signature in sorted(meta_graph.signature_def.items())
            if name != _INITIALIZER
        },
        gradients=sum(
            len(bodies[one.gradient_func])
            for one in graph.library.registered_gradients
        ),
    )


def _called(node: Any) -> Iterator[str]:
    """The functions that a node calls; a loop calls two."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        yield from (one.name for one in value.list.func)


def behind(nodes: Iterable[Any], outputs: Iterable[str]) -> list[Any]:
    """The nodes of a graph or function that compute some of its outputs."""
    named = {node.name: node for node in nodes}
    found = set()
    left = list(outputs)
    while left:
        name = left.pop().removeprefix("^").split(":")[0]
        if name in named and name not in found:
            found.add(name)
            left.extend(named[name].input)
    return [node for name, node in named.items() if name in found]
