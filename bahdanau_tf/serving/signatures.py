"""The signatures of a served translator: strings in, strings out.

    serving_default (text) -> translation, score, finished, truncated, confidence
    greedy (text)          -> translation, score, finished, truncated
    complete (text, prefix) -> translation, score, finished, truncated
    n_best (text)          -> translations, scores, finished, truncated
    align (text)           -> translation, finished, truncated, weights,
                              source_tokens, source_offsets, source_length,
                              target_tokens, target_offsets, target_length
    score (text, translation) -> log_prob, length, truncated

`complete` returns the best translation that begins with the prefix, which may be "".

Inputs are string [B]. The batch is the first dimension of every output; all other dimensions are
constants of the export, since a server that batches requests joins and splits along the first
dimension only. The result of a row does not depend on the other rows.

Lengths count the end symbol. In `align` it is an empty token after the last one, so that the
weights of a target token sum to 1 over `source_length` places; a translation that is not finished
has no end symbol. Other tokens may also be empty: pieces that add a space, bytes that are not the
last of a character. Tokens are in the order of the texts. Offsets (start, end) are in bytes. At
most 256 bytes of a source token are returned, or copied for an unknown word.

`finished`, bool [B], in `n_best` [B, N], is whether the end symbol was reached; otherwise the
translation was cut at the limit, and its score is that of this part. `truncated`, bool [B], is
whether a row was not translated (or scored) completely: because it, or a word to be copied,
exceeded a limit and was cut, or because its (first) translation is not finished.

`confidence`, float32 [B], is that of `Translation`; a text without words has 1. Only translators
that were trained with a dev text have it.

The N translations are the finished ones, best score first, then the unfinished ones, best score
first, so scores are not always in order. If there are fewer than N, the remaining ones are "" with
score -1e9, not finished. The translation of a text without words is "", with score 0, finished.
"""

from __future__ import annotations

from dataclasses import replace

import tensorflow as tf

from bahdanau_tf.models.scoring import log_probs_and_alignment
from bahdanau_tf.models.stored import StoredModel
from bahdanau_tf.serving.limits import LimitedGraph, Limits, n_best_of, valid_utf8
from bahdanau_tf.serving.requests import TARGET_INPUTS
from bahdanau_tf.text.rows import as_strings, surfaces, turned
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.translation import Translated, TranslationGraph
from bahdanau_tf.translation.graph import Sources, padded
from bahdanau_tf.translation.habits import Habits

SMALLEST = 1e-6  # between two quantiles
Outputs = dict[str, tf.Tensor]


def signatures(
    graph: TranslationGraph, limits: Limits, habits: Habits = Habits()
) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """A concrete function for each signature of a translator.

    All signatures but `greedy` use its decoding. Without attention there is no `align`, with a
    reversed target tokenizer no `complete`. Raises ValueError if the decoding needs something that
    the model does not have.
    """
    served = _Served(graph, limits, habits)
    functions = [served.serving_default, served.greedy, served.n_best, served.score]
    if graph.model.has_alignment:
        functions.append(served.align)
    if not graph.target_text.reverse:
        functions.append(served.complete)
    concrete = {}
    for function in functions:
        name = function.__name__
        inputs = ["text", *([TARGET_INPUTS[name]] if name in TARGET_INPUTS else [])]
        specs = [tf.TensorSpec([None], tf.string, name=text) for text in inputs]
        traced = tf.function(function, input_signature=specs, autograph=False)
        concrete[name] = traced.get_concrete_function()
    return concrete


class _Served:
    """The functions behind the signatures, with their names."""

    def __init__(self, graph: TranslationGraph, limits: Limits, habits: Habits) -> None:
        self.model = StoredModel(graph.model, graph.decoding.shortlist)
        self.graph = LimitedGraph(graph, limits, self.model)
        self.limits, self.habits = limits, habits
        self.count = n_best_of(graph, limits)
        # Graphs that signatures share.
        self.read = tf.function(self._read, autograph=False)
        self.best = tf.function(self._translated, autograph=False)

    def serving_default(self, text: tf.Tensor) -> Outputs:
        source, cut, words = self.read(text)
        translated = self.best(source, words, self._count(1))
        outputs = _first(translated, cut)
        if self.habits.lengths:
            outputs["confidence"] = _confidence(self.habits, translated)
        return outputs

    def greedy(self, text: tf.Tensor) -> Outputs:
        source, cut, words = self.read(text)
        best_words = self.graph.decoding.greedy()
        with self.model.loaded():
            translated = self.graph.translate(source, best_words, words, with_weights=False)
        return _first(translated, cut)

    def complete(self, text: tf.Tensor, prefix: tf.Tensor) -> Outputs:
        text, prefix = _of_equal_rows("complete", text=text, prefix=prefix)
        source, cut, words = self.read(text)
        start, start_cut, word_cut = self.graph.target_text.read_words(prefix)
        single = replace(self.graph.decoding, n_best=1)
        with self.model.loaded():
            translated = self.graph.translate(source, single, words, start, with_weights=False)
        return _first(translated, cut | start_cut | word_cut)

    def n_best(self, text: tf.Tensor) -> Outputs:
        source, cut, words = self.read(text)
        translated = self.best(source, words, self._count(self.count))
        shape = [None, self.count]
        return {
            "translations": tf.ensure_shape(translated.texts, shape),
            "scores": tf.ensure_shape(translated.result.scores, shape),
            "finished": tf.ensure_shape(translated.result.finished, shape),
            "truncated": _truncated(translated, cut),
        }

    def align(self, text: tf.Tensor) -> Outputs:
        source, cut, reading = self.graph.read_words(as_strings(text))
        copied = reading.words if self.graph.copies else None
        translated = self.best(source, copied, self._count(1))
        words, starts, ends = _in_text_order(self.graph.source_text, *reading[1:])
        first, last = _in_text_order(self.graph.target_text, translated.starts, translated.ends)
        width = self.limits.max_source_length
        height = self.limits.max_target_length
        finished = translated.result.finished[:, 0]
        ended = finished & (translated.result.tokens[:, 0, 0] != 0)  # not without words
        translation = translated.texts[:, 0]
        tokens = _tokens(translation, first, last)
        always = tf.ones_like(ended)
        return {
            "translation": translation,
            "finished": finished,
            "truncated": _truncated(translated, cut),
            "weights": self._weights(translated, _count(tokens), _count(words)),
            "source_tokens": words.to_tensor(shape=[None, width]),
            "source_offsets": _offsets(starts, ends, width, always),
            "source_length": _count(words) + 1,
            "target_tokens": tokens.to_tensor(shape=[None, height]),
            "target_offsets": _offsets(first, last, height, ended),
            "target_length": _count(tokens) + tf.cast(ended, tf.int32),
        }

    def score(self, text: tf.Tensor, translation: tf.Tensor) -> Outputs:
        text, translation = _of_equal_rows("score", text=text, translation=translation)
        source, cut = self.graph.read_ids(text)
        ids, target_cut = self.graph.target_text.read_ids(translation)
        target = padded(ids)
        with self.model.loaded():
            log_probs, _ = log_probs_and_alignment(self.model, source, target)
        return {
            "log_prob": tf.reduce_sum(log_probs, axis=1),
            "length": tf.math.count_nonzero(target, 1, dtype=tf.int32),
            "truncated": cut | target_cut,
        }

    def _read(self, text: tf.Tensor) -> tuple[Sources, tf.Tensor, tf.RaggedTensor | None]:
        """Ids, whether a text is read only in part, and words to be copied."""
        text = as_strings(text)
        if not self.graph.copies:
            return *self.graph.read_ids(text), None
        source, cut, reading = self.graph.read_words(text)
        return source, cut, reading.words

    def _translated(
        self, source: Sources, words: tf.RaggedTensor | None, n_best: int | tf.Tensor
    ) -> Translated:
        with self.model.loaded():
            return self.graph.translate(source, self.graph.decoding, words, n_best=n_best)

    def _count(self, n_best: int) -> int | tf.Tensor:
        """A number of translations, as an argument of `best`."""
        if self.graph.decoding.sampling:
            return n_best  # a graph for each: other numbers, other draws
        return tf.constant(n_best)

    def _weights(self, translated: Translated, rows: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
        """The soft alignment of so many tokens, in text order: [B, T, S]."""
        is_empty = translated.result.tokens[:, :1, :1] == 0
        weights: tf.Tensor = translated.result.weights
        weights = tf.where(is_empty, 0.0, weights[:, 0])
        if self.graph.target_text.reverse:
            weights = tf.reverse_sequence(weights, rows, seq_axis=1)
        if self.graph.source_text.reverse:
            weights = tf.reverse_sequence(weights, columns, seq_axis=2)
        size = self.limits.max_target_length, self.limits.max_source_length
        height, width = tf.unstack(size - tf.shape(weights)[1:])
        weights = tf.pad(weights, [[0, 0], [0, height], [0, width]])
        return tf.ensure_shape(weights, [None, *size])


def _first(translated: Translated, cut: tf.Tensor) -> Outputs:
    """The outputs of a signature for the best translation."""
    return {
        "translation": translated.texts[:, 0],
        "score": translated.result.scores[:, 0],
        "finished": translated.result.finished[:, 0],
        "truncated": _truncated(translated, cut),
    }


def _confidence(habits: Habits, translated: Translated) -> tf.Tensor:
    """Where log p(y | x) / |y| of each best translation is among the quantiles of its length."""
    lengths, scores = tf.constant(habits.lengths), tf.constant(habits.scores, tf.float32)
    result = translated.result
    own = result.lengths[:, 0]
    group = tf.math.count_nonzero(lengths < own[:, None], axis=1, dtype=tf.int32)
    quantiles = tf.gather(scores, tf.minimum(group, len(habits.lengths) - 1))
    means = result.log_probs[:, :1] / tf.cast(tf.maximum(own, 1), tf.float32)[:, None]
    steps = tf.maximum(quantiles[:, 1:] - quantiles[:, :-1], SMALLEST)
    passed = tf.clip_by_value((means - quantiles[:, :-1]) / steps, 0.0, 1.0)
    is_empty = result.tokens[:, 0, 0] == 0
    return tf.where(is_empty, 1.0, tf.reduce_mean(passed, axis=1))


def _in_text_order(text: Tokenizer, *tokens: tf.RaggedTensor) -> tuple[tf.RaggedTensor, ...]:
    """Turns values of ids, ragged [B, (T)], into the order of the text."""
    return tuple(turned(values) for values in tokens) if text.reverse else tokens


def _tokens(texts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.RaggedTensor:
    """Cuts out tokens row by row: `surfaces` needs 60 bytes for each byte."""

    def of_row(row: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        text, *spans = (column[tf.newaxis] for column in row)
        spans = [tf.RaggedTensor.from_tensor(column) for column in spans]
        return valid_utf8(surfaces(text, *spans).values)

    return tf.map_fn(
        of_row,
        (texts, starts, ends),
        parallel_iterations=1,
        fn_output_signature=tf.RaggedTensorSpec([None], tf.string, 0),
    )


def _of_equal_rows(signature: str, **inputs: tf.Tensor) -> list[tf.Tensor]:
    """Inputs that raise, in graph, if their numbers of rows differ."""
    first, second = (tf.size(as_strings(rows)) for rows in inputs.values())
    names = " and ".join(inputs)
    message = f"{signature}: {names} must have equal numbers of rows"
    check = tf.debugging.assert_equal(first, second, message)
    # Nothing may fail before it, in words of its own.
    with tf.control_dependencies([check]):
        return [tf.identity(rows) for rows in inputs.values()]


def _truncated(translated: Translated, cut: tf.Tensor) -> tf.Tensor:
    return cut | ~translated.result.finished[:, 0]


def _count(rows: tf.RaggedTensor) -> tf.Tensor:
    return tf.cast(rows.row_lengths(), tf.int32)


def _offsets(
    starts: tf.RaggedTensor, ends: tf.RaggedTensor, size: int, ended: tf.Tensor
) -> tf.Tensor:
    """Starts and ends, int32 [B, size, 2], 0 for no token.

    Rows that `ended` have the end symbol, empty, after the last token.
    """
    padded = tf.stack([rows.to_tensor(shape=[None, size]) for rows in (starts, ends)], axis=2)
    place_of_end = tf.where(ended, _count(starts), size)[:, None]
    is_end = tf.range(size) == place_of_end
    last = tf.reduce_max(padded, axis=[1, 2])
    return tf.where(is_end[..., None], last[:, None, None], padded)
