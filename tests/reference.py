"""NumPy float64 reference of the package, written from the equations.

This file does not import TensorFlow. Tests compare layers and models of the package with it;
`test_reference.py` compares it with numbers computed by the original GroundHog program.

Vectors are rows and y = x W: the transposed matrices of the paper. Letters of the paper: B
sentences, T_x and T_y words with the end symbol, n units, m embedding, n' alignment units, l
readout units, K_x and K_y words, c the width of an annotation (2n with two directions).

Parameters are nested dicts of arrays:

    E_x [K_x, m], b_Ex [m], E_y [K_y, m], b_Ey [m]
    encoder    list of layers, each {"forward": cell, "backward": cell}
               ("backward" absent: unidirectional), and "residual": True
               if its outputs are added to its inputs
    bridge     W_s [n, n], b_s [n]
    attention  W_a [n, n'], U_a [c, n'], b_a [n'], v_a [n'] or [n', 1];
               F [r, k], U_f [k, n'] (location); r (monotonic)
    decoder    cell with context matrices C..; in the order "conditional" a
               cell without them, and "context_cell": one that reads c_i
    readout    U_o [n, 2l], b_o [2l], V_o [m, 2l], C_o [c, 2l],
               W_o [l, K_y] or W_o1 [l, r] and W_o2 [r, K_y] or none of
               them, b_y [K_y]
    copying    codes [K_x]: the y of the same spelling, < 0 if it continues a word, 0 for none;
               W [l or r, 2], M [6, 2], b [2], H [6, 2l]
    cell       for each gate g of the cell: W_g [m, n], U_g [n, n], and
               optionally C_g [c, n], b_g [n], b_Ug [n] (a bias of U_g)

An absent bias is zero, and so is a term whose matrix is absent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray
Params = Mapping[str, Any]
State = Any  # an Array [B, n], or for the LSTM the pair (h, memory)
ORDERS = ("original", "appendix", "main-text", "conditional")


# Elementary functions.


def sigmoid(x: Array) -> Array:
    """σ(x) = 1 / (1 + exp(-x)), in a form that does not overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def log_softmax(logits: Array) -> Array:
    """Logarithm of the softmax over the last axis."""
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def maxout(x: Array) -> Array:
    """t_k = max(t~_{2k-1}, t~_{2k}): adjacent pairs, [..., 2l] -> l."""
    return x.reshape(*x.shape[:-1], -1, 2).max(-1)


def identity(x: Array) -> Array:
    """t = t~."""
    return x


# Recurrent cells: one step.


def _given(x: Array | None, c: Array | None, p: Params, gate: str) -> Array:
    """The terms of a gate without the state: x W_g + c C_g + b_g."""
    total = p.get(f"b{gate}", 0.0)
    if x is not None:
        total = total + x @ p[f"W{gate}"]
    if c is not None and f"C{gate}" in p:
        total = total + c @ p[f"C{gate}"]
    return total


def _recurrent(h: Array, p: Params, gate: str) -> Array:
    """The terms of a gate with the state: h U_g + b_Ug."""
    return h @ p[f"U{gate}"] + p.get(f"b_U{gate.strip('_')}", 0.0)


def _update_and_reset(x: Array, h: Array, p: Params, c: Array | None) -> tuple[Array, Array]:
    """z, r = σ(x W + h U + c C + b), each with its own matrices."""
    z, r = (sigmoid(_given(x, c, p, gate) + _recurrent(h, p, gate)) for gate in ("_z", "_r"))
    return z, r


def gru_step(x: Array, h: Array, p: Params, c: Array | None = None) -> Array:
    """The paper's gated unit, reset before the product (A.1.1, A.2).

        z  = σ(x W_z + h U_z + c C_z + b_z)
        r  = σ(x W_r + h U_r + c C_r + b_r)
        h~ = tanh(x W + (r ∘ h) U + c C + b)
        h' = (1 - z) ∘ h + z ∘ h~

    x is [B, m], h and h' [B, n], c [B, c] or None; the gates are "_z", "_r" and "" (candidate).
    """
    z, r = _update_and_reset(x, h, p, c)
    candidate = np.tanh(_given(x, c, p, "") + _recurrent(r * h, p, ""))
    return (1.0 - z) * h + z * candidate


def gru_reset_after_step(x: Array, h: Array, p: Params, c: Array | None = None) -> Array:
    """The gated unit of cuDNN: reset after the product, z keeps the old state.

    h~ = tanh(x W + c C + b + r ∘ (h U + b_U)),  h' = z ∘ h + (1 - z) ∘ h~
    """
    z, r = _update_and_reset(x, h, p, c)
    candidate = np.tanh(_given(x, c, p, "") + r * _recurrent(h, p, ""))
    return z * h + (1.0 - z) * candidate


def lstm_step(
    x: Array, state: tuple[Array, Array], p: Params, c: Array | None = None
) -> tuple[Array, Array]:
    """Long short-term memory without peepholes; gates "_i", "_f", "_c", "_o".

        i, f, o = σ(x W + h U + c C + b), each with its own matrices
        m~ = tanh(x W_c + h U_c + c C_c + b_c)
        m' = f ∘ m + i ∘ m~,   h' = o ∘ tanh(m')

    The state is (h, m), the result (h', m').
    """
    h, memory = state
    i, f, m, o = (
        _given(x, c, p, gate) + _recurrent(h, p, gate) for gate in ("_i", "_f", "_c", "_o")
    )
    memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(m)
    return sigmoid(o) * np.tanh(memory), memory


def tanh_step(x: Array, h: Array, p: Params, c: Array | None = None) -> Array:
    """The simple recurrence: h' = tanh(x W + h U + c C + b)."""
    return np.tanh(_given(x, c, p, "") + _recurrent(h, p, ""))


def zero_state(step: Callable, batch: int, n: int) -> State:
    """h_0 = 0, in the form that a cell's step function takes."""
    zero = np.zeros((batch, n))
    return (zero, zero) if step is lstm_step else zero


def output(state: State) -> Array:
    """The h of a state, which may be the pair (h, memory)."""
    return state[0] if isinstance(state, tuple) else state


def keep(mask: Array, new: State, old: State) -> State:
    """The new state where mask [B] is 1, the old one where it is 0."""
    if isinstance(new, tuple):
        return tuple(keep(mask, *pair) for pair in zip(new, old, strict=True))
    return np.where(mask[:, None] > 0, new, old)


# Encoders.


def unroll(
    step: Callable, p: Params, inputs: Array, mask: Array, state: State, reverse: bool = False
) -> tuple[Array, State]:
    """Runs a cell over inputs [B, T, m]; padding carries the state unchanged.

    The mask is [B, T], 1 on words. Returns outputs [B, T, n] in the order of the inputs, and the
    last state.
    """
    steps = range(inputs.shape[1])
    outputs: dict[int, Array] = {}
    for t in reversed(steps) if reverse else steps:
        state = keep(mask[:, t], step(inputs[:, t], state, p), state)
        outputs[t] = output(state)
    return np.stack([outputs[t] for t in steps], axis=1), state


def encode(p: Params, x: Array, x_mask: Array, cell: Callable = gru_step) -> Array:
    """Annotations h_j = [forward h_j ; backward h_j], [B, T_x, c]   (A.2.1, equation 7).

    c is 2n with backward cells in the last layer, else n.
    """
    hidden = p["E_x"][x] + p.get("b_Ex", 0.0)
    for layer in p["encoder"]:
        zero = zero_state(cell, len(x), _units(layer["forward"]))
        parts = [unroll(cell, layer["forward"], hidden, x_mask, zero)[0]]
        if "backward" in layer:
            back = layer["backward"]
            parts.append(unroll(cell, back, hidden, x_mask, zero, True)[0])
        below, hidden = hidden, np.concatenate(parts, axis=-1)
        if layer.get("residual"):
            hidden = below + hidden
    return hidden


def _units(cell: Params) -> int:
    return next(v for k, v in cell.items() if k[0] == "U").shape[0]


# Bridges: s_0 from the annotations.


def backward_bridge(annotations: Array, _x_mask: Array, p: Params) -> Array:
    """s_0 = tanh(backward h_1 W_s + b_s)   (A.2.2)."""
    n = p["W_s"].shape[0]
    return np.tanh(annotations[:, 0, -n:] @ p["W_s"] + p.get("b_s", 0.0))


def summary_bridge(annotations: Array, x_mask: Array, p: Params) -> Array:
    """s_0 = tanh(forward h_Tx W_s + b_s), of RNNencdec."""
    summary = last_annotation(annotations, x_mask)
    return np.tanh(summary @ p["W_s"] + p.get("b_s", 0.0))


def copy_bridge(annotations: Array, x_mask: Array, _p: Params) -> Array:
    """s_0 = forward h_Tx."""
    return last_annotation(annotations, x_mask)


def last_annotation(annotations: Array, x_mask: Array) -> Array:
    """h_Tx: the annotation of each sentence's last word, [B, c]."""
    last = x_mask.sum(1).astype(int) - 1
    return annotations[np.arange(len(annotations)), last]


# Attention: (query, annotations, mask, p) -> context, weights.


def masked_average(scores: Array, annotations: Array, mask: Array) -> tuple[Array, Array]:
    """c = Σ_j α_j h_j, [B, c], and α_j = exp(e_j) / Σ_k exp(e_k), [B, T_x], over words only.

    The weights are exactly 0 on padding. A row without words gets equal weights.
    """
    words = mask > 0
    empty = ~words.any(1, keepdims=True)
    scores, words = np.where(empty, 0.0, scores), words | empty
    top = np.where(words, scores, -np.inf).max(1, keepdims=True)
    weights = np.where(words, np.exp(np.where(words, scores - top, 0.0)), 0.0)
    weights = weights / weights.sum(1, keepdims=True)
    return np.einsum("bt,btc->bc", weights, annotations), weights


def additive_scores(query: Array, annotations: Array, p: Params, more: Any = 0.0) -> Array:
    """e_j = tanh(s W_a + h_j U_a + b_a) v_a   (A.1.2; b_a is not in it)."""
    hidden = annotations @ p["U_a"] + (query @ p["W_a"])[:, None]
    return np.tanh(hidden + more + p.get("b_a", 0.0)) @ np.ravel(p["v_a"])


def general_scores(query: Array, annotations: Array, p: Params) -> Array:
    """e_j = s W_a · h_j, W_a [n, c]   (Luong et al. 2015, "general")."""
    return np.einsum("bc,btc->bt", query @ p["W_a"], annotations)


def additive_attention(
    query: Array, annotations: Array, mask: Array, p: Params
) -> tuple[Array, Array]:
    """The paper's attention."""
    return masked_average(additive_scores(query, annotations, p), annotations, mask)


def dot_attention(query: Array, annotations: Array, mask: Array, _p: Params) -> tuple[Array, Array]:
    """e_j = s · h_j   (Luong et al. 2015, "dot")."""
    scores = np.einsum("bn,btn->bt", query, annotations)
    return masked_average(scores, annotations, mask)


def general_attention(
    query: Array, annotations: Array, mask: Array, p: Params
) -> tuple[Array, Array]:
    """Luong's general attention."""
    return masked_average(general_scores(query, annotations, p), annotations, mask)


def location_attention(
    query: Array, annotations: Array, mask: Array, p: Params, before: Array | None = None
) -> tuple[Array, Array]:
    """e_j = tanh(s W_a + h_j U_a + b_a + f_j U_f) v_a   (Chorowski et al. 2015, 2.2).

    f_j = Σ_d F[d] α_before[j + d - r // 2], with F [r, k] of an odd r and U_f [k, n'].
    """
    if before is None:
        before = np.zeros(mask.shape)
    more = location_features(before, p["F"]) @ p["U_f"]
    return masked_average(additive_scores(query, annotations, p, more), annotations, mask)


def location_features(before: Array, filters: Array) -> Array:
    """f_j of `location_attention`, [B, T_x, k]."""
    features = np.zeros((*before.shape, filters.shape[1]))
    for j in range(before.shape[1]):
        for d, row in enumerate(filters):
            if 0 <= (at := j + d - len(filters) // 2) < before.shape[1]:
                features[:, j] += before[:, at, None] * row
    return features


def monotonic_attention(
    query: Array, annotations: Array, mask: Array, p: Params, before: Array | None = None
) -> tuple[Array, Array]:
    """α_j = p_j q_j, q_j = (1 - p_{j-1}) q_{j-1} + α_before_j   (Raffel et al. 2017, 2.3).

    p_j = σ(e_j + r), 0 at padding; the scores e are additive or general.
    """
    scores = additive_scores if "v_a" in p else general_scores
    chosen = sigmoid(scores(query, annotations, p) + p["r"]) * mask
    if before is None:
        before = np.zeros(mask.shape)
        before[:, 0] = 1.0
    weights, q = np.zeros(mask.shape), 0.0
    for j in range(mask.shape[1]):
        q = (1.0 - (chosen[:, j - 1] if j else 0.0)) * q + before[:, j]
        weights[:, j] = chosen[:, j] * q
    return np.einsum("bt,btc->bc", weights, annotations), weights


def attends(
    attention: Callable, annotations: Array, mask: Array, p: Params
) -> Callable[[Array], tuple[Array | None, Array | None]]:
    """Context and weights as a function of the state, called once for each step."""
    remembered: tuple[Array | None, ...] = ()
    if attention in (location_attention, monotonic_attention):
        remembered = (None,)

    def attend(s: Array) -> tuple[Array | None, Array | None]:
        nonlocal remembered
        context, weights = attention(s, annotations, mask, p, *remembered)
        remembered = (weights,) * len(remembered)
        return context, weights

    return attend


def fixed_context(_query: Array, annotations: Array, mask: Array, _p: Params) -> tuple[Array, None]:
    """c_i = c = forward h_Tx, of RNNencdec; no weights."""
    return last_annotation(annotations, mask), None


def no_context(_query: Array, _annotations: Array, _mask: Array, _p: Params) -> tuple[None, None]:
    """No context."""
    return None, None


# Readout.


def readout(
    s: Array,
    y: Array | None,
    c: Array | None,
    p: Params,
    activation: Callable = maxout,
    copying: Callable | None = None,
) -> Array:
    """Logits of the next word (A.2.2).

        t~ = s U_o + y V_o + c C_o + b_o,   t = activation(t~)
        logits = t W_o + b_y,  factored (t W_o1) W_o2 + b_y,  or t + b_y

    A linear readout [s ; y ; c] W is U_o, V_o and C_o, the blocks of W. s is [B, n], y the
    embedded previous word [B, m] or None, c the context [B, c] or None; the result is [B, K_y].
    `copying` is from `copies`.
    """
    hint, copied = copying() if copying else (0.0, None)
    total = p.get("b_o", 0.0) + hint
    for name, vector in (("U_o", s), ("V_o", y), ("C_o", c)):
        if name in p and vector is not None:
            total = total + vector @ p[name]
    t = activation(total)
    t = t @ p["W_o1"] if "W_o1" in p else t
    logits = t
    for name in ("W_o2", "W_o"):
        logits = logits @ p[name] if name in p else logits
    logits = logits + p.get("b_y", 0.0)
    return copied(t, logits) if copied else logits


# Copying.


def matches(codes: Array, before: list[int], alpha: Array) -> tuple[Array, Array]:
    """m [6] and f [T_x] of one word, given the codes of a sentence's words, [T_x].

    The words before are y_1 .. y_{i-1}; α [T_x] is that of step i - 1.
    """
    marks, follower = np.zeros(6), np.zeros(len(codes))
    for j in range(len(codes)):
        k = 0
        while k < min(5, j + 1, len(before)) and 0 != abs(codes[j - k]) == before[-1 - k]:
            k += 1
        continues = j + 1 < len(codes) and codes[j + 1] < 0
        for length in range(min(k, 3)):
            marks[2 * length + (not continues)] = 1.0
        if continues:
            follower[j + 1] = (6**k - 1) * (alpha[j] + 0.05)
    return marks, follower / max(follower.sum(), 1e-300)


def words_of_codes(codes: Array) -> list[int]:
    """The codes of a sentence, where a mark, 2^24 more, goes on a word only if letters follow."""
    words: list[int] = []
    goes_on = False  # read from the end
    for code in map(int, codes[::-1]):
        is_mark = code < -(2**24)
        goes_on = goes_on if is_mark else code < 0
        word = abs(code) - 2**24 * is_mark
        words.insert(0, -word if code < 0 and goes_on else word)
    return words


def copies(p: Params, x: Array, y: Array, i: int, before: Array, alpha: Array) -> Callable:
    """What `readout` needs to copy words of x [B, T_x] as y_i, given α of steps i - 1 and i."""
    codes = np.array([words_of_codes(row) for row in p["codes"][x]])
    rows = [matches(c, list(words[:i]), a) for c, words, a in zip(codes, y, before, strict=True)]
    marks, follower = map(np.stack, zip(*rows, strict=True))

    def mixed(t: Array, logits: Array) -> Array:
        """l' = log(exp(l) + Σ_k exp(l_k) o), o_y = Σ_j [x_j = y] (exp(v) α_j + exp(u) f_j)."""
        v, u = np.exp(t @ p["W"] + marks @ p["M"] + p["b"]).T
        odds = np.zeros(logits.shape)
        for row, words in enumerate(codes):
            for j, word in enumerate(words):
                if word:
                    share = v[row] * alpha[row, j] + u[row] * follower[row, j]
                    odds[row, abs(word)] += share
        return np.log(np.exp(logits) + np.exp(logits).sum(-1, keepdims=True) * odds)

    return lambda: (marks @ p["H"], mixed)


# Whole models.


@dataclass(frozen=True)
class Forward:
    """The outputs of a model for given targets.

    annotations [B, T_x, c], s_0 [B, n], logits [B, T_y, K_y], weights [B, T_y, T_x] or None,
    contexts [B, T_y, c] or None, states [B, T_y, n] (row i-1 is s_i).
    """

    annotations: Array
    s_0: Array
    logits: Array
    weights: Array | None
    contexts: Array | None
    states: Array


def forward(
    p: Params,
    x: Array,
    x_mask: Array,
    y: Array,
    y_mask: Array,
    *,
    order: str = "original",
    first_input: Array | None = None,
    cell: Callable = gru_step,
    encoder_cell: Callable | None = None,
    bridge: Callable = backward_bridge,
    attention: Callable = additive_attention,
    activation: Callable = maxout,
) -> Forward:
    """Encoder and decoder over given targets; see `decode` for the orders.

    x is int [B, T_x], y int [B, T_y], y_1 .. y_Ty; the masks are 1 on words. `first_input` is y_0
    as a vector, [m] or [B, m]. An LSTM's memory starts at 0 unless the bridge gives a pair.
    """
    annotations = encode(p, x, x_mask, encoder_cell or cell)
    state = bridge(annotations, x_mask, p.get("bridge", {}))
    if cell is lstm_step and not isinstance(state, tuple):
        state = state, np.zeros_like(state)

    attend = attends(attention, annotations, x_mask, p.get("attention", {}))
    embedded = p["E_y"][y] + p.get("b_Ey", 0.0)
    if first_input is not None:
        first_input = np.broadcast_to(first_input, embedded[:, 0].shape)
    copying = partial(copies, p["copying"], x, y) if "copying" in p else None
    rows = decode(p, embedded, y_mask, state, attend, order, first_input, cell, activation, copying)
    logits, weights, contexts, states = (
        None if column[0] is None else np.stack(column, axis=1)
        for column in zip(*rows, strict=True)
    )
    return Forward(annotations, output(state), logits, weights, contexts, states)


def decode(
    p: Params,
    embedded: Array,
    y_mask: Array,
    state: State,
    attend: Callable,
    order: str,
    first_input: Array | None,
    cell: Callable,
    activation: Callable,
    copying: Callable | None = None,
) -> list[tuple[Array, Array | None, Array | None, Array]]:
    """Returns a row (logits, weights, context, s_i) for each target word.

    c_i is computed with s_{i-1}. Then

        original   logits(s_{i-1}, y_{i-1}, c_i); s_i = f(s_{i-1}, y_i, c_i)
        appendix   logits(s_{i-1}, y_{i-1}, c_i); s_i = f(s_{i-1}, y_{i-1}, c_i)
        main-text  s_i = f(s_{i-1}, y_{i-1}, c_i); logits(s_i, y_{i-1}, c_i)

    In the order "conditional" c_i is computed with s'_i:

        s'_i = f(s_{i-1}, y_{i-1});  s_i = g(s'_i, c_i)
        logits(s_i, y_{i-1}, c_i)

    y_0 is `first_input`; without it (original) the first readout has no previous word.
    """
    if order not in ORDERS:
        raise ValueError(f"decode: order is {order!r}, wanted one of {ORDERS}")
    rows: list[tuple[Array, Array | None, Array | None, Array]] = []
    previous = first_input
    for i in range(embedded.shape[1]):
        read = cell_input = previous
        if order == "original":
            cell_input = embedded[:, i]
        if order == "conditional":
            middle = cell(cell_input, state, p["decoder"])
            context, weights = attend(output(middle))
            new = cell(context, middle, p["decoder"]["context_cell"])
        else:
            context, weights = attend(output(state))
            new = cell(cell_input, state, p["decoder"], context)
        seen = new if order in ("main-text", "conditional") else state
        copied = None
        if copying is not None:
            copied = copying(i, rows[-1][1] if rows else 0.0 * weights, weights)
        logits = readout(output(seen), read, context, p["readout"], activation, copied)
        state = keep(y_mask[:, i], new, state)
        rows.append((logits, weights, context, output(state)))
        previous = embedded[:, i]
    return rows


def rnnsearch(p: Params, x: Array, x_mask: Array, y: Array, y_mask: Array, **parts: Any) -> Forward:
    """RNNsearch; `parts` are those of `forward`."""
    return forward(p, x, x_mask, y, y_mask, **parts)


def rnnencdec(p: Params, x: Array, x_mask: Array, y: Array, y_mask: Array, **parts: Any) -> Forward:
    """RNNencdec: c_i = c = forward h_Tx, s_0 = tanh(c W_s + b_s)."""
    parts = {"bridge": summary_bridge, "attention": fixed_context, **parts}
    return forward(p, x, x_mask, y, y_mask, **parts)


# Cost and optimization.


def token_log_probs(logits: Array, y: Array) -> Array:
    """log p(y_i | y_<i, x): [B, T_y, K_y], int [B, T_y] -> [B, T_y]."""
    return np.take_along_axis(log_softmax(logits), y[..., None], -1)[..., 0]


def cross_entropy(logits: Array, y: Array, y_mask: Array) -> float:
    """-Σ log p over all words of all sentences, not divided."""
    return -float((token_log_probs(logits, y) * y_mask).sum())


def global_norm(gradients: Mapping[str, Array]) -> float:
    """L2 norm over all tensors together."""
    return float(np.sqrt(sum((g**2).sum() for g in gradients.values())))


def clip_by_global_norm(gradients: Mapping[str, Array], limit: float = 1.0) -> dict[str, Array]:
    """Scales gradients down to the limit if their global norm reaches it."""
    norm = global_norm(gradients)
    scale = limit / norm if norm >= limit else 1.0
    return {name: g * scale for name, g in gradients.items()}


def adadelta(
    value: Array,
    gradient: Array,
    mean_square: Array | float = 0.0,
    mean_step: Array | float = 0.0,
    rho: float = 0.95,
    epsilon: float = 1e-6,
) -> tuple[Array, Array, Array]:
    """One Adadelta update (appendix B.2), with the signs of the program.

        E[g²]  := ρ E[g²] + (1 - ρ) g²
        Δ       = √(E[Δ²] + ε) / √(E[g²] + ε) g
        E[Δ²]  := ρ E[Δ²] + (1 - ρ) Δ²

    Returns:
        value - Δ, E[g²], E[Δ²].
    """
    mean_square = rho * mean_square + (1.0 - rho) * gradient**2
    step = np.sqrt(mean_step + epsilon) / np.sqrt(mean_square + epsilon)
    step = step * gradient
    mean_step = rho * mean_step + (1.0 - rho) * step**2
    return value - step, mean_square, mean_step


# GroundHog's names.


def from_groundhog(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """GroundHog's flat names -> the nested parameters used here, float64.

    A file of RNNsearch is recognized by the attention's matrices.
    """
    a = {name: np.asarray(v, np.float64) for name, v in arrays.items()}

    def cell(side: str) -> dict[str, Array]:
        return {
            "W": a[f"W_0_{side}_input_embdr_0"],
            "b": a[f"b_0_{side}_input_embdr_0"],
            "W_z": a[f"W_0_{side}_update_embdr_0"],
            "W_r": a[f"W_0_{side}_reset_embdr_0"],
            "U": a[f"W_{side}_transition_0"],
            "U_z": a[f"G_{side}_transition_0"],
            "U_r": a[f"R_{side}_transition_0"],
        }

    layer = {"forward": cell("enc")}
    p: dict[str, Any] = {"encoder": [layer]}
    if "A_dec_transition_0" in a:
        layer["backward"] = cell("back_enc")
        p["attention"] = {
            "U_a": a["A_dec_transition_0"],
            "W_a": a["B_dec_transition_0"],
            "v_a": a["D_dec_transition_0"],
        }
    for letter, side in (("x", "enc"), ("y", "dec")):
        p[f"E_{letter}"] = a[f"W_0_{side}_approx_embdr"]
        p[f"b_E{letter}"] = a[f"b_0_{side}_approx_embdr"]
    p["bridge"] = {"W_s": a["W_0_dec_initializer_0"], "b_s": a["b_0_dec_initializer_0"]}
    p["decoder"] = cell("dec") | {
        "C": a["W_0_dec_dec_inputter_0"],
        "C_z": a["W_0_dec_dec_updater_0"],
        "C_r": a["W_0_dec_dec_reseter_0"],
    }
    p["readout"] = {
        "U_o": a["W_0_dec_hid_readout_0"],
        "b_o": a["b_0_dec_hid_readout_0"],
        "V_o": a["W_0_dec_prev_readout_0"],
        "C_o": a["W_0_dec_repr_readout"],
        "W_o1": a["W1_dec_deep_softmax"],
        "W_o2": a["W2_dec_deep_softmax"],
        "b_y": a["b_dec_deep_softmax"],
    }
    return p


@dataclass(frozen=True)
class OriginalFiles:
    """The folder with the original program's output for "rnnsearch" or "rnnencdec"."""

    name: str
    folder: Path

    def load(self, file: str) -> dict[str, Array]:
        """The arrays of a file, by name."""
        with np.load(self.folder / f"{file}.npz") as arrays:
            return dict(arrays)
