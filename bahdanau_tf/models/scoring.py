"""Log-probabilities that a model gives to known target words."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.layers.readout import scores
from bahdanau_tf.layers.weights import rows_at
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.models.ensemble import Ensemble

CHUNK_LOGITS = 2**22  # logits held at once: 16 MiB


def target_log_probs(
    model: keras.Model, source: tf.Tensor, target: tf.Tensor
) -> tf.Tensor:
    """log p(y_i | y_1 .. y_{i-1}, x) of a padded batch, in graph.

    Words go through in chunks: of models made here the logits of all words
    are never there at once.

    Args:
        model: A translation model.
        source: int32 [B, T_x], padded with 0.
        target: int32 [B, T_y] with the end symbol, padded with 0.

    Returns:
        float32 [B, T_y], in nats, 0 on padding.
    """
    flat = tf.reshape(target, [-1])
    words = tf.where(flat != 0)[:, 0]
    labels = tf.gather(flat, words)
    inputs = {"source": source, "target": target}
    logits = _logits_of_words(model, inputs, words)
    size = max(CHUNK_LOGITS // model.target_vocabulary_size, 1)
    # One chunk even of no words: it says what is in a chunk.
    chunks = tf.maximum(-(-tf.size(words) // size), 1)

    def body(i: tf.Tensor, done: Any) -> tuple[tf.Tensor, Any]:
        here = slice(i * size, (i + 1) * size)
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels[here], logits(here)
        )
        return i + 1, done.write(i, -nll)

    done = tf.TensorArray(
        tf.float32, size=chunks, infer_shape=False, element_shape=[None]
    )
    _, done = tf.while_loop(
        lambda i, _: i < chunks,
        body,
        (tf.constant(0), done),
        parallel_iterations=1,
    )
    log_probs = tf.scatter_nd(
        words[:, None], done.concat(), tf.shape(flat, words.dtype)
    )
    return tf.reshape(log_probs, tf.shape(target))


def _logits_of_words(
    model: Any, inputs: dict[str, Any], words: tf.Tensor
) -> Callable[[slice], tf.Tensor]:
    """What gives the logits, float32 [n, K_y], of a slice of some words.

    Args:
        model: A translation model; of one that is not made here all logits
            are kept.
        inputs: As of the model.
        words: int64 [N], the words' places in B x T_y.
    """
    if isinstance(model, Ensemble):
        members = [
            _logits_of_words(member, own, words)
            for member, own in model.inputs_of_members(inputs)
        ]
        return lambda here: model.mean([one(here) for one in members])
    if isinstance(model, EncoderDecoder):
        hidden, _ = model.hidden(inputs, words=words)
        features, kernel, bias = model.factors(hidden)
        return lambda here: scores(features[here], kernel, bias)
    kept = rows_at(model(inputs), words)
    return lambda here: kept[here]


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
