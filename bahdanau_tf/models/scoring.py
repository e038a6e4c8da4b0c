"""Log-probabilities that a model gives to known target words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf


def target_log_probs(
    model: keras.Model, source: tf.Tensor, target: tf.Tensor
) -> tf.Tensor:
    """log p(y_i | y_1 .. y_{i-1}, x) of a padded batch, in graph.

    Args:
        model: A translation model.
        source: int32 [B, T_x], padded with 0.
        target: int32 [B, T_y] with the end symbol, padded with 0.

    Returns:
        float32 [B, T_y], in nats, 0 on padding.
    """
    logits = model({"source": source, "target": target})
    nll = tf.nn.sparse_softmax_cross_entropy_with_logits(target, logits)
    return tf.where(target != 0, -nll, 0.0)


def token_log_probs(
    model: keras.Model,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    batch_size: int = 64,
) -> list[np.ndarray]:
    """log p(y_i | y_1 .. y_{i-1}, x) of given translations.

    Args:
        model: A translation model.
        sources: Source word ids of each sentence, end symbol included.
        targets: Target word ids of each sentence, end symbol included.
        batch_size: Sentences scored at once.

    Returns:
        For each sentence a float32 array, one value for each target word, in
        nats; their sum is log p(y | x).

    Raises:
        ValueError: Sources and targets differ in number.
    """
    if len(sources) != len(targets):
        raise ValueError(
            f"token_log_probs: {len(sources)} sources and {len(targets)} "
            "targets, wanted as many of each"
        )
    score = tf.function(
        lambda source, target: target_log_probs(model, source, target),
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2,
        autograph=False,
    )
    log_probs: list[np.ndarray] = []
    for start in range(0, len(sources), batch_size):
        chosen = targets[start : start + batch_size]
        padded = score(
            _padded(sources[start : start + batch_size]), _padded(chosen)
        ).numpy()
        log_probs.extend(
            row[: len(ids)] for row, ids in zip(padded, chosen, strict=True)
        )
    return log_probs


def _padded(rows: Sequence[Sequence[int]]) -> Any:
    return tf.ragged.constant(
        [list(row) for row in rows], dtype=tf.int32, ragged_rank=1
    ).to_tensor()
