"""Files of version 0.1.0 are read, with the results of that version.

`data/0.1.0/make.py` wrote them with that version; see its docstring.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from bahdanau_tf import Translator
from bahdanau_tf.cli import main

pytestmark = pytest.mark.usefixtures("eager_search")

ARCHIVES = Path(__file__).parent / "data" / "0.1.0"
MODELS = ("rnnsearch", "rnnsearch-parts", "rnnencdec", "seq2seq-lstm")

Opened = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> Callable[[str], Opened]:
    """Unpacks an archive; returns its folder and the expected results."""

    def unpack(name: str) -> Opened:
        folder = tmp_path_factory.mktemp(name)
        shutil.unpack_archive(ARCHIVES / f"{name}.tar.xz", folder)
        expected = (folder / "expected.json").read_text("utf-8")
        return folder, json.loads(expected)

    return unpack


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_same_logits(name, opened):
    folder, expected = opened("models")
    inputs = {side: np.array(expected[side]) for side in ("source", "target")}
    model = keras.models.load_model(folder / f"{name}.keras")
    close(model(inputs), expected["models"][name]["logits"])


def test_training_a_keras_model_continues(opened):
    folder, expected = opened("models")
    inputs = {side: np.array(expected[side]) for side in ("source", "target")}
    model = keras.models.load_model(folder / "rnnencdec.keras")
    target = inputs["target"]
    words = (target != 0) * 1.0
    model.fit(inputs, target, sample_weight=words, verbose=0)
    close(model(inputs), expected["models"]["rnnencdec"]["updated"])


@pytest.mark.parametrize("name", ["words", "subwords"])
def test_translators_give_the_same_translations_and_scores(name, opened):
    folder, expected = opened("translators")
    translator = Translator.load(folder / name)
    sources, wanted = expected["sources"], expected[name]["translations"]
    for found, one in zip(translator.translate(sources), wanted, strict=True):
        assert found.text == one["text"]
        assert [o.text for o in found.alternatives] == one["alternatives"]
        close(found.score, one["score"])
        if one["alignment"]:
            links = [list(link) for link in sorted(found.hard_alignment)]
            assert links == one["alignment"]
    scores = translator.score(sources, expected["targets"])
    close([one.log_prob for one in scores], expected[name]["log_probs"])


@pytest.mark.slow
def test_exports_give_the_same_answers(opened):
    pytest.importorskip("tensorflow_text")
    folder, expected = opened("export")
    loaded = tf.saved_model.load(str(folder / "export" / "1"))
    for name, wanted in expected["outputs"].items():
        given = expected["inputs"][name].items()
        tensors = {key: tf.constant(value) for key, value in given}
        found = loaded.signatures[name](**tensors)
        assert found.keys() == wanted.keys()
        for key, value in found.items():
            if value.dtype == tf.string:
                texts = np.char.decode(value.numpy().astype(bytes), "utf-8")
                assert texts.tolist() == wanted[key], (name, key)
            else:
                close(value, wanted[key])


def files(folder: Path, *splits: str) -> list[str]:
    """Flags of `train` for parallel text."""
    return [
        f"--{split}_{side}={folder / split}.{code}"
        for split in splits
        for side, code in (("source", "en"), ("target", "fr"))
    ]


def test_a_training_is_refused_in_a_sentence(opened, capfd):
    folder, expected = opened("training")
    model_dir = f"--model_dir={folder / 'model'}"
    flags = [model_dir, *expected["flags"], "--epochs=4"]
    assert main(["train", *files(folder, "train", "dev"), *flags]) == 2
    (*_, last) = capfd.readouterr().err.splitlines()
    assert "another version of bahdanau_tf wrote it; continue with" in last
