"""The NumPy reference compared with the equations of the paper, order by order.

The rest of it is compared with the package, as is the original program (`test_groundhog.py`).
"""

import numpy as np
import pytest
import reference


def close(actual: np.ndarray, wanted: np.ndarray, atol: float) -> None:
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=atol)


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
