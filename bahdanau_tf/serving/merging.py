"""Makes one of the equal functions in a SavedModel's graphs.

TensorFlow writes a function for each branch and each loop of a signature, and
for each tokenizer its own, though many of them do the same.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from bahdanau_tf.serving.nodes import callees_first
from bahdanau_tf.serving.nodes import meaning
from bahdanau_tf.serving.nodes import references


def merge(library: Any, roots: Collection[str]) -> None:
    """Removes functions that equal another one, which is called instead.

    Args:
        library: The FunctionDefLibrary of a graph.
        roots: Names of functions that must stay.
    """
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
        control = reference[: reference.startswith("^")]
        name, *output = reference.removeprefix("^").split(":")
        return ":".join([control + names[name], *output])

    return (
        tuple(one.type for one in signature.input_arg),
        tuple(of(function.ret[one.name]) for one in signature.output_arg),
        tuple(sorted(map(of, function.control_ret.values()))),
        tuple(
            (*map(of, node.input), meaning(node)) for node in function.node_def
        ),
    )
