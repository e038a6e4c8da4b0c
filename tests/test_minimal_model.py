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
from comparisons import all_close, write_lines
from oracle import randomized

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
from bahdanau_tf.serving.limits import LimitedText
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.training import TrainingFiles
from bahdanau_tf.translation import Translated

CONTRIBUTING = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
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
def trained(make, tmp_path_factory) -> SimpleNamespace:
    """A model that learns to copy, trained with `train`."""
    folder = tmp_path_factory.mktemp("minimal")
    files = TrainingFiles(
        *(write_lines(folder / name, map(" ".join, PAIRS * 4)) for name in ("train.a", "train.b"))
    )
    text = WordTokenizer(Vocabulary(WORDS), language="en")
    keras.utils.set_random_seed(1)
    model = make(len(WORDS), len(WORDS))
    before = model.get_weights()
    translator = Translator(model, text, text, Decoding(2, max_length=5))
    recipe = Recipe(epochs=2, batch_size=4, optimizer="adam")
    result = train(translator, files, recipe, folder / "model")
    return SimpleNamespace(
        model=model, before=before, translator=translator, folder=folder, result=result
    )


def test_it_is_short_and_follows_the_protocol(make):
    lines = [line for line in block().split("\n") if line]
    assert len(lines) <= 40
    assert isinstance(make(7, 7), TranslationModel)


def test_tokenizers_follow_their_protocol():
    text = WordTokenizer(Vocabulary(WORDS))
    assert isinstance(text, Tokenizer)
    assert isinstance(LimitedText(text, 5), Tokenizer)
    assert not isinstance(Vocabulary(WORDS), Tokenizer)


def test_it_trains(trained):
    assert trained.result.steps == 8
    for old, weight in zip(trained.before, trained.model.weights, strict=True):
        assert np.abs(weight.numpy() - old).max() > 1e-4


def test_it_translates_scores_and_reloads(trained):
    loaded = Translator.load(trained.folder / "model" / "best")
    translations = (x.translate(["one two", "three"]) for x in (trained.translator, loaded))
    for own, again in zip(*translations, strict=True):
        assert (own.text, own.score) == (again.text, again.score)
    (scored,) = loaded.score(["one two"], ["two one"])
    model = trained.model
    (wanted,) = token_log_probs(model, [[3, 4, 2]], [[4, 3, 2]])
    np.testing.assert_allclose(scored.token_log_probs, wanted, atol=1e-6)
    logits = model({"source": SOURCE, "target": TARGET}).numpy()[0]
    by_hand = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(wanted, by_hand[np.arange(3), TARGET[0]], atol=1e-5)


def test_it_can_be_in_an_ensemble_with_other_models(trained):
    other = RNNSearch(7, 7, 4, 3, attention_units=2, maxout_units=2)
    inputs = {"source": SOURCE, "target": TARGET}
    joined = Ensemble([trained.model, other])(inputs)
    mean = sum(tf.nn.softmax(model(inputs)).numpy() for model in (trained.model, other))
    np.testing.assert_allclose(tf.nn.softmax(joined), mean / 2, atol=1e-6)


@pytest.mark.parametrize("joined", [False, True], ids=["alone", "ensemble"])
def test_it_can_use_a_shortlist(trained, joined):
    """A shortlist of all words changes nothing; of some, it excludes others."""
    plain = trained.translator
    if joined:
        plain = Translator.ensemble([plain, plain])
    decoding = replace(plain.decoding, shortlist=True, n_best=2)

    def with_words(*words: int) -> Translated:
        table = np.tile(words, (len(WORDS), 1))
        table[0] = -1
        parts = plain.model, plain.source_texts, plain.target_text
        lexicon = Lexicon(table, first=4)
        return searched(Translator(*parts, decoding, lexicon=lexicon), decoding)

    result, wanted = with_words(4, 5, 6), searched(plain, replace(decoding, shortlist=False))
    assert result.texts.numpy().tolist() == wanted.texts.numpy().tolist()
    np.testing.assert_allclose(result.result.scores, wanted.result.scores, atol=1e-5)
    words = {word for line in with_words(6).texts.numpy().flat for word in line.split()}
    assert words
    assert not words & {b"two", b"three"}


def searched(translator: Translator, decoding: Decoding) -> Translated:
    """Two translations, eagerly: a graph costs more than such a search."""
    sentences = tf.constant(["one two", "three"])
    return translator.graph.translate_graph(sentences, decoding)


@pytest.mark.slow
def test_it_is_exported(trained, tmp_path):
    version = trained.translator.export(tmp_path)
    served = tf.saved_model.load(str(version)).signatures["serving_default"]
    found = served(text=tf.constant(["one two"]))["translation"].numpy()
    (wanted,) = trained.translator.translate(["one two"])
    assert found[0].decode() == wanted.text


@pytest.mark.parametrize("order", ["original", "main-text"])
def test_features_step_by_step_equal_features_of_the_whole_sentence(order):
    """The default `StepwiseModel.features` equals a model's own `features`."""
    model = RNNSearch(7, 7, 4, 3, attention_units=2, maxout_units=2, step_order=order)
    randomized(model, 0, scale=0.7)
    inputs = {"source": tf.constant(SOURCE), "target": tf.constant(TARGET)}
    for words in (None, tf.constant([0, 1, 2, 3, 4])):
        wanted = model.features(inputs, words=words)
        stepwise = tf.function(StepwiseModel.features)(model, inputs, words=words)
        all_close(stepwise, wanted, atol=1e-5)
