"""Minimum risk training: translations are as probable as they are good."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from bahdanau_tf.losses import TokenCrossentropy, is_word
from bahdanau_tf.models.stepwise import TranslationModel
from bahdanau_tf.options import Recipe
from bahdanau_tf.search import sample
from bahdanau_tf.search.beam import sentence_seeds
from bahdanau_tf.search.constraints import forbid
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.translation.shortlist import full_step, without_weights

PADDING = 0
UNLIKE = -1  # not the id of any word
SHARPNESS = 0.005  # α of the paper
ORDERS = 4  # the longest n-grams of BLEU
LONGEST = 2.0  # largest number of tokens, as a multiple of the reference's


class Risk(NamedTuple):
    """How translations are drawn: `samples` for each sentence, with ids of the target side."""

    samples: int
    eos_id: int
    unk_id: int
    seed: int = 1

    @classmethod
    def of(cls, recipe: Recipe, text: Tokenizer) -> Risk | None:
        """Makes it from a recipe and the target's tokenizer; None unless `risk_samples` is set."""
        if not recipe.risk_samples:
            return None
        return cls(recipe.risk_samples, text.eos_id, text.unk_id, recipe.seed)

    def at(self, update: tf.Tensor) -> tf.Tensor:
        """The seed of an update: int64 scalar."""
        return tf.cast(update, tf.int64) + (self.seed << 32)


def minimum_risk_loss(
    model: TranslationModel,
    loss: TokenCrossentropy,
    risk: Risk,
    seed: tf.Tensor,
    inputs: dict[str, tf.Tensor],
    target: tf.Tensor,
    token_weights: tf.Tensor,
) -> tf.Tensor:
    """The expected loss of translations, over those that were drawn.

        R = Σ_s Σ_{y ∈ S(x_s)} Q(y | x_s) Δ(y, y_s),   Δ = 1 - BLEU
        Q(y | x) = p(y | x)^α / Σ_{y' ∈ S(x)} p(y' | x)^α,   α = 0.005

    S(x) has the distinct samples, which are drawn without dropout. The paper adds the reference;
    translations were no worse without it (benchmarks/README.md). BLEU is `sentence_bleu` of the
    model's sub-words or words; [UNK] matches nothing. All logits of S are in memory at once.

    R, a float32 scalar, is divided by the loss' divisor, and counts a sentence with the weight of
    its first word. With `seed`, int64, that of the update, the samples depend on the sentence
    alone, not on the division of batches. Shen et al. 2016, arXiv 1512.02433, equations 8 to 10.
    """
    drawn = _drawn(model, risk, seed, inputs["source"], target)
    words = tf.where(drawn == risk.unk_id, UNLIKE, drawn)
    bleu = sentence_bleu(*(tf.where(ids == risk.eos_id, PADDING, ids) for ids in (words, target)))
    scaled = SHARPNESS * _log_probs(model, inputs["source"], drawn)
    scaled = tf.where(_is_first(drawn), scaled, scaled.dtype.min)
    expected = tf.reduce_sum(tf.nn.softmax(scaled) * (1.0 - bleu), -1)
    weights = tf.cast(token_weights[:, 0], tf.float32)
    return tf.tensordot(weights, expected, 1) / loss.divisor


def _drawn(
    model: TranslationModel, risk: Risk, seed: tf.Tensor, source: tf.Tensor, target: tf.Tensor
) -> tf.Tensor:
    """The samples: int32 [B, N, T]."""
    memory, state = model.encode(source)
    lengths = tf.reduce_sum(is_word(target), -1)
    samples = sample(
        without_weights(full_step(model, model.output_weights())),
        state,
        memory,
        start_id=model.start_id,
        eos_id=risk.eos_id,
        max_length=tf.cast(LONGEST * lengths, tf.int32),
        seed=sentence_seeds(source, seed),
        n_samples=risk.samples,
        constraints=[forbid([PADDING])],
    )
    longest = tf.reduce_max(samples.lengths)
    return tf.stop_gradient(samples.tokens[..., :longest])


def _log_probs(model: TranslationModel, source: tf.Tensor, drawn: tf.Tensor) -> tf.Tensor:
    """log p(y | x) of each translation, with dropout: float32 [B, K]."""
    count = drawn.shape[1]
    target = tf.reshape(drawn, [-1, tf.shape(drawn)[-1]])
    inputs = {"source": tf.repeat(source, count, 0), "target": target}
    places = tf.where(target != 0)
    words = places[:, 0] * tf.shape(target, tf.int64)[1] + places[:, 1]
    features, _ = model.features(inputs, training=True, words=words)
    logits = model.logits(features, model.output_weights())
    labels = tf.gather_nd(target, places)
    nll = TokenCrossentropy().call(labels, logits)
    rows = tf.cast(tf.shape(target)[0], tf.int64)
    sums = tf.math.unsorted_segment_sum(nll, places[:, 0], rows)
    return -tf.reshape(sums, [-1, count])


def _is_first(drawn: tf.Tensor) -> tf.Tensor:
    """Whether a translation differs from all earlier ones: bool [B, K]."""
    count = drawn.shape[1]
    same = tf.reduce_all(drawn[:, :, None] == drawn[:, None], -1)
    earlier = tf.linalg.band_part(tf.ones([count, count]), -1, 0)
    earlier -= tf.eye(count)
    return ~tf.reduce_any(same & (earlier > 0), -1)


def sentence_bleu(hypotheses: tf.Tensor, references: tf.Tensor, orders: int = ORDERS) -> tf.Tensor:
    """BLEU of sentences, with 1 added to the counts of n > 1 words.

        BLEU = min(1, exp(1 - r / c)) (Π_n p_n)^(1/4)
        p_1 = m_1 / t_1,   p_n = (m_n + 1) / (t_n + 1)

    of c words, with m_n of its t_n n-grams in the reference of r words: float32 [B, K] of
    hypotheses int32 [B, K, T] and references int32 [B, T'], padded with 0. Lin and Och 2004
    (BLEU+1 of "ORANGE").
    """
    real = (hypotheses != 0)[..., None]
    shared = (hypotheses[..., None] == references[:, None, None]) & real
    own = (hypotheses[..., None] == hypotheses[:, :, None]) & real
    of_reference, of_own = shared, own
    logs = []
    for n in range(1, orders + 1):
        if n > 1:
            of_reference = _longer(of_reference, shared, n)
            of_own = _longer(of_own, own, n)
        there, here = (tf.reduce_sum(tf.cast(x, tf.float32), -1) for x in (of_reference, of_own))
        # If an n-gram occurs h times here, each counts 1 / h of its matches.
        matches = tf.math.divide_no_nan(tf.minimum(there, here), here)
        total = tf.reduce_sum(tf.cast(here > 0, tf.float32), -1)
        added = float(n > 1)
        matched = tf.reduce_sum(matches, -1) + added
        logs.append(tf.math.log(tf.math.divide_no_nan(matched, total + added)))
    lengths = [tf.reduce_sum(is_word(x), -1) for x in (hypotheses, references)]
    short = 1.0 - tf.math.divide_no_nan(lengths[1][:, None], lengths[0])
    return tf.exp(tf.add_n(logs) / orders + tf.minimum(short, 0.0))


def _longer(grams: tf.Tensor, words: tf.Tensor, n: int) -> tf.Tensor:
    """Where n-grams match, from where those of n - 1 words and words match."""
    return grams[..., :-1, :-1] & words[..., n - 1 :, n - 1 :]
