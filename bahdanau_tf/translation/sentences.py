"""Sentences through a graph, batch by batch, and what is known of each.

A sentence may be bytes, which need not be UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import tensorflow as tf

from bahdanau_tf.options import Decoding
from bahdanau_tf.search import Constraint
from bahdanau_tf.search import SearchResult
from bahdanau_tf.translation.batches import Sentences
from bahdanau_tf.translation.batches import in_batches
from bahdanau_tf.translation.batches import rows_of
from bahdanau_tf.translation.graph import TranslationGraph
from bahdanau_tf.translation.result import Scored
from bahdanau_tf.translation.result import Translation


def translate(
    graph: TranslationGraph,
    sentences: Sentences,
    decoding: Decoding,
    batch_size: int = 64,
    prefixes: Sentences | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[Translation]:
    """Translates sentences; as `Translator.translate`."""
    rows = rows_of(sentences, prefixes)
    return in_batches(
        lambda places: _translate_batch(
            graph,
            [[given[place] for place in places] for given in rows],
            decoding,
            tuple(constraints),
        ),
        [len(sentence) for sentence in sentences],
        batch_size,
    )


def score(
    graph: TranslationGraph,
    sources: Sentences,
    targets: Sentences,
    batch_size: int = 64,
) -> list[Scored]:
    """Scores given translations; as `Translator.score`."""
    if len(sources) != len(targets):
        raise ValueError(
            f"Translator.score: {len(sources)} sources and {len(targets)} "
            "targets, wanted as many"
        )
    return in_batches(
        lambda places: _score_batch(
            graph,
            [sources[place] for place in places],
            [targets[place] for place in places],
        ),
        [len(target) for target in targets],
        batch_size,
    )


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
            tokens=[_decoded(one) for one in tokens[row, : length - 1]],
            token_log_probs=log_probs[row, :length],
        )


def _translate_batch(
    graph: TranslationGraph,
    rows: Sequence[Sentences],
    decoding: Decoding,
    constraints: tuple[Constraint, ...],
) -> Iterator[Translation]:
    """Translates a batch: its sentences, and prefixes if there are any."""
    sentences, *others = (tf.constant(one, tf.string) for one in rows)
    found = graph.function(
        (decoding, constraints, len(rows)),
        lambda text, prefix=None: graph.translate_graph(
            text, decoding, prefix, constraints
        ),
        len(rows),
    )(sentences, *others)
    offsets = graph.source_text.tokenize_with_offsets(sentences)
    pieces, starts, ends = (ragged.to_list() for ragged in offsets)
    texts = found.texts.numpy()
    target_starts, target_ends = found.starts.to_list(), found.ends.to_list()
    result = SearchResult(
        *(None if one is None else one.numpy() for one in found.result)
    )
    n_best = texts.shape[1]
    for row, sentence in enumerate(rows[0]):
        source = sentence if isinstance(sentence, str) else _decoded(sentence)
        if not pieces[row]:
            yield Translation(source)
            continue
        translations = [
            _translation(
                source=source,
                pieces=pieces[row],
                offsets=_pairs(starts[row], ends[row]),
                turned=graph.source_text.reverse,
                text=texts[row, n],
                target_offsets=_pairs(
                    target_starts[row * n_best + n],
                    target_ends[row * n_best + n],
                ),
                found=SearchResult(
                    *(None if one is None else one[row, n] for one in result)
                ),
            )
            for n in range(n_best)
            if result.lengths[row, n] > 0
        ]
        yield replace(translations[0], alternatives=translations[1:])


def _translation(
    source: str,
    pieces: list[bytes],
    offsets: list[tuple[int, int]],
    turned: bool,
    text: bytes,
    target_offsets: list[tuple[int, int]],
    found: SearchResult,
) -> Translation:
    """One hypothesis, NumPy arrays without their first two axes."""
    length, words = int(found.lengths), len(pieces)
    # Columns of the weights in the order of the text, and the end symbol.
    columns = [*range(words)][:: -1 if turned else 1]
    weights = found.weights
    if weights is not None:
        weights = weights[:length][:, [*columns, words]]
    return Translation(
        source=source,
        text=_decoded(text),
        tokens=[_decoded(text[start:end]) for start, end in target_offsets],
        score=float(found.scores),
        log_prob=float(found.log_probs),
        finished=bool(found.finished),
        source_tokens=[_decoded(pieces[column]) for column in columns],
        source_offsets=[offsets[column] for column in columns],
        target_offsets=target_offsets,
        weights=weights,
    )


def _pairs(starts: list[int], ends: list[int]) -> list[tuple[int, int]]:
    return list(zip(starts, ends, strict=True))


def _decoded(string: bytes) -> str:
    """Decodes UTF-8 as far as it is UTF-8."""
    return string.decode("utf-8", "replace")
