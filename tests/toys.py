"""A small translator with few words, for tests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import tensorflow as tf
from oracle import randomized

from bahdanau_tf import Decoding, RNNSearch, Translator, Vocabulary, WordTokenizer
from bahdanau_tf.translation import Translation
from bahdanau_tf.translation.graph import Translated, TranslationGraph

SPECIAL = ["[PAD]", "[UNK]", "[END]"]
ENGLISH = ["the", "cat", "dog", "sees", "sleeps", "a", "red", "."]
FRENCH = ["le", "chat", "chien", "voit", "dort", "un", "rouge", ".", "l'"]


def english(**options: Any) -> WordTokenizer:
    return WordTokenizer(Vocabulary([*SPECIAL, *ENGLISH]), language="en", **options)


def french(**options: Any) -> WordTokenizer:
    return WordTokenizer(Vocabulary([*SPECIAL, *FRENCH]), language="fr", **options)


def with_alternatives(translation: Translation) -> list[Translation]:
    """A translation and the others of its n-best list."""
    return [translation, *translation.alternatives]


def toy_model(
    source: Any, target: Any, model_class: type = RNNSearch, seed: int = 7, **options: Any
) -> Any:
    """A model whose weights are large enough to prefer some words."""
    model = model_class(
        source.vocabulary_size,
        target.vocabulary_size,
        units=8,
        embedding_dim=6,
        maxout_units=4,
        **options,
    )
    return randomized(model, seed, scale=0.7)


def toy_translator(
    source: Any,
    target: Any,
    *more: Any,
    model_class: type = RNNSearch,
    seed: int = 7,
    **options: Any,
) -> Translator:
    """A translator with a `toy_model`."""
    model = toy_model(source, target, model_class, seed)
    return Translator(model, source, target, *more, **options)


def translated(translator: Translator, decoding: Decoding, sentences: Sequence[str]) -> Translated:
    """What the translator's graph makes of sentences, in tensors."""
    graph = translator.graph
    source, reading = graph.read(tf.constant(sentences, tf.string))
    return graph.translate(source, decoding, reading.words)


def search_eagerly(patch: pytest.MonkeyPatch, max_length: int | None = None) -> None:
    """Translators search and score without tracing a graph, maybe up to a length.

    For a few short sentences tracing costs more than the search.
    """
    patch.setattr(TranslationGraph, "function", lambda graph, key, function, *inputs: function)
    search = TranslationGraph.search

    def short_search(
        graph: Any, source: Any, decoding: Decoding, *more: Any, **options: Any
    ) -> Any:
        return search(graph, source, replace(decoding, max_length=max_length), *more, **options)

    if max_length is not None:
        patch.setattr(TranslationGraph, "search", short_search)
