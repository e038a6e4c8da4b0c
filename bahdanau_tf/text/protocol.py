"""What a translator asks of a tokenizer, here and in an exported graph."""

from __future__ import annotations

from typing import Any
from typing import Protocol
from typing import runtime_checkable

import tensorflow as tf


@runtime_checkable
class Tokenizer(Protocol):
    """Strings to ids and back, in graph.

    Shapes and dtypes are those of `WordTokenizer`; one that is saved with a
    translator has `settings`, `detokenize` and `save` besides.

    Attributes:
        vocabulary_size: K.
        pad_id: 0.
        unk_id: The unknown word.
        eos_id: The end symbol, with which every row of ids ends.
        reverse: Whether ids come in the opposite order of the text.
    """

    vocabulary_size: Any
    pad_id: int
    unk_id: int
    eos_id: int
    reverse: bool

    def tokenize(self, strings: Any) -> tf.RaggedTensor:
        """string [B] -> ids, ragged int32 [B, (T)]."""
        ...

    def tokenize_with_offsets(
        self, strings: Any
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """string [B] -> tokens and the bytes where they start and end."""
        ...

    def detokenize_with_offsets(self, *ids_and_replacements: Any) -> Any:
        """Ids int32 [B, T] -> strings, and where each token is in its own."""
        ...

    def ids_to_tokens(self, ids: Any) -> tf.Tensor:
        """Ids -> tokens, string of the same shape."""
        ...
