"""The model in CONTRIBUTING.md can do what the package's own models can."""

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import write_lines
from oracle import randomized
from toys import translated

from bahdanau_tf import (
    Decoding,
    Ensemble,
    Lexicon,
    Recipe,
    RNNSearch,
    StepwiseModel,
    TranslationModel,
    Translator,
    Vocabulary,
    WordTokenizer,
    token_log_probs,
    train,
)
from bahdanau_tf.data import ParallelCorpus
from bahdanau_tf.serving.limits import LimitedText
from bahdanau_tf.text.tokenizer import Tokenizer

CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
WORDS = ["[PAD]", "[UNK]", "[END]", "one", "two", "three", "four"]
PAIRS = [["one", "two"], ["two", "one"], ["three"], ["four", "three", "one"]]
SOURCE = np.array([[3, 4, 2], [5, 2, 0]], "int32")
TARGET = np.array([[4, 3, 2], [6, 2, 0]], "int32")


def block() -> str:
    page = CONTRIBUTING.read_text(encoding="utf-8")
    section = page.split("## A model\n")[1].split("\n## ")[0]
    (code,) = re.findall(r" +```python\n(.*?) +```", section, re.DOTALL)
    return textwrap.dedent(code)


@pytest.fixture(scope="module")
def make() -> Iterator[Any]:
    """The class of the page, imported from a module as a user's would be."""
    module = ModuleType("minimal_model_of_the_page")
    sys.modules[module.__name__] = module
    exec(compile(block(), str(CONTRIBUTING), "exec"), module.__dict__)
    yield module.MeanModel
    del sys.modules[module.__name__]
    keras.saving.get_custom_objects().pop("examples>MeanModel")


@pytest.fixture(scope="module")
def trained(make: Any, tmp_path_factory: Any) -> SimpleNamespace:
    """A model that learns to copy, trained with `train`."""
    folder = tmp_path_factory.mktemp("minimal")
    for name in ("train.a", "train.b"):
        write_lines(folder / name, map(" ".join, PAIRS * 4))
    text = WordTokenizer(Vocabulary(WORDS), language="en")
    keras.utils.set_random_seed(1)
    model = make(len(WORDS), len(WORDS))
    before = [weight.numpy() for weight in model.weights]
    translator = Translator(model, text, text, Decoding(2, max_length=5))
    corpus = ParallelCorpus(folder / "train.a", folder / "train.b")
    recipe = Recipe(epochs=2, batch_size=4, optimizer="adam")
    result = train(translator, corpus, recipe, folder / "model")
    return SimpleNamespace(
        model=model, before=before, translator=translator, folder=folder, result=result
    )


def test_it_is_short_and_follows_the_protocol(make: Any) -> None:
    lines = [line for line in block().split("\n") if line]
    assert len(lines) <= 40
    assert isinstance(make(7, 7), TranslationModel)


def test_tokenizers_follow_their_protocol() -> None:
    text = WordTokenizer(Vocabulary(WORDS))
    assert isinstance(text, Tokenizer)
    assert isinstance(LimitedText(text, 5), Tokenizer)
    assert not isinstance(Vocabulary(WORDS), Tokenizer)


def test_it_trains(trained: Any) -> None:
    assert trained.result.steps == 8
    for old, weight in zip(trained.before, trained.model.weights, strict=True):
        assert np.abs(weight.numpy() - old).max() > 1e-4


def test_it_translates_scores_and_reloads(trained: Any) -> None:
    loaded = Translator.load(trained.folder / "model" / "best")
    for translation, again in zip(
        trained.translator.translate(["one two", "three"]),
        loaded.translate(["one two", "three"]),
        strict=True,
    ):
        assert (translation.text, translation.score) == (again.text, again.score)
    (scored,) = loaded.score(["one two"], ["two one"])
    model = trained.model
    (wanted,) = token_log_probs(model, [[3, 4, 2]], [[4, 3, 2]])
    np.testing.assert_allclose(scored.token_log_probs, wanted, atol=1e-6)
    logits = model({"source": SOURCE, "target": TARGET}).numpy()[0]
    by_hand = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(wanted, by_hand[np.arange(3), TARGET[0]], atol=1e-5)


def test_it_can_be_in_an_ensemble_with_other_models(trained: Any) -> None:
    other = RNNSearch(7, 7, 4, 3, attention_units=2, maxout_units=2)
    inputs = {"source": SOURCE, "target": TARGET}
    joined = Ensemble([trained.model, other])(inputs)
    mean = sum(tf.nn.softmax(model(inputs)).numpy() for model in (trained.model, other))
    np.testing.assert_allclose(tf.nn.softmax(joined), mean / 2, atol=1e-6)


@pytest.mark.parametrize("joined", [False, True], ids=["alone", "ensemble"])
def test_it_can_use_a_shortlist(trained: Any, joined: bool) -> None:
    """A shortlist of all words changes nothing; of some, it excludes others."""
    plain = trained.translator
    if joined:
        plain = Translator.ensemble([plain, plain])
    decoding, sentences = replace(plain.decoding, shortlist=True, n_best=2), ["one two", "three"]
    translations = {}
    for last, words in (("all", [4, 5, 6]), ("some", [6, -1, -1])):
        table = np.tile(words, (len(WORDS), 1))
        table[0] = -1
        short = Translator(plain.model, plain.source_texts, plain.target_text, decoding)
        short.lexicon = Lexicon(table, first=4)
        translations[last] = translated(short, decoding, sentences)
    wanted = translated(plain, replace(decoding, shortlist=False), sentences)
    texts = [result.texts.numpy().tolist() for result in (translations["all"], wanted)]
    assert texts[0] == texts[1]
    np.testing.assert_allclose(translations["all"].result.scores, wanted.result.scores, atol=1e-5)
    lines = translations["some"].texts.numpy().flat
    words = {word for line in lines for word in line.split()}
    assert words
    assert not words & {b"two", b"three"}


@pytest.mark.slow
def test_it_is_exported(trained: Any, tmp_path: Path) -> None:
    version = trained.translator.export(tmp_path)
    served = tf.saved_model.load(str(version)).signatures["serving_default"]
    translations = served(text=tf.constant(["one two"]))["translation"].numpy()
    (wanted,) = trained.translator.translate(["one two"])
    assert translations[0].decode() == wanted.text


@pytest.mark.parametrize("order", ["original", "main-text"])
def test_features_step_by_step_equal_features_of_the_whole_sentence(order: str) -> None:
    """The default `StepwiseModel.features` equals a model's own `features`."""
    model = RNNSearch(7, 7, 4, 3, attention_units=2, maxout_units=2, step_order=order)
    randomized(model, 0, scale=0.7)
    inputs = {"source": tf.constant(SOURCE), "target": tf.constant(TARGET)}
    words = tf.constant([0, 1, 2, 3, 4])
    for some_words in (None, words):
        wanted, alignment = model.features(inputs, words=some_words)
        features, weights = tf.function(StepwiseModel.features)(model, inputs, words=some_words)
        np.testing.assert_allclose(features, wanted, atol=1e-5)
        np.testing.assert_allclose(weights, alignment, atol=1e-5)
