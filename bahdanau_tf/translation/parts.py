"""The parts of a graph as attributes of who owns it."""

from __future__ import annotations

from typing import Any

from bahdanau_tf.translation.graph import TranslationGraph

PARTS = (
    "model",
    "source_texts",
    "target_text",
    "decoding",
    "dictionary",
    "lexicon",
)


def part(name: str, what: str) -> Any:
    """A part of `self.graph`; setting it makes another graph.

    Raises:
        ValueError: When it is set to what does not fit the other parts.
    """

    def given(owner: Any) -> Any:
        return getattr(owner.graph, name)

    def replaced(owner: Any, value: Any) -> None:
        parts = {one: getattr(owner.graph, one) for one in PARTS}
        owner.graph = TranslationGraph(*(parts | {name: value}).values())

    return property(given, replaced, doc=what)
