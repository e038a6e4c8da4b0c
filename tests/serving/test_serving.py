"""Exports: signatures, limits, unusual input, batches, ops, `examine`."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, strategies as st
from oracle import randomized
from refusals import refused
from toys import ENGLISH, FRENCH, SPECIAL, toy_model, with_alternatives

import bahdanau_tf
from bahdanau_tf import (
    Decoding,
    Dictionary,
    RNNEncDec,
    RNNSearch,
    SubwordTokenizer,
    Translation,
    Translator,
    Vocabulary,
    WordTokenizer,
    sample,
)
from bahdanau_tf.models.stored import round_to_half
from bahdanau_tf.serving import Limits, answers, doctor, examine, limits, reload
from bahdanau_tf.serving.export import CORE_OPS, check_operations, has_serving_api, read_warmup
from bahdanau_tf.serving.limits import LimitedText, first_bytes
from bahdanau_tf.serving.requests import Answers, probes
from bahdanau_tf.serving.saved_model import write_saved_model
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.result import Scored

pytestmark = pytest.mark.usefixtures("eager_search")  # of the translator in memory
LIMITS = Limits(max_source_length=24, max_target_length=20, n_best=3)
SHORT = [
    "the cat sleeps.",
    "",
    "Zoé sees  the\u2009red \u4e16\u754c dog .",
    " \t\u3000",
    "nothing known here, at all",
    "here cat",
]
OUTPUTS = {
    "serving_default": {"translation", "score", "finished", "truncated", "confidence"},
    "greedy": {"translation", "score", "finished", "truncated"},
    "complete": {"translation", "score", "finished", "truncated"},
    "n_best": {"translations", "scores", "finished", "truncated"},
    "align": {
        "translation", "source_tokens", "source_offsets", "source_length",
        "target_tokens", "target_offsets", "target_length", "weights",
        "finished", "truncated",
    },
    "score": {"log_prob", "length", "truncated"},
}  # fmt: skip
INPUTS = {"complete": ("text", "prefix"), "score": ("text", "translation")}
CONSTANT_DIMENSIONS = {
    "translations": [3],
    "scores": [3],
    "source_tokens": [24],
    "source_offsets": [24, 2],
    "target_tokens": [20],
    "target_offsets": [20, 2],
    "weights": [20, 24],
}


def rest_of(signature: str, output: str) -> list[int]:
    """The dimensions of an output after the first."""
    if (signature, output) == ("n_best", "finished"):
        return [3]
    return CONSTANT_DIMENSIONS.get(output, [])


def with_large_weights(model: Any, seed: int = 28) -> Any:
    """Random weights so large that the model prefers some words, also [UNK].

    With this seed some translations of `SHORT` end and others do not.
    """
    randomized(model, seed, scale=0.7)
    bias = np.array(model.readout.output_bias)
    bias[1] += 2.0  # [UNK]
    model.readout.output_bias.assign(bias)
    return model


def make_translator(
    source: Any, target: Any, model_class: type = RNNSearch, **options: Any
) -> Translator:
    model = with_large_weights(toy_model(source, target, model_class))
    return Translator(model, source, target, **options)


@pytest.fixture(scope="module")
def translator() -> Translator:
    """Weights of one table need float32; all others are exact in float16."""
    made = make_translator(
        WordTokenizer(Vocabulary([*SPECIAL, *ENGLISH])),
        WordTokenizer(Vocabulary([*SPECIAL, *FRENCH]), "fr"),
        decoding=Decoding(max_length=20, unknown="replace"),
        dictionary=Dictionary({"here": "ici"}),
    )
    table = made.model.source_embedding.embeddings
    exact = table.numpy()
    made.halve_weights()
    table.assign(exact)
    made.habits = Habits().measured(np.linspace(-60, -1, 400), [*range(2, 22)] * 20)
    return made


@pytest.fixture(scope="module")
def version(translator: Translator, tmp_path_factory: Any) -> Path:
    base = tmp_path_factory.mktemp("served")
    return translator.export(base, **dataclasses.asdict(LIMITS))


@pytest.fixture(scope="module")
def served(version: Path) -> Callable[..., dict[str, np.ndarray]]:
    """Sends rows to a signature of the export."""
    model = tf.saved_model.load(str(version))

    def send(signature: str, *inputs: Sequence[Any]) -> dict[str, np.ndarray]:
        names = INPUTS.get(signature, ("text",))
        rows = [tf.constant(list(rows), tf.string) for rows in inputs]
        function = model.signatures[signature]
        outputs = function(**dict(zip(names, rows, strict=True)))
        return {name: value.numpy() for name, value in outputs.items()}

    send.model = model
    return send


@pytest.fixture(scope="module")
def expected(translator: Translator) -> list[Translation]:
    """In memory, without limits."""
    return translator.translate(SHORT, n_best=3)


def test_confidence_is_that_in_memory(served, translator, expected):
    wanted = [1.0 if x.confidence is None else x.confidence for x in expected]
    confidence = served("serving_default", SHORT)["confidence"]
    assert confidence.dtype == np.float32
    assert len(set(wanted)) > 3
    np.testing.assert_allclose(confidence, wanted, atol=1e-4)


def inputs_of(signature: str, rows: Sequence[Any]) -> list[Sequence[Any]]:
    return [rows, rows[::-1]] if signature in INPUTS else [rows]


def decoded(values: np.ndarray) -> list[str]:
    return [value.decode() for value in values.tolist()]


def test_signatures_have_the_documented_inputs_and_outputs(served):
    assert set(served.model.signatures) == set(OUTPUTS)
    for name, function in served.model.signatures.items():
        _, inputs = function.structured_input_signature
        wanted = set(INPUTS.get(name, ["text"]))
        assert set(inputs) == wanted
        assert {spec.shape.rank for spec in inputs.values()} == {1}
        outputs = function.structured_outputs
        assert set(outputs) == OUTPUTS[name]
        for output, spec in outputs.items():
            assert spec.shape.as_list() == [None, *rest_of(name, output)]


def test_finished_says_which_translations_have_ended(served, expected):
    """Finished ones come first; within each kind the best first."""
    outputs = served("n_best", SHORT)
    for row, wanted in enumerate(expected):
        flags = [x.finished for x in with_alternatives(wanted)]
        finished = outputs["finished"][row]
        assert finished.tolist() == flags + [False] * (3 - len(flags))
        for kind in (True, False):
            scores = outputs["scores"][row][finished == kind]
            assert sorted(scores, reverse=True) == scores.tolist()
        assert flags == sorted(flags, reverse=True)
    assert 0 < outputs["finished"][:, 0].sum() < len(SHORT)
    for signature in ("serving_default", "align"):
        first = served(signature, SHORT)["finished"]
        assert first.tolist() == outputs["finished"][:, 0].tolist()


def test_scores_equal_those_of_the_translator(served, translator):
    targets = ["le chat dort.", "", "l'un", "zut", "un un", "le"]
    outputs = served("score", SHORT, targets)
    wanted = translator.score(SHORT, targets)
    np.testing.assert_allclose(outputs["log_prob"], [x.log_prob for x in wanted], atol=1e-4)
    assert outputs["length"].tolist() == [len(x.tokens) + 1 for x in wanted]
    assert not outputs["truncated"].any()


def test_completions_equal_those_of_the_translator(served, translator):
    prefixes = ["le Zyx", "le", "", "un", "Le chat " * 12, "x" * 300]
    wanted = translator.translate(SHORT[:4], prefixes=prefixes[:4])
    outputs = served("complete", SHORT, prefixes)
    texts = outputs["translation"]
    assert decoded(texts[:4]) == [x.text for x in wanted]
    np.testing.assert_allclose(outputs["score"][:4], [x.score for x in wanted], atol=1e-4)
    assert texts[0].startswith(b"le Zyx")
    assert texts[1] == b""
    # A longer prefix is cut: after 19 words, or within a word.
    assert texts[4].startswith(b"Le chat " * 9 + b"Le")
    assert texts[5].startswith(b"x" * 256 + b" ")
    assert outputs["truncated"][4:].all()


def test_offsets_and_weights_of_align_belong_to_the_strings(served, expected):
    outputs = served("align", SHORT)
    for row, wanted in enumerate(expected):
        answer = {name: value[row] for name, value in outputs.items()}
        assert answer["translation"].decode() == wanted.text
        for side, text, tokens in (
            ("source", SHORT[row].encode(), wanted.source_tokens),
            ("target", answer["translation"], wanted.tokens),
        ):
            length = answer[f"{side}_length"]
            # Only the source of a blank row has an end symbol.
            ended = wanted.finished and wanted.weights is not None
            assert length == len(tokens) + (side == "source" or ended)
            words = answer[f"{side}_tokens"]
            assert decoded(words[: len(tokens)]) == tokens
            spans = answer[f"{side}_offsets"]
            assert [text[start:end] for start, end in spans] == words.tolist()
            assert not spans[length:].any()
        weights = answer["weights"]
        height, width = answer["target_length"], answer["source_length"]
        np.testing.assert_allclose(weights[:height].sum(1), 1.0, atol=1e-5)
        assert not weights[height:].any()
        assert not weights[:, width:].any()
        if wanted.weights is not None:
            np.testing.assert_allclose(weights[:height, :width], wanted.weights, atol=1e-4)
    assert b"ici" in outputs["target_tokens"][5]


def test_long_rows_are_truncated_and_marked(served, translator):
    words = ["the", "red", "cat", "zzz"] * 2500
    begin = " ".join(words[: LIMITS.max_source_length - 1])
    rows = [" ".join(words), begin, "the cat " * 125_000]
    outputs = served("serving_default", rows)
    wanted = translator.translate(begin, n_best=3)
    assert decoded(outputs["translation"])[:2] == [wanted.text] * 2
    assert outputs["truncated"][[0, 2]].all()
    assert outputs["truncated"][1] != wanted.finished
    cut = served("score", ["cat", "cat"], [rows[0], "le chat"])
    assert cut["truncated"].tolist() == [True, False]
    assert cut["length"].tolist() == [LIMITS.max_target_length, 3]
    assert served("align", rows)["source_length"].tolist() == [24, 24, 24]


def test_a_long_word_is_cut_where_it_may_be_copied(served, translator):
    """The score of a sentence with one is that of all of it."""
    source = ["the cat " + 300 * "x"]
    assert served("serving_default", source)["truncated"].tolist() == [True]
    outputs = served("score", source, ["le chat"])
    assert outputs["truncated"].tolist() == [False]
    (wanted,) = translator.score(source, ["le chat"])
    assert outputs["log_prob"][0] == pytest.approx(wanted.log_prob, abs=1e-4)


@pytest.mark.parametrize("signature", OUTPUTS)
def test_no_contents_of_a_row_are_an_error(served, translator, signature):
    rows = probes(translator.source_text)
    for some in (rows, []):
        outputs = served(signature, *inputs_of(signature, some))
        for name, value in outputs.items():
            assert value.shape == (len(some), *rest_of(signature, name))
            assert not name.endswith("_bytes")
            if value.dtype == object:
                decoded(value.ravel())  # JSON can hold only UTF-8
            elif value.dtype == np.float32:
                assert np.isfinite(value).all()


@pytest.mark.parametrize("signature", OUTPUTS)
def test_requests_may_be_merged_padded_and_split(served, signature):
    """As a server does: a repeated row fills a batch to an allowed size."""
    requests = [["cat"], ["here cat", "", "the cat " * 50], [b"\xff the\x80 dog", "a dog sleeps."]]
    merged = [row for request in requests for row in request]
    padded = merged + [requests[-1][0]] * (8 - len(merged))
    together = served(signature, *[padded] * len(inputs_of(signature, [])))
    start = 0
    for request in requests:
        alone = served(signature, *[request] * len(inputs_of(signature, [])))
        for name, value in alone.items():
            part = together[name][start : start + len(request)]
            if value.dtype == np.float32:
                np.testing.assert_allclose(part, value, atol=1e-4)
            else:
                assert part.tolist() == value.tolist(), name
        start += len(request)


def test_requests_with_unequal_rows_are_refused(served):
    for signature in ("score", "complete"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="equal numbers"):
            served(signature, ["cat", "dog"], ["le chat"])


def test_an_export_contains_no_path_of_this_machine(version):
    paths = [sys.prefix, str(version.parent), str(Path(__file__).parents[1])]
    paths.append(str(Path(bahdanau_tf.__file__).parent))
    for file in version.rglob("*"):
        if file.is_file() and file.parent.name != "variables":
            data = file.read_bytes()
            assert not [path for path in paths if path.encode() in data]


def test_warmup_records_are_requests_that_work(version, served):
    requests = read_warmup(version)
    if not has_serving_api():
        assert not (version / "assets.extra").exists()
        pytest.skip("needs tensorflow-serving-api")
    assert {request.signature for request in requests} == set(OUTPUTS)
    assert 0 < len(requests) <= 1000  # the server's limit
    for request in requests:
        outputs = served(request.signature, *request.inputs.values())
        for value in outputs.values():
            assert len(value) == len(request.inputs["text"])


# Limits.


@given(st.text(st.characters(codec="utf-8"), max_size=40), st.integers(3, 40))
def test_bytes_are_cut_between_characters(text, limit):
    data = text.encode()
    (start,) = first_bytes(tf.constant([data]), limit).numpy()
    assert data.startswith(start)
    assert text.startswith(start.decode())
    assert limit - 3 <= len(start) <= limit or start == data
    rest = text[len(start.decode()) :]
    assert not rest or len(start + rest[0].encode()) > limit


@given(st.lists(st.binary(max_size=20), max_size=5), st.integers(3, 12))
def test_bytes_that_are_not_utf8_are_cut(rows, limit):
    starts = first_bytes(tf.constant(rows, tf.string), limit).numpy()
    for start, row in zip(starts, rows, strict=True):
        assert row.startswith(start)
        assert limit - 3 <= len(start) <= limit or start == row


@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_words_are_kept(reverse):
    text = WordTokenizer(Vocabulary([*SPECIAL, *ENGLISH]), reverse=reverse)
    limited = LimitedText(text, 4)
    rows = tf.constant(["the red cat sees a dog", "a cat", "the red cat", ""])
    begin = tf.constant(["the red cat", "a cat", "the red cat", ""])
    assert limited.tokenize(rows).to_list() == text.tokenize(begin).to_list()
    for cut, wanted in zip(limited.read(rows), text.read(begin), strict=True):
        assert cut.to_list() == wanted.to_list()
    assert limited.read_ids(rows)[1].numpy().tolist() == [True, False, False, False]
    assert limited.read_ids(tf.constant([" " * 257]))[1].numpy().all()


def test_a_long_word_is_cut():
    limited = LimitedText(WordTokenizer(Vocabulary([*SPECIAL, *ENGLISH])), 9)
    rows = tf.constant(["é" * 200 + " cat", "é" * 128])
    words, starts, ends = limited.tokenize_with_offsets(rows)
    begin = ("é" * 128).encode()
    assert words.to_list() == [[begin, b"cat"], [begin]]
    assert starts.to_list() == [[0, 401], [0]]
    assert ends.to_list() == [[256, 404], [256]]
    assert limited.read_words(rows).word_cut.numpy().tolist() == [True, False]


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_read_in_groups_give_the_same_as_alone(reverse, monkeypatch):
    text = WordTokenizer(Vocabulary([*SPECIAL, *ENGLISH]), reverse=reverse)
    rows = ["the cat", "", "a" * 50, "the dog sees a red cat", "\u4e16 , " * 9]
    monkeypatch.setattr(limits, "GROUP_BYTES", 120)  # two or three rows
    limited = LimitedText(text, 5)

    def read(some: list[str]) -> list[Any]:
        strings = tf.constant(some, tf.string)
        words = limited.tokenize_with_offsets(strings)
        outputs = [limited.tokenize(strings), *words, limited.read_ids(strings)[1]]
        columns = [
            column.to_list() if isinstance(column, tf.RaggedTensor) else column.numpy()
            for column in outputs
        ]
        return list(zip(*columns, strict=True))

    assert read(rows) == [read([row])[0] for row in rows]
    assert [row[-1] for row in read(rows)] == [False] * 3 + [True] * 2
    assert read([]) == []


def test_export_refuses_more_translations_than_the_beam(translator, tmp_path):
    refused(lambda: translator.export(tmp_path, n_best=6), "n_best is 6")
    assert not list(tmp_path.iterdir())


# The file.


class Doubler(tf.Module):
    """A minimal module to serve."""

    def __init__(self) -> None:
        super().__init__()
        self.two = tf.Variable(2.0)
        self.unused = tf.Variable(tf.zeros([1000]))

    def signatures(self, jit_compile: bool = False, extra: Any = None) -> Any:
        def double(x: tf.Tensor) -> dict[str, tf.Tensor]:
            y = self.two * x
            return {"y": y if extra is None else extra(y)}

        function = tf.function(
            double,
            input_signature=[tf.TensorSpec([None], name="x")],
            autograph=False,
            jit_compile=jit_compile,
        )
        return {"serving_default": function.get_concrete_function()}


def printed(y: tf.Tensor) -> tf.Tensor:
    with tf.control_dependencies([tf.print(y)]):
        return tf.identity(y)


def by_python(y: tf.Tensor) -> tf.Tensor:
    return tf.ensure_shape(tf.py_function(lambda y: y, [y], tf.float32), [None])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"extra": printed}, ("PrintV2 (node", "Print", "of __inference")),
        ({"extra": by_python}, ("EagerPyFunc (node",)),
        ({"jit_compile": True}, ("is to be compiled by XLA",)),
    ],
    ids=["print", "python", "xla"],
)
def test_ops_that_a_server_cannot_run_are_refused(tmp_path, options, complaint):
    doubler = Doubler()
    write_saved_model(tmp_path / "model", doubler.signatures(**options), [])
    refused(lambda: check_operations(tmp_path / "model"), *complaint)


def test_a_saved_model_contains_only_the_variables_it_uses(tmp_path):
    doubler = Doubler()
    write_saved_model(tmp_path / "model", doubler.signatures(), [])
    check_operations(tmp_path / "model")
    model = tf.saved_model.load(str(tmp_path / "model"))
    outputs = model.signatures["serving_default"](x=tf.constant([1.5]))
    assert outputs["y"].numpy().tolist() == [3.0]
    names = [
        name for name, _ in tf.train.list_variables(str(tmp_path / "model" / "variables/variables"))
    ]
    assert sum("VARIABLE_VALUE" in name for name in names) == 1


def test_the_core_ops_exist():
    assert not [name for name in CORE_OPS if not hasattr(tf.raw_ops, name)]


def test_sampling_has_only_ops_of_a_server():
    @tf.function
    def drawn() -> tf.Tensor:
        options = {"start_id": 3, "eos_id": 2, "max_length": 4, "seed": 1, "top_k": 3, "top_p": 0.9}
        return sample(lambda x, s, _: (tf.one_hot(x, 4), s, None), tf.zeros([2]), **options).tokens

    graph = drawn.get_concrete_function().graph.as_graph_def()
    bodies = [function.node_def for function in graph.library.function]
    used = {node.op for nodes in (graph.node, *bodies) for node in nodes}
    assert used <= CORE_OPS


# `examine`.


NO_CUT = np.array([False, False])


def differences(compare: Any, outputs: dict[str, np.ndarray], *wanted: Any, **changes: Any) -> str:
    """What `compare` says if some values of the outputs are others."""
    outputs = {name: value.copy() for name, value in outputs.items()}
    for name, (place, value) in changes.items():
        outputs[name][place] = value
    return " ".join(compare(outputs, *wanted))


def test_translations_are_compared_up_to_ties():
    rows = [
        [Translation("", "a", score=-3.0), Translation("", "b", score=-3.0001)],
        [Translation("", "c", score=-1.0), Translation("", "d", score=-1.5)],
    ]
    outputs = {
        "translation": np.array([b"a", b"c"], object),
        "score": np.array([-3.0, -1.0], np.float32),
        "finished": np.array([True, True]),
        "truncated": np.array([False, False]),
    }
    compared = doctor.translations, outputs, rows, NO_CUT
    assert differences(*compared) == ""
    assert differences(*compared, translation=(0, b"b")) == ""  # a tie
    assert "row 1: b'd'" in differences(*compared, translation=(1, b"d"))
    assert "row 0: b'e'" in differences(*compared, translation=(0, b"e"))
    assert "row 1: score" in differences(*compared, score=(1, -1.001))
    assert "row 0: truncated" in differences(*compared, truncated=(0, True))
    assert "row 1: finished" in differences(*compared, finished=(1, False))


def test_n_best_lists_are_compared_in_all_their_places():
    rows = [
        [Translation("", "a", score=-3.0), Translation("", "b", score=-4.0)],
        [Translation("", "c", score=-1.0)],
    ]
    outputs = {
        "translations": np.array([[b"a", b"b"], [b"c", b""]]),
        "scores": np.array([[-3.0, -4.0], [-1.0, -1e9]]),
        "finished": np.array([[True, True], [True, False]]),
        "truncated": np.array([False, False]),
    }
    compared = doctor.n_best, outputs, rows, NO_CUT
    assert differences(*compared) == ""
    assert differences(*compared, translations=((0, 0), b"e"))
    assert "row 0, 1: score" in differences(*compared, scores=((0, 1), -4.1))
    assert "row 1, 1: score" in differences(*compared, scores=((1, 1), -2.0))
    # The last may tie with one that is missing, others may not.
    rows[0].append(Translation("", "d", score=-5.0))
    assert "'e'), finished" in differences(*compared, translations=((0, 1), b"e"))
    assert differences(*compared, finished=((0, 1), False))


def test_alignments_and_scores_are_compared_in_all_their_parts():
    aligned = Translation(
        "x y",
        "a",
        ["a"],
        source_tokens=["x", "y"],
        weights=np.array([[0.25, 0.75]]),
        source_offsets=[(0, 1), (2, 3)],
        target_offsets=[(0, 1)],
    )
    scored = Scored(-2.0, ["a"], np.array([-0.5, -1.5]))
    # The right value of each output, another one, and what is said of it.
    alignment = {
        "translation": (b"a", b"b", "'b'"),
        "finished": (True, False, "row 0: finished"),
        "truncated": (False, True, "row 0: truncated"),
        "source_tokens": ([b"x", b"y"], [b"x", b"z"], "source tokens"),
        "target_tokens": ([b"a"], [b"b"], "target tokens"),
        "source_offsets": ([[0, 1], [2, 3]], [[0, 1], [1, 3]], "source_offsets"),
        "target_offsets": ([[0, 1]], [[0, 2]], "target_offsets"),
        "weights": ([[0.25, 0.75]], [[0.3, 0.7]], "weights differ"),
        "target_length": (1, 2, "lengths differ"),
        "source_length": (2, 1, "lengths differ"),
    }
    scores = {
        "log_prob": (-2.0, -2.1, "row 0: log_prob"),
        "length": (2, 3, "row 0: length"),
        "truncated": (False, True, "row 0: truncated"),
    }
    for table, compare, *wanted in (
        (alignment, doctor.align, [[aligned]], NO_CUT, [b"x y"]),
        (scores, doctor.scores, [scored], NO_CUT),
    ):
        compared = compare, {name: np.array([right]) for name, (right, *_) in table.items()}
        assert differences(*compared, *wanted) == ""
        for name, (_, other, message) in table.items():
            assert message in differences(*compared, *wanted, **{name: (0, other)})


def test_a_model_that_is_not_finite_gives_no_translation(served):
    """Not an empty one of score 0, as a row without words has."""
    variables = list(served.model.used)
    weights = [variable.numpy() for variable in variables]
    try:
        for variable, values in zip(variables, weights, strict=True):
            variable.assign(np.full_like(values, np.nan))
        outputs = served("n_best", ["the cat"])
    finally:
        for variable, values in zip(variables, weights, strict=True):
            variable.assign(values)
    assert outputs["scores"].tolist() == [[-1e9] * 3]
    assert not outputs["finished"].any()
    assert outputs["truncated"].tolist() == [True]


def test_the_form_of_outputs_is_checked():
    good = {"x": np.zeros([2, 3], np.float32)}
    assert list(doctor.form(good, 2)) == []
    for bad, complaint in (
        ({"x": np.float32(1)}, "shape"),
        ({"x": np.zeros([3])}, "for 2 rows"),
        ({"x": np.array([0, np.nan])}, "finite"),
        ({"x_bytes": np.zeros([2])}, "base64"),
    ):
        (problem,) = doctor.form({name: np.asarray(value) for name, value in bad.items()}, 2)
        assert complaint in problem


def korean_and_japanese(corpus: Path) -> Translator:
    return make_translator(
        WordTokenizer.train([corpus], 60, "ja"), WordTokenizer.train([corpus], 60, "ko"), RNNEncDec
    )


def ensemble(corpus: Path) -> Translator:
    """Subwords, and words in reverse order; the target in reverse order."""
    target = SubwordTokenizer.train([corpus], 330, reverse=True)
    sources = (
        SubwordTokenizer.train([corpus], 320),
        WordTokenizer.train([corpus], 60, reverse=True),
    )
    return Translator.ensemble([make_translator(source, target) for source in sources])


def sampled(corpus: Path) -> Translator:
    text = WordTokenizer.train([corpus], 60)
    drawn = Decoding(max_length=20, sampling=True, seed=3)
    return make_translator(text, text, decoding=drawn)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus"
    lines = ["the red cat sleeps . ", "猫 は 眠る。 犬 も", "고양이가 잔다 . 개도"]
    path.write_text("\n".join(lines * 20) + "\n", "utf-8")
    return path


def test_round_to_half_rounds_weights_to_float16_and_names_those_too_large():
    model = with_large_weights(RNNSearch(11, 12, units=8, embedding_dim=6, maxout_units=4))
    weights = model.get_weights()
    round_to_half(model)
    for half, whole in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_array_equal(half, np.float32(np.float16(whole)))
    model.readout.output_bias.assign(np.full(12, 70_000.0))
    refused(lambda: round_to_half(model), "round_to_half:", "bias", "70000")


def test_weights_exact_in_float16_are_stored_in_float16(translator, version):
    stored = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    whole = []
    for name, dtype in stored.get_variable_to_dtype_map().items():
        if name.startswith("used/"):
            values = stored.get_tensor(name)
            exact = np.array_equal(np.float32(np.float16(values)), values)
            assert (dtype == tf.float16) == exact, name
            whole += [] if exact else [values]
    (table,) = whole
    np.testing.assert_array_equal(table, translator.model.source_embedding.embeddings.numpy())


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("kill -9 $$", "killed by signal 9 (Killed)"),
        ("echo no memory >&2; exit 3", "no memory"),
        ("exit 3", "exit status 3"),
    ],
)
def test_the_reason_why_an_export_was_not_reloaded_is_given(tmp_path, monkeypatch, command, reason):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{command}\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    version = tmp_path / "1"
    version.mkdir()
    with pytest.raises(ValueError, match="1 cannot be reloaded") as error:
        answers(version, [])
    assert str(error.value).endswith(f"reloaded: {reason}")


# Starts a process that ends with its parent, which is this one, and waits.
PARENT = """
import os, runpy, subprocess, sys, time
if sys.argv[3:]:
    script = runpy.run_path(sys.argv[1])
    script["end_with"](int(sys.argv[3]), sys.argv[2])
    print("started", flush=True)
    time.sleep(600)
else:
    command = [sys.executable, *sys.orig_argv[1:], str(os.getpid())]
    subprocess.run(command)
"""


def test_the_process_that_reloads_an_export_ends_with_its_parent(tmp_path):
    """And removes the folder that its parent cannot remove any more."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, reload.__file__, folder], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout.readline() == b"started\n"
        parent.kill()
        assert parent.stdout.read() == b""  # closed when both have ended
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("make", [korean_and_japanese, ensemble, sampled])
def test_examine_finds_no_difference_for_any_kind_of_translator(tmp_path, corpus, make):
    translator = make(corpus)
    version = translator.export(tmp_path / "base", **dataclasses.asdict(LIMITS))
    report = examine(translator.graph, version, LIMITS)
    assert report.differences == []
    listed = "\n".join(report.facts)
    assert ("align" in listed) == translator.model.has_alignment


@pytest.mark.parametrize(("longest", "written"), [(7, 7), (300, 20)])
def test_the_facts_of_an_export_have_its_limits_and_what_was_compared(
    version, translator, longest, written
):
    """It writes what both the limits and the decoding allow."""
    assert translator.decoding.max_length == 20
    answered = Answers([], ["greedy"], 1.0, [[0.2, 0.1]] * 3)
    served = limits.LimitedGraph(
        translator.graph, dataclasses.replace(LIMITS, max_target_length=longest)
    )
    facts = "\n".join(doctor._facts(version, answered, 21, served))
    assert f"it reads 24 tokens of a text and writes {written}," in facts
    assert "by each signature: 21 texts, among them empty," in facts
    assert "0 rows" not in facts


@pytest.mark.slow
def test_examine_finds_another_model_and_a_broken_file(tmp_path, translator, version):
    other = Translator(
        with_large_weights(RNNSearch(11, 12, units=8, embedding_dim=6, maxout_units=4), 8),
        translator.source_text,
        translator.target_text,
        translator.decoding,
    )
    differences = examine(other.graph, version, LIMITS).differences
    for name in OUTPUTS:
        assert any(x.startswith(f"{name}: row") for x in differences)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "saved_model.pb").write_bytes(b"\0")
    (reason,) = examine(translator.graph, broken, LIMITS).differences
    assert reason.startswith(f"{broken} cannot be reloaded: ")
