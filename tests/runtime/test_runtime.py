"""ONNX Runtime translates as TensorFlow does, without TensorFlow."""

import copy
import functools
import json
import os
import pickle
import shutil
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from engines import CHARACTERS, LINES, MODELS, REVERSED, SYMBOLS, TEXT, subwords as translator
from hypothesis import given, strategies as st
from processes import output_of, run_python
from refusals import refused
from toys import english, french, toy_translator, with_alternatives

from bahdanau_tf import Decoding, LSTMCell, RNNEncDec, SubwordTokenizer, TanhReadout, Translator
from bahdanau_tf.commands import main as cli
from bahdanau_tf.runtime import Translator as Runtime, graphs, onnx
from bahdanau_tf.runtime.text import Subwords, true_cased
from bahdanau_tf.serving.limits import LimitedText
from bahdanau_tf.text.words import true_cased as true_cased_in_graph
from bahdanau_tf.translation.arrays import halves
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.memory import TranslationMemory
from bahdanau_tf.translation.saved import rounded

pytestmark = pytest.mark.usefixtures("eager_search")
pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

SENTENCES = ["the red cat.", "", " ", "un", "a dog é猫 sleeps", "x x x x"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "exported"
    known = TranslationMemory({"A known line.": "une"})
    onnx.export_runtime(translator().graph, folder, card="# About", memory=known)
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


def test_copies_have_the_folder_the_card_and_the_decoding(exported):
    runtime = Runtime.load(exported, threads=1)
    runtime.decoding = replace(runtime.decoding, beam_size=2)
    for other in (pickle.loads(pickle.dumps(runtime)), copy.deepcopy(runtime)):
        assert (other.card, other.decoding) == ("# About", runtime.decoding)
        assert_equal(runtime.translate(["a dog"]), other.translate(["a dog"]))
        assert other.translate("a known line").text == "une"
    assert "source Subwords of 290 ids" in repr(runtime)


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
    refused(lambda: onnx.export_runtime(make().graph, tmp_path / "new"), "export_runtime", message)
    assert not (tmp_path / "new").exists()


def test_a_command_says_once_what_it_cannot_write(tmp_path, capsys):
    translator(attention="GeneralAttention").save(tmp_path / "own")
    model, part = f"--model_dir={tmp_path / 'own'}", "attention is GeneralAttention, wanted Bah"
    assert cli.main(["export", model, "--format=onnx", f"--export_dir={tmp_path / 'new'}"]) == 2
    assert f"bahdanau-tf: export: {part}" in capsys.readouterr().err
    assert cli.main(["page", model, f"--output={tmp_path / 'page.html'}"]) == 2
    assert f"bahdanau-tf: page: {part}" in capsys.readouterr().err


@pytest.mark.parametrize("change", [lambda kernel: kernel, lambda kernel: kernel * np.nan])
def test_graphs_that_differ_never_appear(change, tmp_path, monkeypatch):
    monkeypatch.setattr(graphs, "halves", change)
    refused(
        lambda: onnx.export_runtime(translator().graph, tmp_path / "new"),
        "differs from the model by",
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "runtime.json").touch()
    refused(lambda: onnx.export_runtime(translator().graph, tmp_path / "mine"), "not empty")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_rounding_of_a_trained_model_passes(tmp_path, monkeypatch):
    # One with 63 symbols differed by 1.1e-5.
    monkeypatch.setattr(graphs, "halves", lambda kernel: np.float32(1.00003) * halves(kernel))
    (fact,) = onnx.export_runtime(translator().graph, tmp_path / "new")
    assert fact.endswith("within 2e-05")


@given(st.text(), st.lists(st.integers(0, 289), max_size=9))
def test_text_is_that_of_the_graph(text, ids):
    for tokenizer in (TEXT, REVERSED):
        own = tokenizer_of(tokenizer)
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


@pytest.mark.parametrize("tokenizer", [TEXT, CHARACTERS, SYMBOLS])
def test_pieces_tell_the_kind_of_a_tokenizer(tokenizer):
    assert tokenizer_of(tokenizer).kind == tokenizer.kind


@functools.cache
def tokenizer_of(tokenizer: SubwordTokenizer) -> Subwords:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        return Subwords(Path(folder))


@pytest.mark.parametrize(
    "line",
    [
        *("A BIG DOG.", "ÉTÉ  ÎLE 1", "İSTANBUL BİG", "\0 AB CD", "ΟΔΟΣ ΑΣ"),
        pytest.param("A" * 4000 + " 1" * 2000, id="slow for a pattern that tries every split"),
    ],
)
def test_capitals(line):
    assert true_cased(line).encode() == true_cased_in_graph(tf.constant([line])).numpy()[0]


@pytest.mark.parametrize(("name", "few"), [("conditional", 0), ("original", 512)])
def test_int8_has_rounded_weights(name, few, tmp_path, monkeypatch):
    monkeypatch.setattr(graphs, "FEW", few)
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
    own = MODELS["conditional"]()
    own.habits = Habits(4)
    own.save(tmp_path / "model")
    exported, text, reference = (tmp_path / name for name in ("exported", "in", "reference"))
    flags = [f"--model_dir={tmp_path / 'model'}", "--format=onnx", f"--export_dir={exported}"]
    for path in (text, reference):
        path.write_text("".join(f"{line}\n" for line in SENTENCES))
    empty = tmp_path / "empty"
    empty.write_text("\n \n")
    assert cli.main(["export", *flags, "--beam_size=3", f"--compare={empty}"]) == 2
    assert "has no line with words" in capsys.readouterr().err
    (exported / "1").mkdir(parents=True)  # an earlier export, which stays
    reader, writer = os.pipe()  # can be read once
    os.write(writer, text.read_bytes())
    os.close(writer)
    assert cli.main(["export", *flags, "--beam_size=3", f"--compare=/dev/fd/{reader}"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{exported / '2'}\n"
    assert "4 of 4 translations equal the model's\n" in err
    model = f"--model_dir={exported / '2'}"
    compare = ["evaluate", f"--source={text}", f"--reference={reference}", "--beam_size=1"]
    translate = ["translate", f"--input={text}", "--n_best=2"]
    for words in (compare, translate):
        words.append("--max_length=9")
    program = (
        "import sys; from bahdanau_tf.commands import main\n"
        f"for words in ({translate!r}, {compare!r}):\n"
        f"    assert main.main([*words, {model!r}]) == 0\n"
        "assert not {'tensorflow', 'keras'} & sys.modules.keys()"
    )
    done = run_python("-c", program)
    assert done.stderr.count("longer than in training") == 2
    assert cli.main([*compare, flags[0]]) == 0
    scores = capsys.readouterr().out
    assert done.stdout.endswith(scores)
    wanted = own.translate(SENTENCES, Decoding(beam_size=5, n_best=2, max_length=9))
    texts = [x.line for translation in wanted for x in with_alternatives(translation)]
    lines = done.stdout.removesuffix(scores).split("\n")[:-1]
    assert [line.split(" ||| ")[1] for line in lines] == texts
    split = [*translate, "--split_sentences", "--format=json"]
    rows = []
    for folder in (flags[0], model):
        assert cli.main([*split, folder]) == 0
        rows.append([json.loads(line)["text"] for line in capsys.readouterr().out.split("\n")[:-1]])
    assert rows[0] == rows[1]


def test_the_other_loader_is_named(exported, tmp_path):
    refused(lambda: Translator.load(exported), "bahdanau_tf.runtime.Translator.load alone")
    for name in ("tatoeba-en-fr", tmp_path):
        with pytest.raises(ValueError, match=rf"`bahdanau-tf export .*--model_dir={name} "):
            Runtime.load(name)
    refused(lambda: Runtime.load("nowhere"), "there is no folder nowhere")


@pytest.mark.parametrize("options", [{"constraints": [None]}, {"attention": {}}])
def test_what_only_tensorflow_reads_is_refused(options, exported):
    refused(lambda: Runtime.load(exported).translate("a dog", **options), "wanted none")


THREADS = """
import os, sys
os.sched_setaffinity(0, [int(sys.argv[2])])
from bahdanau_tf.runtime import Translator
translator = Translator.load(sys.argv[1])
translator.translate(["a", "a dog"] * 3, batch_size=1)
print({core for task in os.listdir("/proc/self/task") for core in os.sched_getaffinity(int(task))})
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_threads_stay_on_the_cores_of_the_process(exported):
    core = max(os.sched_getaffinity(0))
    assert output_of("-c", THREADS, exported, core).strip() == str({core})


def test_several_threads_translate_several_batches(exported, monkeypatch):
    lines, used = SENTENCES * 3, set()
    wanted = Runtime.load(exported, threads=1).translate(lines, max_length=5)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "3")
    runtime = Runtime.load(exported)
    both = threading.Barrier(3)
    read = runtime.source_text.read

    def reading(*arguments: Any) -> Any:
        if threading.get_ident() not in used:
            used.add(threading.get_ident())
            both.wait(60)  # passed by three threads at once, or by none
        return read(*arguments)

    monkeypatch.setattr(runtime.source_text, "read", reading)
    assert_equal(wanted, runtime.translate(lines, max_length=5, batch_size=1))
    assert len(used) == 3


def test_only_the_start_of_a_long_source_is_read(exported, tmp_path, capsys):
    """As much as of a SavedModel's."""
    lines = ["a dog é猫 sleeps", "x" * 500, "é" * 200, "a", "", " " * 999 + "a", " \0 a"]
    for tokenizer in (TEXT, REVERSED):
        limited = LimitedText(tokenizer, 5)
        (ids, cut), own = limited.read_ids(tf.constant(lines)), tokenizer_of(tokenizer)
        readings = [own.read(line, 5) for line in lines]
        assert [x.ids for x in readings] == ids.to_list()
        assert [x.cut for x in readings] == cut.numpy().tolist()
    folder = shutil.copytree(exported, tmp_path / "short")
    options = json.loads((folder / "runtime.json").read_text())
    assert options["max_source_length"] == 128
    (folder / "runtime.json").write_text(json.dumps({**options, "max_source_length": 5}))
    runtime = pickle.loads(pickle.dumps(Runtime.load(folder)))
    cut, whole, spaces = runtime.translate(["xxxxxxx", "xxx", lines[5]], max_length=4)
    assert (cut.cut, cut.truncated, whole.cut) == (True, True, False)
    assert (cut.text, cut.source_tokens) == (whole.text, whole.source_tokens)
    assert (spaces.text, spaces.score, spaces.truncated) == ("", -1e9, True)
    assert runtime.translate("a", prefixes="x" * 999, max_length=4).truncated
    (tmp_path / "in").write_text("xxxxxxx\na\n")
    flags = [f"--model_dir={folder}", f"--input={tmp_path / 'in'}", "--max_length=2"]
    assert cli.main(["translate", *flags, "--format=json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out.partition("\n")[0])["truncated"]
    assert "line 1: only its start was translated" in err


def other_tokenizer(folder: Path) -> None:
    SubwordTokenizer.train([LINES], 300).save(folder)


def exchanged(folder: Path) -> None:
    for name, other in (("step", "aside"), ("own", "step"), ("aside", "own")):
        (folder / f"{name}.onnx").rename(folder / f"{other}.onnx")


def linked(name: str) -> Any:
    def link(folder: Path) -> None:
        (folder.parent / "secret").write_text("# A secret")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(folder.parent / "secret")

    return link


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda x: other_tokenizer(x / "source"), ("source has 300 ids and", "encode.onnx 290")),
        (lambda x: other_tokenizer(x / "target"), ("target has 300 ids and", "step.onnx 290")),
        (exchanged, ("step.onnx has the inputs own",)),
        (lambda x: (x / "runtime.json").write_text("[" * 100_000), ("runtime.json is not JSON",)),
        (linked("card.md"), ("card.md is not a regular file inside",)),
        (linked("source/tokenizer.json"), ("tokenizer.json is not a regular file inside",)),
        (lambda x: os.mkfifo(x / "lexicon.npz2"), ("lexicon.npz2 is not a regular file inside",)),
    ],
)
def test_what_does_not_belong_together_is_refused(damage, message, exported, tmp_path):
    folder = shutil.copytree(exported, tmp_path / "new")
    damage(folder)
    refused(lambda: Runtime.load(folder), *message)


def test_graphs_of_another_model_are_refused(exported, tmp_path):
    onnx.export_runtime(translator(units=7).graph, tmp_path / "other")
    shutil.copy(exported / "step.onnx", tmp_path / "other")
    refused(lambda: Runtime.load(tmp_path / "other"), "step.onnx reads state of width [6]")


def test_nan_is_not_a_translation(exported, tmp_path):
    own = translator()
    own.model.readout.output_bias.assign_add(np.full(290, np.nan))
    folder = shutil.copytree(exported, tmp_path / "new")
    graphs.write_step(own.model, folder / "step.onnx", int8=False)
    refused(lambda: Runtime.load(folder).translate("a dog"), "computes NaN for 'a dog'")


def test_the_name_of_a_folder_need_not_be_utf8(exported, tmp_path):
    folder = shutil.copytree(exported, os.fsdecode(os.fsencode(tmp_path) + b"/\xe9"))
    assert Runtime.load(folder).translate("").text == ""


def test_translators_of_tensorflow_have_no_links_either(tmp_path):
    for place in ("model", "model/best"):
        MODELS["conditional"]().save(tmp_path / place)
        linked("card.md")(tmp_path / place)
        with pytest.raises(ValueError, match=r"card\.md is not a regular file inside"):
            Translator.load(tmp_path / "model")
        shutil.rmtree(tmp_path / "model")


@pytest.mark.parametrize("name", ["runtime.json", "step.onnx", "source/tokenizer.json"])
def test_damaged_folders_are_refused(tmp_path, name, exported):
    shutil.copytree(exported, tmp_path / "new")
    path = Path(tmp_path, "new", name)
    path.write_bytes(b"{}")
    refused(lambda: Runtime.load(tmp_path / "new"), "Translator.load:")
    path.unlink()
    refused(lambda: Runtime.load(tmp_path / "new"), "Translator.load:")
