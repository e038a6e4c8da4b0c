"""`trace`, compared with the NumPy reference; sums of contributions."""

import json
import re
import unicodedata
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference
import tensorflow as tf
from engines import subwords
from oracle import array, cell_parameters, model_parameters, randomized
from refusals import refused
from test_models import oracle_parts, reference_forward

from bahdanau_tf import (
    Decoding,
    Ensemble,
    LinearReadout,
    LSTMCell,
    MaxoutReadout,
    RNNEncDec,
    RNNSearch,
    Seq2SeqLSTM,
    SubwordTokenizer,
    TanhReadout,
    Translator,
    Vocabulary,
    WordTokenizer,
    from_preset,
    layers,
    plot_trace,
)
from bahdanau_tf.tracing import (
    Step,
    Trace,
    beam_tree,
    decoder_states,
    gate_convention,
    nearest_states,
    trace,
    update as gates_of_update,
)

pytestmark = pytest.mark.usefixtures("eager_search")

SPECIAL = ["[PAD]", "[UNK]", "[END]"]
SOURCE = WordTokenizer(Vocabulary([*SPECIAL, "the", "cat", "sees", "a", "dog"]), language="en")
WORDS = [*SPECIAL, "le", "chat", "voit", "un", "chien", "dort"]
TARGET = WordTokenizer(Vocabulary(WORDS), language="fr")
TEXT, GIVEN = "the cat sees a dog", "le chat dort"
SIZES: dict[str, Any] = {"units": 6, "embedding_dim": 5}
VOCABULARIES = {"source_vocabulary_size": 8, "target_vocabulary_size": 9}


def search(**options: Any) -> RNNSearch:
    arguments = {**SIZES, "attention_units": 4, "maxout_units": 3, **options}
    return RNNSearch(SOURCE.vocabulary_size, TARGET.vocabulary_size, **arguments)


VARIANTS = {
    "paper": search,
    "appendix": lambda: search(step_order="appendix"),
    "main-text": lambda: search(step_order="main-text"),
    "conditional": lambda: search(step_order="conditional"),
    "full-output": lambda: search(factored_output=False),
    "tied": lambda: search(tie_embeddings=True),
    "linear": lambda: search(readout=LinearReadout(9, factor_units=3)),
    "linear-some": lambda: search(readout=LinearReadout(9, terms=("context", "previous"))),
    "general": lambda: search(attention=layers.GeneralAttention()),
    "location": lambda: search(attention=layers.LocationAttention(4, kernel_size=3)),
    "monotonic": lambda: search(attention="MonotonicAttention", step_order="conditional"),
    "gru-after": lambda: search(
        cell=layers.GRUResetAfterCell(6),
        encoder=layers.BidirectionalEncoder(layers.GRUResetAfterCell(6)),
    ),
    "lstm-cell": lambda: search(cell=LSTMCell(6), encoder=layers.BidirectionalEncoder(LSTMCell(6))),
    "encdec": lambda: RNNEncDec(8, 9, maxout_units=3, **SIZES),
    "no-context": lambda: RNNEncDec(8, 9, maxout_units=3, use_context=False, **SIZES),
    "rnn-attention": lambda: from_preset(
        "rnn-attention", **VOCABULARIES, attention_units=4, **SIZES
    ),
}
QUICK = ("paper", "linear", "no-context")


class Case(NamedTuple):
    """The trace of a model, and the outputs of the reference."""

    model: Any
    x: np.ndarray
    y: np.ndarray
    wanted: reference.Forward
    steps: list[Step]


def quick_or_slow(name: str) -> Any:
    return pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)


@pytest.fixture(scope="module", params=map(quick_or_slow, VARIANTS))
def case(request) -> Case:
    translator = translator_of(VARIANTS[request.param]())
    x, y = ids_of(SOURCE, TEXT), ids_of(TARGET, GIVEN)
    wanted = reference_forward(translator.model, x, y)
    traced = trace(translator, TEXT, GIVEN, candidates=3)
    assert traced.source_tokens == TEXT.split()
    return Case(translator.model, x, y, wanted, traced.steps)


def translator_of(model: Any) -> Translator:
    randomized(model, scale=0.6)
    return Translator(model, SOURCE, TARGET, Decoding(max_length=9))


@pytest.fixture(scope="module")
def translator() -> Translator:
    """Its model is the paper's."""
    return translator_of(search())


def ids_of(tokenizer: WordTokenizer, text: str) -> np.ndarray:
    return tokenizer.tokenize([text]).to_tensor().numpy()


def column(steps: list[Step], name: str) -> Any:
    return [getattr(step, name) for step in steps]


def test_states_equal_the_reference_and_the_nearest_are_found(translator):
    sources, targets = [TEXT, "the dog", "a cat"], [GIVEN, "le chien", "un chat dort"]
    states = decoder_states(translator, sources, targets)
    for state, source, target in zip(states, sources, targets, strict=True):
        x, y = ids_of(SOURCE, source), ids_of(TARGET, target)
        forward = reference_forward(translator.model, x, y)
        wanted = [forward.s_0[0], *forward.states[0][:-1]]  # the paper reads out s_{i-1}
        np.testing.assert_allclose(state, wanted, atol=1e-5)
    near = states[2][1] + 1e-3
    (pair, step, distance), *others = nearest_states(states, near)
    assert (pair, step) == (2, 1)
    every = [np.sqrt(((own - near) ** 2).sum(1)).min() for own in states]
    assert [distance, *(d for *_, d in others)] == pytest.approx(sorted(every), rel=1e-4)
    said = "decoder_states: 3 sources, 2 targets"
    refused(lambda: decoder_states(translator, sources, targets[:2]), said)


def test_a_trace_equals_the_reference(case):
    steps, wanted, y = case.steps, case.wanted, case.y
    assert column(steps, "token") == [*GIVEN.split(), "[END]"]
    logits = wanted.logits[0]
    np.testing.assert_allclose(column(steps, "logit"), logits[range(4), y[0]], atol=2e-5)
    probabilities = np.exp(reference.log_softmax(logits))
    of_words = probabilities[range(4), y[0]]
    np.testing.assert_allclose(column(steps, "probability"), of_words, atol=1e-5)
    for step, row in zip(steps, probabilities, strict=True):
        best = np.argsort(-row)[:3]
        assert column(step.candidates, "token") == [WORDS[i] for i in best]
        np.testing.assert_allclose(column(step.candidates, "probability"), row[best], atol=1e-5)
    if wanted.contexts is None:
        assert column(steps, "context_norm") == [None] * 4
    else:
        norms = np.linalg.norm(wanted.contexts[0], axis=-1)
        np.testing.assert_allclose(column(steps, "context_norm"), norms, rtol=1e-5)
    if wanted.weights is None:
        assert column(steps, "weights") == [None] * 4
        assert column(steps, "energies") == [None] * 4
    else:
        np.testing.assert_allclose(column(steps, "weights"), wanted.weights[0], atol=1e-5)
        energies = column(steps, "energies")
        np.testing.assert_allclose(energies, energies_of(case), atol=2e-5)


def queries_of(wanted: reference.Forward) -> np.ndarray:
    """s_{i-1} for i = 1 .. T_y."""
    return np.concatenate([wanted.s_0[:, None], wanted.states[:, :-1]], 1)[0]


def previous_of(model: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """E y_{i-1} for i = 1 .. T_y, the first input for i = 1."""
    p = model_parameters(model)
    embedded = p["E_y"][y[0]] + p.get("b_Ey", 0.0)
    first = array(model.encode(x)[0].first_input)
    return np.concatenate([first, embedded[:-1]])


def middle_states(case: Case) -> np.ndarray:
    """s'_i for i = 1 .. T_y, of a conditional decoder."""
    cell = model_parameters(case.model)["decoder"]
    previous = previous_of(case.model, case.x, case.y)
    return reference.gru_step(previous, queries_of(case.wanted), cell)


def energies_of(case: Case) -> np.ndarray:
    model, wanted = case.model, case.wanted
    p, queries = model_parameters(model)["attention"], queries_of(wanted)
    if model.decoder.step_order == "conditional":
        queries = middle_states(case)
    if isinstance(model.decoder.attention, layers.GeneralAttention):
        return queries @ p["W_a"] @ wanted.annotations[0].T
    annotations = np.repeat(wanted.annotations, len(queries), 0)
    more: Any = 0.0
    if "F" in p:
        before = np.pad(wanted.weights[0, :-1], [(1, 0), (0, 0)])
        more = reference.location_features(before, p["F"]) @ p["U_f"]
    return reference.additive_scores(queries, annotations, p, more) + p.get("r", 0.0)


def test_contributions_sum_to_the_logit_and_equal_its_derivatives(case):
    """The logit is piecewise linear, so x's term is d logit / d log x."""
    model, x, y, wanted, steps = case
    p, parts = model_parameters(model), oracle_parts(model)
    states = queries_of(wanted)
    if model.decoder.step_order in ("main-text", "conditional"):
        states = wanted.states[0]
    embedded = previous_of(model, x, y)
    for i, step in enumerate(steps):
        assert step.contributions.total == pytest.approx(step.logit, abs=1e-5)
        inputs = {"state": states[i], "previous": embedded[i], "context": None}
        if wanted.contexts is not None:
            inputs["context"] = wanted.contexts[0, i]

        def logit(inputs: dict[str, Any], i=i) -> float:
            scores = reference.readout(*inputs.values(), p["readout"], parts["activation"])
            return scores[y[0, i]]

        for name, value in inputs.items():
            slope = 0.0
            if value is not None:
                more, less = (inputs | {name: value * factor} for factor in (1 + 1e-7, 1 - 1e-7))
                slope = (logit(more) - logit(less)) / 2e-7
            assert getattr(step.contributions, name) == pytest.approx(slope, abs=2e-5)


@pytest.mark.parametrize(
    ("order", "kind"),
    [
        ("original", layers.GRUCell),
        pytest.param("main-text", layers.GRUResetAfterCell, marks=pytest.mark.slow),
        pytest.param("appendix", layers.GRUCell, marks=pytest.mark.slow),
        pytest.param("original", layers.GRUResetAfterCell, marks=pytest.mark.slow),
    ],
)
def test_gates_equal_the_equations(order, kind):
    model = search(cell=kind(6), step_order=order, bridge=layers.BackwardBridge(6, 5))
    translator = translator_of(model)
    p = model_parameters(model)
    x, y = ids_of(SOURCE, TEXT), ids_of(TARGET, GIVEN)
    memory, state = model.encode(x)
    traced = trace(translator, TEXT, GIVEN)
    annotations = array(memory.attended.source.annotations)[0]
    embedded = (p["E_y"] + p["b_Ey"])[y[0]]
    s = array(state.states[0])[0]
    decoder = p["decoder"]
    cell = reference.gru_step
    if kind is layers.GRUResetAfterCell:
        cell = reference.gru_reset_after_step
        assert traced.gate_convention.startswith("s' = update ∘ s + (1 -")
    else:
        assert traced.gate_convention.startswith("s' = (1 - update) ∘ s +")
    gates = []
    for i in range(4):
        mask = np.ones([1, 6])
        c, _ = reference.additive_attention(s[None], annotations[None], mask, p["attention"])
        previous = embedded[i - 1] if i else np.zeros(5)
        inputs = embedded[i] if order == "original" else previous
        sums = (
            inputs @ decoder[f"W{gate}"]
            + c[0] @ decoder[f"C{gate}"]
            + decoder.get(f"b{gate}", 0.0)
            + s @ decoder[f"U{gate}"]
            + decoder.get(f"b_U{gate[1:]}", 0.0)
            for gate in ("_z", "_r")
        )
        gates.append([*map(reference.sigmoid, sums)])
        s = cell(inputs[None], s[None], decoder, c)[0]
    if order == "original":
        assert traced.steps[0].gates == {}
        gates = [None, *gates[:-1]]
    for step, both in zip(traced.steps, gates, strict=True):
        for name, gate in zip(("update", "reset"), both or (), strict=False):
            assert step.gates[name].mean == pytest.approx(gate.mean(), abs=1e-5)
            assert step.gates[name].norm == pytest.approx(np.sqrt((gate**2).sum()), abs=2e-5)


def test_gates_of_a_conditional_decoder_equal_the_equations():
    translator = translator_of(search(step_order="conditional"))
    model = translator.model
    x, y = ids_of(SOURCE, TEXT), ids_of(TARGET, GIVEN)
    wanted = reference_forward(model, x, y)
    traced = trace(translator, TEXT, GIVEN)
    assert traced.step_order == "conditional"
    case = Case(model, x, y, wanted, traced.steps)
    cell = model_parameters(model)["decoder"]
    for word, p, inputs, states in (
        ("word", cell, previous_of(model, x, y), queries_of(wanted)),
        ("context", cell["context_cell"], wanted.contexts[0], middle_states(case)),
    ):
        for name, gate in (("update", "_z"), ("reset", "_r")):
            opened = reference.sigmoid(inputs @ p[f"W{gate}"] + states @ p[f"U{gate}"])
            means = [step.gates[f"{word} {name}"].mean for step in case.steps]
            np.testing.assert_allclose(means, opened.mean(-1), atol=1e-5)


def test_gates_of_a_deep_lstm_equal_the_equations():
    translator = translator_of(Seq2SeqLSTM(8, 9, layers=2, **SIZES))
    model = translator.model
    traced = trace(translator, TEXT, GIVEN)
    assert traced.gate_convention.startswith("m' = forget ∘ m + input")
    memory, state = model.encode(ids_of(SOURCE, TEXT))
    top_h, top_m, low_h, low_m = (array(s) for s in state.states)
    cells = [cell_parameters(cell) for cell in model.decoder.cell.cells]
    inputs = array(memory.first_input)
    for step, word in zip(traced.steps, ids_of(TARGET, GIVEN)[0], strict=True):
        for layer, (x, h) in enumerate(((inputs, low_h), (None, top_h))):
            p = cells[layer]
            if layer:
                low_h, low_m = reference.lstm_step(inputs, (low_h, low_m), cells[0])
                x = low_h
            for name, gate in (("input", "_i"), ("forget", "_f"), ("output", "_o")):
                wanted = reference.sigmoid(x @ p[f"W{gate}"] + h @ p[f"U{gate}"] + p[f"b{gate}"])
                gate_found = step.gates[f"layer {layer + 1} {name}"]
                assert gate_found.mean == pytest.approx(wanted.mean(), abs=1e-5)
        assert len(step.gates) == 6
        top_h, top_m = reference.lstm_step(low_h, (top_h, top_m), cells[1])
        embedding = model.target_embedding
        inputs = array(embedding.embeddings)[[word]]
    assert step.weights is step.energies is step.context_norm is None
    assert step.contributions.total == pytest.approx(step.logit, abs=1e-5)


def test_contributions_of_a_model_that_copies_sum_to_the_logit():
    """With the hint H m_i in the context's."""
    own = Translator.from_preset("tatoeba-en-fr")
    own.memory = {}  # a trace is of a search
    steps = trace(own, "Mr Kowalczyk lives in Boston.").steps
    assert "Boston" in "".join(step.token for step in steps)
    for step in steps:
        assert step.contributions.total == pytest.approx(step.logit, abs=1e-3)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_best_translation_is_traced_with_the_source_in_reading_order(translator, reverse):
    source = WordTokenizer(SOURCE.vocabulary, language="en", reverse=reverse)
    translator = Translator(translator.model, source, TARGET, translator.decoding)
    (best,) = translator.translate([TEXT])
    traced = trace(translator, TEXT)
    assert traced.source_tokens == TEXT.split()
    tokens = column(traced.steps, "token")
    assert tokens[: len(best.tokens)] == best.tokens
    assert len(tokens) == len(best.weights)
    np.testing.assert_allclose(column(traced.steps, "weights"), best.weights, atol=1e-5)
    log_prob = np.log(column(traced.steps, "probability")).sum()
    assert log_prob == pytest.approx(best.log_prob, abs=1e-4)


def test_a_trace_can_be_written_as_json(translator):
    traced = trace(translator, TEXT, GIVEN, candidates=2)
    written = json.loads(json.dumps(asdict(traced), allow_nan=False))
    assert written["steps"][1]["gates"]["update"]["mean"] == traced.steps[1].gates["update"].mean
    assert len(written["steps"][0]["candidates"]) == 2


def test_a_readout_with_tanh_has_no_contributions():
    translator = translator_of(search(readout=TanhReadout(9, 3)))
    assert trace(translator, TEXT, GIVEN).steps[0].contributions is None


def test_parts_of_ones_own_that_compute_otherwise_are_not_split(tmp_path):
    """What a subclass overrides is shown as it is, or left out."""

    class Least(MaxoutReadout):
        def activation(self, preactivation):
            return -super().activation(-preactivation)

    class Uniform(layers.Attention):
        def project(self, annotations):
            return annotations

        def call(self, query, memory, values=None):
            values = memory.annotations if values is None else values
            weights = tf.cast(memory.mask, query.dtype)
            weights /= tf.reduce_sum(weights, 1, keepdims=True)
            if query.shape.rank == 2:
                return tf.einsum("bt,btv->bv", weights, values), weights
            weights = tf.repeat(weights[:, None], tf.shape(query)[1], 1)
            return weights @ values, weights

    readout = Least(TARGET.vocabulary_size, 3)
    model = search(readout=readout, attention=Uniform())
    traced = trace(translator_of(model), TEXT, GIVEN)
    for step in traced.steps:
        assert step.contributions is step.energies is None
        assert step.weights == pytest.approx([1 / 6] * 6)
    path = tmp_path / "trace.png"
    plot_trace(traced, path)
    assert path.stat().st_size > 10_000


def test_means_of_gates_in_half_precision_are_means():
    cell = layers.GRUCell(1000, dtype="mixed_bfloat16")
    cell.build((None, 4))
    zeros = (tf.zeros([1, 3000], tf.bfloat16), (tf.zeros([1, 1000], tf.bfloat16),))
    _, gates = gates_of_update(cell, *zeros)
    for gate in gates.values():
        assert gate.mean == 0.5
        assert gate.norm == pytest.approx(0.5 * 1000**0.5)


def test_layers_whose_gates_differ_have_an_equation_each():
    gru, after = layers.GRUCell(3), layers.GRUResetAfterCell(3)
    first, second = map(gate_convention, (gru, after))
    for other, wanted in (
        (after, f"layer 1: {first}\nlayer 2: {second}"),
        (layers.GRUCell(3), first),
        (layers.TanhCell(3), first),
    ):
        assert gate_convention(layers.StackedCells([gru, other])) == wanted
    assert gate_convention(layers.TanhCell(3)) == ""


def test_texts_without_words_are_traced(translator):
    assert trace(translator, "  ").steps == []
    assert trace(translator, "").source_tokens == []
    assert beam_tree(translator, " ").steps == []
    (only,) = trace(translator, TEXT, "").steps
    assert only.token == "[END]"
    (only,) = trace(translator, "", "", candidates=99).steps
    assert only.weights == [1.0]
    assert len(only.candidates) == 9


def test_bad_arguments_of_trace_are_refused(translator):
    refused(lambda: trace(translator, [TEXT]), "text is a list")
    refused(lambda: beam_tree(translator, [TEXT]), "beam_tree: text is a list")
    refused(lambda: beam_tree(translator, TEXT, beta=0.5), "beam_tree: beta is 0.5")
    refused(lambda: trace(translator, TEXT, candidates=0), "candidates is 0")
    both = Translator.ensemble([translator, translator])
    assert isinstance(both.model, Ensemble)
    refused(lambda: trace(both, TEXT), "model is Ensemble")


def log_probs_after(translator, ids: list[tuple[int, ...]]) -> np.ndarray:
    """log p of each word after hypotheses, by the model's call; -inf for padding."""
    target = np.array([[*row, 1] for row in ids], np.int32)
    source = ids_of(SOURCE, TEXT).repeat(len(ids), 0)
    log_probs = reference.log_softmax(array(translator.model({"source": source, "target": target})))
    log_probs[..., 0] = -np.inf
    return log_probs[:, -1]


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({"beam_size": 1}, set()),
        ({"n_best": 2, "alpha": 0.5}, {"finished, others score higher", "could not win any more"}),
        ({"shrink": True}, {"the beam got narrower"}),
        (
            {"beam_size": 5, "n_best": 5, "max_length": 4},
            {"at the length limit", "all continuations were cut"},
        ),
    ],
)
def test_a_tree_is_that_of_the_search_and_its_reasons_are_true(translator, options, reasons):
    options = {"beam_size": 3, **options}
    tree = beam_tree(translator, TEXT, **options)
    assert reasons | {"not among the best"} <= {node.cut for step in tree.steps for node in step}
    decoding = Decoding.with_options(translator.decoding, options)
    limit = min(decoding.max_length, 18)
    live, done, lost, best = {-1: ((), 0.0)}, [], [], []
    for time, step in enumerate(tree.steps):
        before, narrower = live, len(done) * decoding.shrink
        rows = log_probs_after(translator, [ids for ids, _ in live.values()])
        totals = zip(live.items(), rows, strict=True)
        every = sorted(
            (total + x, place, word)
            for (place, (_, total)), row in totals
            for word, x in enumerate(row)
        )[::-1]
        live = {}
        for place, (node, (log_prob, parent, word)) in enumerate(zip(step, every, strict=False)):
            assert (node.parent, node.token) == (parent, WORDS[word])
            assert node.log_prob == pytest.approx(log_prob, abs=1e-4)
            ids = (*before[parent][0], word)
            score = log_prob / ((6 + time) / 6) ** decoding.alpha
            bound = log_prob / ((5 + limit) / 6) ** decoding.alpha
            is_kept = place < decoding.beam_size - narrower
            if is_kept and word == 2:
                assert node.score == pytest.approx(score, abs=1e-4)
                done.append((score, ids))
            elif is_kept:
                live[place] = ids, log_prob
            if node.is_best:
                best.append(node.token)
            assert node.cut or node.is_best or is_kept
            assert (node.cut == "not among the best") == (place >= decoding.beam_size)
            if "others score" in node.cut:
                lost.append((score, ids))
            elif "win" in node.cut:
                assert bound <= sorted(done)[-decoding.n_best][0]
                del live[place]
            elif "longest" in node.cut:
                assert time + 1 == limit
            elif "continuations" in node.cut:
                kept = tree.steps[time + 1][: decoding.beam_size]
                assert place not in [child.parent for child in kept]
    assert all(each < max(done) for each in lost)
    (translation,) = translator.translate([TEXT], decoding)
    assert best[: len(translation.tokens)] == translation.tokens
    assert (best[-1] == "[END]") == translation.finished


@pytest.mark.parametrize("beam_size", [1, 5])
def test_attention_that_is_not_edited_changes_nothing(translator, beam_size):
    options = {"beam_size": beam_size, "min_length_ratio": 0.5}
    plain = translator.translate(TEXT, **options)
    for rows in (plain.weights, {0: plain.weights[0]}, [None, plain.weights[1]], {}):
        again = translator.translate(TEXT, **options, attention=rows)
        assert again.text == plain.text
        assert again.score == pytest.approx(plain.score, abs=1e-5)
        np.testing.assert_allclose(again.weights, plain.weights, atol=1e-5)


@pytest.mark.parametrize(("order", "is_reversed"), [("original", True), ("conditional", False)])
def test_forced_attention_is_that_of_a_model_with_these_weights(order, is_reversed):
    """With v_a = 0 all words have the same weight."""
    translator = translator_of(search(step_order=order))
    source = WordTokenizer(SOURCE.vocabulary, language="en", reverse=is_reversed)
    translator = Translator(translator.model, source, TARGET, translator.decoding)
    forced = translator.translate(TEXT, attention=np.full([9, 6], 1 / 6), beam_size=3)
    first = translator.translate(TEXT, attention={0: np.eye(6)[1]}, beam_size=1)
    np.testing.assert_array_equal(first.weights[0], np.eye(6)[1])
    traced = [trace(translator, TEXT, x, attention=np.full([9, 6], 1 / 6)) for x in (None, GIVEN)]
    kernel = translator.model.decoder.attention.energy.kernel
    kernel.assign(tf.zeros_like(kernel))
    uniform = translator.translate(TEXT, beam_size=3)
    assert forced.text == uniform.text
    assert forced.log_prob == pytest.approx(uniform.log_prob, abs=1e-4)
    for forced, target in zip(traced, (None, GIVEN), strict=True):
        assert_same_trace(forced, trace(translator, TEXT, target))


def assert_same_trace(traced: Trace, wanted: Trace) -> None:
    """Except for the energies."""
    assert column(traced.steps, "token") == column(wanted.steps, "token")
    for step, other in zip(traced.steps, wanted.steps, strict=True):
        numbers = (tf.nest.flatten(asdict(replace(x, energies=None))) for x in (step, other))
        assert [*next(numbers)] == pytest.approx([*next(numbers)], abs=1e-4)


@pytest.mark.parametrize("target", [None, GIVEN])
@pytest.mark.parametrize("order", ["original", "main-text"])
def test_a_trace_shows_the_attention_that_is_forced(order, target):
    translator = translator_of(search(step_order=order))
    translator.decoding = Decoding(beam_size=1, max_length=9, min_length_ratio=0.5)
    plain = trace(translator, TEXT, target)
    rows = column(plain.steps, "weights")
    assert_same_trace(trace(translator, TEXT, target, attention=rows), plain)
    row = {1: np.eye(6)[4]}
    forced = trace(translator, TEXT, target, attention=row)
    steps = forced.steps
    assert steps[1].weights == [*row[1]]
    assert re.findall(r'value="(\d+)" checked', forced.view()) == ["1"]
    wanted = reference_forward(translator.model, ids_of(SOURCE, TEXT), ids_of(TARGET, GIVEN))
    norm = np.linalg.norm(wanted.annotations[0, 4])
    assert steps[1].context_norm == pytest.approx(norm, abs=1e-5)
    # With a target: the words of a prefix, without the end symbol.
    options = {"prefixes": target, "max_length": 3} if target else {}
    translation = translator.translate(TEXT, attention=row, **options)
    count = 3 if target else len(translation.weights)
    assert column(steps, "token")[: len(translation.tokens)] == translation.tokens
    log_probs = np.log(column(steps[:count], "probability"))
    assert log_probs.sum() == pytest.approx(translation.log_prob, abs=1e-4)
    twice = {1: 2 * row[1]}
    said = "Translator: attention is", "at step 1"
    refused(lambda: trace(translator, TEXT, target, attention=twice), *said)


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        (np.ones([1, 5]) / 5, "wanted weights of the 5 source tokens and the end symbol"),
        ([[2, -1, 0, 0, 0, 0]], "attention is .* at step 0, wanted weights"),
        ({2: [1, 1, 0, 0, 0, 0]}, "at step 2, wanted weights .* sum to 1"),
        ({-1: [1, 0, 0, 0, 0, 0]}, "at step -1, wanted"),
        ({"dress": 1}, "attention is {'dress': 1}, wanted rows"),
        (3, "attention is 3, wanted rows"),
        ([[float("nan")] * 6], "which sum to 1"),
    ],
)
def test_attention_of_another_form_is_refused(translator, attention, message):
    with pytest.raises(ValueError, match=f"Translator: .*{message}"):
        translator.translate(TEXT, attention=attention)


def test_attention_is_refused_where_it_has_no_meaning(translator):
    row = {0: [1.0, 0, 0, 0, 0, 0]}
    for text, split in (([TEXT], False), (TEXT, True)):
        with pytest.raises(ValueError, match="attention is set for a list, with"):
            translator.translate(text, attention=row, split_sentences=split)
    for name, kind in (("location", "LocationAttention"), ("no-context", "RNNEncDec")):
        other = translator_of(VARIANTS[name]())
        for call in (other.translate, partial(trace, other, target=GIVEN)):
            with pytest.raises(ValueError, match=f"attention cannot be set in {kind}, wanted"):
                call(TEXT, attention=row)
    target = WordTokenizer(TARGET.vocabulary, language="fr", reverse=True)
    backward = Translator(translator.model, SOURCE, target)
    said = "reversed", "wanted no prefixes and no attention"
    refused(lambda: backward.translate(TEXT, attention=row), *said)
    assert trace(backward, TEXT, GIVEN, attention=row).steps[0].weights == row[0]


def test_letters_and_symbols_are_shown_as_they_are_read():
    source = SubwordTokenizer.train([["각 ab"] * 9], 290, "char", normalization="nfd")
    symbols = SubwordTokenizer.train([["t͡ɕ a"] * 9], 290, "space")
    traced = trace(subwords(source, symbols, None), "각 a", target="t͡ɕ a")
    assert traced.source_tokens == [*unicodedata.normalize("NFD", "각"), "", "a"]
    assert [step.token for step in traced.steps] == ["t͡ɕ", "a", "[END]"]
