"""Sizes of models that are measured."""

from __future__ import annotations

from typing import NamedTuple


class Size(NamedTuple):
    """Sizes of a model and of its batches; lengths include end symbols."""

    embedding_dim: int
    units: int
    attention_units: int
    maxout_units: int
    vocabulary_size: int
    source_length: int
    target_length: int
    optimizer: str
    batch: int = 80

    @property
    def of_model(self) -> tuple[int, ...]:
        """The first arguments of `RNNSearch`."""
        words = self.vocabulary_size
        return words, words, self.units, self.embedding_dim, self.attention_units, self.maxout_units


SIZES = {
    "tiny": Size(16, 16, 16, 16, 200, 13, 15, "adam"),
    "small": Size(256, 256, 256, 256, 10_000, 13, 15, "adam"),
    "paper": Size(620, 1000, 1000, 500, 30_000, 50, 50, "adadelta"),
}
