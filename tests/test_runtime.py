"""ONNX Runtime translates as TensorFlow does, without TensorFlow."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, strategies as st
from oracle import randomized
from processes import output_of
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
    assert "are the model's within" in fact
    return own, Runtime.load(folder)


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
    ],
)
def test_translations_are_those_of_the_graph(both, options):
    own, runtime = both
    wanted = own.translate(SENTENCES, **options)
    assert_equal(wanted, runtime.translate(SENTENCES, batch_size=4, **options))


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
        (lambda: toy_translator(english(), french()), "tokenizer WordTokenizer"),
        (lambda: toy_translator(english(), french(), model_class=RNNEncDec), "encoder Uni"),
        (lambda: translator(cell=LSTMCell(6)), "cell LSTMCell"),
        (lambda: translator(attention="GeneralAttention"), "attention GeneralAttention"),
        (lambda: translator(readout=TanhReadout(290, 3)), "readout TanhReadout"),
    ],
)
def test_what_cannot_be_written_is_refused_first(make, message, tmp_path):
    with pytest.raises(ValueError, match=f"--format=onnx cannot write the {message}"):
        onnx.export_runtime(make().graph, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_graphs_that_differ_never_appear(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "_halves", lambda kernel: kernel)
    with pytest.raises(ValueError, match="differs from the model by"):
        onnx.export_runtime(translator().graph, tmp_path / "new")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
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
    "line", ["A BIG DOG.", "ÉTÉ  ÎLE 1", "İSTANBUL BİG", "\0 AB CD", "ΟΔΟΣ ΑΣ"]
)
def test_capitals(line):
    assert true_cased(line).encode() == true_cased_in_graph(tf.constant([line])).numpy()[0]


def test_int8_has_rounded_weights(tmp_path):
    own = MODELS["tied"]()
    _, fact = onnx.export_runtime(own.graph, tmp_path / "int8", int8=True)
    equal, total = [int(word) for word in fact.split() if word.isdecimal()]
    assert equal > 0.9 * total
    weights = np.random.default_rng(1).normal(size=[7, 5]).astype(np.float32)
    weights[:, 2] = 0
    whole, scale = rounded(weights, axis=0)
    assert whole.dtype == np.int8
    assert scale.shape == (1, 5)
    np.testing.assert_array_equal(np.abs(whole).max(0), [63, 63, 0, 63, 63])
    assert np.all(np.abs(whole * scale - weights) <= scale / 2 + 1e-7)


def test_the_command_translates_without_tensorflow(tmp_path, capsys):
    own = MODELS["tied"]()
    own.save(tmp_path / "model")
    exported = tmp_path / "exported"
    flags = [f"--model_dir={tmp_path / 'model'}", "--format=onnx", f"--export_dir={exported}"]
    assert cli.main(["export", *flags, "--beam_size=3"]) == 0
    assert capsys.readouterr().out == f"{exported}\n"
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in SENTENCES))
    words = ["translate", f"--model_dir={exported}", f"--input={tmp_path / 'in'}", "--n_best=2"]
    program = (
        "import sys; from bahdanau_tf.commands import main\n"
        f"assert main.main({words!r}) == 0\n"
        "assert not {'tensorflow', 'keras'} & sys.modules.keys()"
    )
    output = output_of("-c", program)
    wanted = own.translate(SENTENCES, beam_size=5, n_best=2)
    texts = [x.line for translation in wanted for x in with_alternatives(translation)]
    assert [line.split(" ||| ")[1] for line in output.split("\n")[:-1]] == texts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": True}, "sampling is True, wanted False"),
        ({"unknown": "replace"}, "unknown is 'replace', wanted 'keep' or 'forbid'"),
        ({"no_repeated_ngrams": 2}, "no_repeated_ngrams is 2"),
    ],
)
def test_what_it_cannot_do_is_refused(both, options, message):
    with pytest.raises(ValueError, match=f"Translator.translate: {message}"):
        both[1].translate(["a"], **options)


@pytest.mark.parametrize("name", ["runtime.json", "step.onnx", "source/tokenizer.json"])
def test_damaged_folders_are_refused(tmp_path, name):
    onnx.export_runtime(translator().graph, tmp_path / "new")
    path = Path(tmp_path, "new", name)
    path.write_bytes(b"{}")
    with pytest.raises(ValueError, match=r"Translator\.load: "):
        Runtime.load(tmp_path / "new")
    path.unlink()
    with pytest.raises(ValueError, match=r"Translator\.load: "):
        Runtime.load(tmp_path / "new")
