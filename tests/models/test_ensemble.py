"""Ensembles: mean of the members in decoding, scoring, saving and export."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from oracle import randomized
from refusals import refused
from toys import FRENCH, SPECIAL, english, french, search_eagerly

from bahdanau_tf import (
    Decoding,
    Ensemble,
    RNNEncDec,
    RNNSearch,
    Translator,
    Vocabulary,
    WordTokenizer,
)

SENTENCES = ["the cat sleeps.", "", "a red dog sees the cat.", "unheard of"]
INPUTS = {
    "source": tf.constant([[3, 4, 2, 0], [5, 1, 7, 2]]),
    "target": tf.constant([[3, 4, 5, 2], [6, 7, 5, 2]]),
}


def make_model(seed: int, model_class: type = RNNSearch, size: int = 11) -> Any:
    model = model_class(size, 12, units=8, embedding_dim=6, maxout_units=4, step_order="appendix")
    return randomized(model, seed, scale=0.7)


def make_translator(seed: int, **source_options: Any) -> Translator:
    source = english(**source_options)
    return Translator(make_model(seed), source, french(), Decoding(max_length=9))


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits.astype(np.float64))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("average", ["probability", "log_probability"])
def test_the_mean_is_of_probabilities_or_log_probabilities(average: str) -> None:
    members = [make_model(1), make_model(2, RNNEncDec), make_model(3)]
    probabilities = [softmax(model(INPUTS).numpy()) for model in members]
    if average == "probability":
        wanted = np.mean(probabilities, axis=0)
    else:
        product = np.prod(probabilities, axis=0) ** (1 / 3)
        wanted = product / product.sum(-1, keepdims=True)
    logits = Ensemble(members, average)(INPUTS).numpy()
    np.testing.assert_allclose(softmax(logits), wanted, atol=1e-6)


def test_alignment_is_the_mean_of_members_that_read_source_0() -> None:
    members = [make_model(1), make_model(2), make_model(3, size=7)]
    ensemble = Ensemble(members, sources=[0, 0, 1])
    other = tf.constant([[3, 2], [4, 2]])
    assert ensemble.source_vocabulary_size == (11, 7)
    memory, state = ensemble.encode((INPUTS["source"], other))
    ids = tf.fill([2, 1], 0)
    _, _, weights = ensemble.decode_step(ids, state, memory)
    wanted = []
    for model in members[:2]:
        memory, state = model.encode(INPUTS["source"])
        wanted.append(model.decode_step(ids, state, memory)[2].numpy())
    np.testing.assert_allclose(weights, np.mean(wanted, axis=0), atol=1e-6)
    assert ensemble.has_alignment
    assert not Ensemble([make_model(1, RNNEncDec)]).has_alignment


def test_keras_exports_an_ensemble_of_two_sources(tmp_path: Path) -> None:
    ensemble = Ensemble([make_model(1), make_model(2, size=7)], sources=[0, 1])
    ensemble.export(str(tmp_path), verbose=False)
    inputs = {
        "source": (INPUTS["source"], tf.constant([[3, 2], [4, 2]])),
        "target": INPUTS["target"],
    }
    loaded = tf.saved_model.load(str(tmp_path))
    logits = loaded.serve(inputs)
    np.testing.assert_allclose(logits, ensemble(inputs), rtol=1e-4)
    _, names = loaded.signatures["serving_default"].structured_input_signature
    assert names.keys() == {"source", "source_1", "target"}


def test_an_ensemble_of_one_member_repeated_equals_that_member(monkeypatch: Any) -> None:
    single = make_translator(5)
    ensemble = Translator.ensemble([single, single, single])
    assert len(ensemble.source_texts) == 1
    with monkeypatch.context() as patch:
        search_eagerly(patch)
        wanted = single.translate(SENTENCES)
    for alone, together in zip(wanted, ensemble.translate(SENTENCES), strict=True):
        assert alone.text == together.text
        assert alone.log_prob == pytest.approx(together.log_prob, abs=1e-4)
        assert alone.hard_alignment == together.hard_alignment


@pytest.mark.slow
def test_each_member_uses_its_own_source_tokenizer(tmp_path: Path) -> None:
    """Also when saved, loaded and exported; `score` uses the mean."""
    forward, reverse = make_translator(1), make_translator(2, reverse=True)
    ensemble = Translator.ensemble([forward, reverse, forward])
    assert ensemble.model.sources == (0, 1, 0)
    wanted = ensemble.translate(SENTENCES)
    ensemble.save(tmp_path / "saved")
    loaded = Translator.load(tmp_path / "saved")
    for before, after in zip(wanted, loaded.translate(SENTENCES), strict=True):
        assert before.text == after.text
        assert before.score == pytest.approx(after.score, abs=1e-4)
    version = ensemble.export(tmp_path / "export")
    served = tf.saved_model.load(version).signatures["serving_default"]
    texts = served(text=tf.constant(SENTENCES))["translation"].numpy()
    assert [text.decode() for text in texts] == [translation.text for translation in wanted]

    sources, targets = SENTENCES[:1], ["le chat dort."]
    log_probs = ensemble.score(sources, targets)[0].token_log_probs
    each = [
        np.exp(member.score(sources, targets)[0].token_log_probs)
        for member in (forward, reverse, forward)
    ]
    np.testing.assert_allclose(np.exp(log_probs), np.mean(each, axis=0), atol=1e-5)


def test_incompatible_members_are_refused() -> None:
    refused(lambda: Ensemble([]), "no members")
    refused(lambda: Ensemble([make_model(1)], average="median"), "average is 'median'")
    for sources in ([0], [0, 2], [1, 1]):
        with pytest.raises(ValueError, match="sources is"):
            Ensemble([make_model(1), make_model(2)], sources=sources)
    smaller = RNNSearch(11, 9, units=8, embedding_dim=6, maxout_units=4)
    refused(lambda: Ensemble([make_model(1), smaller]), "target_vocabulary_size", "[12, 9]")
    fewer = make_model(1, size=10)
    refused(lambda: Ensemble([make_model(1), fewer]), "source 0 is 11 and 10")
    of_two = Ensemble([make_model(1), fewer], sources=[0, 1])
    refused(lambda: Ensemble([of_two]), "a member has 2 sources")
    other = make_translator(1)
    other.target_text = WordTokenizer(Vocabulary([*SPECIAL, *FRENCH]), "en")
    refused(lambda: Translator.ensemble([make_translator(1), other]), "Translator.ensemble")
