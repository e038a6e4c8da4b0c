"""Lexicons and shortlists: learning, search, files, the command, errors."""

import os
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from comparisons import all_close
from oracle import randomized
from refusals import fails, refused
from toys import english, french, translated

from bahdanau_tf import Decoding, Ensemble, RNNEncDec, RNNSearch, SubwordTokenizer, Translator
from bahdanau_tf.commands import lexicon as lexicon_command
from bahdanau_tf.commands.lexicon import first_ids
from bahdanau_tf.commands.main import main
from bahdanau_tf.translation import Lexicon, Translated, learn_lexicon

pytestmark = pytest.mark.usefixtures("eager_search")

SENTENCES = ["the cat sleeps.", "", "a red dog sees the cat.", "cat", "unheard"]
FIRST = 5  # of 12 target words: [PAD] [UNK] [END] le chat
SOURCE_SIZE, TARGET_SIZE = 11, 12


def make_translator(seed: int = 7, lexicon: Lexicon | None = None, **options: Any) -> Translator:
    source, target = english(), french()
    model = RNNSearch(SOURCE_SIZE, TARGET_SIZE, units=8, embedding_dim=6, maxout_units=6, **options)
    randomized(model, seed, scale=0.7)
    decoding = Decoding(max_length=6)
    return Translator(model, source, target, decoding, lexicon=lexicon)


def some_words(seed: int = 0) -> np.ndarray:
    """At most two words for each source word."""
    random = np.random.default_rng(seed)
    words = random.integers(FIRST, TARGET_SIZE, (SOURCE_SIZE, 2))
    words[random.random(words.shape) < 0.3] = -1
    words[0] = -1
    return words


OF_WORDS = np.arange(SOURCE_SIZE)[:, None] > 0
ALL = [
    Lexicon(np.where(OF_WORDS, np.arange(FIRST, TARGET_SIZE), -1), FIRST),  # in another order
    Lexicon(np.full((SOURCE_SIZE, 1), -1), TARGET_SIZE),
]
SOME = Lexicon(some_words(), FIRST)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator(lexicon=SOME)


def batches(seed: int = 3) -> list[Any]:
    """Batches of random ids with padding, as from `make_dataset`."""
    random = np.random.default_rng(seed)
    pairs = []
    for rows, width, height in ((3, 5, 4), (2, 1, 6), (4, 7, 7)):
        source = random.integers(1, SOURCE_SIZE, (rows, width))
        target = random.integers(1, TARGET_SIZE, (rows, height))
        for row in range(rows):
            source[row, random.integers(1, width + 1) :] = 0
            target[row, random.integers(1, height + 1) :] = 0
        ids = {"source": source, "target": target}
        ids = {side: tf.constant(x, tf.int32) for side, x in ids.items()}
        pairs.append((ids, ids["target"]))
    return pairs


def translations(own: Translator, how: Decoding, sentences: Any = SENTENCES) -> Translated:
    return translated(own, how, sentences)


def assert_equal(ours: Translated, theirs: Translated) -> None:
    assert ours.texts.numpy().tolist() == theirs.texts.numpy().tolist()
    for name in ("tokens", "lengths", "finished"):
        np.testing.assert_array_equal(getattr(ours.result, name), getattr(theirs.result, name))
    scores = [[x.scores, x.log_probs, x.weights] for x in (ours.result, theirs.result)]
    all_close(*scores, atol=1e-4)


@pytest.mark.parametrize("at_once", [1, 2**20])
def test_a_source_word_keeps_the_target_words_with_most_attention(translator, monkeypatch, at_once):
    monkeypatch.setattr("bahdanau_tf.translation.shortlist.AT_ONCE", at_once)
    model = translator.model
    lexicon = learn_lexicon(model, batches(), words=3, first=FIRST)
    sums: Counter = Counter()
    for inputs, _ in batches():
        weights = model.hidden(inputs)[1].weights.numpy()
        source, target = inputs["source"].numpy(), inputs["target"].numpy()
        for b, i, j in np.ndindex(*weights.shape):
            if source[b, j] and target[b, i]:
                sums[source[b, j], target[b, i]] += float(weights[b, i, j])
    assert lexicon.first == FIRST
    for x in range(SOURCE_SIZE):
        wanted = [y for (word, y), _ in sums.most_common() if word == x and y >= FIRST]
        assert lexicon.words[x].tolist() == [*wanted, -1, -1, -1][:3]


def test_own_words_are_those_of_the_words_in_the_row():
    source = np.array([[3, 4, 2], [5, 2, 0], [1, 0, 0]], np.int32)
    own = SOME.own(tf.constant(source)).numpy()
    for row, words in zip(source, own, strict=True):
        wanted = {word for x in row for word in SOME.words[x].tolist()}
        assert {*words.tolist()} == wanted | {-1}
        assert len(words[words >= 0]) == len({*words[words >= 0].tolist()})


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(max_length=6, n_best=3),
        Decoding(max_length=6, beam_size=1),
        Decoding(max_length=6, no_repeated_ngrams=1),
        Decoding(max_length=6, min_length_ratio=1.0, unknown="forbid"),
        Decoding(max_length=6, unknown="replace", beta=0.3),
    ],
    ids=str,
)
def test_a_shortlist_of_all_words_equals_plain_search(decoding):
    plain = translations(make_translator(), decoding)
    for lexicon in ALL if decoding.n_best > 1 else ALL[:1]:
        translator = make_translator(lexicon=lexicon)
        assert_equal(plain, translations(translator, replace(decoding, shortlist=True)))


@pytest.mark.parametrize(
    "options",
    [{}, {"factored_output": False}, {"tie_embeddings": True}, {"dtype": "mixed_bfloat16"}],
    ids=str,
)
def test_probabilities_are_the_softmax_over_the_shortlist(options):
    """Greedy search, compared with logits of the allowed words only."""
    translator = make_translator(lexicon=SOME, **options)
    model, text = translator.model, translator.target_text
    source = translator.source_text.tokenize(["a red dog", "cat."]).to_tensor()
    decoding = Decoding(beam_size=1, max_length=5, shortlist=True)
    result = translator.graph.search(source, decoding)
    tolerance = 0.1 if options.get("dtype") else 1e-4
    for row, ids in enumerate(result.tokens[:, 0].numpy()):
        ids = ids[: result.lengths[row, 0]]
        every = model({"source": source[row : row + 1], "target": ids[None]})
        allowed = {*range(FIRST)}
        for x in source[row].numpy():
            allowed |= {*SOME.words[x].tolist()} - {-1}
        allowed = sorted(allowed)
        total = 0.0
        for logits, word in zip(every[0].numpy(), ids, strict=True):
            short = logits[allowed].astype(np.float64)
            best = logits[[x for x in allowed if x != text.pad_id]].max()
            assert logits[word] >= best - tolerance
            total += logits[word] - np.log(np.exp(short).sum())
        score = float(result.log_probs[row, 0])
        assert score == pytest.approx(total, abs=tolerance)


def test_a_translation_does_not_depend_on_other_rows(translator):
    short = Decoding(max_length=6, shortlist=True)
    together = translations(translator, short)
    plain = translations(translator, Decoding(max_length=6))
    assert together.texts.numpy().tolist() != plain.texts.numpy().tolist()
    for row, sentence in enumerate(SENTENCES):
        alone = translations(translator, short, [sentence])
        assert alone.texts[0].numpy() == together.texts[row].numpy()
        np.testing.assert_allclose(alone.result.scores[0], together.result.scores[row], atol=1e-4)
    assert translations(translator, short, []).texts.shape[0] == 0


def test_an_ensemble_has_the_lexicon_of_its_first_member():
    members = [make_translator(1, ALL[0]), make_translator(2)]
    ensemble = Translator.ensemble(members)
    short = Decoding(max_length=6, shortlist=True)
    plain = translations(ensemble, Decoding(max_length=6))
    assert_equal(plain, translations(ensemble, short))
    some = make_translator(1, SOME)
    double = Translator.ensemble([some, some])
    assert_equal(translations(some, short), translations(double, short))


def test_a_lexicon_is_saved_and_loaded(translator, tmp_path):
    own = make_translator(lexicon=SOME)
    own.decoding = Decoding(max_length=6, shortlist=True)
    own.save(tmp_path)
    loaded = Translator.load(tmp_path)
    np.testing.assert_array_equal(loaded.lexicon.words, SOME.words)
    assert loaded.lexicon.first == FIRST
    assert loaded.decoding == own.decoding
    assert_equal(translations(own, own.decoding), translations(loaded, own.decoding))


def test_shortlist_without_a_lexicon_is_refused(tmp_path):
    plain = make_translator()
    plain.save(tmp_path / "plain")
    assert not (tmp_path / "plain" / "lexicon.npz").exists()
    loaded = Translator.load(tmp_path / "plain")
    assert loaded.lexicon is None
    said = "Translator", "True", "shortlist"
    refused(lambda: loaded.translate(["cat"], shortlist=True), *said)


def test_bad_lexicons_and_files_are_refused(tmp_path):
    refused(lambda: Lexicon(some_words(), 0), "Lexicon", "0")
    refused(lambda: Lexicon(np.zeros(3), 5), "Lexicon", "(3,)", "words")
    refused(lambda: Lexicon(some_words(), 9), "Lexicon", "9", "words")
    of_padding = some_words()
    of_padding[0, 0] = FIRST
    refused(lambda: Lexicon(of_padding, FIRST), "padding")
    none = np.full((SOURCE_SIZE, 1), -1)
    for wrong, complaint in (
        (Lexicon(some_words()[:4], FIRST), "the lexicon has 4 source words"),
        (Lexicon(none, TARGET_SIZE + 1), "13 target words or more"),
        (Lexicon(none, 2), "among the first 2"),
        (Lexicon(none, 3), "another word"),
    ):
        refused(lambda own=wrong: make_translator(lexicon=own), "Lexicon", *complaint.split())
    path = tmp_path / "lexicon.npz"
    for data in (b"", b"no archive", b"PK\x03\x04"):
        path.write_bytes(data)
        refused(lambda: Lexicon.load(path), "lexicon")
    SOME.save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        with suppress(ValueError):  # some bytes do not matter
            Lexicon.load(path)
    np.savez(path, words=some_words())
    refused(lambda: Lexicon.load(path), "lexicon")


def test_learning_needs_attention_to_one_source(translator):
    plain = RNNEncDec(SOURCE_SIZE, TARGET_SIZE, units=4, embedding_dim=4, maxout_units=2)
    refused(lambda: learn_lexicon(plain, batches()), "RNNEncDec", "attention")
    sources = Ensemble([translator.model] * 2, sources=[0, 1])
    refused(lambda: learn_lexicon(sources, batches()), "Ensemble", "several")
    refused(lambda: learn_lexicon(translator.model, batches(), words=0), "0", "words")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_translator().save(tmp_path / "model" / "best")
    (tmp_path / "en").write_text("the cat sleeps.\na dog\n\n", "utf-8")
    (tmp_path / "fr").write_text("le chat dort.\nun chien\n\n", "utf-8")
    return tmp_path


def command(folder: Path, *flags: str) -> list[str]:
    files = (("model_dir", "model"), ("source", "en"), ("target", "fr"))
    paths = [f"--{name}={folder / file}" for name, file in files]
    return ["lexicon", *paths, "--frequent=5", *flags]


def test_the_command_writes_the_lexicon_where_translate_reads_it(folder, capfd):
    assert main(command(folder, "--words=3")) == 0
    out, progress = capfd.readouterr()
    assert "besides the first 5" in out
    assert "2/2 pairs read" in progress
    assert "will be empty" not in progress
    lexicon = Lexicon.load(folder / "model" / "best" / "lexicon.npz")
    text = make_translator().target_text
    dort, un = text.tokenize(["dort un"]).to_list()[0][:2]
    words = make_translator().source_text.tokenize(["cat a"]).to_list()[0]
    assert dort in lexicon.words[words[0]]
    assert un in lexicon.words[words[1]]
    assert un not in lexicon.words[words[0]]
    flags = [f"--model_dir={folder / 'model'}", f"--input={folder / 'en'}"]
    assert main(["translate", *flags, "--shortlist"]) == 0


def test_an_empty_lexicon_is_told(folder, capfd):
    """All words are among the first; then a shortlist is the vocabulary."""
    assert main(command(folder, f"--frequent={TARGET_SIZE}")) == 0
    out, messages = capfd.readouterr()
    assert f"the whole target vocabulary of {TARGET_SIZE} words" in messages
    assert ": 0 target words for 0 source words" in out


def test_bytes_are_not_counted_as_frequent_words(tmp_path):
    path = tmp_path / "text"
    path.write_text("the cat sees the dog\n" * 20)
    subwords = SubwordTokenizer.train([path], 290)
    tokens = subwords.ids_to_tokens(tf.range(subwords.vocabulary_size)).numpy()
    first = first_ids(subwords, 6)
    assert sum(b"<0x" not in token for token in tokens[:first]) == 6
    assert sum(b"<0x" in token for token in tokens[:first]) == 256
    assert b"<0x" not in tokens[first - 1]
    assert first_ids(subwords, 1000) == len(tokens)
    assert first_ids(make_translator().target_text, 6) == 6  # of words


def test_a_folder_that_cannot_be_written_is_refused_at_once(folder, capfd, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(lexicon_command, "ParallelCorpus", pytest.fail)
    fails(capfd, command(folder), "--model_dir: no permission to write")


def test_the_first_words_include_the_special_symbols(folder, capfd):
    fails(capfd, command(folder, "--frequent=2"), "2", "among")
