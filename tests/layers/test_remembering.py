"""Attentions with a state in everything that a model does: `train` to exports."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from bahdanau_tf import Decoding, Translator, layers, trace
from bahdanau_tf.commands.main import main
from bahdanau_tf.models import token_log_probs

SENTENCES = ["one two three", "three", "two three one two"]
SIZES = ("units=8", "embedding_dim=6", "attention_units=5", "maxout_units=4", "batch_size=6")


@pytest.fixture(scope="module", params=["LocationAttention", "MonotonicAttention"])
def trained(request: Any, tmp_path_factory: Any) -> SimpleNamespace:
    """A model that `bahdanau-tf train` has trained for two epochs."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "source").write_text("one two\nthree\ntwo three one\n" * 8)
    (folder / "target").write_text("a b\nc\nb c a\n" * 8)
    flags = [f"--{flag}" for flag in (*SIZES, "epochs=2", "recipe=paper", "optimizer=adam")]
    texts = [f"--train_source={folder / 'source'}", f"--train_target={folder / 'target'}"]
    languages = ["--source_language=en", "--target_language=fr"]
    where = [f"--attention={request.param}", f"--model_dir={folder / 'model'}"]
    assert main(["train", *flags, *texts, *languages, *where]) == 0
    translator = Translator.load(folder / "model" / "best")
    return SimpleNamespace(name=request.param, folder=folder, translator=translator)


def test_all_weights_are_trained_on_the_plain_loop(trained: Any) -> None:
    decoder = trained.translator.model.decoder
    assert decoder.slow_part == trained.name
    assert isinstance(decoder.attention, getattr(layers, trained.name))
    for weight in decoder.attention.weights:
        assert np.abs(weight.numpy()).max() > 0


def test_search_gives_the_probabilities_of_scores(trained: Any) -> None:
    """So every hypothesis has read the weights of its own past."""
    translator = trained.translator
    best = translator.translate(SENTENCES, Decoding(beam_size=4, n_best=3, max_length=12))
    for sentence, first in zip(SENTENCES, best, strict=True):
        assert first.finished
        for hypothesis in (first, *first.alternatives):
            (scored,) = translator.score([sentence], [hypothesis.text])
            if hypothesis.finished:
                assert hypothesis.log_prob == pytest.approx(scored.log_prob, abs=1e-4)
    ids = [[2, 3, 4], [5, 4]]
    together = token_log_probs(translator.model, ids, ids)
    for row, alone in zip(together, ids, strict=True):
        np.testing.assert_allclose(
            row, token_log_probs(translator.model, [alone], [alone])[0], atol=1e-5
        )


def test_traced_weights_are_those_of_the_translation(trained: Any) -> None:
    (translation,) = trained.translator.translate(SENTENCES[:1])
    steps = trace(trained.translator, SENTENCES[0]).steps
    np.testing.assert_allclose(
        [step.weights for step in steps], translation.weights[: len(steps)], atol=1e-5
    )
    assert all(step.energies is not None for step in steps)


@pytest.mark.slow
def test_an_export_translates_alike(trained: Any, tmp_path: Path) -> None:
    version = trained.translator.export(tmp_path)
    served = tf.saved_model.load(str(version)).signatures["serving_default"]
    texts = served(text=tf.constant(SENTENCES))["translation"].numpy()
    wanted = trained.translator.translate(SENTENCES)
    assert [text.decode() for text in texts] == [translation.text for translation in wanted]
