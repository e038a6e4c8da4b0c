"""Limits of requests and replies, for input of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.models.stepwise import TranslationModel
from bahdanau_tf.system.files import BYTES_PER_TOKEN, LONGEST_SOURCE
from bahdanau_tf.system.ranges import OptionError
from bahdanau_tf.text.rows import append_end, as_strings, surfaces
from bahdanau_tf.text.tokenizer import Reading, Tokenizer, Written
from bahdanau_tf.translation import TranslationGraph
from bahdanau_tf.translation.graph import Sources, joined

WORD_BYTES = 256  # of a word that is returned, or copied for an unknown one
GROUP_BYTES = 2**14  # bytes of text that are tokenised at once
Columns = tuple[list[tf.RaggedTensor], list[tf.Tensor]]
Read = Callable[[tf.Tensor], Columns]


@dataclass(frozen=True)
class Limits:
    """The longest input and output of a served model, and the size of n-best.

    Lengths count tokens, end symbols included.

    Attributes:
        max_source_length: S; only the start of a longer sentence is translated, and only its first
            64 S bytes are read.
        max_target_length: T; a longer translation is cut.
        n_best: N, the number of translations of the signature `n_best`, at most the beam size; 0
            for the number in the decoding, or if that is 1, for the beam size.

    Raises:
        ValueError: A value is too small.
    """

    max_source_length: int = LONGEST_SOURCE
    max_target_length: int = 128
    n_best: int = 0

    def __post_init__(self) -> None:
        for name, least in (("max_source_length", 2), ("max_target_length", 2), ("n_best", 0)):
            if getattr(self, name) < least:
                raise OptionError("Limits", name, getattr(self, name), f"{least} or more")


class CutReading(NamedTuple):
    """What is read of texts within limits.

    Of each word only the first 256 bytes are returned, since it may be copied for each unknown word
    of a translation. Invalid UTF-8 in it is U+FFFD: a server writes strings into JSON unchecked.
    """

    reading: Reading
    cut: tf.Tensor  # bool [B], whether only a part of the text is read
    word_cut: tf.Tensor  # bool [B], whether a word of the text is returned only in part


class LimitedText(Tokenizer):
    """A tokenizer that reads only the start of a string that is too long.

    Bytes are cut first, so that a line of megabytes costs little, then tokens, to `max_length` ids
    with the end symbol. A `TranslationGraph` can use it in place of the tokenizer; offsets are
    those in the whole string.
    """

    def __init__(self, text: Tokenizer, max_length: int) -> None:
        super().__init__()
        self.text = text
        self.max_length = max_length
        self.max_bytes = BYTES_PER_TOKEN * max_length
        self.reverse = text.reverse
        self.vocabulary_size = text.vocabulary_size
        self.pad_id, self.unk_id, self.eos_id = text.pad_id, text.unk_id, text.eos_id
        # tf.functions, so that signatures share these large graphs.
        self._first = tf.function(self._read_first, autograph=False)
        self._ids = self._function(self._ids_of, [tf.int32], 1)
        self._words = self._function(self._words_of, [tf.int32, tf.string, tf.int32, tf.int32], 2)
        self._detokenize = tf.function(text.detokenize_with_offsets, autograph=False)

    def ids_to_tokens(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """As that of the tokenizer."""
        return self.text.ids_to_tokens(ids)

    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Turns strings into at most `max_length` ids: ragged [B, (T)]."""
        return self.read_ids(strings)[0]

    def read(self, strings: tf.Tensor) -> Reading:
        """What is read of strings within the limits."""
        return self.read_words(strings).reading

    def read_ids(self, strings: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """`tokenize`, and whether only a part of each string is read."""
        (ids,), (cut,) = self._ids(as_strings(strings))
        return self._whole(strings, ids, cut)

    def read_words(self, strings: tf.Tensor) -> CutReading:
        """`read`, and what of each string is not read."""
        (ids, *located), (cut, word_cut) = self._words(as_strings(strings))
        ids, cut = self._whole(strings, ids, cut)
        return CutReading(Reading(ids, *located), cut, word_cut)

    def detokenize_with_offsets(
        self,
        ids: tf.Tensor | tf.RaggedTensor,
        replacements: tf.Tensor | tf.RaggedTensor | None = None,
    ) -> Written:
        """As that of the tokenizer; one graph with and without replacements."""
        if replacements is None:
            replacements = tf.fill(tf.shape(ids), "")
        written: Written = self._detokenize(ids, replacements)
        return written

    def _whole(
        self, strings: tf.Tensor, ids: tf.RaggedTensor, cut: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The ids with their end symbols, and whether bytes or ids are cut."""
        cut |= tf.strings.length(strings) > self.max_bytes
        return append_end(ids, self.eos_id), cut

    def _function(self, read: Read, dtypes: Sequence[tf.DType], truths: int) -> Read:
        function: Read = tf.function(
            lambda strings: in_groups(read, first_bytes(strings, self.max_bytes), dtypes, truths),
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )
        return function

    def _read_first(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
        """The first ids and where their words are, and whether there are more."""
        ids, _, starts, ends = self.text.read(strings)
        ids = ids[:, :-1]
        count = self.max_length - 1  # with room for the end symbol
        some = slice(-count, None) if self.reverse else slice(count)
        return ids[:, some], starts[:, some], ends[:, some], ids.row_lengths() > count

    def _ids_of(self, strings: tf.Tensor) -> Columns:
        ids, _, _, cut = self._first(strings)
        return [ids], [cut]

    def _words_of(self, strings: tf.Tensor) -> Columns:
        ids, starts, ends, cut = self._first(strings)
        words, ends, word_cut = _cut_out(strings, starts, ends)
        return [ids, words, starts, ends], [cut, word_cut]


@tf.function(autograph=False)  # one graph for all tokenizers
def _cut_out(
    strings: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
    """The words at some places, their ends, and whether a word of a row is cut."""
    words = surfaces(strings, starts, ends)
    short = first_bytes(words.values, WORD_BYTES)
    last = starts.values + tf.strings.length(short)
    cut = tf.reduce_any(ends.with_values(last < ends.values), axis=1)
    return words.with_values(valid_utf8(short)), ends.with_values(last), cut


def in_groups(read: Read, strings: tf.Tensor, dtypes: Sequence[tf.DType], truths: int) -> Columns:
    """Reads strings in groups, to limit memory: ragged [B, (T)]; bool [B].

    A tokenizer needs about 300 bytes of memory for each byte of its input. `read` returns ragged
    tensors of these dtypes, with rows of the same lengths, and so many vectors of bool.
    """
    count = tf.size(strings)
    lengths = tf.concat([[1], tf.strings.length(strings)], 0)
    size = tf.maximum(GROUP_BYTES // tf.reduce_max(lengths), 1)
    groups = tf.maximum(-(-count // size), 1)  # an empty one for no strings

    def body(i: tf.Tensor, arrays: list[tf.TensorArray]) -> tuple[tf.Tensor, list[tf.TensorArray]]:
        rows, checks = read(strings[i * size : (i + 1) * size])
        parts = [*(column.values for column in rows), rows[0].row_lengths(), *checks]
        return i + 1, [array.write(i, part) for array, part in zip(arrays, parts, strict=True)]

    arrays = [
        tf.TensorArray(dtype, groups, infer_shape=False, element_shape=[None])
        for dtype in (*dtypes, tf.int64, *[tf.bool] * truths)
    ]
    start = tf.constant(0), arrays
    _, arrays = tf.while_loop(lambda i, _: i < groups, body, start, parallel_iterations=1)
    whole = [array.concat() for array in arrays]
    values, (lengths, *checks) = whole[: len(dtypes)], whole[len(dtypes) :]
    of_rows = partial(tf.RaggedTensor.from_row_lengths, row_lengths=lengths, validate=False)
    return [*map(of_rows, values)], checks


def first_bytes(strings: tf.Tensor, limit: int) -> tf.Tensor:
    """Cuts strings [B] to `limit` bytes, 3 or more, or up to 3 fewer, between characters."""
    begin = tf.strings.substr(strings, 0, limit + 1)
    # Only the last bytes: of whole rows a short one would take as many.
    place = tf.minimum(tf.strings.length(begin), limit - 3)
    last = tf.strings.substr(begin, place, tf.fill(tf.shape(place), 4))
    data = tf.io.decode_raw(last, tf.uint8, fixed_length=4)
    # From the byte after the limit backwards: is it a continuation byte?
    continues = (data[:, ::-1] & 0xC0) == 0x80
    back = tf.reduce_sum(tf.math.cumprod(tf.cast(continues, tf.int32), 1), 1)
    back = tf.where(back > 3, 0, back)  # no character has so many
    return tf.strings.substr(begin, tf.zeros_like(back), limit - back)


def valid_utf8(strings: tf.Tensor) -> tf.Tensor:
    """Replaces bytes that are not valid UTF-8 by U+FFFD."""
    return tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", "replace")


class LimitedGraph(TranslationGraph):
    """The same translator with limits, as it is exported."""

    source_texts: tuple[LimitedText, ...]
    target_text: LimitedText

    def __init__(
        self, graph: TranslationGraph, limits: Limits, model: TranslationModel | None = None
    ) -> None:
        most = min(graph.decoding.max_length, limits.max_target_length)
        super().__init__(
            model or graph.model,
            [LimitedText(text, limits.max_source_length) for text in graph.source_texts],
            LimitedText(graph.target_text, limits.max_target_length),
            replace(graph.decoding, max_length=most),
            graph.dictionary,
            graph.lexicon,
        )

    @property
    def copies(self) -> bool:
        """Whether words of the source replace unknown ones."""
        return self.decoding.unknown == "replace"

    def read_ids(self, strings: tf.Tensor) -> tuple[Sources, tf.Tensor]:
        """The ids of all sources, and whether a string is read only in part."""
        return _all_sources([text.read_ids(strings) for text in self.source_texts])

    def read_words(self, strings: tf.Tensor) -> tuple[Sources, tf.Tensor, Reading]:
        """`read_ids`, and all that is read of source 0; a word counts if it is copied."""
        first, *others = self.source_texts
        reading, cut, word_cut = first.read_words(strings)
        if self.copies:
            cut |= word_cut
        rest = [text.read_ids(strings) for text in others]
        return *_all_sources([(reading.ids, cut), *rest]), reading

    def is_cut(self, strings: tf.Tensor) -> tf.Tensor:
        """Whether each string is read only in part: bool [B]."""
        return (self.read_words if self.copies else self.read_ids)(strings)[1]


def _all_sources(sources: Sequence[tuple[tf.RaggedTensor, tf.Tensor]]) -> tuple[Sources, tf.Tensor]:
    ids, cut = zip(*sources, strict=True)
    return joined(ids), tf.reduce_any(tf.stack(cut), axis=0)


def n_best_of(graph: TranslationGraph, limits: Limits) -> int:
    """N of the signature `n_best`; raises ValueError if it is larger than the beam size."""
    beam_size, asked = graph.decoding.beam_size, graph.decoding.n_best
    if limits.n_best > beam_size and not graph.decoding.sampling:
        wanted = f"at most the beam size, {beam_size}"
        raise OptionError("Limits", "n_best", limits.n_best, wanted)
    return limits.n_best or (asked if asked > 1 else beam_size)
