"""The NumPy reference, compared with the output of the original program.

`../shared/groundhog` holds what the authors' program computed; tests that need
it skip if it is absent. `test_groundhog.py` compares the package with the same files,
`test_layers.py` its cells with those of Keras.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import reference


@pytest.fixture(params=["rnnsearch", "rnnencdec"])
def original(
    request: pytest.FixtureRequest, shared: Callable[[str], Path]
) -> reference.OriginalFiles:
    return reference.OriginalFiles(request.param, shared("groundhog") / request.param)


def forward(original: reference.OriginalFiles, p: dict, *batch: np.ndarray) -> reference.Forward:
    return getattr(reference, original.name)(p, *batch)


def close(actual: np.ndarray, wanted: np.ndarray, atol: float) -> None:
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=atol)


def test_a_padded_batch_equals_the_original(original):
    p = reference.from_groundhog(original.load("params"))
    file = original.load("forward")
    names = ("batch_x", "batch_x_mask", "batch_y", "batch_y_mask")
    batch = tuple(file[name].T for name in names)
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
