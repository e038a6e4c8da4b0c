"""What a translator needs of a tokenizer, in Python and in an export."""

from __future__ import annotations

import os
from typing import Protocol, runtime_checkable

import tensorflow as tf


@runtime_checkable
class Tokenizer(Protocol):
    """Strings to ids and back, in graph.

    Shapes and dtypes are those of `WordTokenizer`.

    Attributes:
        vocabulary_size: K.
        pad_id: 0.
        unk_id: Id of the unknown word.
        eos_id: Id of the end symbol, with which every row of ids ends.
        reverse: Whether ids are in the reverse order of the text.
    """

    vocabulary_size: int
    pad_id: int
    unk_id: int
    eos_id: int
    reverse: bool

    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """string [B] -> ids, ragged int32 [B, (T)]."""
        ...

    def tokenize_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """string [B] -> tokens, and the byte offsets of their starts, ends."""
        ...

    def detokenize_with_offsets(
        self,
        ids: tf.Tensor | tf.RaggedTensor,
        replacements: tf.Tensor | tf.RaggedTensor | None = None,
    ) -> tuple[tf.Tensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Ids int32 [B, T] -> strings, and the tokens' byte offsets.

        An unknown word is written as its replacement, if there is one.
        """
        ...

    def ids_to_tokens(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Ids -> tokens, string of the same shape."""
        ...


@runtime_checkable
class SavableTokenizer(Tokenizer, Protocol):
    """A tokenizer that a `Translator` compares with others, and saves."""

    def settings(self) -> dict[str, object]:
        """Class, options and SHA-256; two tokenizers are the same by them."""
        ...

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes what `load_text` reads into a folder."""
        ...
