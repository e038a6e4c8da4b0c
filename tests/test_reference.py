"""The NumPy reference, compared with the output of the original program.

`../shared/groundhog` holds what the authors' program computed; tests that need
it skip if it is absent. Parts that the program lacks (LSTM, GRU with reset
after, other scores and step orders) are compared with Keras' cells and with
equations for one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import reference

END, UNKNOWN = 26, 1
PARTS = {
    "rnnsearch": {},
    "rnnencdec": {"bridge": reference.summary_bridge, "attention": reference.fixed_context},
}


@pytest.fixture(params=PARTS)
def original(
    request: pytest.FixtureRequest, shared: Callable[[str], Path]
) -> reference.OriginalFiles:
    return reference.OriginalFiles(request.param, shared("groundhog") / request.param)


def forward(original: reference.OriginalFiles, p: dict, *batch: np.ndarray) -> reference.Forward:
    return getattr(reference, original.name)(p, *batch)


def close(actual: np.ndarray, wanted: np.ndarray, atol: float) -> None:
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=atol)


def batch_of(file: dict) -> tuple[np.ndarray, ...]:
    names = ("batch_x", "batch_x_mask", "batch_y", "batch_y_mask")
    return tuple(file[name].T for name in names)


def cost_of(original: reference.OriginalFiles, arrays: dict, batch: tuple) -> float:
    out = forward(original, reference.from_groundhog(arrays), *batch)
    return reference.cross_entropy(out.logits, *batch[2:])


def test_single_sentences_equal_the_original(original):
    p = reference.from_groundhog(original.load("params"))
    file = original.load("forward")
    for i in range(12):
        wanted = {k[4:]: v for k, v in file.items() if k[:4] == f"s{i:02}_"}
        x, y = wanted["x"][None], wanted["y"][None]
        out = forward(original, p, x, np.ones(x.shape), y, np.ones(y.shape))
        logp = reference.token_log_probs(out.logits, y)[0]
        close(logp, wanted["logp"], 2e-6)
        close(logp.sum(), wanted["total"], 1e-5)
        close(out.logits[0], wanted["logits"], 3e-6)
        close(out.s_0[0], wanted["s0"], 1e-6)
        close(out.states[0], wanted["states"], 1e-6)
        close(out.contexts[0], wanted["context"], 1e-6)
        if out.weights is None:
            last = np.broadcast_to(out.annotations[0, -1:], (x.size, 12))
            close(last, wanted["annotations"], 1e-6)
        else:
            close(out.weights[0], wanted["alpha"], 1e-6)
            close(out.annotations[0], wanted["annotations"], 1e-6)


def test_a_padded_batch_equals_the_original(original):
    p = reference.from_groundhog(original.load("params"))
    file = original.load("forward")
    batch = batch_of(file)
    out = forward(original, p, *batch)
    logp = reference.token_log_probs(out.logits, batch[2]) * batch[3]
    close(logp, file["batch_logp"].T, 2e-6)
    cost = reference.cross_entropy(out.logits, *batch[2:])
    assert cost == pytest.approx(float(file["batch_cost"]), rel=1e-6)
    close(out.s_0, file["batch_s0"], 1e-6)
    close(out.states.swapaxes(0, 1), file["batch_states"], 1e-6)
    close(out.contexts.swapaxes(0, 1), file["batch_context"], 1e-6)
    if out.weights is not None:
        close(out.weights.transpose(1, 2, 0), file["batch_alpha"], 1e-6)
        assert (out.weights * (batch[1] == 0)[:, None] == 0).all()
        annotations = out.annotations.swapaxes(0, 1)
        close(annotations, file["batch_annotations"], 1e-6)


def test_central_differences_equal_the_original_gradients(original):
    """Of each tensor: its largest entry, two others, a random direction."""
    arrays = {name: value.astype(np.float64) for name, value in original.load("params").items()}
    gradients = original.load("grad")
    batch = batch_of(original.load("forward"))
    random = np.random.default_rng(3)
    for name, gradient in gradients.items():
        largest = np.abs(gradient).max()
        flat = random.integers(gradient.size, size=2)
        directions = np.zeros((4, gradient.size))
        directions[[0, 1, 2], [np.abs(gradient).argmax(), *flat]] = 1
        directions[3] = random.choice([-1.0, 1.0], gradient.size)
        for direction in directions.reshape(4, *gradient.shape):
            ahead, behind = (
                cost_of(original, arrays | {name: arrays[name] + step * direction}, batch)
                for step in (1e-6, -1e-6)
            )
            slope = (ahead - behind) / 2e-6
            error = abs(slope - (gradient * direction).sum())
            assert error < 2e-6 * largest * direction.size**0.5 + 1e-6, name


def test_clipping_and_adadelta_equal_the_original(original):
    train = original.load("train")
    gradients = original.load("grad")
    exact = {k: v.astype(np.float64) for k, v in gradients.items()}
    norm = reference.global_norm(exact)
    assert norm == pytest.approx(train["grad_norm_before_update"][0], rel=1e-6)
    clipped = reference.clip_by_global_norm(exact, float(train["cutoff"]))
    assert reference.global_norm(clipped) == pytest.approx(1.0)
    small = {k: v / (2 * norm) for k, v in exact.items()}
    unclipped = reference.clip_by_global_norm(small, 1.0)
    assert all((unclipped[k] == small[k]).all() for k in small)

    before = original.load("params")
    after = original.load("params_after1")
    squares = original.load("adadelta_after1")
    for name, wanted in original.load("grad_clipped").items():
        close(clipped[name], wanted, 1e-7)
        value, mean_square, mean_step = reference.adadelta(
            before[name].astype(np.float64),
            clipped[name],
            rho=float(train["rho"]),
            epsilon=float(train["eps"]),
        )
        close(value, after[name], 2e-7)
        close(mean_square, squares[f"Eg2/{name}"], 1e-8)
        close(mean_step, squares[f"Edx2/{name}"], 1e-11)


def test_consecutive_adadelta_updates_equal_keras():
    """Several updates equal those of Keras' Adadelta."""
    optimizer = keras.optimizers.Adadelta(1.0, rho=0.95, epsilon=1e-6)
    variable = keras.Variable([1.0, -2.0])
    value = np.array([1.0, -2.0])
    squares: tuple = ()
    for gradient in ([0.5, -0.1], [0.2, 0.4], [-0.3, 0.0]):
        optimizer.apply([keras.ops.array(gradient)], [variable])
        value, *squares = reference.adadelta(value, np.array(gradient), *squares)
    close(variable.numpy(), value, 1e-6)


def test_costs_during_training_equal_the_original(original):
    batch = batch_of(original.load("forward"))
    costs = original.load("train")
    wanted = [*costs["cost_before_update"][:2], costs["cost_after5"]]
    files = ("params", "params_after1", "params_after5")
    for file, cost in zip(files, wanted, strict=True):
        actual = cost_of(original, original.load(file), batch)
        assert actual == pytest.approx(float(cost), rel=1e-6)


@pytest.mark.parametrize("file", ["beam", "beam_word0"])
def test_beam_search_equals_the_original(original, file):
    arrays = original.load("params")
    sentences = original.load("forward")
    runs = original.load(file)
    if "b_dec_deep_softmax" in runs:
        arrays["b_dec_deep_softmax"] = runs["b_dec_deep_softmax"]
    p = reference.from_groundhog(arrays)
    none = np.zeros_like(runs["run_src"])
    ignore = runs.get("run_ignore_unk", none)
    for r, source in enumerate(runs["run_src"]):
        hypotheses, width, searches = reference.original_search(
            p,
            sentences[f"s{source:02}_x"],
            width=int(runs["run_n_samples"][r]),
            min_length=int(runs["run_minlen"][r]),
            end=END,
            ignored=UNKNOWN if ignore[r] else None,
            **PARTS[original.name],
        )
        rows = slice(*runs["run_start"][r : r + 2])
        lengths = runs["hyp_len"][rows]
        tokens = zip(runs["hyp_tokens"][rows], lengths, strict=True)
        assert [h.words for h in hypotheses] == [tuple(t[:n]) for t, n in tokens]
        costs = np.array([h.cost for h in hypotheses])
        close(costs, runs["hyp_cost"][rows], 1e-5)
        if "run_n_calls" in runs:
            assert searches == runs["run_n_calls"][r]
            assert width == runs["run_final_n_samples"][r]
            best = int(np.argmin(costs / lengths))
            assert best == runs["run_best_normalized"][r]


def random_cell(gates: str, m: int, n: int, c: int = 0) -> dict:
    random = np.random.default_rng(len(gates) + n)
    p = {}
    for gate in gates.split(","):
        p[f"W{gate}"] = random.normal(size=(m, n))
        p[f"U{gate}"] = random.normal(size=(n, n))
        p[f"b{gate}"] = random.normal(size=n)
        if c:
            p[f"C{gate}"] = random.normal(size=(c, n))
    return p


def keras_step(cell: keras.Layer, p: dict, gates: str, *tensors) -> list:
    """One step of a Keras cell with the reference's weights."""
    order = gates.split(",")
    weights = [np.concatenate([p[f"{letter}{gate}"] for gate in order], -1) for letter in "WUb"]
    if "b_Uz" in p:
        recurrent = np.concatenate([p[f"b_U{g.strip('_')}"] for g in order])
        weights[2] = np.stack([weights[2], recurrent])
    tensors = [keras.ops.array(t, "float32") for t in tensors]
    cell.build(tensors[0].shape)
    cell.set_weights(weights)
    return [np.asarray(t) for t in cell(tensors[0], tensors[1:])[1]]


def test_cells_equal_those_of_keras():
    random = np.random.default_rng(0)
    x, h, memory = random.normal(size=(3, 4, 5))
    gru = random_cell("_z,_r,", 5, 5)
    after = gru | {f"b_U{gate}": random.normal(size=5) for gate in ("z", "r", "")}
    cases = [
        (reference.tanh_step, random_cell("", 5, 5), "", "SimpleRNNCell", {}),
        (reference.gru_textbook_step, gru, "_z,_r,", "GRUCell", {"reset_after": False}),
        (reference.gru_reset_after_step, after, "_z,_r,", "GRUCell", {"reset_after": True}),
    ]
    for step, p, gates, name, options in cases:
        cell = getattr(keras.layers, name)(5, **options)
        (wanted,) = keras_step(cell, p, gates, x, h)
        close(step(x, h, p), wanted, 1e-6)
    gates = "_i,_f,_c,_o"
    lstm = random_cell(gates, 5, 5)
    wanted = keras_step(keras.layers.LSTMCell(5), lstm, gates, x, h, memory)
    for actual, array in zip(reference.lstm_step(x, (h, memory), lstm), wanted, strict=True):
        close(actual, array, 1e-6)


def test_gru_with_negated_update_gate_equals_the_textbooks():
    """1 - σ(a) = σ(-a): the two conventions for z are equivalent."""
    p = random_cell("_z,_r,", 3, 4, c=2)
    negated = p | {k: -p[k] for k in ("W_z", "U_z", "C_z", "b_z")}
    random = np.random.default_rng(1)
    x, h, c = (random.normal(size=(6, size)) for size in (3, 4, 2))
    close(reference.gru_textbook_step(x, h, negated, c), reference.gru_step(x, h, p, c), 1e-12)


@pytest.mark.parametrize(
    ("step", "gates"),
    [
        (reference.gru_step, "_z,_r,"),
        (reference.lstm_step, "_i,_f,_c,_o"),
        (reference.tanh_step, ""),
    ],
)
def test_a_context_equals_a_concatenated_input(step, gates):
    """[y ; c] [W ; C] = y W + c C."""
    p = random_cell(gates, 3, 4, c=2)
    joined = {k: v for k, v in p.items() if k[0] != "C"} | {
        f"W{g}": np.concatenate([p[f"W{g}"], p[f"C{g}"]]) for g in gates.split(",")
    }
    random = np.random.default_rng(2)
    y, c = random.normal(size=(6, 3)), random.normal(size=(6, 2))
    state = reference.zero_state(step, 6, 4)
    both = step(y, state, p, c)
    of_both = step(np.concatenate([y, c], -1), state, joined)
    close(reference.output(of_both), reference.output(both), 1e-12)


def test_unroll_ignores_padding_in_both_directions():
    p = random_cell("_z,_r,", 3, 4)
    inputs = np.random.default_rng(4).normal(size=(2, 5, 3))
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    zero = np.zeros((2, 4))
    for reverse in (False, True):
        outputs, last = reference.unroll(reference.gru_step, p, inputs, mask, zero, reverse)
        h = zero[:1]
        words = range(3)
        for t in reversed(words) if reverse else words:
            h = reference.gru_step(inputs[:1, t], h, p)
            close(outputs[0, t], h[0], 1e-12)
        close(last[0], h[0], 1e-12)
        close(outputs[0, 3:], np.stack([zero[0] if reverse else h[0]] * 2), 1e-12)


def test_scores_equal_their_equations():
    random = np.random.default_rng(5)
    s, h = random.normal(size=4), random.normal(size=(3, 4))
    p = {
        "W_a": random.normal(size=(4, 4)),
        "U_a": random.normal(size=(4, 4)),
        "b_a": random.normal(size=4),
        "v_a": random.normal(size=4),
    }
    plain = {k: v for k, v in p.items() if k != "b_a"}
    energies = {
        "additive": (p, lambda j: p["v_a"] @ np.tanh(
            p["W_a"].T @ s + p["U_a"].T @ h[j] + p["b_a"])),
        "plain": (plain, lambda j: p["v_a"] @ np.tanh(
            p["W_a"].T @ s + p["U_a"].T @ h[j])),
        "dot": ({}, lambda j: sum(s * h[j])),
        "general": (p, lambda j: s @ p["W_a"] @ h[j]),
    }  # fmt: skip
    for name, (weights_of, energy) in energies.items():
        kind = "additive" if name == "plain" else name
        attention = getattr(reference, f"{kind}_attention")
        e = np.exp([energy(0), energy(1)])
        alpha = np.array([*(e / e.sum()), 0.0])
        context, weights = attention(s[None], h[None], np.array([[1, 1, 0]]), weights_of)
        close(weights[0], alpha, 1e-12)
        close(context[0], alpha @ h, 1e-12)


def test_a_row_of_padding_has_equal_weights():
    random = np.random.default_rng(6)
    s, h = random.normal(size=(1, 4)), random.normal(size=(1, 3, 4))
    _, weights = reference.dot_attention(s, h, np.zeros((1, 3)), {})
    close(weights, np.full((1, 3), 1 / 3), 1e-12)


def test_readouts_equal_their_equations():
    random = np.random.default_rng(7)
    s, y, c = (random.normal(size=(1, size)) for size in (3, 2, 4))
    p = {
        "U_o": random.normal(size=(3, 4)),
        "V_o": random.normal(size=(2, 4)),
        "C_o": random.normal(size=(4, 4)),
        "b_o": random.normal(size=4),
        "W_o": random.normal(size=(2, 5)),
        "b_y": random.normal(size=5),
    }
    t = (s @ p["U_o"] + y @ p["V_o"] + c @ p["C_o"] + p["b_o"])[0]
    pairs = np.array([max(t[0], t[1]), max(t[2], t[3])])
    wanted = pairs @ p["W_o"] + p["b_y"]
    close(reference.readout(s, y, c, p)[0], wanted, 1e-12)
    u, v = random.normal(size=(4, 6)), random.normal(size=(6, 5))
    for activation, hidden in ((np.tanh, np.tanh(t)), (reference.identity, t)):
        full = p | {"W_o": u @ v}
        factored = {k: w for k, w in p.items() if k != "W_o"} | {"W_o1": u, "W_o2": v}
        for q in (full, factored):
            logits = reference.readout(s, y, c, q, activation)[0]
            close(logits, hidden @ u @ v + p["b_y"], 1e-12)
    w = random.normal(size=(9, 5))
    linear = {"U_o": w[:3], "V_o": w[3:5], "C_o": w[5:], "b_y": p["b_y"]}
    logits = reference.readout(s, y, c, linear, reference.identity)
    close(logits, np.concatenate([s, y, c], -1) @ w + p["b_y"], 1e-12)


def small_model() -> dict:
    random = np.random.default_rng(8)
    gates = "_z,_r,"
    return {
        "E_x": random.normal(size=(9, 3)),
        "E_y": random.normal(size=(7, 3)),
        "encoder": [{"forward": random_cell(gates, 3, 4), "backward": random_cell(gates, 3, 4)}],
        "bridge": {"W_s": random.normal(size=(4, 4))},
        "attention": {
            "W_a": random.normal(size=(4, 4)),
            "U_a": random.normal(size=(8, 4)),
            "v_a": random.normal(size=4),
        },
        "decoder": random_cell(gates, 3, 4, c=8),
        "readout": {
            "U_o": random.normal(size=(4, 4)),
            "V_o": random.normal(size=(3, 4)),
            "C_o": random.normal(size=(8, 4)),
            "W_o": random.normal(size=(2, 7)),
        },
    }


@pytest.mark.parametrize("order", ["appendix", "main-text"])
def test_step_orders_equal_the_papers_equations(order):
    """Two target words, with the steps as printed in the paper."""
    p = small_model()
    x, ones = np.array([[3, 5, 8]]), np.ones((1, 3))
    y, y_0 = np.array([[2, 6]]), np.array([0.3, -0.1, 0.7])
    out = reference.rnnsearch(p, x, ones, y, ones[:, :2], order=order, first_input=y_0)
    s = reference.backward_bridge(out.annotations, ones, p["bridge"])
    for i, previous in enumerate([y_0[None], p["E_y"][[2]]]):
        c, _ = reference.additive_attention(s, out.annotations, ones, p["attention"])
        new = reference.gru_step(previous, s, p["decoder"], c)
        seen = new if order == "main-text" else s
        logits = reference.readout(seen, previous, c, p["readout"])
        close(out.logits[:, i], logits, 1e-12)
        close(out.states[:, i], new, 1e-12)
        s = new


def test_an_unknown_step_order_is_refused():
    ones = np.ones((1, 1))
    ids = ones.astype(int)
    with pytest.raises(ValueError, match="order is 'reversed', wanted"):
        reference.rnnsearch(small_model(), ids, ones, ids, ones, order="reversed")


def test_a_second_encoder_layer_reads_the_first():
    """The second layer reads the first layer's annotations."""
    p = small_model()
    gates = "_i,_f,_c,_o"
    layers = [{d: random_cell(gates, m, 4) for d in ("forward", "backward")} for m in (3, 8)]
    x, mask = np.array([[1, 2, 4]]), np.ones((1, 3))
    low = reference.encode(p | {"encoder": layers[:1]}, x, mask, reference.lstm_step)
    high = reference.encode(p | {"encoder": layers}, x, mask, reference.lstm_step)
    on_top = {"E_x": low[0], "encoder": layers[1:]}
    again = reference.encode(on_top, np.arange(3)[None], mask, reference.lstm_step)
    close(high, again, 1e-12)
