"""The protocol of translation models.

Search, scoring, training, shortlists, ensembles, learned lexicons and exports
use nothing else of a model.
"""

from __future__ import annotations

from typing import Any
from typing import Protocol
from typing import TypeAlias
from typing import runtime_checkable

import tensorflow as tf

from bahdanau_tf.system.tensors import Nest

# `OutputWeights` or what has the same method `logits`; of an ensemble a tuple
# of those of its members.
Output: TypeAlias = Any


@runtime_checkable
class TranslationModel(Protocol):
    """A model that returns features of each next word, and output weights.

    *Features* are the input of the last product, the paper's t_i: logits are
    features times `OutputWeights`. An ensemble has a tuple of each, with one
    element for each member, and its `logits` combines them.

    Attributes:
        start_id: Used as the previous word of the first one; 0, as padding.
        source_vocabulary_size: K_x; a tuple for a model of several sources.
        target_vocabulary_size: K_y.
        has_alignment: Whether `step` and `features` return attention weights.
    """

    @property
    def start_id(self) -> int: ...

    @property
    def source_vocabulary_size(self) -> int | tuple[int, ...]: ...

    @property
    def target_vocabulary_size(self) -> int: ...

    @property
    def has_alignment(self) -> bool: ...

    def encode(self, source: Nest) -> tuple[Nest, Nest]:
        """Reads source sentences.

        Args:
            source: int32 [B, T_x], padded with 0; a tuple of them for a model
                of several sources.

        Returns:
            The memory, a nest of [B, ...] that no step changes, and the state
            before the first step, a nest of [B, ...].
        """
        ...

    def step(
        self, ids: tf.Tensor, state: Nest, memory: Nest
    ) -> tuple[Nest, Nest, tf.Tensor | None]:
        """The features of the next word, for K hypotheses of each sentence.

        Args:
            ids: int32 [B, K], the previous words; `start_id` at the start.
            state: Nest of [B, K, ...].
            memory: From `encode`, nest of [B, ...].

        Returns:
            The features, float [B, K, f]; the new state; the alignment,
            float32 [B, K, T_x], or None without one.
        """
        ...

    def features(
        self,
        inputs: dict[str, Nest],
        training: bool = False,
        words: tf.Tensor | None = None,
    ) -> tuple[Nest, tf.Tensor | None]:
        """The features of given translations, each word given those before.

        Args:
            inputs: {"source": as for `encode`, "target": int32 [B, T_y]},
                padded with 0; the target has its end symbol and is not
                shifted.
            training: Whether to apply dropout.
            words: int [N], indices into the B x T_y positions, to get the
                features of these alone; or None.

        Returns:
            float [B, T_y, f], or [N, f] of `words`; the alignment, float
            [B, T_y, T_x], or None without one.
        """
        ...

    def output_weights(self) -> Output:
        """`OutputWeights`, or a tuple of them if the features are a tuple."""
        ...

    def logits(self, features: Nest, output: Output) -> tf.Tensor:
        """Logits of the words that `output` has rows for, float32 [..., K].

        Args:
            features: float [..., f].
            output: From `output_weights`, or another object with a method
                `logits`, such as a shortlist's.
        """
        ...
