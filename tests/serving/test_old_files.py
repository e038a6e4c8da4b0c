"""Files of version 0.3.0 are read, with the results of that version.

`data/0.3.0/make.py` wrote them with that version; see its docstring.
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
from processes import output_of

from bahdanau_tf import Translator

pytestmark = pytest.mark.usefixtures("eager_search")

ARCHIVES = Path(__file__).parents[1] / "data" / "0.3.0"
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


def close(outputs: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(outputs), wanted, rtol=1e-4, atol=2e-5)


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
    model.fit(inputs, target, sample_weight=(target != 0) * 1.0, verbose=0)
    close(model(inputs), expected["models"]["rnnencdec"]["updated"])


@pytest.mark.parametrize("name", ["words", "subwords"])
def test_translators_give_the_same_translations_and_scores(name, opened):
    folder, expected = opened("translators")
    translator = Translator.load(folder / name)
    sources, wanted = expected["sources"], expected[name]["translations"]
    for best, old in zip(translator.translate(sources), wanted, strict=True):
        assert best.text == old["text"]
        assert [other.text for other in best.alternatives] == old["alternatives"]
        close(best.score, old["score"])
        if old["alignment"]:
            assert [*map(list, sorted(best.hard_alignment))] == old["alignment"]
    scores = translator.score(sources, expected["targets"])
    close([score.log_prob for score in scores], expected[name]["log_probs"])


@pytest.mark.slow
def test_exports_give_the_same_answers(opened):
    pytest.importorskip("tensorflow_text")
    folder, expected = opened("export")
    loaded = tf.saved_model.load(str(folder / "export" / "1"))
    for name, wanted in expected["outputs"].items():
        inputs = expected["inputs"][name].items()
        outputs = loaded.signatures[name](**{key: tf.constant(value) for key, value in inputs})
        assert outputs.keys() == wanted.keys()
        for key, value in outputs.items():
            if value.dtype == tf.string:
                texts = np.char.decode(value.numpy().astype(bytes), "utf-8")
                assert texts.tolist() == wanted[key], (name, key)
            else:
                close(value, wanted[key])


def test_a_training_resumes_to_the_same_variables(opened):
    folder, expected = opened("training")
    sides = ("source", "en"), ("target", "fr")
    text = [f"--{x}_{side}={folder / x}.{code}" for x in ("train", "dev") for side, code in sides]
    flags = [f"--model_dir={folder / 'model'}", *expected["flags"], "--updates=12"]
    output_of("-m", "bahdanau_tf", "train", *text, *flags)
    last = tf.train.load_checkpoint(str(folder / "model" / "checkpoints"))
    cpu = Path("/proc/cpuinfo")  # of Linux
    is_same = cpu.is_file() and expected["processor"] in cpu.read_text("utf-8")
    is_same = is_same and expected["tensorflow"] == tf.__version__
    # Another one rounds differently, and so do others of this name, some of which lack AVX-512.
    tolerance = 1e-5 if is_same else 1e-3
    for name, wanted in np.load(folder / "resumed.npz").items():
        if "seconds" not in name:
            np.testing.assert_allclose(
                last.get_tensor(name), wanted, tolerance, tolerance, err_msg=name
            )
