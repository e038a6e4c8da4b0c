"""Every engine translates as the eager graph does, and that as the equations say."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from engines import ENGINES, MODELS, lacks
from refusals import refused
from toys import with_alternatives

from bahdanau_tf import Decoding, Translation, Translator, token_log_probs
from bahdanau_tf.commands import main as cli
from bahdanau_tf.options.decoding import WITHOUT_TENSORFLOW
from bahdanau_tf.runtime import Translator as Runtime
from bahdanau_tf.runtime.page import page_of

pytestmark = pytest.mark.usefixtures("eager_search")
pytest.importorskip("tensorflow_text", reason="needs tensorflow-text")

SENTENCES = [
    *("the red cat sleeps.", "", " \t\u3000", "dog", "a dog é猫 sleeps", "Zoé  the\u2009dog "),
    *("the cat sees a red dog. The red cat sleeps!", "e\u0301\u200b \u202e\U0001f600", "cat"),
]
PREFIXES = ["Le chat", "le", "", "un chat", "l'Zyx", "", "a 猫 le", "a"]
PREFIXES.append("le " * 9 + "猫 rouge dort.")
# Options of search, and the models that translate with them, in all engines that have both.
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "own": ({}, ("words", "original", "ensemble", "characters")),
    "greedy": ({"beam_size": 1}, ("words", "conditional", "characters")),
    "wide": (
        {"beam_size": 12, "max_length": 7, "n_best": 5, "alpha": 0.0, "unknown": "keep"},
        ("words", "appendix"),
    ),
    "ratio": (
        {"beam_size": 3, "n_best": 2, "max_length_ratio": 0.7, "max_length": 30},
        ("original", "main-text"),
    ),
    "shrink": (
        {"beam_size": 3, "shrink": True, "n_best": 3, "max_length": 12},
        ("main-text", "conditional"),
    ),
    "coverage": (
        {"beam_size": 4, "beta": 0.4, "min_length_ratio": 1.0, "unknown": "forbid", "n_best": 2},
        ("words", "appendix", "conditional"),
    ),
    "ngrams": ({"no_repeated_ngrams": 2, "unknown": "forbid", "max_length": 12}, ("words",)),
    "shortlist": (
        {"beam_size": 4, "shortlist": True, "n_best": 2},
        ("original", "appendix", "conditional"),
    ),
    "sampling": (
        {"sampling": True, "n_best": 2, "seed": 3, "unknown": "keep"},
        ("words", "original"),
    ),
    "prefixes": (
        {"prefixes": PREFIXES, "n_best": 2},
        ("words", "ensemble", "appendix", "conditional"),
    ),
    "prefixes in a shortlist": (
        {"prefixes": PREFIXES, "shortlist": True, "unknown": "forbid"},
        ("words", "original"),
    ),
    "texts": ({"split_sentences": True, "n_best": 2}, ("words", "main-text")),
}
EVERY = [(model, case) for case, (_, models) in CASES.items() for model in models]


@functools.cache
def own(model: str) -> Translator:
    return MODELS[model]()


@functools.cache
def eager(model: str, case: str) -> list[Translation]:
    return own(model).translate(SENTENCES, **CASES[case][0])


@pytest.fixture(scope="module")
def engines(tmp_path_factory) -> Callable[[str, str], Callable[..., Any]]:
    """An engine of a model, made once."""

    @functools.cache
    def made(name: str, model: str) -> Callable[..., Any]:
        return ENGINES[name](own(model), tmp_path_factory.mktemp("engine"))

    return made


def cut(text: str, offsets: Any) -> list[str]:
    data = text.encode()
    return [data[start:end].decode(errors="replace") for start, end in offsets]


def check(x: Translation, decoding: Decoding, prefix: str) -> None:
    """What holds of every translation of a sentence."""
    if not x.source_tokens:
        assert x == Translation(x.source)
        return
    every = with_alternatives(x)
    assert len(every) <= decoding.n_best
    if not decoding.sampling:
        assert len({(*y.tokens, y.log_prob) for y in every}) == len(every)
    ranks = [(not y.finished, -y.score) for y in every]
    assert ranks == sorted(ranks)
    for y in every:
        length = len(y.tokens) + y.finished
        read = len(x.source_tokens) + 1
        assert cut(y.source, y.source_offsets) == y.source_tokens
        assert cut(y.text, y.target_offsets) == y.tokens
        most = max(10, math.floor(decoding.max_length_ratio * read))
        most = min(most, decoding.max_length)
        assert y.finished or length >= most
        if not prefix:
            assert min(most, math.ceil(decoding.min_length_ratio * read)) <= length <= most
        penalty = ((5 + length) / 6) ** decoding.alpha
        covered = 0.0
        if y.weights is not None:
            assert y.weights.shape == (length, read)
            np.testing.assert_allclose(y.weights.sum(1), 1, atol=1e-5)
            covered = np.log(np.clip(y.weights.sum(0), 1e-6, 1.0)).sum()
        wanted = y.log_prob / penalty + decoding.beta * covered
        assert y.score == pytest.approx(wanted, abs=1e-4)
        if decoding.unknown == "forbid":
            assert "[UNK]" not in y.tokens
        if count := decoding.no_repeated_ngrams:
            ngrams = [y.tokens[n : n + count] for n in range(len(y.tokens) - count + 1)]
            assert len(ngrams) == len({*map(tuple, ngrams)})
        assert y.text.startswith(prefix) or prefix.startswith(y.text)


@pytest.mark.parametrize(("model", "case"), EVERY)
def test_a_translation_is_what_its_options_say(model, case):
    decoding = Decoding.with_options(
        own(model).decoding,
        {x: y for x, y in CASES[case][0].items() if x not in ("prefixes", "split_sentences")},
    )
    translations = eager(model, case)
    assert [x.source for x in translations] == SENTENCES
    for x, prefix in zip(translations, CASES[case][0].get("prefixes", [""] * 9), strict=True):
        if getattr(own(model).target_text, "tight", False):
            prefix = re.sub(" ?猫 ?", "猫", prefix)
        if "split_sentences" not in CASES[case][0] or "." not in x.source[:-1]:
            check(x, decoding, prefix)


@pytest.mark.parametrize(
    ("model", "case"),
    [
        *(("words", case) for case in ("wide", "coverage", "sampling", "prefixes")),
        # Their attention has a state: every hypothesis reads the weights of its own past.
        *(("location", "coverage"), ("monotonic", "wide")),
    ],
)
def test_scores_are_those_of_teacher_forcing(model, case):
    """log p(y | x) of a translation; the ensemble's are in models/test_ensemble.py."""
    ranked = [y for x in eager(model, case) if x.source_tokens for y in with_alternatives(x)]
    targets = [ids_of(x) for x in ranked]
    sources = own(model).source_text.tokenize([x.source for x in ranked]).to_list()
    log_probs = token_log_probs(own(model).model, sources, targets)
    for x, wanted in zip(ranked, log_probs, strict=True):
        assert x.log_prob == pytest.approx(wanted.sum(), abs=1e-3)


def ids_of(x: Translation) -> list[int]:
    ids = own("words").target_text.vocabulary.ids(tf.constant(x.tokens, tf.string)).numpy()
    ids[np.array(x.tokens) == "[UNK]"] = 1  # a special symbol, not a word of the vocabulary
    return [*ids.tolist(), *([2] if x.finished else [])]


def test_a_beam_of_one_is_greedy_by_the_logits():
    greedy = own("words").translate("the cat.", beam_size=1, unknown="keep")
    source, target = own("words").source_text.tokenize(["the cat."]), ids_of(greedy)
    inputs = {"source": source.to_tensor(), "target": tf.constant([target])}
    # The logits at a position depend on the words before it.
    logits = own("words").model(inputs)[0].numpy()
    assert target == (logits[:, 1:].argmax(1) + 1).tolist()


def test_only_words_after_the_prefix_are_looked_up():
    x = eager("words", "prefixes")[4]
    assert {y.tokens[1] for y in with_alternatives(x)} == {"Zyx"}
    assert any("ELSE" in y.tokens for y in with_alternatives(x))


@pytest.mark.parametrize("case", ["own", "sampling"])
def test_a_translation_does_not_depend_on_other_sentences(case):
    whole, options = eager("words", case), CASES[case][0]
    for x, y in zip(whole, own("words").translate(SENTENCES, batch_size=4, **options), strict=True):
        assert (x.text, x.finished) == (y.text, y.finished)
        assert x.score == pytest.approx(y.score, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "model", "case"),
    [
        (engine, *row)
        for engine, row in itertools.product(ENGINES, EVERY)
        if not lacks(engine, row[0], CASES[row[1]][0])
    ],
)
def test_every_engine_gives_the_same(engines, name, model, case):
    """In batches of other sentences, too."""
    pytest.importorskip("onnxruntime", reason="needs onnx and onnxruntime")
    actual = engines(name, model)(SENTENCES, **CASES[case][0])
    for x, y in zip(eager(model, case), actual, strict=True):
        for first, second in zip(with_alternatives(x), with_alternatives(y), strict=True):
            assert first.score == pytest.approx(second.score, abs=1e-4, rel=1e-5)
            assert first.text == second.text
            if name == "SavedModel":  # the rest: serving/test_serving.py
                continue
            assert first.log_prob == pytest.approx(second.log_prob, abs=1e-4, rel=1e-5)
            fields = "finished", "tokens", "target_offsets", "source_tokens", "source_offsets"
            for field in fields:
                assert getattr(first, field) == getattr(second, field)
            assert (first.weights is None) == (second.weights is None)
            if first.weights is not None:
                np.testing.assert_allclose(first.weights, second.weights, atol=1e-5)


# What is given and refused -------------------------------------------------

IN_PYTHON = "TensorFlow", "ONNX Runtime"


def runtime(engines: Callable[..., Any], model: str) -> Runtime:
    """The translator of ONNX Runtime, not only its method."""
    pytest.importorskip("onnxruntime", reason="needs onnx and onnxruntime")
    return engines("ONNX Runtime", model).func.__self__


@pytest.fixture(scope="module")
def both(engines) -> dict[str, Any]:
    """The model "original" in two engines, with few words."""
    return {"TensorFlow": own("original"), "ONNX Runtime": runtime(engines, "original")}


@pytest.mark.parametrize("engine", IN_PYTHON)
@pytest.mark.parametrize(
    "kind",
    [
        *(tuple, iter, np.array, tf.constant, lambda texts: np.array(texts, object)),
        lambda texts: np.array([text.encode() for text in texts]),
    ],
)
def test_sentences_may_be_any_sequence_of_strings(both, engine, kind):
    texts = ["the cat", "", "caf\u00e9"]
    translations = both[engine].translate(kind(texts), max_length=3)
    assert [x.source for x in translations] == texts
    assert {type(x.source) for x in translations} == {str}
    assert translations == both[engine].translate(texts, max_length=3)
    assert both[engine].translate(kind([]) if kind is not tf.constant else []) == []


@pytest.mark.parametrize("engine", IN_PYTHON)
def test_bytes_that_are_not_utf8_are_one_character(both, engine):
    """An invalid byte is one byte in the text, and three in U+FFFD."""
    data, options = b"caf\xe9 \xff\xfe the\x80", {"prefixes": "l\ufffd", "max_length": 7}
    x = both[engine].translate(data, **options)
    assert x.source == "caf\ufffd \ufffd\ufffd the\ufffd"
    assert x == both[engine].translate(x.source, **options)
    check(x, Decoding(max_length=7), "l\ufffd")


@pytest.mark.parametrize("engine", IN_PYTHON)
@pytest.mark.parametrize(
    ("sentences", "reason"),
    [
        ({"the cat"}, "set"),
        ({"the": "cat"}, "dict"),
        (np.array("the cat"), "one string"),
        (tf.constant("the cat"), "one string"),
        (3, "is 3"),
        (["the cat", None], "[1] is NoneType"),
        (["the cat", "\ud800"], "UTF-8"),
        (np.array([["the cat"]]), "[0] is ndarray"),
    ],
)
def test_sentences_that_are_no_sequence_of_strings_are_refused(both, engine, sentences, reason):
    refused(lambda: both[engine].translate(sentences), "Translator.translate: sentences", reason)
    refused(lambda: own("words").score([], sentences), "Translator.score: targets", reason)


@pytest.mark.parametrize("engine", IN_PYTHON)
@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"beam": 3}, ("beam", "beam_size?")),
        ({"decoding": 3}, ("decoding is 3", "beam_size=3")),
        ({"beam_size": 0}, ("Decoding: beam_size is 0",)),
        ({"prefixes": ["a", "b"]}, ("1 sentences, 2 prefixes",)),
        ({"prefixes": "a"}, ("prefixes is one string",)),
    ],
)
def test_options_of_a_call_are_refused(both, engine, options, parts):
    refused(lambda: both[engine].translate(["a dog"], **options), *parts)


def test_a_prefix_needs_a_target_in_reading_order(engines):
    for x in (own("main-text"), runtime(engines, "main-text")):
        refused(lambda own=x: own.translate("a", prefixes="b"), "target_text", "reversed")


def test_every_option_is_compared_or_refused_without_tensorflow():
    compared = {
        name
        for model, case in EVERY
        if not lacks("page", model, options := CASES[case][0])
        for name, value in options.items()
        if value != getattr(Decoding, name, None)
    }
    of_sampling = Decoding().unused()
    forgotten = {x.name for x in fields(Decoding)} - compared - {*WITHOUT_TENSORFLOW, *of_sampling}
    places = f"CASES of {__file__}, or WITHOUT_TENSORFLOW of options/decoding.py"
    assert not forgotten, f"{forgotten} must be in {places}"
    said = (Path(__file__).parents[1] / "docs" / "serve.md").read_text("utf-8")
    said = said.partition("are refused before anything is written")[0].rpartition("Other models")[2]
    assert not [name for name in WITHOUT_TENSORFLOW if name not in said], "docs/serve.md"


UNSUPPORTED = {bool: True, int: 2, str: "replace"}


@pytest.mark.parametrize(
    "options", [{name: UNSUPPORTED[type(x[0])]} for name, x in WITHOUT_TENSORFLOW.items()]
)
def test_what_needs_tensorflow_is_refused(both, options, tmp_path, capfd, monkeypatch):
    ((name, value),) = options.items()
    refused(
        lambda: both["ONNX Runtime"].translate(["a"], **options), f"Decoding: {name} is {value!r}"
    )
    monkeypatch.setattr(own("original"), "decoding", Decoding(**options))
    refused(lambda: page_of(own("original").graph), f"{name} is {value!r}", "page")
    flag, to = f"--{name}={value}", str(tmp_path / "new")
    for command in (["export", "--format=onnx", f"--export_dir={to}"], ["page", f"--output={to}"]):
        assert cli.main([*command, f"--model_dir={tmp_path}", flag]) == 2
        assert name in capfd.readouterr().err
