"""Keras models load where nothing of the package was imported before."""

import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import all_close, all_equal
from oracle import randomized
from processes import output_of

import bahdanau_tf
from bahdanau_tf import cli, keras_register, layers, losses, models, optimizers
from bahdanau_tf.translation.saved import read_model

# Raised by Keras' `model.save` with NumPy 2.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't:DeprecationWarning"
)

K, N = 7, 4
IDS = np.array([[2, 3, 5, 1], [4, 1, 0, 0]], "int32")


def rnnsearch() -> Any:
    return models.RNNSearch(K, K, units=N, embedding_dim=3, attention_units=5, maxout_units=2)


def words() -> Any:
    """The smallest model that can be compiled."""
    model = keras.Sequential([layers.WordEmbedding(K, 3)])
    model.build((None, None))
    return model


def by_the_docstring() -> Any:
    """The example of `BahdanauAttention`, twice, as a functional model."""
    states = keras.Input([N], name="states")
    annotations = keras.Input([None, 3], name="annotations")
    mask = keras.Input([None], dtype="bool", name="mask")
    contexts = []
    for _ in range(2):
        attention = layers.BahdanauAttention(5, energy_initializer="ones")
        keys = attention.project(annotations)
        memory = layers.Memory(annotations, keys, mask)
        context, weights = attention(states, memory)
        contexts.append(context)
    scores = keras.layers.Dense(K)(keras.ops.concatenate(contexts, -1))
    return keras.Model([states, annotations, mask], [scores, weights])


def with_a_decoder() -> Any:
    """A functional model of all parts of RNNsearch."""
    source = keras.Input([None], dtype="int32", name="source")
    target = keras.Input([None], dtype="int32", name="target")
    embedded = layers.WordEmbedding(K, 3, mask_zero=True)(source)
    encoded = layers.BidirectionalEncoder(layers.GRUCell(N))(embedded)
    states, first = layers.BackwardBridge(N, 3)(encoded)
    attention = layers.BahdanauAttention(5, energy_initializer="ones")
    words = layers.WordEmbedding(K, 3, mask_zero=True)(target)
    glimpse = layers.AttentionDecoder(layers.GRUCell(N), attention)(
        words, first, states, attention.memory(encoded)
    )
    readout = layers.MaxoutReadout(K, 2)
    scores = readout(glimpse.state, words, glimpse.context)
    return keras.Model([source, target], [scores, glimpse.weights])


def inputs_of(model: Any) -> Any:
    """Inputs that depend only on the kind of model."""
    if isinstance(model, models.RNNSearch):
        return {"source": IDS, "target": IDS}
    if isinstance(model, keras.Sequential):
        return IDS
    if len(model.inputs) == 2:
        return [IDS, IDS]
    random = np.random.default_rng(0)
    shapes = (2, N), (2, 4, 3)
    return [*(random.normal(size=shape).astype("float32") for shape in shapes), IDS != 0]


def labels_of(make: Callable) -> list[Any]:
    labels = IDS[:, 0] if make is by_the_docstring else IDS
    return [labels, np.zeros(labels.shape)]


def outputs_of(model: Any) -> list[Any]:
    outputs = model(inputs_of(model))
    flat = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [np.asarray(output).tolist() for output in flat]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> dict[str, Any]:
    """The outputs of trained and saved models, by path."""
    folder, wanted = tmp_path_factory.mktemp("saved"), {}

    def save(name: str, model: Any) -> None:
        path = str(folder / f"{name}.keras")
        model.save(path)
        wanted[path] = outputs_of(model)

    for make, optimizer in (
        (rnnsearch, optimizers.Adam(optimizers.WarmupLinearDecay(0.1, 9))),
        (words, optimizers.SGD(optimizers.HalvedEveryHalfEpoch(0.1, 3))),
        (words, optimizers.Adadelta()),
    ):
        model = make()
        loss = losses.TokenCrossentropy()
        model.compile(optimizer, loss, weighted_metrics=[losses.Perplexity()])
        optimizer.build(model.trainable_variables)
        save(type(optimizer).__name__, model)
    for make in (by_the_docstring, with_a_decoder):
        model = make()
        model.compile("adam", [losses.TokenCrossentropy(), None], run_eagerly=True)
        model.fit(inputs_of(model), labels_of(make), verbose=0)
        save(make.__name__, model)
    return wanted


def reloaded(model: Any, folder: Path) -> Any:
    model.save(folder / "model.keras")
    return keras.models.load_model(folder / "model.keras")


both_models = pytest.mark.parametrize("make", [by_the_docstring, with_a_decoder])


@both_models
def test_functional_models_load(make, saved, tmp_path):
    path = next(path for path in saved if Path(path).stem == make.__name__)
    loaded = keras.models.load_model(path)
    assert len(loaded.weights) == len(make().weights)
    all_close(outputs_of(loaded), saved[path], rtol=0, atol=1e-6)
    # A loaded model and its clone can be saved and cloned again.
    again = reloaded(loaded, tmp_path)
    clone = keras.models.clone_model(again)
    clone.set_weights(again.get_weights())
    all_close(outputs_of(clone), saved[path], rtol=0, atol=1e-6)


def attention_of(model: Any) -> Any:
    kinds = layers.AttentionDecoder, layers.Attention
    layer = next(layer for layer in model.layers if isinstance(layer, kinds))
    return getattr(layer, "attention", layer)


@both_models
def test_an_attention_has_its_weights_wherever_it_comes_from(make, tmp_path):
    """Freezing and copying them means the same in a model, loaded or cloned."""
    model = randomized(make())
    weights = attention_of(model).get_weights()
    annotations = tf.ones([1, 2, attention_of(model).key_projection.kernel.shape[0]])
    encoded = layers.Encoded(annotations, (), (), None)
    wanted = attention_of(model).memory(encoded).keys
    for other in (reloaded(model, tmp_path), keras.models.clone_model(model)):
        trainable = len(other.trainable_weights)
        attention_of(other).set_weights(weights)
        attention_of(other).trainable = False
        assert trainable - len(other.trainable_weights) == 3
        keys = attention_of(other).memory(list(encoded)).keys
        np.testing.assert_array_equal(keys, wanted)


@both_models
def test_what_is_frozen_stays_frozen_loaded_and_cloned(make, tmp_path):
    model = make()
    frozen = layers.AttentionDecoder, layers.Attention, layers.BidirectionalEncoder
    for layer in model.layers:
        layer.trainable = not isinstance(layer, frozen)
    trainable = [weight.path for weight in model.trainable_weights]
    assert 0 < len(trainable) < len(model.weights)
    for other in (reloaded(model, tmp_path), keras.models.clone_model(model)):
        assert len(other.trainable_weights) == len(trainable)


def with_keys_of_its_own() -> Any:
    """A functional model as an earlier version saved it.

    The layer that makes the keys is the model's; that of the attention has no
    weights.
    """
    states, annotations = keras.Input([N]), keras.Input([None, 3])
    mask = keras.Input([None], dtype="bool")
    config = layers.BahdanauAttention(5, name="attention").get_config()
    attention = layers.BahdanauAttention.from_config({**config, "has_own_keys": False})
    keys = keras.layers.Dense(5, use_bias=False)(annotations)
    outputs = attention(states, layers.Memory(annotations, keys, mask))
    return randomized(keras.Model([states, annotations, mask], outputs))


def test_functional_models_of_earlier_versions_load(tmp_path):
    model = with_keys_of_its_own()
    assert len(attention_of(model).weights) == 2
    loaded = reloaded(model, tmp_path)
    all_close(outputs_of(loaded), outputs_of(model), rtol=0, atol=1e-6)
    encoded = layers.Encoded(tf.ones([1, 2, 3]), (), (), None)
    with pytest.raises(ValueError, match="made by a layer of the functional"):
        attention_of(loaded).memory(encoded)


@keras.saving.register_keras_serializable("tests")
class OwnAttention(layers.Attention):
    """An attention by a user, whose keys are made by a layer with weights."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.to_keys = keras.layers.Dense(N)

    def build(self, query_shape: Any, memory_shape: Any) -> None:
        self.build_keys(self.to_keys, memory_shape)

    def project(self, annotations: Any) -> Any:
        return self.to_keys(annotations)

    def score(self, query: Any, keys: Any) -> Any:
        return tf.matmul(query, keys, transpose_b=True)


def test_models_with_an_attention_by_a_user_load(tmp_path):
    words, query = keras.Input([None, 3]), keras.Input([N])
    encoded = layers.BidirectionalEncoder(layers.GRUCell(2))(words)
    attention = OwnAttention()
    contexts, _ = attention(query, attention.memory(encoded))
    random = np.random.default_rng(0)
    inputs = [random.normal(size=size).astype("float32") for size in ((2, 5, 3), (2, N))]
    parts = models.RNNSearch(K, K, 4, 3, maxout_units=2, attention=OwnAttention())
    for model, batch in (
        (keras.Model([words, query], contexts), inputs),
        (parts, {"source": IDS, "target": IDS}),
    ):
        for weight in model.trainable_variables:
            weight.assign(random.normal(size=weight.shape))
        loaded = reloaded(model, tmp_path)
        assert len(loaded.weights) == len(model.weights)
        np.testing.assert_allclose(loaded(batch), model(batch), atol=1e-6)


NEW_PROCESS = """
import json, sys
import bahdanau_tf
assert "tensorflow" not in sys.modules
import keras
assert "bahdanau_tf.models" not in sys.modules
loaded = [keras.models.load_model(path) for path in sys.argv[1:]]
from test_loading import outputs_of
names = [str(m.get_compile_config()) for m in loaded]
print(json.dumps([names, [outputs_of(model) for model in loaded]]))
"""


def test_a_new_process_loads_every_file(saved):
    """Imports sorted by name: the package, Keras, then the models."""
    compiled, outputs = json.loads(output_of("-c", NEW_PROCESS, *saved).splitlines()[-1])
    for words, name in zip(compiled, ("Adam", "SGD", "Adadelta"), strict=False):
        assert f"bahdanau_tf>{name}" in words
        assert "bahdanau_tf>Perplexity" in words
    for own, wanted in zip(outputs, saved.values(), strict=True):
        all_close(own, wanted, rtol=0, atol=1e-6)


def test_every_registered_class_is_public():
    prefix = "bahdanau_tf>"
    names = [*keras.saving.get_custom_objects()]
    registered = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    assert registered <= set(bahdanau_tf.__all__)


@pytest.mark.parametrize("name", ["layers", "search", "evaluation", "serving"])
def test_modules_are_attributes_as_those_of_keras_are(name):
    """Before anything else has imported them, the function of the package is asked."""
    module = importlib.import_module(f"bahdanau_tf.{name}")
    assert bahdanau_tf.__getattr__(name) is module
    assert all(getattr(module, public) is not None for public in module.__all__)


ANOTHER_BACKEND = """
import bahdanau_tf
try:
    from bahdanau_tf import RNNSearch
except ImportError as error:
    print(error)
"""


def test_another_backend_is_refused_in_one_line():
    refusal = output_of("-c", ANOTHER_BACKEND, KERAS_BACKEND="jax")
    assert "'jax'" in refusal
    assert "KERAS_BACKEND=tensorflow" in refusal
    assert refusal.count("\n") == 1


def test_keras_already_on_another_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    with pytest.raises(ImportError, match="'torch'"):
        keras_register.register({})


def test_the_command_sets_its_own_backend(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert cli.main(["data", "list"]) == 0
    assert os.environ["KERAS_BACKEND"] == "tensorflow"


def drawn(*_: Any, **__: Any) -> None:
    raise AssertionError("a random number was drawn")


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (models.RNNSearch, {}),
        (models.RNNSearch, {"step_order": "conditional"}),
        (models.RNNSearch, {"attention": layers.GeneralAttention()}),
        (models.RNNSearch, {"cell": layers.GRUResetAfterCell(N)}),
        (models.RNNEncDec, {}),
        (models.Seq2SeqLSTM, {}),
    ],
)
def test_a_translators_model_is_read_without_initial_weights(make, options, tmp_path, monkeypatch):
    """What the file replaces is not drawn; a copy of the model draws it."""
    model = make(K, K, units=N, embedding_dim=N, **options)
    path = tmp_path / "model.keras"
    model.save(path)
    with monkeypatch.context() as patch:
        for kind in ("RandomNormal", "RandomUniform", "Orthogonal"):
            patch.setattr(getattr(keras.initializers, kind), "__call__", drawn)
        with pytest.raises(AssertionError, match="was drawn"):
            make(K, K, units=N, embedding_dim=N)
        loaded = read_model(path)
    all_equal(loaded.weights, model.weights)
    copy = type(loaded).from_config(loaded.get_config())
    for mine, its in zip(copy.weights, model.weights, strict=True):
        assert np.asarray(mine).any() == np.asarray(its).any()
