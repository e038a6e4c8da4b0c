"""R-Drop: two dropout masks for each sentence should give the same words."""

from __future__ import annotations

import tensorflow as tf

from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.models.protocol import TranslationModel


def r_drop_loss(
    model: TranslationModel,
    loss: TokenCrossentropy,
    alpha: float,
    inputs: dict[str, tf.Tensor],
    target: tf.Tensor,
    token_weights: tf.Tensor,
) -> tf.Tensor:
    """The loss of a batch that is read twice, with different dropout.

        L = 1/2 (L_1 + L_2) + α/4 Σ_i [KL(p_i ‖ q_i) + KL(q_i ‖ p_i)]

    L_1 and L_2 are the sums over words that `loss` gives, p_i and q_i the
    distributions of word i in the two passes. It is half of the paper's
    equation 3, so that its size is that of a single pass. All logits are in
    memory at once.

    Args:
        model: A single model, with dropout.
        loss: The loss of a word.
        alpha: α, the weight of the divergence.
        inputs: {"source": int32 [B, T_x], "target": int32 [B, T_y]}.
        target: int32 [B, T_y], the words to predict.
        token_weights: float [B, T_y], 0 on padding.

    Returns:
        float32 scalar.

    Reference:
        Liang et al. 2021, arXiv 2106.14448, section 2.
    """
    weights = tf.reshape(_twice(token_weights), [-1])
    words = tf.where(weights != 0)[:, 0]
    features, _ = model.features(
        {side: _twice(ids) for side, ids in inputs.items()},
        training=True,
        words=words,
    )
    logits = tf.cast(model.output_weights().logits(features), tf.float32)
    labels = tf.gather(tf.reshape(_twice(target), [-1]), words)
    weights = tf.cast(tf.gather(weights, words), tf.float32)
    nll = tf.tensordot(weights, loss.call(labels, logits), 1) / 2
    p, q = tf.split(tf.nn.softmax(logits), 2)
    of_p, of_q = tf.split(logits, 2)
    # KL(p ‖ q) + KL(q ‖ p) = Σ (p - q)(log p - log q); the difference of the
    # normalizers is a constant, and Σ (p - q) = 0.
    divergence = tf.reduce_sum((p - q) * (of_p - of_q), -1) / loss.divisor
    weights = tf.split(weights, 2)[0]
    return nll + alpha / 4 * tf.tensordot(weights, divergence, 1)


def _twice(rows: tf.Tensor) -> tf.Tensor:
    return tf.concat([rows, rows], 0)
