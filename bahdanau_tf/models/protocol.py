"""What every user of a translation model may ask of it, and no more.

Search, scoring, training, shortlists, ensembles, learned lexicons and exports
know a model by this alone.
"""

from __future__ import annotations

from typing import Any
from typing import Protocol
from typing import runtime_checkable

import tensorflow as tf


@runtime_checkable
class TranslationModel(Protocol):
    """Gives features of each next word, and the weights that score them.

    *Features* are what the last product takes, the paper's t_i: logits are
    features times `OutputWeights`. Of an ensemble both are tuples, one for
    each member, and `logits` knows how to join them.

    Attributes:
        start_id: The previous word of a first word; 0, which is padding.
        source_vocabulary_size: K_x; a tuple for a model of many sources.
        target_vocabulary_size: K_y.
        has_alignment: Whether there are attention weights.
    """

    @property
    def start_id(self) -> int: ...

    @property
    def source_vocabulary_size(self) -> Any: ...

    @property
    def target_vocabulary_size(self) -> int: ...

    @property
    def has_alignment(self) -> bool: ...

    def encode(self, source: Any) -> tuple[Any, Any]:
        """Reads source sentences.

        Args:
            source: int32 [B, T_x], padded with 0; a tuple of them for a model
                of many sources.

        Returns:
            The memory, a nest of [B, ...] that stays as it is, and the state
            before the first step, a nest of [B, ...].
        """
        ...

    def step(
        self, ids: tf.Tensor, state: Any, memory: Any
    ) -> tuple[Any, Any, tf.Tensor | None]:
        """The next word of K hypotheses a sentence.

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
        inputs: dict[str, Any],
        training: bool = False,
        words: tf.Tensor | None = None,
    ) -> tuple[Any, tf.Tensor | None]:
        """The features of given translations, each word given those before.

        Args:
            inputs: {"source": as for `encode`, "target": int32 [B, T_y]},
                padded with 0; the target has its end symbol and is not
                shifted.
            training: Whether to drop.
            words: int [N], places in B x T_y, to have the features of these
                alone; or None.

        Returns:
            float [B, T_y, f], or [N, f] of `words`; the alignment, float
            [B, T_y, T_x], or None without one.
        """
        ...

    def output_weights(self) -> Any:
        """`OutputWeights`, or a tuple of them as the features are one."""
        ...

    def logits(self, features: Any, output: Any) -> tf.Tensor:
        """Scores of the words that `output` has rows for, float32 [..., K].

        Args:
            features: float [..., f].
            output: From `output_weights`, or what has the same method
                `logits` in its place.
        """
        ...
