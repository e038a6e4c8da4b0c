"""Writes a translator as one HTML page that translates by itself, without a server or network.

The page has the scripts of `html/`, and the model: a header in JSON and arrays, deflated, in
base64. A module for a page of one's own has both in files. A matrix has a row for each output; a
weight is a byte, see `translation.saved`. The policy in the page forbids connections and any other
script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bahdanau_tf.options.decoding import LEAST_LIMIT
from bahdanau_tf.system.files import LONGEST_SOURCE, write_atomically
from bahdanau_tf.system.language import in_all_languages
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.translation import TranslationGraph
from bahdanau_tf.translation.arrays import check_model, context_terms, halves, values_of, word_terms
from bahdanau_tf.translation.capitals import PART, SHORT
from bahdanau_tf.translation.doubts import RULES
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.result import REASONS
from bahdanau_tf.translation.saved import rounded

Array: TypeAlias = Any  # of NumPy
HTML = files("bahdanau_tf.runtime") / "html"
ENGINE = (
    *("sentences.js", "sentencepiece.js", "products.js", "model.js", "doubts.js"),
    *("capitals.js", "search.js", "translator.js"),
)
SCRIPTS = (*ENGINE, "words.js", "panel.js", "view.js", "page.js")
POLICY = (
    "default-src 'none'; connect-src 'none'; script-src '{script}' 'wasm-unsafe-eval'; "
    "style-src '{style}'; img-src data:; base-uri 'none'; form-action 'none'"
)
BEAM, ALTERNATIVES = 5, 3
ALIGNMENT = 16  # bytes, of an array
DRAWN = (  # what the drawing of a beam says
    *("Beam search, width {}", "Score", "the translation", "not among the best"),
    *("the beam got narrower", "finished, others score higher", "could not win any more"),
    *("at the length limit", "all continuations were cut"),
)
PIECES = {1, 2, 3, 6}  # normal, unknown, control or a byte


def write_page(
    graph: TranslationGraph, path: str | os.PathLike[str], card: str = "", habits: Habits = Habits()
) -> None:
    """Writes the page of a translator; `card` describes the model, as Markdown.

    Raises:
        ValueError: The page lacks something that the model, a tokenizer or the search has.
        OSError: The file cannot be written.
    """
    write_atomically(path, page_of(graph, card, habits=habits).encode())


def write_module(
    graph: TranslationGraph, path: str | os.PathLike[str], card: str = "", habits: Habits = Habits()
) -> None:
    """Writes a folder with translator.mjs, its types and model.bin, for a page of one's own.

    Other files in the folder stay.

    Raises:
        ValueError: As `write_page`.
        OSError: The folder cannot be written to.
    """
    check_model(graph, "Translator.page", "a module")
    folder = Path(path)
    write_atomically(folder / "model.bin", _packed(graph, card, True, habits))
    write_atomically(folder / "translator.mjs", joined(*ENGINE, "module.js").encode())
    write_atomically(folder / "translator.d.mts", read("translator.d.mts").encode())


def page_of(
    graph: TranslationGraph, card: str = "", int8: bool = True, habits: Habits = Habits()
) -> str:
    """The page as HTML, with a byte for each weight, or with float32 weights."""
    check_model(graph, "Translator.page", "a page")
    page, script = read("index.html"), joined(*SCRIPTS)
    style = read("page.css") + files("bahdanau_tf.plotting").joinpath("steps.css").read_text(
        "utf-8"
    )
    policy = POLICY.format(script=_checksum(script), style=_checksum(style))
    model = base64.b64encode(_packed(graph, card, int8, habits)).decode()
    head = '<meta charset="utf-8">'
    for tag, contents in (
        (head, f'{head}\n  <meta http-equiv="Content-Security-Policy" content="{policy}">'),
        ('<link rel="stylesheet" href="page.css">', f"<style>{style}</style>"),
        (
            '<script src="playground.js" type="module"></script>',
            f'<script type="text/plain" id="model">{model}</script>\n'
            f'  <script type="module">{script}</script>',
        ),
    ):
        page = page.replace(tag, contents)
    return page


def read(name: str) -> str:
    """A file of the page."""
    return (HTML / name).read_text("utf-8")


def joined(*names: str) -> str:
    """Modules as one: without the lines that import one from another."""
    code = base64.b64encode((HTML / "products.wasm").read_bytes()).decode()
    scripts = "".join(map(read, names))
    return f'const WASM = "{code}";\n' + re.sub(r"(?m)^import .*\n|^export (?!{)", "", scripts)


def _checksum(text: str) -> str:
    """The hash by which a policy allows a script or a style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class _Arrays:
    """Arrays one after another, each aligned; equal ones are stored once."""

    def __init__(self) -> None:
        self.places: dict[bytes, int] = {}
        self.entries: dict[str, dict[str, object]] = {}
        self._size = 0

    def add(self, name: str, array: Array) -> None:
        data = array.tobytes()
        data += bytes(-len(data) % ALIGNMENT)
        if data not in self.places:
            self.places[data] = self._size
            self._size += len(data)
        place = self.places[data]
        self.entries[name] = {"dtype": str(array.dtype), "place": place, "size": array.nbytes}


def _packed(graph: TranslationGraph, card: str, int8: bool, habits: Habits) -> bytes:
    """The model, its tokenizers and how it searches, as `unpacked` of model.js reads them."""
    model: Any = graph.model
    decoding, lexicon = graph.decoding, graph.lexicon
    arrays, matrices = _Arrays(), {}
    for name, kernel, bias in _matrices(model):
        rows = kernel.T
        matrices[name] = rows.shape
        if int8:
            rows, scales = rounded(rows, axis=1)
            arrays.add(f"{name}.scales", scales)
        arrays.add(name, rows)
        arrays.add(f"{name}.bias", np.zeros(len(rows), np.float32) if bias is None else bias)
    arrays.add("energy", values_of(model.decoder.attention.energy_kernel))
    if lexicon is not None:
        arrays.add("lexicon", lexicon.words)
    if (copying := model.copying) is not None:
        kernels = values_of(copying.kernel, copying.mark_kernel)
        arrays.add("copies", copying.copies.numpy())
        arrays.add("copying.kernel", np.concatenate(kernels))
        arrays.add("copying.bias", values_of(copying.bias))
        arrays.add("hints", halves(values_of(copying.hint_kernel)))
    texts = {"source": graph.source_texts[0], "target": graph.target_text}
    beam = decoding.beam_size if decoding.beam_size > 1 else BEAM
    several = {"beam_size": beam, "n_best": max(min(beam, ALTERNATIVES), decoding.n_best)}
    reasons = {kind: of_one for kind, (of_one, _) in REASONS.items()}
    usual = "".join(sorted(graph.source_text.characters))
    settings = {
        "card": card,
        "texts": {
            language: {**told, **{kind: told[reason] for kind, reason in reasons.items()}}
            for language, told in in_all_languages((*DRAWN, *reasons.values())).items()
        },
        "gates": model.decoder.cell.update_equation,
        "step_order": model.decoder.step_order,
        "decoding": {**vars(decoding), "least_limit": LEAST_LIMIT},
        "longest": LONGEST_SOURCE,
        "searches": {"beam": several, "greedy": {"beam_size": 1, "n_best": 1}},
        "tokenizers": {side: _add_text(arrays, side, text) for side, text in texts.items()},
        "lexicon": lexicon and {"first": lexicon.first, "width": lexicon.words.shape[1]},
        "matrices": matrices,
        "arrays": arrays.entries,
        "doubts": {
            **{**vars(habits), **RULES, "usual": usual, "short": SHORT, "part": PART.pattern},
            "between": habits.target.between_names,
        },
        "colon": habits.target.colon,
    }
    header = json.dumps(settings, ensure_ascii=False).encode()
    start = len(header).to_bytes(4, "little")
    return zlib.compress(b"".join([start, header, *arrays.places]), 9)


def _matrices(model: Any) -> Iterator[tuple[str, Array, Array | None]]:
    """The weights as W [inputs, outputs] and b, where possible one matrix for each input."""
    decoder, readout, output = model.decoder, model.readout, model.output_weights()
    cells = {"cell": decoder.cell}
    for name in ("source", "target"):
        embedding = getattr(model, f"{name}_embedding")
        yield name, values_of(embedding.embeddings).T, _bias(embedding)
    for name, layer in zip(("forward", "backward"), model.encoder.stack[0], strict=True):
        cells[name] = layer.cell
        yield f"{name}.input", *values_of(layer.cell.kernel, layer.cell.projected_bias)
    if decoder.step_order == "conditional":
        cells["context"] = decoder.context_cell
    for name, cell in cells.items():
        recurrent = values_of(cell.recurrent_kernel)
        yield f"{name}.gates", recurrent[:, : 2 * cell.units], None
        yield f"{name}.candidate", recurrent[:, 2 * cell.units :], None
    yield "cell.input", *word_terms(model)
    yield "terms", *context_terms(model)
    keys = decoder.attention.key_projection
    yield "keys", values_of(keys.kernel), _bias(keys)
    yield "query", values_of(decoder.attention.query_projection.kernel), None
    yield "bridge", *values_of(model.bridge.kernel, model.bridge.bias)
    yield "state", halves(values_of(readout.state_kernel)), None
    if readout.factor_kernel is not None:
        yield "factor", values_of(readout.factor_kernel), None
    yield "words", values_of(output.kernel).T, values_of(output.bias)


def _bias(layer: Any) -> Array | None:
    return None if layer.bias is None else values_of(layer.bias)


def _add_text(arrays: _Arrays, side: str, text: Any) -> dict[str, object]:
    """Adds scores and rules of sub-words; returns their other settings."""
    model = text.parsed()
    trainer, normalizer, pieces = model.trainer_spec, model.normalizer_spec, model.pieces
    is_suffix = trainer.treat_whitespace_as_suffix
    types = {piece.type for piece in pieces}
    if is_suffix or types - PIECES:
        raise Refusal(
            "Translator.page",
            f"SentencePiece's treat_whitespace_as_suffix is {is_suffix}, pieces are {types}, "
            f"wanted False, and of {PIECES}",
        )
    arrays.add(f"{side}.scores", np.array([piece.score for piece in pieces], np.float32))
    arrays.add(f"{side}.charsmap", np.frombuffer(normalizer.precompiled_charsmap, np.uint8))
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    return {
        "pieces": [piece.piece for piece in pieces],
        "types": [piece.type for piece in pieces],
        "kind": text.kind,
        "byte_fallback": trainer.byte_fallback,
        **{name: getattr(normalizer, name) for name in names},
        **{name: getattr(text, name) for name in ("reverse", "true_case", "tight")},
        **{name: getattr(text, f"{name}_id") for name in ("pad", "unk", "eos")},
    }
