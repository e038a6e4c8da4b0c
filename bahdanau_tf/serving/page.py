"""Writes a translator as one HTML page that translates by itself, without a server or network.

The page has the scripts of `html/`, and the model: a header in JSON and arrays, deflated, in
base64. A matrix has a row for each output; a weight is a byte, see `translation.saved`. The
policy in the page forbids connections and any other script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np

from bahdanau_tf.serving.onnx import (
    _context_terms as context_terms,
    _halves as halves,
    _weights as weights,
    check_model,
)
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.text.subwords import SubwordTokenizer, model_class
from bahdanau_tf.translation import TranslationGraph
from bahdanau_tf.translation.saved import rounded

Array: TypeAlias = Any  # of NumPy
SCRIPTS = ("sentencepiece.js", "model.js", "translator.js", "view.js", "page.js")
BEAM, ALTERNATIVES = 5, 3
UNIGRAM, BPE = 1, 2  # SentencePiece's model types
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # types of pieces
POLICY = (
    "default-src 'none'; connect-src 'none'; script-src '{script}'; style-src '{style}'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)


def write_page(graph: TranslationGraph, path: str | os.PathLike[str], card: str = "") -> None:
    """Writes the page of a translator.

    Raises:
        ValueError: The model or its search has something that the page cannot do.
        OSError: The file cannot be written.
    """
    write_atomically(path, page_of(graph, card).encode())


def page_of(graph: TranslationGraph, card: str = "", int8: bool = True) -> str:
    """The page as HTML; `card` describes the model, as Markdown."""
    check_model(graph)
    html, style, script = read("index.html"), read("page.css"), joined(*SCRIPTS)
    policy = POLICY.format(script=_checksum(script), style=_checksum(style))
    model = base64.b64encode(_packed(graph, card, int8)).decode()
    for tag, contents in (
        (
            '<meta charset="utf-8">',
            f'<meta charset="utf-8">\n  <meta http-equiv="Content-Security-Policy" '
            f'content="{policy}">',
        ),
        ('<link rel="stylesheet" href="page.css">', f"<style>{style}</style>"),
        (
            '<script src="playground.js" type="module"></script>',
            f'<script type="text/plain" id="model">{model}</script>\n'
            f'  <script type="module">{script}</script>',
        ),
    ):
        html = html.replace(tag, contents)
    return html


def read(name: str) -> str:
    """A file of the page."""
    return files("bahdanau_tf.serving").joinpath("html", name).read_text("utf-8")


def joined(*names: str) -> str:
    """Modules as one: without the lines that import one from another."""
    return re.sub(r"^import .*\n|^export ", "", "".join(map(read, names)), flags=re.MULTILINE)


def _checksum(text: str) -> str:
    """The hash by which a policy allows a script or a style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class _Arrays:
    """Arrays in one run of bytes; equal ones are stored once."""

    def __init__(self, int8: bool) -> None:
        self.int8 = int8
        self.places: dict[bytes, int] = {}
        self.size = 0
        self.arrays: dict[str, dict[str, object]] = {}
        self.matrices: dict[str, dict[str, int]] = {}

    def add(self, name: str, array: Array) -> None:
        """Adds an array."""
        data = array.tobytes()
        if data not in self.places:
            self.places[data] = self.size
            self.size += len(data)
        place, dtype = self.places[data], str(array.dtype)
        self.arrays[name] = {"dtype": dtype, "place": place, "size": len(data)}

    def matrix(self, name: str, kernel: Array, bias: Array | None = None) -> None:
        """Adds W [inputs, outputs] and b."""
        rows = kernel.T
        self.matrices[name] = {"rows": rows.shape[0], "columns": rows.shape[1]}
        if self.int8:
            rows, scales = rounded(rows, axis=1)
            self.add(f"{name}.scales", scales)
        self.add(name, rows)
        if bias is not None:
            self.add(f"{name}.bias", bias)

    def cell(self, name: str, cell: Any) -> None:
        """Adds the recurrent weights of gated units."""
        recurrent = weights(cell.recurrent_kernel)
        self.matrix(f"{name}.gates", recurrent[:, : 2 * cell.units])
        self.matrix(f"{name}.candidate", recurrent[:, 2 * cell.units :])


def _packed(graph: TranslationGraph, card: str, int8: bool) -> bytes:
    """The model, its tokenizers and how it searches, as `unpacked` of model.js reads them."""
    arrays = _Arrays(int8)
    _add_model(arrays, graph.model)
    beam = graph.decoding.beam_size if graph.decoding.beam_size > 1 else BEAM
    settings: dict[str, object] = {
        "card": card,
        "step_order": graph.model.decoder.step_order,
        "decoding": vars(graph.decoding),
        "searches": {
            "beam": {"beam_size": beam, "n_best": max(min(beam, ALTERNATIVES), graph.decoding.n_best)},
            "greedy": {"beam_size": 1, "n_best": 1},
        },
        "texts": {
            "source": _add_text(arrays, "source", graph.source_texts[0]),
            "target": _add_text(arrays, "target", graph.target_text),
        },
        "arrays": arrays.arrays,
        "matrices": arrays.matrices,
    }
    if graph.lexicon is not None:
        words = graph.lexicon.words
        arrays.add("lexicon", words)
        settings["lexicon"] = {"first": graph.lexicon.first, "width": words.shape[1]}
    header = json.dumps(settings, ensure_ascii=False).encode()
    start = len(header).to_bytes(4, "little")
    return zlib.compress(b"".join([start, header, *arrays.places]), 9)


def _add_model(arrays: _Arrays, model: Any) -> None:
    """Adds the weights, where possible joined to one matrix for each input."""
    decoder, readout, output = model.decoder, model.readout, model.output_weights()
    for name in ("source", "target"):
        embedding = getattr(model, f"{name}_embedding")
        bias = None if embedding.bias is None else weights(embedding.bias)
        arrays.matrix(name, weights(embedding.embeddings).T, bias)
    for name, layer in zip(("forward", "backward"), model.encoder.stack[0], strict=True):
        arrays.matrix(f"{name}.input", *weights(layer.cell.kernel, layer.cell.projected_bias))
        arrays.cell(name, layer.cell)
    arrays.matrix("bridge", *weights(model.bridge.kernel, model.bridge.bias))
    keys, cell = decoder.attention.key_projection, decoder.cell
    arrays.matrix("keys", weights(keys.kernel), None if keys.bias is None else weights(keys.bias))
    kernel, bias = context_terms(decoder)
    of_readout = halves(weights(readout.context_kernel))
    bias = np.concatenate([bias, np.zeros(of_readout.shape[1], np.float32)])
    arrays.matrix("terms", np.concatenate([kernel, of_readout], 1), bias)
    kernel, bias = weights(cell.kernel, cell.projected_bias)
    of_readout, its_bias = halves(weights(readout.previous_kernel)), halves(weights(readout.bias))
    arrays.matrix(
        "cell.input", np.concatenate([kernel, of_readout], 1), np.concatenate([bias, its_bias])
    )
    arrays.cell("cell", cell)
    if decoder.step_order == "conditional":
        arrays.cell("context", decoder.context_cell)
    arrays.matrix("query", weights(decoder.attention.query_projection.kernel))
    arrays.add("energy", weights(decoder.attention.energy.kernel))
    arrays.matrix("state", halves(weights(readout.state_kernel)))
    if readout.factor_kernel is not None:
        arrays.matrix("factor", weights(readout.factor_kernel))
    kernel, bias = weights(output.kernel, output.bias)
    arrays.matrix("words", kernel.T, bias)


def _add_text(arrays: _Arrays, side: str, text: Any) -> dict[str, object]:
    """Adds scores and normalization of sub-words; returns their other settings."""
    tokenizer: SubwordTokenizer = text
    model = model_class().FromString(tokenizer.model_proto)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    types = [piece.type for piece in model.pieces]
    for name, value, wanted in (
        ("model_type", trainer.model_type, (UNIGRAM, BPE)),
        ("treat_whitespace_as_suffix", trainer.treat_whitespace_as_suffix, (False,)),
        *(("type of a piece", kind, (NORMAL, UNKNOWN, CONTROL, BYTE)) for kind in {*types}),
    ):
        if value not in wanted:
            raise ValueError(
                f"page: SentencePiece's {name} is {value!r}, wanted {' or '.join(map(repr, wanted))}"
            )
    arrays.add(f"{side}.scores", np.array([piece.score for piece in model.pieces], np.float32))
    arrays.add(f"{side}.charsmap", np.frombuffer(normalizer.precompiled_charsmap, np.uint8))
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    return {
        "pieces": [piece.piece for piece in model.pieces],
        "types": types,
        "unigram": trainer.model_type == UNIGRAM,
        "byte_fallback": trainer.byte_fallback,
        **{name: getattr(normalizer, name) for name in names},
        **{name: getattr(tokenizer, name) for name in ("reverse", "true_case")},
        **{name.removesuffix("_id"): getattr(tokenizer, name) for name in ("pad_id", "unk_id", "eos_id")},
    }
