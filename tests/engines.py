"""Models of a few words, and the engines that translate with them."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from oracle import randomized
from toys import ENGLISH, english, french, toy_model, toy_translator

from bahdanau_tf import (
    BahdanauAttention,
    Decoding,
    Dictionary,
    Lexicon,
    RNNEncDec,
    RNNSearch,
    SubwordTokenizer,
    Translation,
    Translator,
)
from bahdanau_tf.options.decoding import WITHOUT_TENSORFLOW
from bahdanau_tf.runtime import Translator as Runtime, graphs, onnx
from bahdanau_tf.runtime.page import ENGINE, joined, page_of
from bahdanau_tf.serving import Limits
from bahdanau_tf.serving.export import export
from bahdanau_tf.text.subwords import copies

LINES = [
    *("the red cat sees a dog.", "le chat rouge dort.", "고양이가 잔다.", "猫が寝る。", "ÉTÉ été")
] * 9
TEXT = SubwordTokenizer.train([LINES], 290, tight=False)
TIGHT = SubwordTokenizer(TEXT.model_proto, tight=True)
CHARACTERS = SubwordTokenizer.train([LINES], 290, "char")
SYMBOLS = SubwordTokenizer.train([LINES], 290, "space")
REVERSED = SubwordTokenizer(TEXT.model_proto, reverse=True)
OWN = np.where(np.arange(290)[:, None] % 3, [[270, 280]], [[275, -1]])
LEXICON = Lexicon(np.where(np.arange(290)[:, None] > 0, OWN, -1), first=260)
# Options of search that differ from the defaults.
SHORT = Decoding(max_length=9)


def subwords(
    source: Any = TEXT, target: Any = TEXT, lexicon: Any = LEXICON, **options: Any
) -> Translator:
    sizes = {"units": 6, "embedding_dim": 5, "attention_units": 5, "maxout_units": 3}
    model = RNNSearch(source.vocabulary_size, target.vocabulary_size, **{**sizes, **options})
    copied(randomized(model, scale=0.7), source, target)
    return Translator(model, source, target, SHORT, lexicon=lexicon)


def copied(model: Any, source: Any, target: Any) -> None:
    """Lets a model copy more often than not, if it can."""
    if model.copying is not None:
        model.copying.copies.assign(copies(source, target))
        model.copying.bias.assign([1.0, 2.0])


def words(**options: Any) -> Translator:
    """It knows few words, and copies others or looks them up in a dictionary."""
    decoding = Decoding(beam_size=4, n_best=4, max_length=9, unknown="replace")
    lexicon = Lexicon(np.full((11, 1), -1), 6)
    model = toy_model(english(), french(), seed=28, copying="hint", **options)
    copied(model, english(), french())
    own = Translator(model, english(), french(), decoding, lexicon=lexicon)
    own.model.readout.output_bias.assign_add(2.0 * np.eye(12, dtype="float32")[1])  # [UNK]
    own.dictionary = Dictionary(dict.fromkeys(ENGLISH, "ELSE"))
    return own


def ensemble() -> Translator:
    """Two sources, one of them reversed; no shortlist."""
    other = toy_translator(english(reverse=True), french(), model_class=RNNEncDec, seed=8)
    members = toy_translator(english(), french(), SHORT), other
    return Translator.ensemble(members)


TIED = {"tie_embeddings": True, "share_embeddings": True, "factored_output": False}
MODELS: dict[str, Callable[[], Translator]] = {
    "words": words,
    "location": lambda: words(attention="LocationAttention"),
    "monotonic": lambda: words(attention="MonotonicAttention"),
    "ensemble": ensemble,
    "original": lambda: subwords(factored_output=True, embedding_bias=True),
    "characters": lambda: subwords(CHARACTERS, SYMBOLS, None),
    "appendix": lambda: subwords(
        REVERSED, step_order="appendix", factored_output=False, copying="hint"
    ),
    "main-text": lambda: subwords(
        target=REVERSED, step_order="main-text", attention=BahdanauAttention(7, normalize=True)
    ),
    "conditional": lambda: subwords(
        target=TIGHT, step_order="conditional", maxout_units=5, copying="hint", **TIED
    ),
}

# The models and keywords of `translate` that an engine lacks.
LACKS = {
    "ONNX Runtime": {"words", "ensemble"},
    "page": {"words", "ensemble", "split_sentences"},
    # Its options are those of its translator.
    "SavedModel": {*MODELS, *vars(Decoding()), "split_sentences"} - {"words", "beam_size"},
}


def lacks(engine: str, model: str, options: dict[str, Any]) -> set[str]:
    """What of a case an engine cannot do."""
    if engine == "SavedModel":
        return LACKS[engine] & {model, *(options if options != {"beam_size": 1} else ())}
    unlike = {x for x, value in options.items() if value not in WITHOUT_TENSORFLOW.get(x, [value])}
    return LACKS[engine] & {model, *options} | unlike


def in_onnx_runtime(own: Translator, folder: Path) -> Callable[..., list[Translation]]:
    with pytest.MonkeyPatch.context() as patch:
        if own.model.decoder.step_order in ("appendix", "main-text"):
            patch.setattr(graphs, "FEW", 0)  # as if there were more words
        onnx.export_runtime(own.graph, folder / "onnx")
    return functools.partial(Runtime.load(folder / "onnx").translate, batch_size=4)


def in_saved_model(own: Translator, folder: Path) -> Callable[..., list[Translation]]:
    limits = Limits(max_source_length=60, max_target_length=20, n_best=4)
    model = tf.saved_model.load(str(export(own.graph, folder, limits)))

    def translate(
        sentences: list[str], prefixes: Any = None, **options: Any
    ) -> Iterable[Translation]:
        def run(name: str, **more: Any) -> dict[str, np.ndarray]:
            inputs = {"text": tf.constant(sentences), **more}
            return {k: v.numpy() for k, v in model.signatures[name](**inputs).items()}

        if prefixes is not None:
            rows = run("complete", prefix=tf.constant(prefixes))
            texts, scores = rows["translation"][:, None], rows["score"][:, None]
        elif options:
            rows = run("greedy")
            texts, scores = rows["translation"][:, None], rows["score"][:, None]
        else:
            rows = run("n_best")
            texts, scores = rows["translations"], rows["scores"]
        for sentence, some, their in zip(sentences, texts, scores, strict=True):
            best, *others = (
                Translation(sentence, text.decode(), score=score)
                for text, score in zip(some, their, strict=True)
                if score > -1e9
            )
            best.alternatives.extend(others)
            yield best

    return translate


# Reads or translates texts as the page does.
DRIVER = """
import { readFileSync } from "node:fs";
const [html, task] = process.argv.slice(2).map((name) => readFileSync(name, "utf8"));
const packed = /<script type="text.plain" id="model">([^<]*)/.exec(html)[1];
const { read, texts, options, prefixes, plain } = JSON.parse(task);
if (plain) delete WebAssembly.Memory; // as in a browser that has none
const translator = new Translator(await unpacked(fromBase64(packed)));
const results = [];
for (const [i, text] of texts.entries()) {
  let pauses = 0;
  if (prefixes) options.prefix = translator.target.read(prefixes[i]).ids.slice(0, -1);
  const { ids, offsets } = translator.source.read(text);
  const sentences = sentencesOf(text), pieces = piecesOf(text);
  const forms = translator.capitals.readings(text);
  const names = translator.capitals.namesAlone(text) ?? null;
  const parts = { ids, offsets, sentences, pieces, forms, names };
  results.push(read ? { ...parts, written: translator.target.write(ids) }
    : { ...await translator.translate(text, options, () => { pauses += 1; }), pauses });
}
console.log(JSON.stringify(results));
"""


def in_node(html: str, folder: Path, **task: Any) -> Any:
    """What the scripts of a page make of texts."""
    script = joined(*ENGINE) + DRIVER
    for name, text in {"a.mjs": script, "a.html": html, "a.json": json.dumps(task)}.items():
        (folder / name).write_text(text, "utf-8")
    return json.loads(on_node(*(folder / name for name in ("a.mjs", "a.html", "a.json"))))


def on_node(*command: str | Path) -> bytes:
    """What a script prints; skips the test without Node."""
    if (node := shutil.which("node")) is None:
        pytest.skip("needs Node")
    return subprocess.run([node, *command], check=True, capture_output=True).stdout


def in_a_page(own: Translator, folder: Path) -> Callable[..., list[Translation]]:
    html = page_of(own.graph, int8=False)

    def pieces(text: str, offsets: Any) -> tuple[list[str], list[tuple[int, int]]]:
        data = text.encode()
        tokens = [data[a:b].decode(errors="replace") for a, b in offsets]
        return tokens, [(a, b) for a, b in offsets]

    def translate(
        sentences: list[str], prefixes: Any = None, **options: Any
    ) -> Iterable[Translation]:
        plain = {"n_best": 1, **vars(SHORT), **options}
        results = in_node(html, folder, texts=sentences, options=plain, prefixes=prefixes)
        for sentence, result in zip(sentences, results, strict=True):
            read, offsets = pieces(sentence, result["offsets"])
            best, *others = (
                Translation(
                    sentence,
                    x["text"],
                    pieces(x["text"], x["offsets"])[0],
                    score=x["score"],
                    log_prob=x["logProb"],
                    finished=x["finished"],
                    source_tokens=read,
                    source_offsets=offsets,
                    target_offsets=pieces(x["text"], x["offsets"])[1],
                    weights=np.array(x["weights"]) if read else None,
                )
                for x in result["translations"]
            )
            # The page can react while it reads a long text, in both directions, as while it writes.
            assert result["pauses"] >= 2 * len(read) + len(best.tokens)
            best.alternatives.extend(others)
            yield best

    return translate


ENGINES = {"SavedModel": in_saved_model, "ONNX Runtime": in_onnx_runtime, "page": in_a_page}
