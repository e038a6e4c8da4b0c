"""Scores and cells that a user names on the command line."""

import importlib
import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from letters import stand_in_step
from oracle import randomized
from processes import run_python
from refusals import refused

import bahdanau_tf
from bahdanau_tf import RNNEncDec, TanhReadout
from bahdanau_tf.commands.main import main
from bahdanau_tf.losses import TokenCrossentropy, is_word
from bahdanau_tf.models.named import make_model, try_parts
from bahdanau_tf.options import ModelOptions
from bahdanau_tf.training import update
from bahdanau_tf.training.update import words_loss
from bahdanau_tf.translation.saved import read_model

pytestmark = pytest.mark.usefixtures("eager_search")

# The equations of `GeneralAttention` and `TanhCell`, as a user may write them.
PARTS = """
import keras
import tensorflow as tf

from bahdanau_tf import Attention
from bahdanau_tf import RecurrentCell
from bahdanau_tf import TanhReadout
from bahdanau_tf.layers import Bridge


@keras.saving.register_keras_serializable(package="named")
class General(Attention):
    def build(self, query_shape, memory_shape):
        shape = query_shape[-1], memory_shape[0][-1]
        self.kernel = self.add_weight(shape, name="kernel")

    def project(self, annotations):
        return annotations

    def score(self, query, keys):
        kernel = tf.convert_to_tensor(self.kernel)
        return tf.einsum("bkn,nc,btc->bkt", query, kernel, keys)


@keras.saving.register_keras_serializable(package="named")
class Plain(RecurrentCell):
    def step(self, projected, states, dropped=None):
        kernel = tf.convert_to_tensor(self.recurrent_kernel)
        product = tf.einsum("...n,nm->...m", *states, kernel)
        return (tf.tanh(projected + product),)


class Unregistered(General):
    pass


@keras.saving.register_keras_serializable(package="named")
class Layered(Attention):
    # Additive attention in the style of Keras: layers, and no `build`.

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.query = keras.layers.Dense(units)
        self.key = keras.layers.Dense(units, use_bias=False)
        self.energy = keras.Sequential([keras.layers.Dense(1)])

    def project(self, annotations):
        return self.key(annotations)

    def score(self, query, keys):
        hidden = tf.tanh(self.query(query)[:, :, None] + keys[:, None])
        return self.energy(hidden)[..., 0]


@keras.saving.register_keras_serializable(package="named")
class LayeredCell(keras.layers.Layer):
    # A cell in the same style.

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.state_size = units
        self.dense = keras.layers.Dense(units, activation="tanh")

    def call(self, inputs, states):
        state = self.dense(tf.concat([inputs, states[0]], -1))
        return state, [state]

    def get_config(self):
        return super().get_config() | {"units": self.state_size}


@keras.saving.register_keras_serializable(package="named")
class LayeredReadout(TanhReadout):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.dense = keras.layers.Dense(self.units, activation="tanh")

    def activation(self, preactivation):
        return self.dense(preactivation)


@keras.saving.register_keras_serializable(package="named")
class LayeredBridge(Bridge):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.dense = keras.layers.Dense(self.sizes[0] + self.embedding_dim)

    def call(self, encoded):
        both = self.dense(tf.reduce_mean(encoded.annotations, 1))
        state, first = tf.split(both, [self.sizes[0], self.embedding_dim], -1)
        return (state,), first


@keras.saving.register_keras_serializable(package="named")
class Listed(Layered):
    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
        self.more = [keras.layers.Dense(units)]

    def score(self, query, keys):
        return super().score(self.more[0](query), keys)


@keras.saving.register_keras_serializable(package="named")
class OfOneSize(Plain):
    def __init__(self):
        super().__init__(4)

    def get_config(self):
        return {}


@keras.saving.register_keras_serializable(package="named")
class Hungry(General):
    def build(self, query_shape, memory_shape):
        raise MemoryError("no more")


@keras.saving.register_keras_serializable(package="named")
class Failing(General):
    def score(self, query, keys):
        return query + keys.numpy()


@keras.saving.register_keras_serializable(package="named")
class Forgetful(General):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)


number = 1
"""
NAMES = re.findall(r"^class (\w+)", PARTS, re.MULTILINE)
SIZES = {"units": 4, "embedding_dim": 3, "maxout_units": 3}
IDS = np.array([[2, 3, 5, 1], [4, 1, 0, 0]], "int32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Any:
    """The folder of the module and a small corpus; it is in sys.path."""
    folder = tmp_path_factory.mktemp("named")
    (folder / "named_parts.py").write_text(PARTS)
    (folder / "damaged_parts.py").write_text("nonsense")
    (folder / "leaving_parts.py").write_text("raise SystemExit(0)")
    (folder / "source").write_text("one two\nthree\ntwo three one\n" * 4)
    (folder / "target").write_text("a b\nc\nb c a\n" * 4)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("named_parts", None)
    for name in NAMES:
        keras.saving.get_custom_objects().pop(f"named>{name}", None)


def model_of(model: str = "rnnsearch", **options: Any) -> Any:
    return make_model(ModelOptions(model, **SIZES, **options), 6, 7)


def flags_of(folder: Path, *more: str) -> list[str]:
    return [
        "train",
        "--recipe=paper",
        *(f"--{name}={size}" for name, size in SIZES.items()),
        f"--train_source={folder / 'source'}",
        f"--train_target={folder / 'target'}",
        "--source_language=en",
        "--target_language=fr",
        "--batch_size=6",
        *more,
    ]


LAYERED = ("--attention=named_parts.Layered", "--cell=named_parts.LayeredCell")


@pytest.fixture(scope="module")
def model_dir(folder: Path) -> Path:
    """A training for an epoch of parts in the style of Keras, without `build`."""
    path = folder / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update, "train_step", stand_in_step)
        assert main(flags_of(folder, *LAYERED, f"--model_dir={path}", "--epochs=1")) == 0
    return path


@pytest.mark.parametrize("model", ["rnnsearch", "rnnencdec"])
def test_named_parts_equal_built_in_parts_with_the_same_equations(folder, model):
    has_attention = model == "rnnsearch"
    named, built_in = (
        randomized(model_of(model, cell=cell, attention=score if has_attention else None))
        for cell, score in (
            ("named_parts.Plain", "named_parts.General"),
            ("TanhCell", "GeneralAttention"),
        )
    )
    kinds = {type(cell).__name__ for cell in (named.decoder.cell, named.encoder.stack[0][0].cell)}
    assert kinds == {"Plain"}
    inputs = {"source": IDS, "target": IDS}
    np.testing.assert_allclose(named(inputs), built_in(inputs), atol=1e-6)


def test_layers_of_a_part_get_gradients(folder):
    """Parts in the style of Keras, whose layers are built by a call."""
    parts = {"attention": "named_parts.Layered", "cell": "named_parts.LayeredCell"}
    model = model_of(**parts, initialization="glorot")
    target = tf.constant(IDS)
    batch = {"source": target, "target": target}, target, is_word(target)
    with tf.GradientTape() as tape:
        cost = words_loss(model, TokenCrossentropy(), *batch)
    gradients = tape.gradient(cost, {weight.path: weight for weight in model.trainable_weights})
    for name in ("layered/dense", "layered_cell/dense"):
        sizes = [np.abs(tf.convert_to_tensor(g)).max() for x, g in gradients.items() if name in x]
        assert sizes
        assert min(sizes) > 0


def test_parts_whose_layers_are_built_by_a_call_have_all_weights_at_once(folder, tmp_path):
    """Those of the readout and the bridge; see below for score and cell."""
    sizes = {**SIZES, "kernel_initializer": "glorot_uniform"}
    parts = importlib.import_module("named_parts")
    model = RNNEncDec(
        6, 7, **sizes, readout=parts.LayeredReadout(7, 3), bridge=parts.LayeredBridge(4, 3)
    )
    owners = {weight.path.split("/")[1] for weight in model.weights}
    assert {"layered_readout", "layered_bridge"} <= owners
    plain = RNNEncDec(6, 7, **sizes, readout=TanhReadout(7, 3))
    kernels = 3 * 3 + 3 + 4 * (4 + 3) + (4 + 3)  # and biases
    replaced = 4 * 4 + 4  # the bridge's
    more = model.count_params() - plain.count_params()
    assert more == kernels - replaced
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = {"source": IDS, "target": IDS}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


def test_a_keras_cell_is_used_in_encoder_and_decoder():
    model = model_of(cell="keras.layers.LSTMCell", initialization="glorot")
    (layer,) = model.encoder.stack
    for owner in (model.decoder, *layer):
        assert type(owner.cell.cell) is keras.layers.LSTMCell
    limit = (6 / (3 + 4 * 4)) ** 0.5
    kernel = model.encoder.stack[0][0].cell.cell.kernel.numpy()
    assert 0.8 * limit < np.abs(kernel).max() <= limit


def test_a_named_attention_begins_as_the_initialization_says():
    model = model_of(attention="GeneralAttention", initialization="glorot")
    kernel = model.decoder.attention.kernel.numpy()
    limit = (6 / sum(kernel.shape)) ** 0.5
    assert 0.6 * limit < np.abs(kernel).max() <= limit


NEW_PROCESS = """
import contextlib, io, json, sys
import pytest
from bahdanau_tf import RNNEncDec
from bahdanau_tf.commands.main import main
from toys import search_eagerly

search_eagerly(pytest.MonkeyPatch())
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = main(words)
    print(json.dumps([status, said.getvalue()]))
"""


def test_a_new_process_translates_and_resumes_training(folder, model_dir, monkeypatch, capsys):
    """Fails unless the user names the module; works then."""
    model = f"--model_dir={model_dir}"
    with monkeypatch.context() as patch:
        patch.setattr("bahdanau_tf.training.prepare.try_parts", lambda _: {})
        assert main(flags_of(folder, model, LAYERED[0])) == 2
    assert "--cell is 'LayeredCell' there and None now" in capsys.readouterr().err
    translate = ["translate", model, f"--input={folder / 'source'}", "--format=moses"]
    assert main([*translate, f"--output={folder / 'wanted'}"]) == 0
    other = [*translate, f"--output={folder / 'found'}"]
    own = "--modules=named_parts"
    resumed = ["train", model, "--epochs=1"]
    work = [other, [*other, own], resumed, [*resumed, own]]
    done = run_python("-c", NEW_PROCESS, json.dumps(work))
    lines = [line for line in done.stdout.split("\n") if line[:1] == "["]
    answers = [json.loads(line) for line in lines]
    assert [status for status, _ in answers] == [2, 0, 2, 0], done.stderr
    assert answers[0][1].endswith(
        "which is not registered; if you trust that module, import it first (on the command line "
        "--modules=named_parts, with its folder in PYTHONPATH)\n"
    )
    assert "resuming from update 2" in answers[3][1]
    wanted = (folder / "wanted").read_text()
    assert wanted.startswith("0 ||| ")
    assert (folder / "found").read_text() == wanted


def entry(kind: str, module: str | None, name: Any, config: Any = None) -> Any:
    """What a config says of an object."""
    return {
        "class_name": kind,
        "module": module,
        "registered_name": name,
        "config": {} if config is None else config,
    }


HOSTILE = {
    "class": entry("Score", "hostile_module", "a>Score"),
    "unnamed class": entry("Score", "hostile_module", None),
    "function": entry("function", "hostile_module", "run", "run"),
    "function of Python": entry("function", "builtins", "eval", "eval"),
    "function of Keras": entry("function", "keras.utils", "get_file", "get_file"),
    "function of a registered name": entry(
        "function", "hostile_module", "bahdanau_tf>GRUCell", "run"
    ),
    "dotted name": entry("utils.get_file", "keras", None),
    "function as a class": entry("load_model", "keras.models", None),
    "class of Keras that is no part": entry("BackupAndRestore", "keras.callbacks", None),
    "layer that runs a file": entry("TFSMLayer", "keras.layers", None, {"filepath": "x"}),
    "lambda": entry("__lambda__", "builtins", None, {"value": ["4wEAAA=="]}),
    "type": entry("__typespec__", "hostile_module", None),
    "nested": entry(
        "Functional",
        "keras.src.models.functional",
        "Functional",
        {"layers": [entry("Popen", "subprocess", None, {"args": ["true"]})]},
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_cannot_choose_what_runs(tmp_path, monkeypatch, name):
    """Keras' safe mode, and what we check before it, import nothing, also with PYTHONPATH set."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "hostile_module.py").write_text("raise SystemExit(3)")
    path = tmp_path / "model.keras"
    RNNEncDec(4, 4, units=2, embedding_dim=2, maxout_units=2).save(path)
    doctored = tmp_path / "doctored.keras"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(doctored, "w") as new:
        for member in old.namelist():
            text = old.read(member)
            if member == "config.json":
                config = json.loads(text)
                config["config"]["encoder"] = HOSTILE[name]
                text = json.dumps(config).encode()
            new.writestr(member, text)
    with pytest.raises(ValueError, match=r"Translator.load: .*doctored") as e:
        read_model(doctored)
    if "runs a file" in name:  # Keras 3.12 runs it
        assert "TFSMLayer, which runs code of another file" in str(e.value)
    assert "hostile_module" not in sys.modules


def own_loss(labels: Any, outputs: Any) -> Any:
    return outputs - labels


def test_models_of_keras_own_parts_are_read(tmp_path):
    inputs = keras.Input([3])
    x = keras.layers.Dense(
        2,
        "relu",
        kernel_initializer=keras.initializers.Orthogonal(seed=1),
        kernel_regularizer="l2",
        kernel_constraint=keras.constraints.MaxNorm(1.0),
        dtype=keras.DTypePolicy("float32"),
    )(inputs)
    x = keras.layers.Activation(keras.activations.gelu)(x)
    x = keras.layers.Dropout(0.1, seed=3)(keras.ops.concatenate([x, x]) * 2.0)
    cells = [keras.layers.GRUCell(2), keras.layers.LSTMCell(2)]
    x = keras.layers.Bidirectional(keras.layers.RNN(cells))(x[:, None])
    model = keras.Model(inputs, keras.Sequential([keras.layers.Dense(1)])(x))
    model.compile("adam", own_loss)  # which is not needed
    model.save(tmp_path / "model.keras")
    inputs_array = np.ones([2, 3], "float32")
    loaded = read_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(inputs_array), model(inputs_array))


def test_a_folder_from_elsewhere_runs_no_module(model_dir, tmp_path):
    """Neither one that train.flags names, nor one named like a library."""
    foreign = shutil.copytree(model_dir, tmp_path / "foreign")
    flags = (foreign / "train.flags").read_text()
    (foreign / "train.flags").write_text(
        flags.replace(LAYERED[0], "--attention=hostile_module.Score")
    )
    for name in ("hostile_module", "absl", "tensorflow"):
        (foreign / f"{name}.py").write_text("print('ran')")
    root = Path(bahdanau_tf.__file__).parents[1]
    done = run_python(
        *("-m", "bahdanau_tf", "train", "--model_dir=."), cwd=foreign, PYTHONPATH=str(root)
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "bahdanau-tf: train: train.flags has --attention=hostile_module.Score, a class of the "
        "module hostile_module; if you trust that module, set --modules=hostile_module\n"
    )


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--attention=absent.Score", "there is no module absent; add its"),
        ("--modules=absent", "there is no module absent; add its folder to"),
        ("--modules=damaged_parts", "damaged_parts cannot be imported"),
        ("--attention=damaged_parts.Score", "damaged_parts cannot be imported"),
        ("--cell=leaving_parts.Cell", "leaving_parts cannot be imported: Sys"),
        ("--attention=named_parts.Absent", "named_parts has no class 'Absent'"),
        ("--attention=named_parts.number", "named_parts has no class 'number'"),
        ("--attention=GenralAttention", "did you mean GeneralAttention"),
        ("--attention=", "wanted a class of bahdanau_tf"),
        ("--attention=Attention", "'Attention', a base class, wanted a class such as General"),
        ("--cell=bahdanau_tf.RecurrentCell", "a base class, wanted a class such as LSTMCell"),
        ("--attention=named_parts.Plain", "--attention is Plain, wanted a"),
        ("--cell=named_parts.General", "--cell is General, wanted a cell"),
        ("--cell=keras.layers.Dense", "--cell is Dense, wanted a cell"),
        ("--attention=named_parts.Unregistered", "register_keras_serializable"),
        ("--attention=named_parts.Forgetful", "no attribute 'units'"),
        ("--attention=named_parts.Failing", "with which the model does not run: Attribute"),
        ("--attention=named_parts.Listed", "each layer as an attribute of its own"),
    ],
)
def test_bad_parts_are_refused_before_any_text_is_read(folder, tmp_path, capsys, flag, words):
    model = tmp_path / "model"
    assert main(flags_of(folder, flag, f"--model_dir={model}")) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"bahdanau-tf: train: {flag.split('=')[0]} is ")
    assert words in err
    assert not model.exists()


@pytest.mark.parametrize(
    ("flag", "other"),
    [
        ("--attention=named_parts.General", "--model=rnnencdec"),
        ("--cell=named_parts.General", "--model=seq2seq-lstm"),
        ("--attention_units=4", "--attention=GeneralAttention"),
        ("--units=4", "--cell=named_parts.OfOneSize"),
    ],
)
def test_a_part_or_a_size_that_is_not_used_is_refused(folder, tmp_path, capsys, flag, other):
    texts = [f"--train_{side}={folder / side}" for side in ("source", "target")]
    assert main(["train", other, flag, f"--model_dir={tmp_path / 'model'}", *texts]) == 2
    said = f"{flag.split('=')[0]} is not used with {other}; leave it out\n"
    assert capsys.readouterr().err.endswith(said)
    assert not (tmp_path / "model").exists()


def test_only_the_part_that_fails_is_named(folder, monkeypatch):
    refused(
        lambda: try_parts(ModelOptions(**SIZES, attention="named_parts.Hungry")),
        "no more",
        by=MemoryError,
    )

    def broken(model: Any) -> None:
        if type(model.decoder.attention).__name__ in broken_for:
            raise RuntimeError("no device")

    monkeypatch.setattr("bahdanau_tf.models.named.try_model", broken)
    options = ModelOptions(**SIZES, attention="GeneralAttention", cell="TanhCell")
    broken_for = ["GeneralAttention"]
    with pytest.raises(ValueError, match=r"attention is 'General\w+', w") as e:
        try_parts(options)
    assert "cell" not in str(e.value)
    broken_for = ["GeneralAttention", "BahdanauAttention"]
    refused(lambda: try_parts(options), "no device", by=RuntimeError)
    options = ModelOptions(**SIZES, attention="DotAttention", cell="TanhCell")
    broken_for = []
    refused(lambda: try_parts(options), "(8 wide) must be the same size")


def test_a_registered_class_is_not_imported(folder, tmp_path, monkeypatch):
    """For example a class defined in a notebook, which no module contains."""
    path = tmp_path / "model.keras"
    model_of(attention="named_parts.General").save(path)
    monkeypatch.setitem(sys.modules, "named_parts", None)
    attention = read_model(path).decoder.attention
    assert type(attention).__name__ == "General"
