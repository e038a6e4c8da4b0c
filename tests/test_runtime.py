"""ONNX Runtime translates as TensorFlow does, without TensorFlow."""

import copy
import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, strategies as st
from oracle import randomized
from processes import run_python
from toys import english, french, toy_translator, with_alternatives

from bahdanau_tf import (
    Lexicon,
    LSTMCell,
    RNNEncDec,
    RNNSearch,
    SubwordTokenizer,
    TanhReadout,
    Translator,
)
from bahdanau_tf.commands import main as cli
from bahdanau_tf.runtime import Translator as Runtime
from bahdanau_tf.runtime.text import Subwords, true_cased
from bahdanau_tf.serving import onnx
from bahdanau_tf.text.words import true_cased as true_cased_in_graph
from bahdanau_tf.translation.saved import rounded

pytestmark = pytest.mark.usefixtures("eager_search")
pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

LINES = ["the red cat sees a dog.", "a dog sleeps", "le chat dort.", "un chien voit l'arbre"] * 9
TEXT = SubwordTokenizer.train([LINES], 290)
REVERSED = SubwordTokenizer(TEXT.model_proto, reverse=True)
SENTENCES = ["the red cat.", "", " ", "un", "a dog é猫 sleeps", "x x x x"]
LEXICON = Lexicon(
    np.where(np.arange(290)[:, None] % 3, [[270, 280]], [[275, -1]]) * (np.arange(290) > 0)[:, None]
    - (np.arange(290) == 0)[:, None],
    first=260,
)


def translator(source: Any = TEXT, target: Any = TEXT, **options: Any) -> Translator:
    sizes = {"units": 6, "embedding_dim": 4, "attention_units": 5, "maxout_units": 3}
    model = RNNSearch(source.vocabulary_size, target.vocabulary_size, **{**sizes, **options})
    return Translator(randomized(model, scale=0.7), source, target, lexicon=LEXICON)


MODELS = {
    "original": lambda: translator(factored_output=True, embedding_bias=True),
    "appendix": lambda: translator(REVERSED, step_order="appendix", factored_output=False),
    "main-text": lambda: translator(target=REVERSED, step_order="main-text"),
    "tied": lambda: translator(
        step_order="conditional",
        tie_embeddings=True,
        share_embeddings=True,
        maxout_units=4,
        factored_output=False,
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def both(request, tmp_path_factory) -> tuple[Translator, Runtime]:
    own = MODELS[request.param]()
    folder = tmp_path_factory.mktemp("onnx") / "exported"
    (fact,) = onnx.export_runtime(own.graph, folder)
    assert "equal the model's within" in fact
    return own, Runtime.load(folder)


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "exported"
    onnx.export_runtime(translator().graph, folder, card="# About")
    return folder


def assert_equal(wanted: list[Any], actual: list[Any]) -> None:
    for x, y in zip(wanted, actual, strict=True):
        pairs = zip(with_alternatives(x), with_alternatives(y), strict=True)
        for first, second in pairs:
            for name in ("text", "tokens", "source_tokens", "source_offsets", "target_offsets"):
                assert getattr(first, name) == getattr(second, name)
            assert first.finished == second.finished
            assert first.score == pytest.approx(second.score, abs=1e-4, rel=1e-5)
            assert first.log_prob == pytest.approx(second.log_prob, abs=1e-4, rel=1e-5)
            if first.weights is not None:
                np.testing.assert_allclose(first.weights, second.weights, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1, "max_length_ratio": 2.0},
        {"beam_size": 12, "max_length": 7, "n_best": 5, "alpha": 0.0},
        {"beam_size": 3, "shrink": True, "n_best": 3, "max_length": 12},
        {
            "beam_size": 4,
            "max_length": 12,
            "beta": 0.4,
            "min_length_ratio": 1.0,
            "unknown": "forbid",
        },
        {"beam_size": 4, "shortlist": True, "n_best": 2, "max_length": 9},
        {"split_sentences": True, "n_best": 2, "max_length": 9},
    ],
)
def test_translations_are_those_of_the_graph(both, options):
    own, runtime = both
    sentences = [*SENTENCES, "a dog. The red cat sleeps! "]
    wanted = own.translate(sentences, **options)
    assert_equal(wanted, runtime.translate(sentences, batch_size=4, **options))


def test_sentences_are_what_the_graph_takes(both):
    for make in (np.array, tuple, iter, tf.constant, lambda x: [*map(str.encode, x)], lambda _: []):
        wanted, actual = (x.translate(make(SENTENCES), max_length=5) for x in both)
        assert_equal(wanted, actual)
    data = b"a \xff dog\xe7"
    assert_equal(*([x.translate(data, max_length=5)] for x in both))
    for wrong in (3, np.array("a"), ["a", 3], ["\ud800"]):
        messages = []
        for each in both:
            with pytest.raises(ValueError, match=r"Translator\.translate: sentences") as error:
                each.translate(wrong)
            messages.append(str(error.value))
        assert len({*messages}) == 1


def test_copies_have_the_folder_the_card_and_the_decoding(exported):
    runtime = Runtime.load(exported, threads=1)
    runtime.decoding = replace(runtime.decoding, beam_size=2)
    for other in (pickle.loads(pickle.dumps(runtime)), copy.deepcopy(runtime)):
        assert (other.card, other.decoding) == ("# About", runtime.decoding)
        assert_equal(runtime.translate(["a dog"]), other.translate(["a dog"]))
    assert "source Subwords of 290 ids" in repr(runtime)


@pytest.mark.parametrize("shortlist", [False, True])
def test_prefixes(both, shortlist):
    own, runtime = both
    prefixes = ["un chat", "le", "", "dort. le chat", "猫", "a"]
    options: dict[str, Any] = {"max_length": 9, "shortlist": shortlist}
    if own.target_text.reverse:
        with pytest.raises(ValueError, match="reversed"):
            runtime.translate(SENTENCES, prefixes=prefixes)
        return
    wanted = own.translate(SENTENCES, prefixes=prefixes, **options)
    assert_equal(wanted, runtime.translate(SENTENCES, prefixes=prefixes, **options))
    single = runtime.translate("a dog", prefixes="le", **options)
    assert_equal([own.translate("a dog", prefixes="le", **options)], [single])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: toy_translator(english(), french()), "tokenizer is WordTokenizer"),
        (lambda: toy_translator(english(), french(), model_class=RNNEncDec), "encoder is Uni"),
        (lambda: translator(cell=LSTMCell(6)), "cell is LSTMCell"),
        (lambda: translator(attention="GeneralAttention"), "attention is GeneralAttention"),
        (lambda: translator(readout=TanhReadout(290, 3)), "readout is TanhReadout"),
    ],
)
def test_what_cannot_be_written_is_refused_first(make, message, tmp_path):
    with pytest.raises(ValueError, match=f"^--format=onnx: {message}"):
        onnx.export_runtime(make().graph, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_command_says_once_what_it_cannot_write(tmp_path, capsys):
    translator(attention="GeneralAttention").save(tmp_path / "own")
    model, part = f"--model_dir={tmp_path / 'own'}", "attention is GeneralAttention, wanted Bah"
    assert cli.main(["export", model, "--format=onnx", f"--export_dir={tmp_path / 'new'}"]) == 2
    assert f"bahdanau-tf: export: --format=onnx: {part}" in capsys.readouterr().err
    assert cli.main(["page", model, f"--output={tmp_path / 'page.html'}"]) == 2
    assert f"bahdanau-tf: page: {part}" in capsys.readouterr().err


@pytest.mark.parametrize("change", [lambda kernel: kernel, lambda kernel: kernel * np.nan])
def test_graphs_that_differ_never_appear(change, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "halves", change)
    with pytest.raises(ValueError, match="differs from the model by"):
        onnx.export_runtime(translator().graph, tmp_path / "new")
    (tmp_path / "mine").mkdir()
    for name in ("file", "runtime.json"):
        (tmp_path / "mine" / name).touch()
        with pytest.raises(ValueError, match="has other files"):
            onnx.export_runtime(translator().graph, tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@given(st.text(), st.lists(st.integers(0, 289), max_size=9))
def test_text_is_that_of_the_graph(text, ids):
    for tokenizer in (TEXT, REVERSED):
        own = subwords(tokenizer)
        reading = tokenizer.read(tf.constant([text]))
        assert own.read(text).ids == reading.ids.to_list()[0]
        offsets = zip(reading.starts.to_list()[0], reading.ends.to_list()[0], strict=True)
        assert own.read(text).offsets == [*offsets]
        (wanted,), starts, ends = tokenizer.detokenize_with_offsets(tf.constant([ids], tf.int32))
        written = own.write(ids)
        assert written.text.encode() == wanted.numpy()
        assert written.offsets == [*zip(starts.to_list()[0], ends.to_list()[0], strict=True)]
    for line in (text, text.upper()):
        assert true_cased(line).encode() == true_cased_in_graph(tf.constant([line])).numpy()[0]


SUBWORDS: dict[bool, Subwords] = {}


def subwords(tokenizer: SubwordTokenizer) -> Subwords:
    return SUBWORDS[tokenizer.reverse]


@pytest.fixture(scope="module", autouse=True)
def _saved(tmp_path_factory) -> None:
    for tokenizer in (TEXT, REVERSED):
        folder = tmp_path_factory.mktemp("text")
        tokenizer.save(folder)
        SUBWORDS[tokenizer.reverse] = Subwords(folder)


@pytest.mark.parametrize(
    "line",
    [
        *("A BIG DOG.", "ÉTÉ  ÎLE 1", "İSTANBUL BİG", "\0 AB CD", "ΟΔΟΣ ΑΣ"),
        pytest.param("A" * 4000 + " 1" * 2000, id="slow for a pattern that tries every split"),
    ],
)
def test_capitals(line):
    assert true_cased(line).encode() == true_cased_in_graph(tf.constant([line])).numpy()[0]


@pytest.mark.parametrize("name", ["tied", "original"])
def test_int8_has_rounded_weights(name, tmp_path):
    own = MODELS[name]()
    _, fact = onnx.export_runtime(own.graph, tmp_path / "int8", int8=True)
    equal, total = [int(word) for word in fact.split() if word.isdecimal()]
    assert equal > 0.9 * total
    runtime = Runtime.load(tmp_path / "int8")
    together = runtime.translate(SENTENCES, max_length=9)  # each as if it were alone
    assert_equal([runtime.translate(x, max_length=9) for x in SENTENCES], together)
    weights = np.random.default_rng(1).normal(size=[7, 5]).astype(np.float32)
    weights[:, 2] = 0
    whole, scale = rounded(weights, axis=0)
    assert whole.dtype == np.int8
    assert scale.shape == (1, 5)
    np.testing.assert_array_equal(np.abs(whole).max(0), [63, 63, 0, 63, 63])
    assert np.all(np.abs(whole * scale - weights) <= scale / 2 + 1e-7)


def test_commands_translate_without_tensorflow(tmp_path, capsys):
    own = MODELS["tied"]()
    own.save(tmp_path / "model" / "best")
    (tmp_path / "model" / "training.json").write_text('{"recipe": {"max_length": 4}}')
    exported, text, reference = (tmp_path / name for name in ("exported", "in", "reference"))
    exported.mkdir()
    (exported / "runtime.json").touch()  # an earlier export, which is replaced
    flags = [f"--model_dir={tmp_path / 'model'}", "--format=onnx", f"--export_dir={exported}"]
    assert cli.main(["export", *flags, "--beam_size=3"]) == 0
    assert capsys.readouterr().out == f"{exported}\n"
    for path in (text, reference):
        path.write_text("".join(f"{line}\n" for line in SENTENCES))
    model = f"--model_dir={exported}"
    compare = ["evaluate", f"--source={text}", f"--reference={reference}", "--beam_size=1"]
    translate = ["translate", f"--input={text}", "--n_best=2"]
    program = (
        "import sys; from bahdanau_tf.commands import main\n"
        f"for words in ({translate!r}, {compare!r}):\n"
        f"    assert main.main([*words, {model!r}]) == 0\n"
        "assert not {'tensorflow', 'keras'} & sys.modules.keys()"
    )
    done = run_python("-c", program)
    assert done.stderr.count("longer than training sentences (4 tokens)") == 2
    assert cli.main([*compare, flags[0]]) == 0
    scores = capsys.readouterr().out
    assert done.stdout.endswith(scores)
    wanted = own.translate(SENTENCES, beam_size=5, n_best=2)
    texts = [x.line for translation in wanted for x in with_alternatives(translation)]
    lines = done.stdout.removesuffix(scores).split("\n")[:-1]
    assert [line.split(" ||| ")[1] for line in lines] == texts
    split = [*translate, "--split_sentences", "--format=json"]
    rows = []
    for folder in (flags[0], model):
        assert cli.main([*split, folder]) == 0
        rows.append([json.loads(line)["text"] for line in capsys.readouterr().out.split("\n")[:-1]])
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": True}, "sampling is True, wanted False"),
        ({"unknown": "replace"}, "unknown is 'replace', wanted 'keep' or 'forbid'"),
        ({"no_repeated_ngrams": 2}, "no_repeated_ngrams is 2"),
    ],
)
def test_what_it_cannot_do_is_refused(both, options, message, tmp_path, capfd):
    with pytest.raises(ValueError, match=f"Decoding: {message}"):
        both[1].translate(["a"], **options)
    flags = [f"--{name}={value}" for name, value in options.items()]
    export = ["export", "--format=onnx", f"--export_dir={tmp_path}/new"]
    assert cli.main([*export, f"--model_dir={tmp_path}", *flags]) == 2
    assert f"export: --{message}" in capfd.readouterr().err


def test_the_other_loader_is_named(exported, tmp_path):
    with pytest.raises(ValueError, match=r"bahdanau_tf\.runtime\.Translator\.load take it"):
        Translator.load(exported)
    for name in ("tatoeba-en-fr", tmp_path):
        with pytest.raises(ValueError, match=rf"`bahdanau-tf export .*--model_dir={name} "):
            Runtime.load(name)
    with pytest.raises(ValueError, match="there is no folder nowhere"):
        Runtime.load("nowhere")


@pytest.mark.parametrize("name", ["runtime.json", "step.onnx", "source/tokenizer.json"])
def test_damaged_folders_are_refused(tmp_path, name, exported):
    shutil.copytree(exported, tmp_path / "new")
    path = Path(tmp_path, "new", name)
    path.write_bytes(b"{}")
    with pytest.raises(ValueError, match=r"Translator\.load: "):
        Runtime.load(tmp_path / "new")
    path.unlink()
    with pytest.raises(ValueError, match=r"Translator\.load: "):
        Runtime.load(tmp_path / "new")
