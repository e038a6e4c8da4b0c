"""Cross-entropy of target words and what is reported beside it."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class TokenCrossentropy(keras.losses.Loss):
    """-log p(y_i), summed over the words of a batch.

        L = -Σ_i w_i log p(y_i | y_1 .. y_{i-1}, x)

    With label smoothing ε the target is (1 - ε) y_i + ε uniform. As in the
    original code the batch's cost is a *sum* over all words and sentences
    (Keras' default would be a mean over positions, padding included).

    Args:
        label_smoothing: ε, 0 in the paper.
        divisor: What each word's cost is divided by: 1 as coded; Sutskever
            et al. (2014) divide the sum by their batch size, 128.
        reduction: "sum", as coded; "mean_with_sample_weight", the mean over
            real words; any other of `keras.losses.Loss`.

    Call arguments:
        y_true: int32 [B, T_y].
        y_pred: Logits, float [B, T_y, K_y].
        sample_weight: float [B, T_y], w_i: 1 on words, 0 on padding.

    Reference:
        Bahdanau et al. 2015, appendix B.2 and the original code; Szegedy et
        al. 2016, arXiv 1512.00567 (label smoothing).
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        divisor: float = 1.0,
        reduction: str = "sum",
        name: str = "token_crossentropy",
        **kwargs: Any,
    ) -> None:
        super().__init__(reduction=reduction, name=name, **kwargs)
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(
                f"TokenCrossentropy: label_smoothing is {label_smoothing}, "
                "wanted 0 or more and less than 1"
            )
        if divisor <= 0:
            raise ValueError(
                f"TokenCrossentropy: divisor is {divisor}, wanted more than 0"
            )
        self.label_smoothing = label_smoothing
        self.divisor = divisor

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        logits = tf.cast(y_pred, tf.float32)
        labels = tf.cast(y_true, tf.int32)
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        if self.label_smoothing:
            # Σ_k -log p(k) / K = log Σ exp - mean of the logits.
            mean = tf.reduce_mean(logits, -1)
            uniform = tf.reduce_logsumexp(logits, -1) - mean
            nll += self.label_smoothing * (uniform - nll)
        return nll / self.divisor

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "label_smoothing": self.label_smoothing,
            "divisor": self.divisor,
        }


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Perplexity(keras.metrics.Mean):
    """exp of the mean -log p over real words.

    Call arguments: those of `TokenCrossentropy`.
    """

    def __init__(self, name: str = "perplexity", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(
        self,
        y_true: tf.Tensor,
        y_pred: tf.Tensor,
        sample_weight: tf.Tensor | None = None,
    ) -> None:
        nll = TokenCrossentropy(reduction="none")(y_true, y_pred)
        super().update_state(nll, sample_weight)

    def result(self) -> tf.Tensor:
        return tf.exp(super().result())
