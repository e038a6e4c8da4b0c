"""Exports run by TensorFlow's C++ runtime without Python, as in a server.

`make check-serving` also runs this file against TensorFlow 2.20.0.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from c_runtime.harness import INVALID_ARGUMENT, PYTHON_VARIABLE, Runtime
from processes import output_of
from toys import SPECIAL, english, french, toy_model

from bahdanau_tf import (
    Decoding,
    Lexicon,
    RNNEncDec,
    RNNSearch,
    SubwordTokenizer,
    Translator,
    Vocabulary,
    WordTokenizer,
)
from bahdanau_tf.serving.export import CORE_OPS, TEXT_OPS
from bahdanau_tf.serving.requests import Request, probes, request as request_of

EXPORT_SCRIPT = Path(__file__).resolve().parents[2] / "export" / "export.py"
KOREAN = ["고양이", "가", "개", "를", "본다", "잔다", "빨간", "."]
JAPANESE = ["猫", "が", "犬", "を", "見る", "寝る", "赤い", "。"]
NAMES = ["align", "complete", "greedy", "n_best", "score", "serving_default"]
THREADS, SECONDS = 8, 60
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def runtime(tmp_path_factory) -> Runtime:
    if shutil.which("gcc") is None or sys.platform != "linux":
        pytest.skip("needs gcc and Linux")
    pytest.importorskip("tensorflow_text", reason="needs tensorflow-text")
    return Runtime(tmp_path_factory.mktemp("runtime"))


class Toy(tf.Module):
    """Upper-cases words in a loop and measures lengths in bytes."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        import tensorflow_text

        text = tf.ensure_shape(text, [None])
        words = tensorflow_text.WhitespaceTokenizer().tokenize(text)
        words = words.to_tensor("", shape=[None, 4])
        steps = tf.TensorArray(tf.string, 4, element_shape=[None])
        for step in tf.range(4):
            steps = steps.write(step, tf.strings.upper(words[:, step]))
        return {
            "upper": tf.strings.reduce_join(tf.transpose(steps.stack()), axis=1, separator="|"),
            "length": tf.strings.length(text),
            "half": tf.cast(tf.strings.length(text), tf.float32) / 2.0,
            "long": tf.strings.length(text) > 5,
        }


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Path:
    """The folder of the exported toy; older runtimes must read it as well."""
    path = tmp_path_factory.mktemp("toy") / "1"
    module = Toy()
    tf.saved_model.save(module, path, {"serving_default": module.serve})
    return path


def test_strings_and_numbers_go_in_and_out(runtime, toy):
    texts = [b"a bc", b"", b"\xff\0z", "é 猫".encode(), b"a b c d e"]
    (answer, empty), (facts,) = runtime.run(
        toy, [Request("serving_default", {"text": texts}), Request("serving_default", {"text": []})]
    )
    assert (answer.code, answer.message) == (0, "")
    upper = [b"A|BC||", b"|||", b"\xff\0Z|||", "é|猫||".encode(), b"A|B|C|D"]
    assert answer.outputs["upper"].tolist() == upper
    lengths = [len(text) for text in texts]
    assert answer.outputs["length"].tolist() == lengths
    assert answer.outputs["half"].tolist() == [length / 2 for length in lengths]
    assert answer.outputs["long"].tolist() == [length > 5 for length in lengths]
    assert empty.outputs["upper"].shape == (0,)
    assert facts["version"].startswith("2.")
    assert facts["peak_kilobytes"] > 0


def test_input_of_a_wrong_shape_or_type_is_an_error_not_a_crash(runtime, toy):
    wrong: list[Any] = [b"hello", b"", 3]
    asked = [Request("serving_default", {"text": wrong_input}) for wrong_input in wrong]
    answers, _ = runtime.run(toy, [*asked, Request("serving_default", {"text": [b"a"]})])
    assert [answer.code for answer in answers] == [INVALID_ARGUMENT] * 3 + [0]


def test_stress_run_compares_answers_and_reports_memory(runtime, toy):
    requests = [Request("serving_default", {"text": [b"a"] * count}) for count in (1, 2, 3)]
    _, (stress, _) = runtime.run(toy, requests, "--stress", "4", "2")
    assert (stress["errors"], stress["differences"]) == (0, 0)
    assert stress["runs"] > len(requests)
    assert len(stress["resident_kilobytes"]) == 2


def test_the_stock_server_has_every_op_allowed_in_exports(runtime):
    operations = runtime.operations()
    assert {"MatMul", "While", "SentencepieceOp"} <= operations
    assert "PyNoSuchOp" not in operations
    assert sorted((CORE_OPS | TEXT_OPS) - operations) == []


# Whole translators. The first run of a signature takes seconds.


def translator_of(
    source: Any, target: Any, model_class: type = RNNSearch, **options: Any
) -> Translator:
    """A translator with a `toy_model`."""
    model = toy_model(source, target, model_class, **options)
    return Translator(model, source, target, Decoding(beam_size=3, max_length=12))


def subwords(vocabulary: list[str]) -> SubwordTokenizer:
    """A tokenizer with subwords of the vocabulary, and bytes for the rest."""
    pairs = [f"{first} {second}" for first in vocabulary for second in vocabulary]
    return SubwordTokenizer.train([pairs], vocabulary_size=280)


def with_words() -> Translator:
    return translator_of(english(), french())


def with_shortlist() -> Translator:
    """The weights are float16, too."""
    translator = with_words()
    last = translator.target_text.vocabulary_size - 1
    own = np.full([translator.source_text.vocabulary_size, 1], last)
    own[0] = -1
    translator.lexicon = Lexicon(own, first=last)
    translator.decoding = replace(translator.decoding, shortlist=True)
    translator.halve_weights()
    return translator


MAKERS: dict[str, Callable[[], Translator]] = {
    "words": with_words,
    "without attention": lambda: translator_of(english(), french(), RNNEncDec),
    "shortlist": with_shortlist,
    "subwords": lambda: translator_of(subwords(KOREAN), subwords(JAPANESE)),
    "ensemble": lambda: Translator.ensemble([with_words(), with_words()]),
}


@pytest.fixture(scope="module", params=MAKERS)
def exported(request, tmp_path_factory) -> tuple[Translator, Path]:
    """A translator and the folder of its export."""
    translator = MAKERS[request.param]()
    base = tmp_path_factory.mktemp("models")
    if request.param != "words":
        return translator, translator.export(base, max_source_length=32)
    # The export script of the kit must do the same as `Translator.export`.
    saved = tmp_path_factory.mktemp("saved") / "translator"
    translator.save(saved)
    return translator, Path(output_of(EXPORT_SCRIPT, saved, base).split("\n")[-2])


def rows_of(translator: Translator) -> tuple[list[bytes], list[bytes]]:
    return (probes(translator.source_texts[0]), probes(translator.target_text)[::-1])


def assert_equal(outputs: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert sorted(outputs) == sorted(wanted)
    for name, value in outputs.items():
        assert value.shape == wanted[name].shape, name
        if value.dtype.kind == "f":
            np.testing.assert_allclose(value, wanted[name], TOLERANCE, TOLERANCE, err_msg=name)
        else:
            np.testing.assert_array_equal(value, wanted[name], err_msg=name)


@pytest.mark.slow
def test_every_signature_gives_the_same_as_in_python(exported, runtime, capsys):
    translator, version = exported
    texts, targets = rows_of(translator)
    loaded = tf.saved_model.load(str(version))
    names = sorted(loaded.signatures)
    alone = [(texts[row], targets[row]) for row in (3, 8, 10)]
    asked = [request_of(name, texts, targets) for name in names]
    asked += [request_of(name, [], []) for name in names]
    asked += [request_of(name, [text], [target]) for name in names for text, target in alone]
    answers, (facts,) = runtime.run(version, asked)
    for request, answer in zip(asked, answers, strict=True):
        assert answer.code == 0, answer.message
        inputs = {
            name: tf.constant(rows, tf.string, [len(rows)]) for name, rows in request.inputs.items()
        }
        wanted = loaded.signatures[request.signature](**inputs)
        assert_equal(answer.outputs, {name: tensor.numpy() for name, tensor in wanted.items()})
    with capsys.disabled():
        firsts = [round(answer.milliseconds) for answer in answers[: len(names)]]
        sys.stdout.write(f"\n{facts}\nfirst runs {names}: {firsts} ms\n")


@pytest.mark.slow
def test_a_refused_request_does_not_affect_others(exported, runtime):
    translator, version = exported
    texts, targets = rows_of(translator)
    good = request_of("greedy", texts[:2], targets[:2])
    asked = [
        good,
        Request("greedy", {"text": texts[0]}),
        Request("greedy", {"text": 2}),
        Request("score", {"text": texts[0], "translation": texts[:1]}),
        Request("score", {"text": texts[:2], "translation": texts[:1]}),
        good,
    ]
    answers, _ = runtime.run(version, asked)
    codes = [answer.code for answer in answers]
    assert codes == [0, *[INVALID_ARGUMENT] * 4, 0]
    assert_equal(answers[0].outputs, answers[-1].outputs)


@pytest.mark.slow
def test_eight_threads_for_a_minute_give_equal_answers_in_constant_memory(
    runtime, tmp_path, capsys
):
    translator = with_words()
    version = translator.export(tmp_path, max_source_length=32)
    texts, targets = rows_of(translator)
    asked = [
        request_of(name, texts[begin:end], targets[begin:end])
        for name in NAMES
        for begin, end in ((0, 1), (1, 4), (4, 17))
    ]
    _, (stress, facts) = runtime.run(version, asked, "--stress", str(THREADS), str(SECONDS))
    resident = stress.pop("resident_kilobytes")
    warm = resident[SECONDS // 3 :]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{facts}\n{stress}, resident {resident[0]} to {resident[-1]} KB"
            f", after warm-up {min(warm)} to {max(warm)} KB\n"
        )
    assert (stress["errors"], stress["differences"]) == (0, 0)
    assert stress["runs"] >= len(asked) * THREADS
    assert max(warm) <= 1.05 * min(warm)


def many_words() -> Translator:
    """Every target word is unknown and is replaced by a copied source word."""
    vocabulary = [f"w{number}" for number in range(4000 - len(SPECIAL))]
    text = WordTokenizer(Vocabulary([*SPECIAL, *vocabulary]), language="en")
    translator = translator_of(text, text, attention_units=8)
    bias = translator.model.readout.output_bias
    bias.assign(bias + 50.0 * tf.one_hot(text.unk_id, text.vocabulary_size))
    translator.decoding = Decoding(beam_size=3, unknown="replace")
    return translator


def many_pieces() -> Translator:
    return translator_of(subwords(KOREAN), subwords(JAPANESE), attention_units=8)


ADMITTED = [  # rows of 8 KiB; more bytes are not read
    b"x" * 4096 + b" a" * 2048,
    b"," * 8192,
    b"x" * 8192,
    b'" ' * 4096,
    b"\x80" * 8192,
    b"w7 " * 2730,
    "\u732b".encode() * 2730,
]


@pytest.mark.slow
@pytest.mark.parametrize("make", [many_words, many_pieces])
def test_no_request_within_the_limits_needs_60_megabytes(make, runtime, tmp_path, capsys):
    """The limits: 32 rows in batching.config, 8 KiB a row in the signatures."""
    version = make().export(tmp_path)
    for name in NAMES:
        small, *large = (
            request_of(name, [row] * count, [row] * count)
            for row, count in ((b"w1 w2", 2), *((row, 32) for row in ADMITTED))
        )
        answers, _ = runtime.run(version, [small, small, *large])
        assert {answer.code for answer in answers} == {0}
        rest = answers[2].rest_kilobytes
        peaks = [(answer.peak_kilobytes - rest) >> 10 for answer in answers[2:]]
        with capsys.disabled():
            sys.stdout.write(f"\n{make.__name__} {name}: {peaks} MB\n")
        assert max(peaks) < 60


def test_the_requested_tensorflow_is_tested(runtime):
    """`make check-serving` must not test this interpreter's TensorFlow."""
    python = os.environ.get(PYTHON_VARIABLE)
    if python is None:
        pytest.skip(f"{PYTHON_VARIABLE} is not set")
    assert str(runtime.libraries[0]).startswith(str(Path(python).parents[1]))
