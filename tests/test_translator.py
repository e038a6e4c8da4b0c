"""Strings to strings: order, neighbours, blanks, saving, export."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bahdanau_tf import Decoding
from bahdanau_tf import RNNEncDec
from bahdanau_tf import RNNSearch
from bahdanau_tf import Translator
from bahdanau_tf import Vocabulary
from bahdanau_tf import WordTokenizer
from bahdanau_tf import token_log_probs

SPECIAL = ["[PAD]", "[UNK]", "[END]"]
ENGLISH = ["the", "cat", "dog", "sees", "sleeps", "a", "red", "."]
FRENCH = ["le", "chat", "chien", "voit", "dort", "un", "rouge", ".", "l'"]
ODD = [
    "the cat sleeps.",
    "",
    "   ",
    "the red dog sees a cat.",
    "nothing known here, at all",
    "e\u0301\u200b \u202e\U0001f600",
    "the " * 300,
    "cat",
]


def make_translator(model_class: type = RNNSearch) -> Translator:
    """A model whose weights are large enough to prefer some words."""
    source = WordTokenizer(Vocabulary([*SPECIAL, *ENGLISH]), language="en")
    target = WordTokenizer(Vocabulary([*SPECIAL, *FRENCH]), language="fr")
    model = model_class(
        source.vocabulary_size,
        target.vocabulary_size,
        units=8,
        embedding_dim=6,
        maxout_units=4,
    )
    random = np.random.default_rng(7)
    for weight in model.weights:
        weight.assign(random.normal(0.0, 0.7, weight.shape))
    return Translator(model, source, target, Decoding(max_length=20))


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator()


def test_each_sentence_is_translated_as_if_alone(translator):
    together = translator.translate(ODD)
    small_batches = translator.translate(ODD, batch_size=3)
    for sentence, one, other in zip(ODD, together, small_batches, strict=True):
        (alone,) = translator.translate([sentence])
        assert one.source == sentence
        assert one.text == other.text == alone.text
        assert one.score == pytest.approx(alone.score, abs=1e-4)


def test_no_words_in_no_words_out(translator):
    for translation in translator.translate(["", "  ", "\u3000", "\t"]):
        assert translation.text == ""
        assert translation.tokens == []
        assert translation.score == 0.0
    assert translator.translate([]) == []


def test_one_string_is_refused(translator):
    with pytest.raises(ValueError, match="sequence of strings"):
        translator.translate("the cat")


def test_scores_are_the_models_own(translator):
    """log p(y | x) of a translation, computed with teacher forcing."""
    sentences = ["the cat sleeps.", "a red dog sees the cat."]
    decoding = Decoding(beam_size=4, n_best=4, max_length=20)
    for best in translator.translate(sentences, decoding):
        source = translator.source_text.tokenize(tf.constant([best.source]))
        for found in [best, *best.alternatives]:
            ids = translator.target_text.vocabulary.ids(
                tf.constant(found.tokens)
            ).numpy()
            # Tokens with a meaning of their own are spelled by their names.
            ids[np.array(found.tokens) == "[UNK]"] = 1
            target = [*ids.tolist(), *([2] if found.finished else [])]
            (log_probs,) = token_log_probs(
                translator.model, source.to_list(), [target]
            )
            assert found.log_prob == pytest.approx(log_probs.sum(), abs=1e-3)
            penalty = ((5 + len(target)) / 6) ** decoding.alpha
            assert found.score == pytest.approx(
                log_probs.sum() / penalty, abs=1e-3
            )


def test_n_best_is_sorted_and_distinct(translator):
    decoding = Decoding(beam_size=5, n_best=5, max_length=20)
    (best,) = translator.translate(["the cat sees a dog."], decoding)
    found = [best, *best.alternatives]
    done = [t.score for t in found if t.finished]
    assert done == sorted(done, reverse=True)
    assert len({tuple(t.tokens) for t in found}) == len(found)


def test_weights_and_offsets_belong_to_the_sentence(translator):
    sentence = "  the caf\u00e9 cat\u2009sleeps."
    data = sentence.encode()
    (short, _) = translator.translate([sentence, "the cat " * 20])
    assert [
        data[start:end].decode() for start, end in short.source_offsets
    ] == short.source_tokens
    length = len(short.tokens) + short.finished
    assert short.weights.shape == (length, len(short.source_tokens) + 1)
    np.testing.assert_allclose(short.weights.sum(1), 1.0, atol=1e-5)


def test_unknown_words_can_be_forbidden(translator):
    sentences = ["the cat sees.", "zyx zyx", "a red red dog."]
    for translation in translator.translate(
        sentences, Decoding(unknown="forbid", max_length=20)
    ):
        assert "[UNK]" not in translation.tokens


def test_greedy_is_a_beam_of_one(translator):
    (greedy,) = translator.translate(["the cat."], Decoding(beam_size=1))
    step_by_step = []
    source = translator.source_text.tokenize(tf.constant(["the cat."]))
    for _ in range(len(greedy.tokens)):
        inputs = {
            "source": source.to_tensor(),
            "target": tf.constant([[*step_by_step, 1]]),
        }
        logits = translator.model(inputs)[0, -1].numpy()
        step_by_step.append(int(logits[1:].argmax()) + 1)
    words = translator.target_text.ids_to_tokens(tf.constant(step_by_step))
    assert greedy.tokens == [word.decode() for word in words.numpy()]


@pytest.mark.parametrize("model_class", [RNNSearch, RNNEncDec])
def test_save_and_load(tmp_path, model_class):
    translator = make_translator(model_class)
    translator.save(tmp_path / "saved")
    translator.save(tmp_path / "saved")  # in place of the first
    loaded = Translator.load(tmp_path / "saved")
    assert loaded.decoding == translator.decoding
    for before, after in zip(
        translator.translate(ODD), loaded.translate(ODD), strict=True
    ):
        assert before.text == after.text
        assert before.score == pytest.approx(after.score, abs=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"]


def test_no_alignment_without_attention():
    (translation,) = make_translator(RNNEncDec).translate(["the cat."])
    assert translation.weights is None


def test_load_says_what_is_wrong(tmp_path, translator):
    with pytest.raises(ValueError, match="holds no translator"):
        Translator.load(tmp_path / "nothing")
    translator.save(tmp_path / "newer")
    path = tmp_path / "newer" / "translator.json"
    description = json.loads(path.read_text())
    path.write_text(json.dumps({**description, "format_version": 99}))
    with pytest.raises(ValueError, match="format version 99"):
        Translator.load(tmp_path / "newer")


def test_text_and_model_must_fit(translator):
    wrong = WordTokenizer(Vocabulary([*SPECIAL, "one"]), language="fr")
    with pytest.raises(ValueError, match="target_text has 4 ids"):
        Translator(translator.model, translator.source_text, wrong)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("beam_size", 0),
        ("n_best", 6),
        ("alpha", -1.0),
        ("max_length_ratio", 0.0),
        ("max_length", 0),
    ],
)
def test_decoding_names_a_bad_option(option, value):
    with pytest.raises(ValueError, match=f"Decoding: {option} is {value}"):
        Decoding(**{option: value})


RELOAD = """
import json, sys
import tensorflow as tf
import tensorflow_text
assert not [m for m in sys.modules if m.startswith("bahdanau")]
translate = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
found = translate(text=tf.constant(json.load(sys.stdin), tf.string))
empty = translate(text=tf.constant([], tf.string))
print(json.dumps({
    "texts": [text.decode() for text in found["translation"].numpy().tolist()],
    "scores": found["score"].numpy().tolist(),
    "empty": [len(value) for value in empty.values()],
}))
"""


@pytest.mark.parametrize("model_class", [RNNSearch, RNNEncDec])
def test_saved_model_translates_the_same_without_this_package(
    tmp_path, model_class
):
    translator = make_translator(model_class)
    assert translator.export(tmp_path / "base").name == "1"
    version = translator.export(tmp_path / "base")
    assert version.name == "2"
    moved = version.rename(tmp_path / "moved")
    done = subprocess.run(
        [sys.executable, "-c", RELOAD, str(moved)],
        input=json.dumps(ODD),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = translator.translate(ODD)
    assert found["texts"] == [translation.text for translation in expected]
    assert found["empty"] == [0, 0]
    known = [t.score for t in expected if t.tokens]
    given = [
        score
        for score, t in zip(found["scores"], expected, strict=True)
        if t.tokens
    ]
    np.testing.assert_allclose(given, known, atol=1e-4)
    assert Path(moved, "saved_model.pb").is_file()
