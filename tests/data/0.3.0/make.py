"""Writes the archives in this folder with the code of version 0.3.0.

    git worktree add --detach ../old 460e6c2
    PYTHONPATH=../old python tests/data/0.3.0/make.py

Each archive has, in expected.json, the results of that version.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import bahdanau_tf
from bahdanau_tf import Decoding, Lexicon, layers, models
from bahdanau_tf.corpora.grammar import generate
from bahdanau_tf.losses import TokenCrossentropy
from bahdanau_tf.optimizers import Adam
from bahdanau_tf.text import Dictionary, SubwordTokenizer, WordTokenizer
from bahdanau_tf.translator import Translator

HERE = Path(__file__).parent
SIZES = {"units": 6, "embedding_dim": 5, "maxout_units": 4}
SOURCE = np.array([[3, 4, 1, 8], [5, 1, 0, 0]], np.int32)
TARGET = np.array([[2, 7, 1], [6, 1, 0]], np.int32)


def main() -> None:
    """Writes all archives."""
    for make in (write_models, write_translators, write_training, write_export):
        with tempfile.TemporaryDirectory() as folder:
            expected = make(Path(folder))
            text = json.dumps(expected, indent=1, ensure_ascii=False)
            Path(folder, "expected.json").write_text(text + "\n", "utf-8")
            name = make.__name__.removeprefix("write_")
            shutil.make_archive(str(HERE / name), "xztar", folder)


def write_models(folder: Path) -> dict[str, Any]:
    """`.keras` files, one with its optimizer; their logits, the next cost."""
    made = {
        "rnnsearch": models.RNNSearch(9, 8, **SIZES, attention_units=3),
        "rnnsearch-parts": models.RNNSearch(
            9,
            8,
            **SIZES,
            attention=layers.GeneralAttention(),
            step_order="main-text",
            factored_output=True,
            tie_embeddings=True,
            embedding_dropout=0.1,
        ),
        "rnnencdec": models.RNNEncDec(9, 8, **SIZES),
        "seq2seq-lstm": models.Seq2SeqLSTM(9, 8, 4, 3, layers=2),
    }
    inputs = {"source": SOURCE, "target": TARGET}
    batch = {"x": inputs, "y": TARGET, "sample_weight": (TARGET != 0) * 1.0}
    outputs: dict[str, Any] = {}
    for name, model in made.items():
        randomise(model)
        if name == "rnnencdec":
            model.compile(Adam(0.01, max_norm=1.0), TokenCrossentropy())
            model.fit(**batch, verbose=0)
        model.save(folder / f"{name}.keras")
        outputs[name] = {"logits": model(inputs).numpy().tolist()}
    model = made["rnnencdec"]
    model.fit(**batch, verbose=0)  # Adam's second update
    outputs["rnnencdec"]["updated"] = model(inputs).numpy().tolist()
    return {**{k: v.tolist() for k, v in inputs.items()}, "models": outputs}


def write_translators(folder: Path) -> dict[str, Any]:
    """Folders of `Translator.save`, with words and with subwords."""
    sources, targets = write_text(folder / "text", 30)
    words = word_translator(folder / "text")
    joint = [folder / "text.en", folder / "text.fr"]
    pieces = SubwordTokenizer.train(joint, 330, model_type="bpe")
    turned = SubwordTokenizer(pieces.model_proto, reverse=True)
    lstm = models.Seq2SeqLSTM(330, 330, 6, 5, layers=2)
    randomise(lstm)
    subwords = Translator(lstm, turned, pieces, Decoding(3, 2, alpha=0.7))
    outputs = {}
    for name, translator in (("words", words), ("subwords", subwords)):
        translator.save(folder / name)
        outputs[name] = outputs_of(translator, sources[:4], targets[:4])
    return {"sources": sources[:4], "targets": targets[:4], **outputs}


def outputs_of(translator: Translator, sources: list[str], targets: list[str]) -> dict[str, Any]:
    """Translations of sentences, and scores of given translations."""
    translations = [
        {
            "text": translation.text,
            "score": translation.score,
            "alignment": [] if translation.weights is None else sorted(translation.hard_alignment),
            "alternatives": [other.text for other in translation.alternatives],
        }
        for translation in translator.translate(sources)
    ]
    scores = [score.log_prob for score in translator.score(sources, targets)]
    return {"translations": translations, "log_probs": scores}


def word_translator(stem: Path) -> Translator:
    """RNNsearch of words, with dictionary and lexicon."""
    sides = [WordTokenizer.train([f"{stem}.{code}"], 30, language=code) for code in ("en", "fr")]
    model = models.RNNSearch(30, 30, **SIZES, attention_units=3)
    randomise(model)
    own = np.random.default_rng(1).integers(12, 30, [30, 4])
    own[0] = -1
    return Translator(
        model,
        *sides,
        Decoding(3, 2, alpha=0.7, max_length=20, unknown="replace", shortlist=True),
        Dictionary({"house": "maison"}),
        Lexicon(own, 12),
    )


def write_training(folder: Path) -> dict[str, Any]:
    """A folder of `train` after five updates, and all variables after twelve."""
    write_text(folder / "train", 40)
    write_text(folder / "dev", 5, seed=2)
    flags = [
        "--deterministic",
        "--product_dtype=float32",
        "--threads=1",
        "--embedding_dropout=0.1",
        "--readout_dropout=0.2",
        "--units=6",
        "--embedding_dim=5",
        "--attention_units=3",
        "--maxout_units=4",
        "--source_vocabulary_size=30",
        "--target_vocabulary_size=30",
        "--source_language=en",
        "--target_language=fr",
        "--optimizer=adam",
        "--learning_rate=0.01",
        "--schedule=constant",
        "--shuffle=each_epoch",
        "--batch_size=16",
        "--initialization=glorot",
    ]
    train(folder, "model", [*flags, "--updates=5"])
    shutil.copytree(folder / "model", folder / "resumed")
    train(folder, "resumed", [*flags, "--updates=12"])
    last = tf.train.load_checkpoint(str(folder / "resumed" / "checkpoints"))
    names = [x for x in last.get_variable_to_shape_map() if x.endswith("VALUE")]
    np.savez(folder / "resumed.npz", **{name: last.get_tensor(name) for name in names})
    shutil.rmtree(folder / "resumed")
    (processor,) = {*re.findall("model name.*", Path("/proc/cpuinfo").read_text("utf-8"))}
    return {"flags": flags, "processor": processor, "tensorflow": tf.__version__}


def train(folder: Path, name: str, flags: list[str]) -> None:
    """Runs `bahdanau-tf train` in a process that has no threads of TensorFlow yet."""
    files = [
        f"--{split}_{side}={folder / split}.{code}"
        for split in ("train", "dev")
        for side, code in (("source", "en"), ("target", "fr"))
    ]
    command = [sys.executable, "-m", "bahdanau_tf", "train", *files, *flags]
    subprocess.run([*command, f"--model_dir={folder / name}"], check=True)


def write_export(folder: Path) -> dict[str, Any]:
    """A SavedModel, and the outputs of its signatures."""
    sources, targets = write_text(folder / "text", 30)
    place = word_translator(folder / "text").export(
        folder / "export", max_source_length=20, max_target_length=20
    )
    signatures = tf.saved_model.load(str(place)).signatures
    inputs: dict[str, Any] = {
        "align": {"text": sources[:4]},
        "score": {"text": sources[:4], "translation": targets[:4]},
    }
    outputs = {}
    for name, strings in inputs.items():
        tensors = {key: tf.constant(value) for key, value in strings.items()}
        outputs[name] = {key: plain(value) for key, value in signatures[name](**tensors).items()}
    return {"inputs": inputs, "outputs": outputs}


def plain(value: tf.Tensor) -> Any:
    """A tensor as JSON values."""
    if value.dtype == tf.string:
        return np.char.decode(value.numpy().astype(bytes), "utf-8").tolist()
    return value.numpy().tolist()


def write_text(stem: Path, pairs: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Sentences of the built-in grammar, English and French."""
    examples = list(generate(pairs, seed=seed, max_words=8))
    sides = ([example.source for example in examples], [example.target for example in examples])
    for code, lines in zip(("en", "fr"), sides, strict=True):
        text = "".join(f"{line}\n" for line in lines)
        Path(f"{stem}.{code}").write_text(text, "utf-8")
    return sides


def randomise(model: keras.Model) -> None:
    """Random weights that do not depend on initializers of a version."""
    random = np.random.default_rng(0)
    for weight in model.trainable_variables:
        weight.assign(random.normal(0, 0.8, weight.shape))


if __name__ == "__main__":
    if bahdanau_tf.__version__ != "0.3.0":
        raise SystemExit(f"wanted bahdanau_tf 0.3.0 in {bahdanau_tf.__path__}")
    main()
