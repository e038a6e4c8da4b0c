"""Training that begins with a trained model, on another text."""

import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import keras
import letters
import numpy as np
import pytest
import tensorflow as tf
from comparisons import all_equal
from letters import LETTERS, RECIPE, TextFiles, prepared, scored, train, weights
from oracle import randomized
from refusals import fails, refused
from toys import english, french

from bahdanau_tf import GeneralAttention, RNNSearch, Seq2SeqLSTM, Translator
from bahdanau_tf.commands.main import main
from bahdanau_tf.data.dataset import stream_batches
from bahdanau_tf.models.scoring import with_added_rows, with_new_vocabularies
from bahdanau_tf.text import SubwordTokenizer
from bahdanau_tf.text.subwords import copies
from bahdanau_tf.text.words import with_added_words
from bahdanau_tf.training import Training, callbacks, loop
from bahdanau_tf.translation import Lexicon
from bahdanau_tf.translation.habits import Habits

files = letters.files  # the fixture
GREEK = "αβγδεζηθ"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    letters.stand_in(monkeypatch)
    monkeypatch.setattr(callbacks, "evaluate", lambda *_: scored(1.0, 1.0))


def command(folder: Path, source: object, target: object, *flags: str) -> list[str]:
    text = [f"--train_source={source}", f"--train_target={target}"]
    return ["train", *text, f"--model_dir={folder}", *flags]


@pytest.fixture
def trained(tmp_path) -> Path:
    """A saved translator."""
    folder = tmp_path / "trained"
    translator = letters.make_translator()
    for weight in translator.model.trainable_weights:
        weight.assign_add(tf.random.stateless_normal(weight.shape, [1, 2]))
    translator.save(folder)
    return folder


def log_probs(model, source: list[int], target: list[int]) -> np.ndarray:
    """log p(y_i), float64 [T_y, K_y], of one sentence."""
    inputs = {"source": tf.constant([source]), "target": tf.constant([target])}
    logits = np.float64(model(inputs))[0]
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.parametrize(
    ("model_class", "options"),
    [
        (RNNSearch, {}),
        (RNNSearch, {"factored_output": False}),
        (RNNSearch, {"tie_embeddings": True}),
        (RNNSearch, {"copying": "hint"}),
        (Seq2SeqLSTM, {}),
    ],
)
def test_added_rows_change_nothing_at_first(model_class, options):
    """New words are read as unknown, and have a share of its probability."""
    source, target, unknown, added = english(), french(), 1, 3
    if model_class is RNNSearch:
        options = {"maxout_units": 6, **options}
    sizes = source.vocabulary_size, target.vocabulary_size, 8, 6
    model = randomized(model_class(*sizes, **options), 7, scale=0.7)
    if model.copying is not None:
        model.copying.copies.assign(copies(source, target))
    grown = with_added_rows(model, 2, added, (unknown, unknown))
    first, old = source.vocabulary_size, target.vocabulary_size
    before = log_probs(model, [4, unknown, 5, 2], [5, unknown, 3, 2])
    after = log_probs(grown, [4, first + 1, 5, 2], [5, old + 1, 3, 2])
    assert after.shape == (4, old + added)
    is_known = np.arange(old) != unknown
    np.testing.assert_allclose(after[:, :old][:, is_known], before[:, is_known], 1e-4)
    divided = before[:, [unknown]] - math.log(added + 1)
    for column in (unknown, *range(old, old + added)):
        np.testing.assert_allclose(after[:, [column]], divided, 1e-4)


@keras.saving.register_keras_serializable(package="test_fine_tuning")
class ScaledAttention(GeneralAttention):
    """Has a weight without axes."""

    def build(self, query_shape, annotations_shape):
        super().build(query_shape, annotations_shape)
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones")

    def score(self, query, keys):
        return self.scale * super().score(query, keys)


def test_rows_are_added_beside_a_weight_without_axes():
    attention = ScaledAttention()
    model = RNNSearch(9, 9, 8, 4, maxout_units=4, attention=attention)
    attention.scale.assign(3.0)
    grown = with_added_rows(model, 1, 1, (1, 1))
    assert float(grown.decoder.attention.scale) == 3.0


def test_a_model_without_shared_embeddings_gets_a_new_vocabulary():
    renewed = with_new_vocabularies(Seq2SeqLSTM(9, 9, 4, 4, layers=2), {"target": 13})
    assert renewed.target_vocabulary_size == 13


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    "options",
    [{}, {"factored_output": False}, {"tie_embeddings": True}, {"share_embeddings": True}],
)
def test_with_a_new_vocabulary_all_but_its_embeddings_is_kept(side, options):
    model = randomized(RNNSearch(9, 9, 8, 6, maxout_units=6, **options), 7, scale=0.7)
    renewed = with_new_vocabularies(model, {side: 13})
    kept = []
    for x in (model, renewed):
        embeddings = {y: getattr(x, f"{y}_embedding") for y in ("source", "target")}
        new = embeddings.pop(side)
        (other,) = embeddings.values()
        layers = (other, x.encoder, x.bridge, x.decoder, x.readout)
        every = [new.bias, *(weight for layer in layers for weight in layer.weights)]
        output = 13 if side == "target" else None
        kept.append(
            [y.numpy() for y in every if y.shape[0] not in (output, side == "target" and 9)]
        )
    all_equal(*kept)
    sizes = renewed.source_vocabulary_size, renewed.target_vocabulary_size
    assert sizes == ((13, 9) if side == "source" else (9, 13))
    inputs = {"source": tf.constant([[sizes[0] - 1]]), "target": tf.constant([[sizes[1] - 1]])}
    assert renewed(inputs).shape == (1, 1, sizes[1])


def test_a_text_of_other_letters_gets_a_vocabulary_of_its_own(files, trained, tmp_path, capsys):
    """The side that has them; the rest is kept, and the learning rate is that of a new model."""
    text, folder = tmp_path / "greek", tmp_path / "model"
    capitals = Path(files.train_target).read_text("utf-8")
    text.write_text(
        capitals.translate(dict(zip(map(ord, "ABCDEFGH"), GREEK, strict=True))), "utf-8"
    )
    start = f"--init_from={trained}"
    words = command(folder, files.train_source, text, "--dev_pairs=0")
    fails(capsys, [*words, start, "--added_words=1"], "--added_words: ")
    assert main([*words, start, "--updates=3"]) == 0
    err = capsys.readouterr().err
    assert "cannot read the letters of the target" in err
    assert "\n  the learning rate of a new model" in err
    assert "learning rate 0.002" in err
    old, new = Translator.load(trained), Translator.load(folder / "start")
    assert new.source_text.vocabulary.tokens == old.source_text.vocabulary.tokens
    assert {*new.target_text.vocabulary.tokens[3:]} == {*GREEK}
    kept = ("source_embedding", "encoder", "bridge", "decoder")
    all_equal(*([y for x in kept for y in getattr(z.model, x).get_weights()] for z in (new, old)))
    assert main([*words, "--updates=4"]) == 0
    assert "resuming from update 3" in capsys.readouterr().err


def test_models_that_take_no_more_words_are_refused():
    shared = RNNSearch(9, 9, 4, 4, 4, 4, share_embeddings=True)
    refused(lambda: with_added_rows(shared, 1, 1, (1, 1)), "share_embeddings", "True")
    refused(lambda: with_added_rows(keras.layers.Dense(1), 1, 1, (1, 1)), "Dense", "model")


def test_the_most_frequent_unknown_words_are_added(tmp_path):
    """Known words keep their ids, also where they carry a sign."""
    tokenizer = french()
    path = tmp_path / "text"
    lines = ["le loup voit un loup", "l'ours, le chat un ours", "le [ ."]
    path.write_text("".join(f"{line}\n" for line in lines))
    every = with_added_words(tokenizer, [path], 99)
    old = tokenizer.vocabulary.tokens
    assert every.vocabulary.tokens[: len(old)] == old
    assert every.vocabulary.tokens[len(old) :][:2] == ["loup", "ours"]
    assert every.coverage([path]).share == 1
    assert every.language == "fr"
    two = with_added_words(tokenizer, [path], 2)
    assert two.vocabulary.tokens == every.vocabulary.tokens[: len(old) + 2]
    ids, more = (text.tokenize(lines).flat_values.numpy() for text in (tokenizer, two))
    assert np.all((more == ids) | (ids == tokenizer.unk_id) & (more >= len(old)))


def plan_of(
    files: TextFiles, folder: Path, init_from: object, added_words: int = 0, **user_options: object
) -> Training:
    start = {"init_from": str(init_from), "added_words": added_words} if init_from else {}
    return letters.asked(files, folder, **start, **user_options)


def test_a_training_begins_with_a_trained_model_and_resumes_without_it(files, trained, tmp_path):
    folder = tmp_path / "model"
    plan = plan_of(files, folder, trained)
    translator = prepared(plan)
    original = Translator.load(trained)
    all_equal(weights(translator), weights(original))
    train(translator, files, replace(RECIPE, epochs=1), folder)
    shutil.rmtree(trained)
    again = prepared(plan_of(files, folder, f"{trained}/"))
    result = train(again, files, replace(RECIPE, epochs=2), folder)
    assert result.steps == 20
    for name, *other in (("init_from", None), ("init_from", "x"), ("added_words", trained, 3)):
        refused(lambda own=other: prepared(plan_of(files, folder, *own)), name)


def test_dropout_is_that_of_the_new_training(files, trained, tmp_path):
    """If it is given; the other rates are the model's own."""

    def rates(folder: str, **user_options: object) -> tuple[float, float]:
        translator = prepared(plan_of(files, tmp_path / folder, trained, **user_options))
        all_equal(weights(translator), weights(Translator.load(trained)))
        model = translator.model
        return model.embedding_dropout.rate, model.readout_dropout.rate

    assert rates("given", embedding_dropout=0.25) == (0.25, 0.0)
    recipe = replace(
        plan_of(files, tmp_path / "recipe", trained), defaults={"readout_dropout": 0.5}
    )
    assert prepared(recipe).model.readout_dropout.rate == 0.0


def test_dropout_that_a_model_lacks_is_refused(files, tmp_path, capsys):
    text = english()
    size = text.vocabulary_size
    Translator(Seq2SeqLSTM(size, size, 4, 4), text, text).save(tmp_path / "lstm")
    words = command(tmp_path / "model", files.train_source, files.train_target)
    start = f"--init_from={tmp_path / 'lstm'}"
    fails(capsys, [*words, start, "--annotation_dropout=0.1"], "--annotation_dropout is not used")
    fails(capsys, [*words, start, "--state_dropout=0.1"], "--state_dropout is not used")
    assert not (tmp_path / "model").exists()


def test_the_lexicon_of_the_first_model_is_left_out(files, trained, tmp_path, capsys):
    old = Translator.load(trained)
    words = old.source_text.vocabulary_size
    old.lexicon = Lexicon(np.full([words, 1], -1), 4)
    old.save(trained)
    assert Translator.load(trained).lexicon is not None
    for added in (0, 1):
        plan = plan_of(files, tmp_path / f"model-{added}", trained, added)
        assert prepared(plan).lexicon is None
        assert "'s lexicon is not used" in capsys.readouterr().err


def test_the_doubts_of_the_first_model_are_kept(files, trained, tmp_path):
    """Its words are known; without a dev text its scores stay."""
    old = Translator.load(trained)
    habits = Habits(50, None, [9], [[0.5] * 21], 0.5, "z", "z", None, languages=["en", "fr"])
    old.habits = replace(habits, changed=[])
    old.save(trained)
    translator = prepared(plan_of(files, tmp_path / "model", trained))
    assert translator.habits == old.habits
    train(translator, files, replace(RECIPE, epochs=1), tmp_path / "model")
    new = Translator.load(tmp_path / "model").habits
    assert {"z", "a"} <= {*new.vocabulary.split()}
    assert new.translated is None


def test_the_command_adds_words_and_resumes_without_the_first_folder(
    files, trained, tmp_path, monkeypatch, capsys
):
    """The new text has three letters more, of which two are added."""
    monkeypatch.chdir(trained.parent)
    text = tmp_path / "text"
    text.write_text("a i b\ni j i\nc j k\nd a b\n" * 30)
    folder = tmp_path / "model"
    words = command(folder, text, text, "--dev_pairs=0")
    first = [f"--init_from={trained.name}", "--added_words=2", "--updates=3"]
    assert main([*words, *first, "--readout_dropout=0.35"]) == 0
    err = capsys.readouterr().err
    assert "learning rate 0.0002" in err
    assert "sub-words" not in err
    best = Translator.load(folder)
    assert best.source_text.vocabulary.tokens[-2:] == ["i", "j"]
    assert best.source_text.vocabulary_size == 3 + len(LETTERS) + 2
    assert best.model.source_vocabulary_size == 3 + len(LETTERS) + 2
    shutil.rmtree(trained)
    monkeypatch.chdir(tmp_path)
    first[0] = f"--init_from={os.path.relpath(trained)}"
    assert main([*words, "--updates=4"]) == 0
    assert "resuming from update 3" in capsys.readouterr().err
    assert Translator.load(folder).model.readout_dropout.rate == 0.35
    fails(capsys, [*words, "--readout_dropout=0.3", "--updates=5"], "readout_dropout")
    assert main([*words, *first[:2], "--updates=5"]) == 0
    fails(capsys, [*words, "--units=5"], "--units is not used with --init_from")
    fails(capsys, [*words, "--init_from=x"], "--init_from is '")


def test_folders_without_a_model_are_refused(files, trained, tmp_path, capsys):
    folder = tmp_path / "model"
    for name in (tmp_path / "nothing", tmp_path):
        words = command(folder, files.train_source, files.train_target, f"--init_from={name}")
        fails(capsys, words, "train: --init_from: ")
    assert not folder.exists()


def test_words_are_not_sampled(files, trained, tmp_path, monkeypatch):
    plan = plan_of(files, tmp_path / "model", trained, sample_subwords=True)
    refused(lambda: prepared(plan), "sample_subwords", "words")
    assert not (tmp_path / "model").exists()
    words = Translator.load(trained)
    monkeypatch.setattr(loop, "stream_batches", stream_batches)
    refused(
        lambda: train(words, files, plan.recipe, tmp_path / "model"),
        "sample_subwords",
        "True",
        "False",
    )
    assert not (tmp_path / "model").exists()


def test_sub_words_take_no_words(files, tmp_path, capsys):
    text = SubwordTokenizer.train([files.train_source], 300)
    size = text.vocabulary_size
    model = RNNSearch(size, size, 4, 4, 4, 4)
    Translator(model, text, text).save(tmp_path / "trained")
    plan = plan_of(files, tmp_path / "model", tmp_path / "trained", 5)
    refused(lambda: prepared(plan), "added_words", "sub-words")
    assert not (tmp_path / "model" / "text.json").exists()
