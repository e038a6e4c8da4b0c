"""How much of a request is read and written, whatever it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace
from typing import Any
from typing import TypeVar

import tensorflow as tf

from bahdanau_tf.text.rows import append_end
from bahdanau_tf.text.rows import as_strings
from bahdanau_tf.text.rows import surfaces
from bahdanau_tf.translation_graph import TranslationGraph

BYTES_PER_TOKEN = 64  # no language's words are as long, on average
Graph = TypeVar("Graph", bound=TranslationGraph)


@dataclass(frozen=True)
class Limits:
    """The longest input and output of a served model, and how many of them.

    Lengths count tokens, end symbols included.

    Attributes:
        max_source_length: S; of a longer sentence the begin is translated.
            Nor are more than 64 S bytes of it read.
        max_target_length: T; a longer translation is cut.
        n_best: N translations of the signature `n_best`, at most the beam
            size; 0 for those that the decoding returns, or if that is but
            one, for the whole beam.
    """

    max_source_length: int = 128
    max_target_length: int = 128
    n_best: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("max_source_length", 2),
            ("max_target_length", 2),
            ("n_best", 0),
        ):
            if getattr(self, name) < least:
                raise ValueError(
                    f"Limits: {name} is {getattr(self, name)}, wanted {least} "
                    "or more"
                )


class LimitedText(tf.Module):
    """A tokenizer that reads the begin of what is too long.

    Bytes are cut first, so that a line of megabytes costs little, then tokens.
    It does for a `TranslationGraph` what the tokenizer does; offsets remain
    those of the whole string.

    Args:
        text: The tokenizer.
        max_length: The most ids of a row, end symbol included.
    """

    def __init__(self, text: Any, max_length: int) -> None:
        super().__init__()
        self.text = text
        self.max_length = max_length
        self.max_bytes = BYTES_PER_TOKEN * max_length
        self.reverse = text.reverse
        self.vocabulary_size = text.vocabulary_size
        self.pad_id, self.unk_id = text.pad_id, text.unk_id
        self.eos_id = text.eos_id
        self.ids_to_tokens = text.ids_to_tokens
        # Functions, as the signatures share them; they are large.
        self._ids = self._function(text.tokenize)
        # Without the words, which are never cut out for tokens left out.
        self._places = self._function(
            lambda strings: text.tokenize_with_offsets(strings)[1:]
        )
        self.detokenize_with_offsets = tf.function(
            text.detokenize_with_offsets, autograph=False
        )

    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Turns strings into ids, at most `max_length`: ragged [B, (T)]."""
        ids = self._ids(as_strings(strings))
        return append_end(self._first(ids[:, :-1]), self.eos_id)

    def tokenize_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Cuts the strings where `tokenize` does.

        What is no UTF-8 in a token becomes U+FFFD: a server writes its JSON
        as it is given the strings.
        """
        strings = as_strings(strings)
        starts, ends = (self._first(rows) for rows in self._places(strings))
        begin = first_bytes(strings, self.max_bytes)
        pieces = surfaces(begin, starts, ends)
        return pieces.with_values(valid_utf8(pieces.values)), starts, ends

    def is_cut(self, strings: tf.Tensor) -> tf.Tensor:
        """Whether a string is read in part only: bool [B]."""
        ids = self._ids(as_strings(strings))
        return (ids.row_lengths() > self.max_length) | (
            tf.strings.length(strings) > self.max_bytes
        )

    def _function(self, tokenize: Callable[..., Any]) -> Any:
        return tf.function(
            lambda strings: tokenize(first_bytes(strings, self.max_bytes)),
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )

    def _first(self, words: tf.RaggedTensor) -> tf.RaggedTensor:
        """The words that come first in the text, with room for the end."""
        count = self.max_length - 1
        return words[:, -count:] if self.reverse else words[:, :count]


def first_bytes(strings: tf.Tensor, limit: int) -> tf.Tensor:
    """Cuts strings, at most three bytes early, between two characters.

    Args:
        strings: string [B].
        limit: The most bytes, 3 or more.

    Returns:
        string [B].
    """
    begin = tf.strings.substr(strings, 0, limit + 1)
    data = tf.io.decode_raw(begin, tf.uint8, fixed_length=limit + 1)
    # From the byte after the limit backwards: does a character go on there?
    goes_on = (data[:, limit - 3 :][:, ::-1] & 0xC0) == 0x80
    back = tf.reduce_sum(tf.math.cumprod(tf.cast(goes_on, tf.int32), 1), 1)
    back = tf.where(back > 3, 0, back)  # such a thing is no character
    return tf.strings.substr(begin, tf.zeros_like(back), limit - back)


def valid_utf8(strings: tf.Tensor) -> tf.Tensor:
    """Puts U+FFFD for bytes that are no UTF-8."""
    return tf.strings.unicode_transcode(strings, "UTF-8", "UTF-8", "replace")


def limited(graph: Graph, limits: Limits) -> Graph:
    """The same translator with limits: what the exported graph computes."""
    return type(graph)(
        graph.model,
        [
            LimitedText(text, limits.max_source_length)
            for text in graph.source_texts
        ],
        LimitedText(graph.target_text, limits.max_target_length),
        replace(
            graph.decoding,
            max_length=min(graph.decoding.max_length, limits.max_target_length),
        ),
        graph.dictionary,
        graph.lexicon,
    )


def n_best_of(graph: TranslationGraph, limits: Limits) -> int:
    """N of the signature `n_best`.

    Raises:
        ValueError: It is more than the beam holds.
    """
    beam_size, asked = graph.decoding.beam_size, graph.decoding.n_best
    if limits.n_best > beam_size:
        raise ValueError(
            f"Limits: n_best is {limits.n_best}, wanted at most the beam size, "
            f"{beam_size}"
        )
    return limits.n_best or (asked if asked > 1 else beam_size)
