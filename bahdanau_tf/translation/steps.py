"""Step functions for search: over all words, or over a shortlist."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.layers.readout import OutputWeights
from bahdanau_tf.models.stepwise import Output
from bahdanau_tf.models.stepwise import TranslationModel
from bahdanau_tf.search import Features
from bahdanau_tf.search import Step
from bahdanau_tf.system.tensors import Nest

# What a `Step` gives.
Stepped = tuple["tf.Tensor | Features", Nest, "tf.Tensor | None"]


def full_step(model: TranslationModel, output: Output) -> Step:
    """The step over all words."""

    def step(ids: tf.Tensor, state: Nest, memory: Nest) -> Stepped:
        features, state, weights = model.step(ids, state, memory)
        to_logits = partial(model.logits, output=output)
        return Features(features, to_logits), state, weights

    return step


def without_weights(step: Step) -> Step:
    """The same step without an alignment, of which search keeps a record."""

    def plain(ids: tf.Tensor, state: Nest, memory: Nest) -> Stepped:
        output, state, _ = step(ids, state, memory)
        return output, state, None

    return plain


class _Own(NamedTuple):
    """The output weights of each sentence's own words.

    Attributes:
        kernel: float [B, M, f].
        bias: float32 [B, M], -inf for no word.
    """

    kernel: tf.Tensor
    bias: tf.Tensor

    @classmethod
    def of(cls, output: OutputWeights, words: tf.Tensor) -> _Own:
        rows = tf.maximum(words, 0)
        bias = tf.cast(tf.gather(output.bias, rows), tf.float32)
        bias = tf.where(words < 0, -math.inf, bias)
        return cls(tf.gather(output.kernel, rows), bias)


@dataclass(eq=False)
class Shortlist:
    """Used in place of `OutputWeights` for a shortlist.

    Attributes:
        frequent: Output weights of the first F words, the same for all
            sentences.
        own: Output weights of the M own words of each sentence.
    """

    frequent: OutputWeights
    own: _Own

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """Logits: float [B, K, f] -> float32 [B, K, F + M]."""
        kernel = tf.cast(self.own.kernel, features.dtype)
        own = tf.matmul(features, kernel, transpose_b=True)
        own = tf.cast(own, tf.float32) + self.own.bias[:, tf.newaxis]
        return tf.concat([self.frequent.logits(features), own], axis=-1)


def shortlist_step(
    model: TranslationModel, memory: Nest, first: int, words: tf.Tensor
) -> tuple[Step, Nest]:
    """A step over a shortlist, which uses places in it instead of ids.

    Args:
        model: The model.
        memory: From its `encode`.
        first: F; a place below it equals the id.
        words: int32 [B, M], the ids at places F to F + M - 1; -1 for none.

    Returns:
        The step, and the memory that it reads. The memory includes the own
        words, so that search removes them with the rows that have stopped.
    """
    output = model.output_weights()
    every = tf.nest.flatten(output)
    frequent = [one.first(first) for one in every]
    own = [_Own.of(one, words) for one in every]

    def step(places: tf.Tensor, state: Nest, memory: Nest) -> Stepped:
        memory, words, own = memory
        ids = word_ids(places, first, words)
        short = [Shortlist(*pair) for pair in zip(frequent, own, strict=True)]
        short = tf.nest.pack_sequence_as(output, short)
        features, state, weights = model.step(ids, state, memory)
        return model.logits(features, short), state, weights

    return step, (memory, words, own)


def word_ids(places: tf.Tensor, first: int, words: tf.Tensor) -> tf.Tensor:
    """Converts places in a shortlist to ids.

    Args:
        places: int32 [B, ...].
        first: F.
        words: int32 [B, M], the ids at the places from F on.

    Returns:
        int32 [B, ...].
    """
    own = tf.gather(words, tf.maximum(places - first, 0), batch_dims=1)
    return tf.where(places < first, places, own)
