"""Runs sentences through a graph in batches and makes the results.

A sentence may be bytes, which need not be UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import BATCH_SIZE
from bahdanau_tf.search import Constraint
from bahdanau_tf.search import SearchResult
from bahdanau_tf.text.protocol import Tokenizer
from bahdanau_tf.translation.batches import Sentences
from bahdanau_tf.translation.batches import in_batches
from bahdanau_tf.translation.graph import TranslationGraph
from bahdanau_tf.translation.result import Scored
from bahdanau_tf.translation.result import Translation

Offsets = list[tuple[int, int]]


def translate(
    graph: TranslationGraph,
    sentences: Sentences,
    decoding: Decoding,
    batch_size: int = BATCH_SIZE,
    prefixes: Sentences | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[Translation]:
    """Translates sentences; as `Translator.translate`."""
    columns = {"sentences": sentences}
    if prefixes is not None:
        columns["prefixes"] = prefixes
    work = partial(_translate_batch, graph, decoding, tuple(constraints))
    return in_batches("Translator.translate", columns, work, batch_size)


def score(
    graph: TranslationGraph,
    sources: Sentences,
    targets: Sentences,
    batch_size: int = BATCH_SIZE,
) -> list[Scored]:
    """Scores given translations; as `Translator.score`."""
    columns = {"sources": sources, "targets": targets}
    work = partial(_score_batch, graph)
    return in_batches("Translator.score", columns, work, batch_size)


def align(
    graph: TranslationGraph,
    sources: Sentences,
    targets: Sentences,
    batch_size: int = BATCH_SIZE,
) -> list[Translation]:
    """Aligns given translations; as `Translator.align`."""
    if not graph.model.has_alignment:
        raise ValueError(
            f"Translator.align: {type(graph.model).__name__} has no attention, "
            "wanted a model with attention"
        )
    columns = {"sources": sources, "targets": targets}
    work = partial(_align_batch, graph)
    return in_batches("Translator.align", columns, work, batch_size)


def _score_batch(
    graph: TranslationGraph, sources: Sentences, targets: Sentences
) -> Iterator[Scored]:
    run = graph.function("score", graph.score_graph, 2)
    ids, log_probs = run(tf.constant(sources), tf.constant(targets))
    tokens = graph.target_text.ids_to_tokens(ids).numpy()
    ids, log_probs = ids.numpy(), log_probs.numpy()
    for row, length in enumerate(np.count_nonzero(ids, axis=1)):
        yield Scored(
            log_prob=float(log_probs[row].sum()),
            tokens=[decoded(one) for one in tokens[row, : length - 1]],
            token_log_probs=log_probs[row, :length],
        )


def _align_batch(
    graph: TranslationGraph, sources: Sentences, targets: Sentences
) -> Iterator[Translation]:
    run = graph.function("align", graph.align_graph, 2)
    weights: tf.Tensor  # as the model has an alignment
    _, log_probs, weights = run(tf.constant(sources), tf.constant(targets))
    words = _tokens(graph.source_text, sources)
    written = _tokens(graph.target_text, targets)
    totals = tf.reduce_sum(log_probs, axis=1).numpy().tolist()
    for row, (x, y) in enumerate(zip(words, written, strict=True)):
        yield Translation(
            source=x.text,
            text=y.text,
            tokens=y.tokens,
            score=totals[row],
            log_prob=totals[row],
            source_tokens=x.tokens,
            source_offsets=x.offsets,
            target_offsets=y.offsets,
            weights=weights[row].numpy()[y.places][:, x.places],
        )


def _translate_batch(
    graph: TranslationGraph,
    decoding: Decoding,
    constraints: tuple[Constraint, ...],
    *rows: Sentences,
) -> Iterator[Translation]:
    """Translates a batch; `rows` are its sentences and prefixes, if any."""
    found = graph.function(
        (decoding, constraints, len(rows)),
        lambda text, prefix=None: graph.translate_graph(
            text, decoding, prefix, constraints
        ),
        len(rows),
    )(*(tf.constant(one, tf.string) for one in rows))
    texts = found.texts.numpy()
    starts, ends = found.starts.to_list(), found.ends.to_list()
    result = SearchResult(
        *(None if one is None else one.numpy() for one in found.result)
    )
    n_best = texts.shape[1]
    for row, source in enumerate(_tokens(graph.source_text, rows[0])):
        if not source.tokens:
            yield Translation(source.text)
            continue
        translations = [
            _translation(
                graph.target_text,
                source,
                texts[row, n],
                _pairs(starts[row * n_best + n], ends[row * n_best + n]),
                SearchResult(
                    *(None if one is None else one[row, n] for one in result)
                ),
            )
            for n in range(n_best)
            if result.lengths[row, n] > 0
        ]
        if not translations:
            raise ValueError(
                f"Translator.translate: no hypothesis of {source.text!r} has a "
                "finite score; are all weights of the model finite?"
            )
        yield replace(translations[0], alternatives=translations[1:])


def _translation(
    target: Tokenizer,
    source: _Tokens,
    text: bytes,
    offsets: Offsets,
    found: SearchResult,
) -> Translation:
    """One hypothesis; the arrays of `found` have no axes B and N."""
    places = _text_order(target, len(offsets))
    offsets = [offsets[place] for place in places]
    weights = found.weights
    if weights is not None:
        end = [*range(len(places), int(found.lengths))]
        weights = weights[[*places, *end]][:, source.places]
    return Translation(
        source=source.text,
        text=decoded(text),
        tokens=[decoded(text[start:end]) for start, end in offsets],
        score=float(found.scores),
        log_prob=float(found.log_probs),
        finished=bool(found.finished),
        source_tokens=source.tokens,
        source_offsets=source.offsets,
        target_offsets=in_decoded(text, offsets),
        weights=weights,
    )


class _Tokens(NamedTuple):
    """The tokens of a sentence.

    Attributes:
        text: The sentence.
        tokens: As they stand in it, in its order.
        offsets: (start, end) of each, in bytes of `text` in UTF-8.
        places: The place of each among the ids, and that of the end symbol.
    """

    text: str
    tokens: list[str]
    offsets: Offsets
    places: list[int]


def _tokens(text: Tokenizer, sentences: Sentences) -> Iterator[_Tokens]:
    found = text.tokenize_with_offsets(tf.constant(sentences, tf.string))
    rows = (one.to_list() for one in found)
    for sentence, pieces, starts, ends in zip(sentences, *rows, strict=True):
        places = _text_order(text, len(pieces))
        offsets = [_pairs(starts, ends)[place] for place in places]
        if isinstance(sentence, bytes):
            offsets = in_decoded(sentence, offsets)
            sentence = decoded(sentence)
        words = [decoded(pieces[place]) for place in places]
        yield _Tokens(sentence, words, offsets, [*places, len(pieces)])


def _text_order(text: Tokenizer, count: int) -> list[int]:
    """The place among the ids of each token of a text."""
    return [*range(count)][:: -1 if text.reverse else 1]


def _pairs(starts: list[int], ends: list[int]) -> Offsets:
    return list(zip(starts, ends, strict=True))


def decoded(string: bytes) -> str:
    """Decodes UTF-8; invalid bytes become U+FFFD."""
    return string.decode("utf-8", "replace")


def in_decoded(string: bytes, offsets: Offsets) -> Offsets:
    """Offsets in a string as those in what `decoded` makes of it, in UTF-8."""
    if decoded(string).encode() == string:
        return offsets
    places = {0: 0}
    sure = 0  # a place from which on the bytes are decoded by themselves
    for place in sorted({place for pair in offsets for place in pair}):
        more = len(decoded(string[sure:place]).encode())
        places[place] = places[sure] + more
        if string[place - 1 : place].isascii():
            sure = place
    return [(places[start], places[end]) for start, end in offsets]
