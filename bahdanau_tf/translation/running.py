"""Runs sentences through a graph and makes the results.

A sentence may be bytes, which need not be UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import tensorflow as tf

from bahdanau_tf.models.encoder_decoder import ForcedRows, forced_rows
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import BATCH_SIZE
from bahdanau_tf.search import Constraint, SearchResult
from bahdanau_tf.system.device import operations_at_once
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.text import Reading, Tokenizer
from bahdanau_tf.text.rows import replaced_offsets
from bahdanau_tf.translation.batches import Sentences, columns_of, decoded, in_batches
from bahdanau_tf.translation.graph import STRINGS, Sources, Translated, TranslationGraph
from bahdanau_tf.translation.result import Scored, Tokens, Translation, Translations


def translate(
    graph: TranslationGraph,
    sentences: Sentences,
    decoding: Decoding,
    batch_size: int = BATCH_SIZE,
    prefixes: Sentences | None = None,
    constraints: Sequence[Constraint] = (),
    attention: ForcedRows | None = None,
) -> Translations:
    """Translates sentences; as `Translator.translate`."""
    columns = columns_of(sentences, prefixes)
    work = partial(_translate_batch, graph, decoding, tuple(constraints), attention)
    rows = in_batches("Translator.translate", columns, work, batch_size, operations_at_once())
    return Translations(rows)


def score(
    graph: TranslationGraph, sources: Sentences, targets: Sentences, batch_size: int = BATCH_SIZE
) -> list[Scored]:
    """Scores given translations; as `Translator.score`."""
    columns = {"sources": sources, "targets": targets}
    work = partial(_score_batch, graph)
    return in_batches("Translator.score", columns, work, batch_size, operations_at_once())


def align(
    graph: TranslationGraph, sources: Sentences, targets: Sentences, batch_size: int = BATCH_SIZE
) -> Translations:
    """Aligns given translations; as `Translator.align`."""
    if not graph.model.has_alignment:
        raise Refusal(
            "Translator.align",
            f"{type(graph.model).__name__} has no attention, wanted a model with attention",
        )
    columns = {"sources": sources, "targets": targets}
    work = partial(_align_batch, graph)
    rows = in_batches("Translator.align", columns, work, batch_size, operations_at_once())
    return Translations(rows)


def _score_batch(
    graph: TranslationGraph, sources: Sentences, targets: Sentences
) -> Iterator[Scored]:
    run = graph.function("score", graph.score, STRINGS, STRINGS)
    ids, log_probs = run(tf.constant(sources), tf.constant(targets))
    tokens = graph.target_text.ids_to_tokens(ids).numpy()
    ids, log_probs = ids.numpy(), log_probs.numpy()
    for row, length in enumerate(np.count_nonzero(ids, axis=1)):
        yield Scored(
            log_prob=float(log_probs[row].sum()),
            tokens=[decoded(token) for token in tokens[row, : length - 1]],
            token_log_probs=log_probs[row, :length],
        )


def _align_batch(
    graph: TranslationGraph, sources: Sentences, targets: Sentences
) -> Iterator[Translation]:
    run = graph.function("align", graph.align, STRINGS, STRINGS)
    weights: tf.Tensor  # as the model has an alignment
    reading, target, totals, weights = run(tf.constant(sources), tf.constant(targets))
    words = _tokens(graph.source_text, sources, reading)
    written = _tokens(graph.target_text, targets, target)
    totals = totals.numpy().tolist()
    for row, (x, y) in enumerate(zip(words, written, strict=True)):
        own, total = weights[row].numpy()[: len(y.places)], totals[row]
        yield x.translated(y, own, score=total, log_prob=total)


def _translate_batch(
    graph: TranslationGraph,
    decoding: Decoding,
    constraints: tuple[Constraint, ...],
    attention: ForcedRows | None,
    sentences: Sentences,
    prefixes: Sentences | None = None,
) -> Iterator[Translation]:
    source, reading = graph.function("read", graph.read, STRINGS)(tf.constant(sentences))
    tokens = [*_tokens(graph.source_text, sentences, reading)]
    rows = None if attention is None else forced_rows(graph.model, attention, tokens[0].places)

    def run(source: Sources, words: tf.RaggedTensor, *starts: tf.Tensor) -> Translated:
        prefix = graph.target_text.read(*starts) if starts else None
        return graph.translate(source, decoding, words, prefix, constraints, attention=rows)

    texts = [] if prefixes is None else [tf.constant(prefixes)]
    search = run  # eagerly with attention: other rows would need another graph
    if rows is None:
        ids = tf.nest.map_structure(lambda _: tf.TensorSpec([None, None], tf.int32), source)
        words = tf.RaggedTensorSpec([None, None], tf.string, 1, reading.words.row_splits.dtype)
        key = (decoding, constraints, len(texts))
        search = graph.function(key, run, ids, words, *[STRINGS] * len(texts))
    translated = search(source, reading.words, *texts)
    return _translations(graph, tokens, translated, [sentences, prefixes or ()])


def _translations(
    graph: TranslationGraph,
    sources: Sequence[Tokens],
    translated: Translated,
    inputs: Sequence[Sentences],
) -> Iterator[Translation]:
    """The results of a search; `inputs` are the sentences, and the prefixes."""
    texts = translated.texts.numpy()
    places = _places(texts.ravel(), translated.starts, translated.ends, inputs)
    spans = [[*zip(*row, strict=True)] for row in zip(*places, strict=True)]
    result = SearchResult(*(None if x is None else x.numpy() for x in translated.result))
    n_best = texts.shape[1]
    for row, source in enumerate(sources):
        if not source.tokens:
            yield Translation(source.text)
            continue
        translations = [
            source.translated(
                Tokens.cut(
                    decoded(texts[row, n]), spans[row * n_best + n], graph.target_text.reverse
                ),
                None if result.weights is None else result.weights[row, n, :length],
                score=float(result.scores[row, n]),
                log_prob=float(result.log_probs[row, n]),
                finished=bool(result.finished[row, n]),
            )
            for n, length in enumerate(result.lengths[row])
            if length > 0
        ]
        if not translations:
            raise Refusal(
                "Translator.translate",
                f"no hypothesis of {source.text!r} has a "
                "finite score; are all weights of the model finite?",
            )
        yield replace(translations[0], alternatives=translations[1:])


def _tokens(text: Tokenizer, sentences: Sentences, reading: Reading) -> Iterator[Tokens]:
    """The tokens of sentences that `text` has read."""
    rows = reading.words.to_list(), *_places(sentences, reading.starts, reading.ends, [sentences])
    for sentence, pieces, starts, ends in zip(sentences, *rows, strict=True):
        places = [*range(len(pieces))][:: -1 if text.reverse else 1]
        yield Tokens(
            decoded(sentence),
            [decoded(pieces[place]) for place in places],
            [(starts[place], ends[place]) for place in places],
            [*places, len(pieces)],
        )


def _places(
    strings: Sentences, starts: tf.RaggedTensor, ends: tf.RaggedTensor, inputs: Sequence[Sentences]
) -> tuple[list[list[int]], list[list[int]]]:
    """Offsets in strings, which come from inputs, as those in what `decoded` makes of them."""
    if any(isinstance(string, bytes) for column in inputs for string in column):
        data = tf.constant(strings, tf.string)
        starts = replaced_offsets(data, starts)
        ends = replaced_offsets(data, ends)
    return starts.to_list(), ends.to_list()
