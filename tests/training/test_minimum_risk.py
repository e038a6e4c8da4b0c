"""Minimum risk training, compared with NumPy and with sacreBLEU."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import oracle
import pytest
import sacrebleu
import tensorflow as tf
from refusals import refused
from worker import mean_model

from bahdanau_tf import RNNSearch
from bahdanau_tf.losses import TokenCrossentropy, is_word
from bahdanau_tf.optimizers import Adam
from bahdanau_tf.options import Recipe
from bahdanau_tf.training import minimum_risk
from bahdanau_tf.training.minimum_risk import Risk, minimum_risk_loss, sentence_bleu
from bahdanau_tf.training.update import train_step

EOS, UNK = 2, 1
SOURCE = np.array([[3, 4, 5, 2], [5, 6, 2, 0], [7, 2, 0, 0]], "int32")
TARGET = np.array([[3, 4, 6, 2], [6, 5, 2, 0], [5, 2, 0, 0]], "int32")


def toy(**options: Any) -> RNNSearch:
    return oracle.randomized(RNNSearch(8, 9, 6, 5, 6, 8, **options))


def batch() -> tuple[Any, tf.Tensor, tf.Tensor]:
    target = tf.constant(TARGET)
    inputs = {"source": tf.constant(SOURCE), "target": target}
    return inputs, target, is_word(target)


def text(ids: np.ndarray) -> str:
    return " ".join(f"w{x}" for x in ids if x)


def bleu_of(hypothesis: np.ndarray, reference: np.ndarray) -> float:
    """sacreBLEU's BLEU + 1, of the tokens as words; 0 to 1."""
    score: float = sacrebleu.sentence_bleu(
        text(hypothesis), [text(reference)], smooth_method="add-k", smooth_value=1, tokenize="none"
    ).score
    return score / 100


def test_bleu_of_sentences_equals_sacrebleus():
    """Few different words, so n-grams repeat; some sentences are empty."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(0, 12, (40, 6))
    hypotheses = draw.integers(1, 5, (40, 6, 12))
    hypotheses[np.arange(12) >= lengths[..., None]] = 0
    references = draw.integers(1, 5, (40, 9))
    references[np.arange(9) >= draw.integers(1, 10, 40)[:, None]] = 0
    hypotheses[:, 0] = np.pad(references, ((0, 0), (0, 3)))
    scores = sentence_bleu(tf.constant(hypotheses), tf.constant(references))
    wanted = [
        [bleu_of(hypothesis, reference) for hypothesis in row]
        for row, reference in zip(hypotheses, references, strict=True)
    ]
    np.testing.assert_allclose(scores, wanted, atol=1e-5)
    np.testing.assert_allclose(scores[:, 0], 1, atol=1e-5)
    assert 0 < np.mean(wanted) < 1


@pytest.mark.parametrize("width", [0, 1, 3])
def test_bleu_of_short_tensors(width):
    """No n-gram of 4 fits into them."""
    scores = sentence_bleu(tf.ones([2, 3, width], tf.int32), tf.ones([2, 3], tf.int32))
    wanted = bleu_of(np.ones(width, int), np.ones(3, int))
    np.testing.assert_allclose(scores, np.full((2, 3), wanted), atol=1e-6)


def test_the_loss_equals_the_equations_of_the_paper(monkeypatch):
    """NumPy computes it from what was drawn; equal samples count once. Some words are copied."""
    model, seen = toy(copying="hint"), []
    drawn = minimum_risk._drawn
    monkeypatch.setattr(minimum_risk, "SHARPNESS", 0.5)
    monkeypatch.setattr(minimum_risk, "_drawn", lambda *x: seen.append(drawn(*x)) or seen[0])
    risk, loss = Risk(200, EOS, UNK), TokenCrossentropy(divisor=2.0)
    inputs, target, weights = batch()
    weights *= tf.constant([[2.0], [1.0], [0.0]])
    cost = minimum_risk_loss(model, loss, risk, tf.constant(3, tf.int64), inputs, target, weights)
    wanted = 0.0
    for row, weight in ((0, 2.0), (1, 1.0)):
        different = np.array(sorted({tuple(ids) for ids in seen[0][row].numpy()}))
        assert 1 < len(different) < 200
        source = np.repeat(SOURCE[row : row + 1], len(different), 0)
        logits = np.asarray(model({"source": source, "target": different}), np.float64)
        log_q = logits - np.logaddexp.reduce(logits, -1, keepdims=True)
        of_words = np.take_along_axis(log_q, different[..., None], -1)[..., 0]
        powers = np.exp(0.5 * (of_words * (different != 0)).sum(-1))
        bleu = [bleu_of(without_end(ids), without_end(TARGET[row])) for ids in different]
        wanted += weight * (powers / powers.sum()) @ (1 - np.array(bleu)) / 2
    assert float(cost) == pytest.approx(wanted, rel=1e-4)


def without_end(ids: np.ndarray) -> np.ndarray:
    return np.where(ids == EOS, 0, ids)


def test_samples_end_and_are_at_most_twice_as_long_as_the_reference():
    seed = tf.constant(1, tf.int64)
    samples = minimum_risk._drawn(toy(), Risk(50, EOS, UNK), seed, SOURCE, batch()[1])
    assert samples.shape[:2] == (3, 50)
    for rows, reference in zip(samples.numpy(), TARGET, strict=True):
        for row in rows:
            count = np.count_nonzero(row)
            assert 1 <= count <= 2 * np.count_nonzero(reference)
            assert row[:count].all()
            assert EOS not in row[: count - 1]


def test_training_lowers_the_expected_loss():
    model, loss = oracle.randomized(mean_model(9)), TokenCrossentropy()
    risk = Risk(20, EOS, UNK)

    def expected() -> float:
        seeds = (tf.constant(seed, tf.int64) for seed in range(5))
        return np.mean([minimum_risk_loss(model, loss, risk, seed, *batch()) for seed in seeds])

    before = expected()
    optimizer = Adam(0.05)
    step = train_step(
        model,
        optimizer,
        lambda *x: minimum_risk_loss(model, loss, risk, risk.at(optimizer.iterations), *x),
    )
    costs = [float(step(*batch())) for _ in range(25)]
    assert len({*costs}) > 20  # other draws in each update
    assert expected() < 0.5 * before


def test_draws_depend_on_seed_and_update_alone():
    model = toy()

    def drawn(seed: int, update: int) -> np.ndarray:
        risk = Risk(4, EOS, UNK, seed)
        return minimum_risk._drawn(
            model, risk, risk.at(tf.constant(update)), SOURCE, TARGET
        ).numpy()

    np.testing.assert_array_equal(drawn(1, 7), drawn(1, 7))
    assert not np.array_equal(drawn(1, 7), drawn(1, 8))
    assert not np.array_equal(drawn(1, 7), drawn(2, 7))


def test_draws_of_a_sentence_do_not_depend_on_its_part_of_the_batch():
    """So cores, replicas and accumulated batches change no draws."""
    risk, seed, model = Risk(20, EOS, UNK), tf.constant(1, tf.int64), toy()
    source, target = SOURCE[[0, 1, 0]], TARGET[[0, 0, 0]]
    whole = minimum_risk._drawn(model, risk, seed, source, target).numpy()
    for row in range(3):
        own = slice(row, row + 1)
        samples = minimum_risk._drawn(model, risk, seed, source[own], target[own]).numpy()
        width = samples.shape[-1]
        np.testing.assert_array_equal(samples[0], whole[row, :, :width])
        assert not whole[row, :, width:].any()
    assert not np.array_equal(whole[0], whole[1])


def test_a_recipe_asks_for_samples():
    text = SimpleNamespace(eos_id=EOS, unk_id=UNK)
    assert Risk.of(Recipe(), text) is None
    assert Risk.of(Recipe(risk_samples=7, seed=5), text) == Risk(7, EOS, UNK, 5)


def test_sampled_sub_words_are_refused():
    """Against them the right translation, split as usual, is a bad one."""
    refused(
        lambda: Recipe(risk_samples=5, sample_subwords=True), "sample_subwords", "True", "False"
    )


def test_two_samples_are_the_fewest():
    """One has all of Q, whatever the weights are: its gradient is 0."""
    refused(lambda: Recipe(risk_samples=1), "risk_samples", "1", "0")
    model = toy()
    for samples in (1, 2):
        risk = Risk(samples, EOS, UNK)
        seed = risk.at(tf.constant(0))
        with tf.GradientTape() as tape:
            value = minimum_risk_loss(model, TokenCrossentropy(), risk, seed, *batch())
        gradient = tape.gradient(value, model.trainable_weights)
        assert (float(tf.linalg.global_norm(gradient)) > 0) == (samples == 2)


def test_unknown_words_match_no_word(monkeypatch):
    """A reference of them alone has risk 1, for the same words, too."""
    target = tf.constant([[UNK, UNK, UNK, UNK, EOS]])
    monkeypatch.setattr(minimum_risk, "_drawn", lambda *_: target[None])
    pair = {"source": tf.constant(SOURCE[:1]), "target": target}, target, tf.ones([1, 5])
    for unk, wanted in ((UNK, 1.0), (8, 0.0)):
        risk, seed = Risk(2, EOS, unk), tf.constant(0, tf.int64)
        cost = minimum_risk_loss(toy(), TokenCrossentropy(), risk, seed, *pair)
        assert float(cost) == pytest.approx(wanted, abs=1e-6)
