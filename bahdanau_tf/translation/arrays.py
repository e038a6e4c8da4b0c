"""The weights of a translator as arrays, for programs that translate without TensorFlow."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from bahdanau_tf.layers import copying as copying
from bahdanau_tf.layers.attention import BahdanauAttention
from bahdanau_tf.layers.bridge import BackwardBridge
from bahdanau_tf.layers.cells import GRUCell
from bahdanau_tf.layers.decoder import AttentionDecoder, ConditionalDecoder
from bahdanau_tf.layers.readout import MaxoutReadout
from bahdanau_tf.layers.recurrent import BidirectionalEncoder
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.text import SubwordTokenizer
from bahdanau_tf.translation.graph import TranslationGraph

Array: TypeAlias = Any  # of NumPy


def check_model(
    graph: TranslationGraph, writer: str = "export_runtime", place: str = "ONNX Runtime"
) -> None:
    """Raises a ValueError unless the model has the parts that can be written, and sub-words."""
    graph.decoding.check_without_tensorflow(place)
    if graph.decoding.shortlist and graph.lexicon is None:
        raise Refusal(writer, "shortlist is True, but there is no lexicon")
    model: Any = graph.model
    parts: list[tuple[str, object, type]] = [("model", model, EncoderDecoder)]
    if isinstance(model, EncoderDecoder):
        decoder, recurrent = model.decoder, model.encoder.stack[0]
        kind = ConditionalDecoder if decoder.step_order == "conditional" else AttentionDecoder
        parts += [
            ("encoder", model.encoder, BidirectionalEncoder),
            *(("cell", layer.cell, GRUCell) for layer in recurrent),
            ("bridge", model.bridge, BackwardBridge),
            ("decoder", decoder, kind),
            ("cell", decoder.cell, GRUCell),
            ("attention", decoder.attention, BahdanauAttention),
            ("readout", model.readout, MaxoutReadout),
        ]
    parts += [
        ("tokenizer", text, SubwordTokenizer) for text in (*graph.source_texts, graph.target_text)
    ]
    for name, part, wanted in parts:
        is_part = isinstance(part, wanted)
        if not is_part or (type(part) is not wanted and wanted is not EncoderDecoder):
            what = f"{name} is {type(part).__name__}, wanted {wanted.__name__} in {place}"
            raise Refusal(writer, what)
    for name, value, only in (
        ("layers", model.encoder.depth, 1),
        ("terms", model.readout.terms, ("state", "previous", "context")),
        ("dtype", model.compute_dtype, "float32"),
    ):
        if value != only:
            raise Refusal(writer, f"{name} is {value!r}, wanted {only!r} in {place}")


def values_of(*variables: Any) -> Any:
    """The values of weights; one value, or a list."""
    values = [np.asarray(x.numpy() if hasattr(x, "numpy") else x, np.float32) for x in variables]
    return values[0] if len(values) == 1 else values


def context_terms(model: Any) -> tuple[Array, Array]:
    """C, and its bias: a context's terms of the cell and then of the readout are C c + b."""
    decoder = model.decoder
    if decoder.step_order == "conditional":
        cell = decoder.context_cell
        kernel, bias = values_of(cell.kernel, cell.projected_bias)
    else:
        kernel, bias = values_of(decoder.context_kernel), np.zeros(0, np.float32)
    kernel = np.concatenate([kernel, halves(values_of(model.readout.context_kernel))], 1)
    return kernel, np.pad(bias, [0, kernel.shape[1] - len(bias)])


def word_terms(model: Any) -> tuple[Array, Array]:
    """W, and its bias: a previous word's terms of the cell and then of the readout are W e + b."""
    cell, readout = model.decoder.cell, model.readout
    kernel, bias = values_of(cell.kernel, cell.projected_bias)
    kernel = np.concatenate([kernel, halves(values_of(readout.previous_kernel))], 1)
    return kernel, np.concatenate([bias, halves(values_of(readout.bias))])


def halves(kernel: Array) -> Array:
    """Columns of a maxout's pairs, the first of each pair and then the second."""
    return np.concatenate([kernel[..., ::2], kernel[..., 1::2]], -1)
