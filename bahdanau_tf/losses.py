"""Cross-entropy of target words, and perplexity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from bahdanau_tf.system.ranges import OptionError
from bahdanau_tf.system.tensors import operand, product

CHUNK_LOGITS = 2**24  # logits of one chunk of words in `_words_nll`

Parts = list[tf.Tensor]
Odds = Sequence[tf.Tensor]
Arrays = list[tf.TensorArray]


def word_weights(ids: tf.Tensor, sample_weight: tf.Tensor | None) -> tf.Tensor:
    """w_i of the words of a batch, float32, with the shape of `ids`, int32 [B, T_y].

    `sample_weight` is float [B, T_y], w_i; or, with 0 on padding, [B] or [B, 1], that of all words
    of a sentence, or None.
    """
    words = is_word(ids)
    if sample_weight is None:
        return words
    weights = tf.cast(sample_weight, tf.float32)
    if weights.shape.rank < words.shape.rank:
        return weights[..., tf.newaxis] * words
    if weights.shape[-1] == 1 and words.shape[-1] != 1:
        return weights * words
    return tf.broadcast_to(weights, tf.shape(words))


def is_word(ids: tf.Tensor) -> tf.Tensor:
    """1 on words, 0 on padding (id 0): float32, with the shape of `ids`."""
    return tf.cast(tf.not_equal(ids, 0), tf.float32)


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class TokenCrossentropy(keras.losses.Loss):
    """-log p(y_i), summed over the words of a batch.

        L = -Σ_i w_i log p(y_i | y_1 .. y_{i-1}, x)

    With label smoothing ε the target distribution is 1 - ε on y_i plus ε times the uniform one. As
    in the original code the loss of a batch is a *sum* over all its words (Keras' default is a mean
    over positions, padding included).

    Of a model that copies words, `train` smooths only the distribution p over the vocabulary, to
    which the copied words have odds o_y, together o:

        L = -Σ_i w_i ((1 - ε) log [(p(y_i) + o_{y_i}) / (1 + o)] + ε Σ_k log p(k) / K)

    Args:
        label_smoothing: ε, 0 in the paper.
        divisor: Divides the loss of each word: 1 in the original code; Sutskever et al. (2014)
            divide by their batch size, 128.
        reduction: "sum", as in the original code; "mean_with_sample_weight", the mean over real
            words; or another of `keras.losses.Loss`.

    Call arguments:
        y_true: int32 [B, T_y].
        y_pred: Logits, float [B, T_y, K_y].
        sample_weight: float [B, T_y], w_i. By default 1 on words and 0 on padding (id 0). Or float
            [B], that of all words of a sentence. It is also 0 where a Keras mask on `y_pred` is
            False.

    Raises:
        ValueError: `label_smoothing` or `divisor` is out of range.

    Reference:
        Bahdanau et al. 2015, appendix B.2 and the original code; Szegedy et al. 2016, arXiv
        1512.00567 (label smoothing).
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
            wanted = "0 or more and less than 1"
            raise OptionError("TokenCrossentropy", "label_smoothing", label_smoothing, wanted)
        if divisor <= 0:
            raise ValueError(f"TokenCrossentropy: divisor is {divisor}, wanted more than 0")
        self.label_smoothing = label_smoothing
        self.divisor = divisor

    def __call__(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | None = None
    ) -> tf.Tensor:
        weights = word_weights(y_true, sample_weight)
        return super().__call__(y_true, y_pred, weights)

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor, odds: Odds = ()) -> tf.Tensor:
        """The loss of each word, float32 [B, T_y]; `odds` are log o_y and log o of each, or ()."""
        logits = tf.cast(y_pred, tf.float32)
        labels = tf.cast(y_true, tf.int32)
        nll = own = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        if odds:
            of_label, of_all = odds
            nll += tf.math.softplus(of_all) - tf.math.softplus(of_label + own)
        if self.label_smoothing:
            # Σ_k -log p(k) / K = log Σ exp - mean of the logits.
            mean = tf.reduce_mean(logits, -1)
            uniform = tf.reduce_logsumexp(logits, -1) - mean
            nll += self.label_smoothing * (uniform - nll)
        return nll / self.divisor

    def of_words(
        self,
        features: tf.Tensor,
        kernel: tf.Tensor,
        bias: tf.Tensor,
        labels: tf.Tensor,
        weights: tf.Tensor,
        odds: Odds = (),
    ) -> tf.Tensor:
        """The loss of words, computed in chunks from features x.

        Loss and gradient are those of the logits x Wᵀ + b, but the logits of all words are never in
        memory at once.

        Args:
            features: float [N, l], one row for each word.
            kernel: float [K, l].
            bias: float [K].
            labels: int32 [N].
            weights: float [N], w_i.
            odds: log o_y and log o of each word, float32 [N], if the model copies words.

        Returns:
            float32 scalar.

        Raises:
            ValueError: The reduction is not "sum".
        """
        if self.reduction != "sum":
            raise ValueError(f"TokenCrossentropy: reduction is {self.reduction!r}, wanted 'sum'")
        weights = tf.cast(weights, tf.float32) / self.divisor
        on_label = 1.0 - self.label_smoothing
        kernel, bias = (tf.cast(x, features.dtype) for x in (kernel, bias))
        total = _words_nll(features, kernel, bias, labels, weights, on_label, odds[:1])
        if odds:
            total += on_label * tf.reduce_sum(weights * tf.math.softplus(odds[1]))
        if self.label_smoothing:
            # As in `call`; the mean of the logits is linear in the features.
            mean = tf.linalg.matvec(features, tf.reduce_mean(kernel, 0))
            mean = tf.cast(mean + tf.reduce_mean(bias), tf.float32)
            total -= self.label_smoothing * tf.reduce_sum(weights * mean)
        return total

    def get_config(self) -> dict[str, object]:
        own = {"label_smoothing": self.label_smoothing, "divisor": self.divisor}
        return {**super().get_config(), **own}


def _words_nll(
    features: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor,
    labels: tf.Tensor,
    weights: tf.Tensor,
    on_label: float,
    odds: Odds,
) -> tf.Tensor:
    """Σ_i w_i (log Σ_k exp l_ik - on_label l_{i,y_i}), l = x Wᵀ + b.

    With log o_y in `odds`, on_label log(1 + o_y / p(y)) is subtracted from the bracket.

    Words are processed in chunks. The forward pass also computes the gradient, while the
    probabilities of a chunk are in memory, and keeps only the sums. So there are no second
    derivatives.
    """
    # On a GPU int32 numbers are computed by the host: labels would be copied.
    labels = tf.cast(labels, tf.int64)
    words = tf.shape(features)[0]
    most = max(CHUNK_LOGITS // kernel.shape[0], 1)
    chunks = tf.maximum((words + most - 1) // most, 1)
    size = (words + chunks - 1) // chunks

    @tf.custom_gradient
    def run(
        features: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor, *odds: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], list[tf.Tensor]]]:
        read = operand(kernel)

        def chunk(i: tf.Tensor, here: slice, rows: Arrays) -> tuple[Arrays, Parts]:
            x, y, w, *o = (values[here] for values in (features, labels, weights, *odds))
            sums, gradients = _chunk_nll(x, read, bias, y, w, on_label, o)
            return [array.write(i, x) for array, x in zip(rows, gradients, strict=True)], sums

        def body(i: tf.Tensor, rows: Arrays, sums: Parts) -> tuple[tf.Tensor, Arrays, Parts]:
            here = slice(i * size, (i + 1) * size)
            rows, more = chunk(i, here, rows)
            return i + 1, rows, [a + b for a, b in zip(sums, more, strict=True)]

        rows = [
            tf.TensorArray(
                x.dtype, size=chunks, infer_shape=False, element_shape=[None, *x.shape[1:]]
            )
            for x in (features, *odds)
        ]
        # The first chunk runs outside the loop: a single chunk needs no sums
        # of the kernel's size that begin at zero.
        rows, sums = chunk(tf.constant(0), slice(size), rows)
        start = tf.constant(1), rows, sums
        _, rows, sums = tf.while_loop(lambda i, *_: i < chunks, body, start, parallel_iterations=1)
        total, for_kernel, for_bias = sums
        for_features, *for_odds = (array.concat() for array in rows)
        gradients = for_features, for_kernel, for_bias, *for_odds

        def gradient(upstream: tf.Tensor) -> list[tf.Tensor]:
            return [g * tf.cast(upstream, g.dtype) for g in gradients]

        return total, gradient

    return run(features, kernel, bias, *odds)


def _chunk_nll(
    x: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor,
    labels: tf.Tensor,
    weights: tf.Tensor,
    on_label: float,
    odds: Odds,
) -> tuple[Parts, Parts]:
    """The sum of `_words_nll` over a chunk with its gradients by kernel and bias.

    And those by x and by the odds.
    """
    logits = product(x, kernel, transpose_b=True)
    logits = tf.cast(logits + bias, tf.float32)
    probabilities = tf.nn.softmax(logits)
    size = tf.shape(logits)
    starts = tf.cast(tf.range(size[0]) * size[1], tf.int64)
    places = tf.cast(starts + labels, tf.int32)
    flat = tf.reshape(probabilities, [-1])
    label_logit = tf.gather(tf.reshape(logits, [-1]), places)
    probability = tf.gather(flat, places)
    nll = tf.cond(
        tf.reduce_any(probability < 1e-30),  # its logarithm might be that of 0
        lambda: tf.reduce_logsumexp(logits, -1) - label_logit,
        lambda: -tf.math.log(probability),
    )
    subtracted, share, by_odds = tf.fill(size[:1], on_label), weights, []
    for log_odds in odds:
        copied = on_label * tf.sigmoid(log_odds + nll)  # the share that is copied
        by_odds.append(-weights * copied)
        nll -= on_label * tf.math.softplus(log_odds + nll)
        share = weights * (1.0 - copied)
        subtracted = tf.math.divide_no_nan(on_label - copied, 1.0 - copied)
    nll += (1.0 - on_label) * label_logit
    with tf.control_dependencies([nll]):
        # In place: a scatter would copy all probabilities.
        flat = tf.raw_ops.InplaceSub(x=flat, i=places, v=subtracted)
    by_logits, column = tf.reshape(flat, size), share[:, None]
    if tf.float16 in (x.dtype, kernel.dtype):
        # Most are tiny: only the scale of the loss, in the weights, keeps them.
        by_logits, column = by_logits * column, tf.ones_like(column)
    by_logits, column = (tf.cast(t, x.dtype) for t in (by_logits, column))
    rounded = operand(by_logits)
    sums = [
        tf.reduce_sum(weights * nll),
        product(rounded, x * column, transpose_a=True),
        tf.matmul(column, by_logits, transpose_a=True)[0],
    ]
    return sums, [product(rounded, kernel) * column, *by_odds]


@keras.saving.register_keras_serializable(package="bahdanau_tf")
class Perplexity(keras.metrics.Mean):
    """The exponential of the mean of -log p over the N real words.

        PPL = exp(-1/N Σ_i log p(y_i | y_1 .. y_{i-1}, x))

    Call arguments: those of `TokenCrossentropy`.
    """

    def __init__(self, name: str = "perplexity", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(
        self, y_true: tf.Tensor, y_pred: tf.Tensor, sample_weight: tf.Tensor | None = None
    ) -> None:
        nll = TokenCrossentropy().call(y_true, y_pred)
        weights = word_weights(y_true, sample_weight)
        # Flat: Keras would take the mean over each sentence first.
        flat = [tf.reshape(x, [-1]) for x in (nll, weights)]
        super().update_state(*flat)

    def result(self) -> tf.Tensor:
        return tf.exp(super().result())
