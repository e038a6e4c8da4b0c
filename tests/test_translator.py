"""Translator: translation of strings, saving, loading, scores, errors."""

from __future__ import annotations

import copy
import dataclasses
import gc
import json
import os
import pickle
import re
import shutil
import signal
import zipfile
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from comparisons import aligned
from refusals import refused
from toys import ENGLISH, FRENCH, SPECIAL, english, french, search_eagerly, toy_translator

from bahdanau_tf import (
    Decoding,
    Dictionary,
    OutputWeights,
    RNNEncDec,
    RNNSearch,
    StepwiseModel,
    Translation,
    Translator,
    Vocabulary,
    WordTokenizer,
)
from bahdanau_tf.translation import TranslationGraph
from bahdanau_tf.translation.graph import KEPT, STRINGS
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.saved import read_model

SHORT = ["the cat sleeps.", "", "nothing known here, at all", "cat"]

# Tests with the same options share a graph.
RANKED = Decoding(beam_size=4, n_best=4, max_length=20)
WITH_PREFIXES = Decoding(unknown="replace", max_length=12)


def make_translator(model_class: type = RNNSearch) -> Translator:
    return toy_translator(english(), french(), RANKED, model_class=model_class)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator()


class Counting(WordTokenizer):
    """Counts the strings that are tokenized, in graphs, too."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.count = tf.Variable(0)

    def _located(self, strings):
        self.count.assign_add(tf.size(strings))
        return super()._located(strings)


@pytest.mark.parametrize(("unknown", "prefixes"), [("keep", None), ("replace", ["le", ""])])
def test_no_sentence_is_tokenized_twice(unknown, prefixes, monkeypatch):
    """Not for words, offsets, alignments or prefixes."""
    search_eagerly(monkeypatch)
    sides = (ENGLISH, "en"), (FRENCH, "fr")
    texts = [Counting(Vocabulary([*SPECIAL, *words]), language) for words, language in sides]
    translator = toy_translator(*texts, decoding=Decoding(2, max_length=5, unknown=unknown))
    assert "c" in texts[0].characters  # which signs it has is found out once
    sentences, translations = ["the cat sees Ana.", "a dog."], ["le chat", "un chien dort"]

    def counts(call, *arguments, **options):
        for text in texts:
            text.count.assign(0)
        call(*arguments, **options)
        return [int(text.count) for text in texts]

    of_prefixes = len(prefixes or ())
    assert counts(translator.translate, sentences, prefixes=prefixes) == [2, of_prefixes]
    assert counts(translator.align, sentences, translations) == [2, 2]
    assert counts(translator.score, sentences, translations) == [2, 2]
    lines = ["A cat sees. The dog sleeps.", "a dog."]
    options = {"prefixes": prefixes, "split_sentences": True}
    assert counts(translator.translate, lines, **options)[0] == 3


def test_one_string_gives_one_translation(translator):
    (wanted,) = translator.translate(["the cat sees"], WITH_PREFIXES, prefixes=["le"])
    assert translator.translate("the cat sees", WITH_PREFIXES, prefixes="le") == wanted
    assert translator.translate(b"the cat sees", WITH_PREFIXES, prefixes="le") == wanted


def test_a_text_is_translated_sentence_by_sentence(translator, monkeypatch):
    """With the prefix at its start; a text may be bytes that are not UTF-8."""
    sentences = ["The \ufffd cat sees. ", "A dog sleeps."]
    first, second = translator.translate(sentences, WITH_PREFIXES, prefixes=["le", ""])
    for text in ("".join(sentences), b"The \xff cat sees. A dog sleeps."):
        options = {"prefixes": "le", "split_sentences": True}
        joined = translator.translate(text, WITH_PREFIXES, **options)
        assert joined.source == "".join(sentences)
        assert joined.text == f"{first.text} {second.text}"
        assert joined.score == pytest.approx(first.score + second.score)
        assert len(joined.source_tokens) == len(first.source_tokens + second.source_tokens)
    text = "".join(sentences)
    whole = translator.translate(text, split_sentences=False)
    assert translator.translate(text) == whole
    monkeypatch.setattr(translator, "habits", Habits(singly=True))
    assert translator.translate(text) == translator.translate(text, split_sentences=True) != whole
    begun = {"sentences": [text], "prefixes": ["le"]}
    assert translator.translate(**begun) == translator.translate(**begun, split_sentences=False)
    lines = translator.translate("\nThe cat.\n\na dog\n ", split_sentences=True)
    first, second = translator.translate(["The cat.", "a dog"])
    assert lines.source == "\nThe cat.\n\na dog\n "
    assert lines.text == f"{first.text}\n\n{second.text}"
    cut = [lines.text.encode()[i:j].decode().strip() for i, j in lines.target_offsets]
    assert cut == [x.strip() for x in first.tokens + second.tokens]
    options = {"split_sentences": True}
    assert translator.translate("\n", **options).text == ""
    assert translator.translate(["", "A cat."], **options) == translator.translate(["", "A cat."])
    options["prefixes"] = ["le"]
    refused(lambda: translator.translate(sentences, **options), "2 sentences, 1 prefixes")


def test_fields_of_decoding_are_keywords_and_results_are_compared_by_value(translator):
    sentences = ["the cat sees a dog", "a red cat"]
    options = {"beam_size": 3, "n_best": 2, "alpha": 0.5}
    wanted = translator.translate(sentences, dataclasses.replace(translator.decoding, **options))
    assert translator.translate(sentences, **options) == wanted
    another = dataclasses.replace(RANKED, alpha=2.0)
    best = translator.translate(sentences[0], another, **options)
    assert best.text == wanted[0].text
    assert best.score == pytest.approx(wanted[0].score, rel=1e-5)
    assert len(best.alternatives) == 1
    first, _ = wanted
    compared_by_value(*wanted)
    for other in ({"weights": None}, {"alternatives": []}):
        assert first != dataclasses.replace(first, **other)
    assert first != "le"
    shown = f"{first.source!r} -> {first.text!r}, score {first.score:.2f}"
    assert repr(first) == f"<Translation {shown}, 1 more>"
    assert len(repr(Translation("a" * 999, "b" * 999))) < 200


def compared_by_value(first, second):
    third = copy.deepcopy(first)
    assert first == third
    assert (first != third) is False
    assert first != second
    assert third in [second, first]
    assert len({first, second, third}) == 2


def test_scores_are_compared_by_value(translator):
    compared_by_value(*translator.score(["the cat sees a dog", "a red cat"], ["le chat"] * 2))


@pytest.mark.filterwarnings("ignore:.* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize(
    "use", [lambda x: x.translate("a dog"), lambda _: Translator.from_preset("tatoeba-en-fr")]
)
def test_a_fork_does_not_wait_for_threads_that_it_lacks(translator, use):
    translator.translate("the cat")
    reader, writer = os.pipe()
    if not os.fork():
        signal.alarm(10)
        try:
            use(translator)
        except RuntimeError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as said:
        assert re.search(r"^Translator: .* forked .*\"spawn\".*runtime.Translator", said.read())
    os.wait()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_translator_is_copied_and_pickled_as_it_is_saved(translator, copied):
    twin = copied(translator)
    assert twin.model is not translator.model
    assert twin.decoding == translator.decoding
    assert twin.target_text.settings() == translator.target_text.settings()
    for weights, same in zip(translator.model.weights, twin.model.weights, strict=True):
        np.testing.assert_array_equal(weights.numpy(), same.numpy())


def test_many_options_are_no_retracing(translator, caplog):
    """TensorFlow would warn: it counts functions of one line as one."""
    with caplog.at_level("WARNING", logger="tensorflow"):
        for number in range(20):
            run = translator.graph.function(number, lambda text: text, STRINGS)
            run(tf.constant([""]))
    assert "retracing" not in caplog.text


def test_a_translator_is_shown_by_its_parts(translator):
    weights = f"{translator.model.count_params():,}"
    assert repr(translator) == (
        f"<Translator: RNNSearch of {weights} weights; source WordTokenizer of "
        "11 ids; target WordTokenizer of 12 ids>"
    )


def test_offsets_of_bytes_that_are_not_utf8_belong_to_the_strings(translator):
    """An invalid byte is one byte in the text, and three in U+FFFD."""
    rows = [b"caf\xe9 the cat sees the dog", b"\xff\xfe the caf\xc3\xa9 \xe2\x82 dog", b"the\x80"]
    prefixes = [b"\xff le", b"", b"chat\x80 l"]
    translations = translator.translate(rows, WITH_PREFIXES, prefixes=prefixes)
    translations += translator.align(rows, [b"le chat\xff voit", "le", b"\xe9"])
    for x in translations:
        for text, tokens, offsets in (
            (x.source, x.source_tokens, x.source_offsets),
            (x.text, x.tokens, x.target_offsets),
        ):
            data = text.encode()
            assert [data[a:b].decode() for a, b in offsets] == tokens
    assert translations[0].source == "caf\ufffd the cat sees the dog"
    assert all("\ufffd" in translations[n].text for n in (0, 3))


def test_a_loaded_translator_gives_the_same_translations(tmp_path, translator, monkeypatch):
    search_eagerly(monkeypatch)
    translator.save(tmp_path / "saved")
    translator.save(tmp_path / "saved")  # replaces the first
    loaded = Translator.load(tmp_path / "saved")
    assert loaded.decoding == translator.decoding
    for before, after in zip(translator.translate(SHORT), loaded.translate(SHORT), strict=True):
        assert (before.text, before.tokens) == (after.text, after.tokens)
        assert before.score == pytest.approx(after.score, abs=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"]


@pytest.mark.parametrize("there", ["log.jsonl", "notes/today.txt"])
def test_save_replaces_nothing_but_a_translator(tmp_path, translator, there):
    """For example no training, whose best model `load` reads."""
    path = tmp_path / "model" / there
    path.parent.mkdir(parents=True)
    path.write_text("kept")
    for folder in (tmp_path / "model", path):
        with pytest.raises(ValueError, match=f"Translator.save: {folder} exists and holds no"):
            translator.save(folder)
    assert path.read_text() == "kept"
    (tmp_path / "model" / "training.json").write_text("{}")
    for name in ("best", ".best.replaced"):
        with pytest.raises(ValueError, match=f"Translator.save: .*{name} is the best model of a"):
            translator.save(tmp_path / "model" / name)


def test_no_alignment_nor_replaced_words_without_attention(monkeypatch):
    search_eagerly(monkeypatch)
    own = make_translator(RNNEncDec)
    assert own.translate("the cat.").weights is None
    said = "Translator: the model has no attention"
    refused(lambda: own.translate(["the cat."], unknown="replace"), said)


def test_only_the_last_graphs_are_kept():
    """Those used last, so that options that come and go need no more memory."""
    graph = make_translator().graph
    traced = []

    def use(number):
        def function(x):
            traced.append(number)
            return tf.strings.length(x) + number

        run = graph.function(number, function, STRINGS)
        assert run(tf.constant(["ab"])).numpy().tolist() == [2 + number]

    for number in range(KEPT):
        use(number)
    use(0)
    assert traced == [*range(KEPT)]
    use(KEPT)  # in place of number 1, which was not used for the longest time
    use(0)
    use(1)
    assert traced == [*range(KEPT), KEPT, 1]
    assert len(graph._functions) == KEPT


def test_graphs_are_made_without_garbage_collection():
    """That would take a fifth of the time of the first translation."""
    collecting = []

    def function(x):
        collecting.append(gc.isenabled())
        return x

    run = make_translator().graph.function("its name", function, STRINGS)
    run(tf.constant(["a"]))
    assert collecting == [False]
    assert gc.isenabled()


@pytest.fixture(scope="module")
def saved(translator, tmp_path_factory):
    """A folder written by `save`."""
    folder = tmp_path_factory.mktemp("translator") / "saved"
    translator.save(folder)
    return folder


@pytest.fixture
def damaged(saved, tmp_path):
    """A copy of that folder, to be damaged."""
    return shutil.copytree(saved, tmp_path / "damaged")


def test_load_refuses_folders_without_a_translator(tmp_path):
    refused(lambda: Translator.load(tmp_path / "nothing"), "there is no folder")
    (tmp_path / "model.keras").touch()
    refused(lambda: Translator.load(tmp_path / "model.keras"), "is a file", "load_model")
    refused(lambda: Translator.load(tmp_path), "holds no translator")
    (tmp_path / "saved_model.pb").touch()
    refused(lambda: Translator.load(tmp_path), "SavedModel", "saved_model.load")


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("translator.json", lambda text: text[: len(text) // 2], "is not JSON"),
        ("translator.json", lambda text: "null", "holds a NoneType, wanted a JSON object"),
        ("translator.json", lambda text: text.replace("format", "x"), "format_version None"),
        ("translator.json", lambda text: text.replace(": 1", ': "1"', 1), "format_version '1'"),
        ("translator.json", lambda text: text.replace(": 1", ": true", 1), "format_version True"),
        ("translator.json", lambda text: text.replace(": 1", ": 0", 1), "format_version 0"),
        ("translator.json", lambda text: text.replace(": 1", ": 99", 1), "format version 99"),
        ("translator.json", lambda text: text.replace("sources", "x"), "not written by this"),
        ("translator.json", lambda text: text.replace('"sources": 1', '"sources": "a"'), "not w"),
        ("translator.json", lambda text: text.replace('"sources": 1', '"sources": 0'), "es is 0"),
        ("translator.json", lambda text: text.replace("alpha", "x"), "unexpected keyword"),
        ("translator.json", lambda text: text.replace('"alpha": 1', '"alpha": -1'), "alpha is -1"),
        ("target/tokenizer.json", lambda text: "[]", "tokenizer.json holds a list"),
        ("target/tokenizer.json", lambda text: text[:40], "tokenizer.json is not JSON"),
        ("target/tokenizer.json", lambda text: '{"class": []}', "tokenizer.json lacks a class"),
        ("target/tokenizer.json", lambda text: text.replace('"reverse"', '"soup"'), "'soup'"),
    ],
)
def test_damaged_json_is_named(damaged, name, spoil, said):
    path = damaged / name
    assert spoil(path.read_text()) != path.read_text()
    path.write_text(spoil(path.read_text()))
    with pytest.raises(ValueError, match=said) as caught:
        Translator.load(damaged)
    assert str(path.parent) in str(caught.value)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        # A bit of a weight, of a file name in the archive, and at its end.
        lambda data: flipped(data, len(data) // 2),
        lambda data: flipped(data, data.rindex(b"config.json")),
        lambda data: flipped(data, len(data) - 9),
        lambda data: data.replace(b"RNNSearch", b"RNNSeerch"),
    ],
)
def test_a_damaged_model_is_named(damaged, spoil):
    path = damaged / "model.keras"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ValueError, match="the file is damaged") as caught:
        Translator.load(damaged)
    assert str(path) in str(caught.value)


def with_nowhere(contents: bytes) -> bytes:
    """Names a class for the attention that does not exist."""
    config = json.loads(contents)
    part = {"module": "bahdanau_tf", "registered_name": "bahdanau_tf>Nowhere"}
    config["config"]["attention"] = part | {"class_name": "Nowhere", "config": {"units": 8}}
    return json.dumps(config).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_nowhere, "Nowhere"),
        (lambda text: text.replace(b"RNNSearch", b"Soup"), "Keras says: .*'Soup'"),
    ],
)
def test_a_class_that_is_not_registered_is_named_without_the_whole_model(damaged, change, message):
    """The archive is complete."""
    path = damaged / "model.keras"
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["config.json"] = change(files["config.json"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match=message) as caught:
        Translator.load(damaged)
    assert "\n" not in str(caught.value)
    assert "embedding" not in str(caught.value)


def test_a_config_of_much_text_is_not_read(damaged, monkeypatch):
    path = damaged / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * (1 << 24) + b"{}")
    assert path.stat().st_size < 1 << 16
    monkeypatch.setattr("json.loads", None)
    refused(lambda: read_model(path), "its config.json has 16,777,218 by")


def test_weights_that_are_large_only_unpacked_are_not_read(damaged):
    path = damaged / "model.keras"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("assets/zeros", bytes(257 << 20))
    refused(lambda: Translator.load(damaged), "bytes would unpack to 269")


@pytest.mark.parametrize(
    "name", ["source/vocabulary.txt", "target/tokenizer.json", "translator.json"]
)
def test_pipes_are_not_waited_for(damaged, name):
    (damaged / name).unlink()
    os.mkfifo(damaged / name)
    said = r"wanted a file|holds no translator|is not a regular file"
    assert re.search(said, refused(lambda: Translator.load(damaged)))


def flipped(data: bytes, place: int) -> bytes:
    """Flips one bit."""
    return data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]


@pytest.mark.parametrize(
    "name", ["model.keras", "dictionary.tsv", "source/tokenizer.json", "target/vocabulary.txt"]
)
def test_a_missing_file_is_named(damaged, name):
    (damaged / name).unlink()
    with pytest.raises(ValueError, match=f"{damaged / name}.* is missing"):
        Translator.load(damaged)


def test_tokenizers_of_other_sizes_are_refused(translator):
    wrong = WordTokenizer(Vocabulary([*SPECIAL, "one"]), language="fr")
    model, source = translator.model, translator.source_text
    refused(lambda: Translator(model, source, wrong), "target_text has 4 ids")
    for name in ("source_texts", "target_text"):
        refused(lambda own=name: setattr(translator, own, wrong), "_text has 4 ids")
    assert translator.target_text.vocabulary_size > 4


class Copyist(StepwiseModel):
    """A model without weights: [UNK] for each source word.

    Target word i is aligned to source word i; then follows the end symbol.
    """

    source_vocabulary_size = 11
    target_vocabulary_size = 12
    has_alignment = True

    def encode(self, source: tf.Tensor) -> Any:
        lengths = tf.math.count_nonzero(source, 1, dtype=tf.int32)
        places = tf.zeros_like(lengths)
        return source, {"place": places, "length": lengths}

    def step(self, ids: tf.Tensor, state: Any, memory: Any) -> Any:
        del ids
        place, length = state["place"], state["length"]
        word = tf.where(place < length - 1, 1, 2)  # [UNK] or [END]
        weights = tf.one_hot(place, tf.shape(memory)[1])
        logits = 9.0 * tf.one_hot(word, self.target_vocabulary_size)
        return logits, {"place": place + 1, "length": length}, weights

    def output_weights(self) -> OutputWeights:
        size = self.target_vocabulary_size
        return OutputWeights(tf.eye(size), tf.zeros([size]))


@pytest.mark.parametrize("reverse", [False, True])
def test_unknown_words_are_replaced_by_the_aligned_ones(reverse, monkeypatch):
    search_eagerly(monkeypatch)
    texts, dictionary = (english(reverse=reverse), french()), Dictionary({"Ana": "Anne", ".": "!"})
    translator = Translator(Copyist(), *texts, Decoding(unknown="replace"), dictionary)
    sentences = ["Ana sees Ravel.", "", "Oslo"]
    wanted = [["Anne", "sees", "Ravel", "!"], [], ["Oslo"]]
    for translation, words in zip(translator.translate(sentences), wanted, strict=True):
        assert translation.tokens == words[:: -1 if reverse else 1]
        data = translation.text.encode()
        assert [data[i:j].decode() for i, j in translation.target_offsets] == translation.tokens
    links = translator.translate(sentences)[0].hard_alignment
    # Positions in reading order of the source.
    assert links == {(3 - i if reverse else i, i) for i in range(4)}
    assert translator.translate("Oslo", unknown="keep").text == "[UNK]"


def test_a_graph_is_traced_again_only_if_parts_are_replaced(monkeypatch):
    """If parts are replaced, translations use the new parts."""
    decoding = Decoding(beam_size=1, unknown="replace")
    translator = Translator(Copyist(), english(), french(), decoding)
    traced, translate = [], TranslationGraph.translate
    monkeypatch.setattr(
        TranslationGraph, "translate", lambda *x, **more: traced.append(1) or translate(*x, **more)
    )

    def texts() -> list[str]:
        return [t.text for t in translator.translate(["Ana sees Oslo", "Ana"])]

    assert texts() == ["Ana sees Oslo", "Ana"]
    assert translator.translate(["Oslo"])[0].text == "Oslo"
    assert len(traced) == 1
    translator.dictionary = Dictionary({"Ana": "Anna", "Oslo": "Christiania"})
    assert texts() == ["Anna sees Christiania", "Anna"]
    translator.source_texts = (english(reverse=True),)
    assert texts() == ["Christiania sees Anna", "Anna"]
    assert len(traced) == 3


def test_a_dictionary_is_saved_with_the_translator(tmp_path, translator):
    entries = {"chat": "cat", "\u2028": "\U0001f600"}
    texts = translator.source_text, translator.target_text
    own = Translator(translator.model, *texts, dictionary=Dictionary(entries))
    own.save(tmp_path / "saved")
    assert dict(Translator.load(tmp_path / "saved").dictionary.entries) == (entries)


@pytest.mark.parametrize("line", ["one", "a\tb\tc", "\tb", "a\t"])
def test_a_bad_line_of_a_dictionary_is_named(tmp_path, line):
    path = tmp_path / "dictionary.tsv"
    path.write_text(f"good\tbon\r\n\n{line}\n", encoding="utf-8")
    refused(lambda: Dictionary.load(path), "line 3 is")


def test_score_equals_the_softmax_of_the_logits(translator):
    sources = ["the cat sleeps.", "a dog", "the red dog sees a cat."]
    targets = ["le chat dort.", "un un un un un chien", ""]
    rows = zip(sources, targets, translator.score(sources, targets), strict=True)
    for source, target, scored in rows:
        ids = translator.target_text.tokenize([target]).to_tensor()
        read = translator.source_text.tokenize([source]).to_tensor()
        logits = np.float64(translator.model({"source": read, "target": ids})[0])
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        wanted = log_probs[np.arange(ids.shape[1]), ids[0]]
        np.testing.assert_allclose(scored.token_log_probs, wanted, atol=1e-5)
        assert scored.log_prob == pytest.approx(wanted.sum(), abs=1e-4)
        assert len(scored.tokens) == ids.shape[1] - 1


def test_score_needs_a_translation_for_each_source(translator):
    assert translator.score([], []) == []
    (nothing,) = translator.score(["the cat"], [""])
    assert nothing.tokens == []
    refused(lambda: translator.score(["a", "b"], ["c"]), "2 sources, 1 targets")


def test_alignment_error_rate_of_a_translation():
    weights = np.array([[0.9, 0.1, 0.0], [0.2, 0.1, 0.7], [0.1, 0.6, 0.3]])
    translation = aligned("a b", "x y", ["a", "b"], ["x", "y"], weights=weights)
    assert translation.pharaoh == "0-0 0-1"  # end symbols have no links
    assert translation.alignment_error_rate(frozenset({(0, 0), (1, 1)})) == 0.5
    assert translation.alignment_error_rate(frozenset({(0, 0)}), frozenset({(0, 1)})) == 0.0
    refused(lambda: Translation("a", "x", tokens=["x"]).hard_alignment, "no alignment")


def test_a_model_that_is_not_finite_is_named(monkeypatch) -> None:
    search_eagerly(monkeypatch)
    broken = toy_translator(english(), french(), Decoding(max_length=4))
    for weight in broken.model.trainable_weights:
        weight.assign(tf.fill(weight.shape, np.nan))
    refused(lambda: broken.translate(["", "a dog"]), "'a dog' has a finite score; are")
    refused(lambda: Translator.ensemble([]), "no translators")
