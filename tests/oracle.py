"""Weights of our layers as arguments of `reference.py`, and comparisons."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import reference
import tensorflow as tf

from bahdanau_tf import layers

ATOL = 5e-6

# For each cell: the reference's step; its gates in the order of our kernels.
CELLS = {
    layers.GRUCell: (reference.gru_step, ("_z", "_r", "")),
    layers.GRUResetAfterCell: (reference.gru_reset_after_step, ("_z", "_r", "")),
    layers.LSTMCell: (reference.lstm_step, ("_i", "_f", "_c", "_o")),
    layers.TanhCell: (reference.tanh_step, ("",)),
}
ACTIVATIONS = {
    layers.MaxoutReadout: reference.maxout,
    layers.TanhReadout: np.tanh,
    layers.LinearReadout: reference.identity,
}


def randomized(layer: Any, seed: int = 0, scale: float = 0.5) -> Any:
    """Sets every weight, biases too, to large random values."""
    random = np.random.default_rng(seed)
    for weight in layer.weights:
        if weight.dtype != "int32":  # a constant
            weight.assign(random.normal(0, scale, weight.shape))
    return layer


def array(weight: Any) -> np.ndarray:
    return np.asarray(weight.numpy(), np.float64)


def close(actual: Any, wanted: Any, atol: float = ATOL) -> None:
    """Compares arrays or tuples of arrays; None equals only None."""
    if not isinstance(actual, (tuple, list)):
        actual, wanted = [actual], [np.asarray(wanted)]
    actual, wanted = tf.nest.flatten(actual), tf.nest.flatten(wanted)
    for ours, theirs in zip(actual, wanted, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            ours = np.asarray(tf.cast(ours, tf.float64))
            np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=atol)


def values(nest: Any) -> Any:
    """The NumPy arrays of a nest of tensors; None stays None."""
    return tf.nest.map_structure(lambda t: None if t is None else np.asarray(t), nest)


def specification(tensor: tf.Tensor) -> tf.TensorSpec:
    """The specification of a tensor with unknown batch and length."""
    shape = [None, None, *tensor.shape[2:]][: tensor.shape.rank]
    if tensor.shape.rank == 2 and tensor.dtype.is_floating:
        shape[1] = tensor.shape[1]
    return tf.TensorSpec(shape, tensor.dtype)


def everywhere(function: Callable, *arguments: Any) -> Any:
    """Runs a function eagerly and in a graph and checks that both agree."""
    arguments = tf.nest.map_structure(tf.convert_to_tensor, arguments)
    eager = function(*arguments)
    graph = tf.function(
        function, input_signature=tf.nest.map_structure(specification, arguments), autograph=False
    )(*arguments)
    close(graph, values(eager), 1e-6)
    return eager


def cell_parameters(cell: Any) -> dict[str, np.ndarray]:
    gates = CELLS[type(cell)][1]
    p = {}
    for letter, weight in (("W", cell.kernel), ("U", cell.recurrent_kernel)):
        blocks = np.split(array(weight), len(gates), -1)
        p |= {f"{letter}{g}": b for g, b in zip(gates, blocks, strict=True)}
    biased = gates[-(cell.bias.shape[0] // cell.units) :]
    blocks = np.split(array(cell.bias), len(biased))
    p |= {f"b{g}": b for g, b in zip(biased, blocks, strict=True)}
    if isinstance(cell, layers.GRUResetAfterCell):
        p["b_Uz"], p["b_Ur"], p["b_U"] = np.split(array(cell.recurrent_bias), 3)
    return p


def encoder_parameters(encoder: Any) -> list[dict[str, Any]]:
    return [
        {
            name: cell_parameters(recurrent.cell)
            for name, recurrent in zip(("forward", "backward"), layer, strict=False)
        }
        | {"residual": encoder.residual and level > 0}
        for level, layer in enumerate(encoder.stack)
    ]


def attention_parameters(attention: Any) -> dict[str, np.ndarray]:
    return ATTENTIONS[type(attention)][1](attention)


def additive_parameters(attention: Any) -> dict[str, np.ndarray]:
    keys = attention.key_projection
    p = {
        "W_a": array(attention.query_projection.kernel),
        "U_a": array(keys.kernel),
        "v_a": array(attention.energy.kernel),
    }
    if attention.normalize:
        p["v_a"] = array(attention.gain) * p["v_a"] / np.sqrt((p["v_a"] ** 2).sum())
    return p | ({"b_a": array(keys.bias)} if keys.use_bias else {})


# For each attention: the reference's function, and weights by its letters.
ATTENTIONS: dict[type, tuple[Callable, Callable[[Any], dict]]] = {
    layers.BahdanauAttention: (reference.additive_attention, additive_parameters),
    layers.DotAttention: (reference.dot_attention, lambda _: {}),
    layers.GeneralAttention: (
        reference.general_attention,
        lambda attention: {"W_a": array(attention.kernel)},
    ),
    layers.LocationAttention: (
        reference.location_attention,
        lambda attention: (
            additive_parameters(attention)
            | {
                "F": array(attention.location_filters)[:, 0],
                "U_f": array(attention.location_kernel),
            }
        ),
    ),
    layers.MonotonicAttention: (
        reference.monotonic_attention,
        lambda attention: attention_parameters(attention.content) | {"r": array(attention.bias)},
    ),
    layers.FixedContext: (reference.fixed_context, lambda _: {}),
    type(None): (reference.no_context, lambda _: {}),
}


def decoder_parameters(decoder: Any) -> dict[str, Any]:
    p = cell_parameters(decoder.cell)
    if isinstance(decoder, layers.ConditionalDecoder):
        p["context_cell"] = cell_parameters(decoder.context_cell)
    elif decoder.attention is not None:
        gates = CELLS[type(decoder.cell)][1]
        blocks = np.split(array(decoder.context_kernel), len(gates), -1)
        p |= {f"C{g}": b for g, b in zip(gates, blocks, strict=True)}
    return p


def readout_parameters(
    readout: Any, widths: dict[str, int], embeddings: Any = None
) -> dict[str, np.ndarray]:
    """`widths` of the terms; `embeddings` for a readout tied to them."""
    last = embeddings if readout.tied else readout.output_kernel
    output = array(last).T
    p = {"b_y": array(readout.output_bias)}
    if isinstance(readout, layers.LinearReadout):
        factor = readout.factor_kernel
        whole = output if factor is None else array(factor) @ output
        letters = {"state": "U_o", "previous": "V_o", "context": "C_o"}
        used = [term for term in readout.terms if widths[term]]
        blocks = np.split(whole, np.cumsum([widths[t] for t in used])[:-1])
        return p | {letters[t]: block for t, block in zip(used, blocks, strict=True)}
    for name, weight in (
        ("U_o", readout.state_kernel),
        ("V_o", readout.previous_kernel),
        ("C_o", readout.context_kernel),
        ("b_o", readout.bias),
        ("W_o1", readout.factor_kernel),
    ):
        if weight is not None:
            p[name] = array(weight)
    p["W_o" if readout.factor_kernel is None else "W_o2"] = output
    return p


def bridge_parameters(bridge: Any) -> dict[str, np.ndarray]:
    if not hasattr(bridge, "kernel"):
        return {}
    return {"W_s": array(bridge.kernel), "b_s": array(bridge.bias)}


def model_parameters(model: keras.Model) -> dict[str, Any]:
    """All weights of a translation model as `reference.forward` takes them."""
    widths = {
        "state": model.decoder.cell.units,
        "previous": model.target_embedding.embedding_dim,
        "context": model.decoder.context_size,
    }
    p: dict[str, Any] = {
        "encoder": encoder_parameters(model.encoder),
        "bridge": bridge_parameters(model.bridge),
        "attention": attention_parameters(model.decoder.attention),
        "decoder": decoder_parameters(model.decoder),
        "readout": readout_parameters(model.readout, widths, model.target_embedding.embeddings),
    }
    if (copying := model.copying) is not None:
        names = {"codes": "copies", "W": "kernel", "M": "mark_kernel", "H": "hint_kernel"}
        own = {letter: np.array(getattr(copying, name)) for letter, name in names.items()}
        p["copying"] = own | {"b": np.array(copying.bias)}
    for letter, embedding in (("x", model.source_embedding), ("y", model.target_embedding)):
        p[f"E_{letter}"] = array(embedding.embeddings)
        if embedding.bias is not None:
            p[f"b_E{letter}"] = array(embedding.bias)
    return p
