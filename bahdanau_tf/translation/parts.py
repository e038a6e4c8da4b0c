"""Properties for the owner of a graph that get and set the graph's parts."""

from __future__ import annotations

from typing import Any
from typing import Protocol

from bahdanau_tf.translation.graph import TranslationGraph

PARTS = (
    "model",
    "source_texts",
    "target_text",
    "decoding",
    "dictionary",
    "lexicon",
)


class Owner(Protocol):
    """Whoever has a graph."""

    graph: TranslationGraph


def part(name: str, what: str) -> Any:  # of the type that the owner says
    """A property for a part of `self.graph`; setting it makes a new graph.

    Args:
        name: The name of the part.
        what: The docstring of the property.

    Raises:
        ValueError: When it is set to a value that does not fit the other parts.
    """

    def given(owner: Owner) -> object:
        return getattr(owner.graph, name)

    def replaced(owner: Owner, value: object) -> None:
        parts = {one: getattr(owner.graph, one) for one in PARTS}
        owner.graph = TranslationGraph(*(parts | {name: value}).values())

    return property(given, replaced, doc=what)
