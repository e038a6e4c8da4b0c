"""Keras models load where nothing of the package was imported before."""

import json
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from comparisons import all_close, all_equal
from oracle import randomized
from processes import run_python
from refusals import refused

import bahdanau_tf
from bahdanau_tf import layers, losses, models, optimizers
from bahdanau_tf.commands import main as cli
from bahdanau_tf.system import imports
from bahdanau_tf.translation.saved import read_model

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


def own_inputs(model: Any) -> Any:
    """Inputs that depend only on the kind of model."""
    if isinstance(model, models.RNNSearch):
        return {"source": IDS, "target": IDS}
    if isinstance(model, keras.Sequential):
        return IDS
    if len(model.inputs) == 2:
        return [IDS, IDS]
    random = np.random.default_rng(0)
    states, annotations = (random.normal(size=(2, N)), random.normal(size=(2, 4, 3)))
    return [states.astype("float32"), annotations.astype("float32"), IDS != 0]


def outputs_of(model: Any) -> list[Any]:
    outputs = model(own_inputs(model))
    flat = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [np.asarray(output).tolist() for output in flat]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outputs of trained and saved models, by path."""
    folder, wanted = tmp_path_factory.mktemp("saved"), {}

    def save(name: str, model: Any) -> None:
        path = str(folder / f"{name}.keras")
        model.save(path)
        wanted[path] = outputs_of(model)

    for name, make, optimizer in (
        ("adam", rnnsearch, optimizers.Adam(optimizers.WarmupLinearDecay(0.1, 9))),
        ("sgd", words, optimizers.SGD(optimizers.HalvedEveryHalfEpoch(0.1, 3))),
        ("adadelta", words, optimizers.Adadelta()),
    ):
        model = make()
        model.compile(optimizer, losses.TokenCrossentropy(), weighted_metrics=[losses.Perplexity()])
        optimizer.build(model.trainable_variables)
        save(name, model)
    for make in (by_the_docstring, with_a_decoder):
        model = make()
        model.compile("adam", [losses.TokenCrossentropy(), None], run_eagerly=True)
        labels = IDS[:, 0] if make is by_the_docstring else IDS
        model.fit(own_inputs(model), [labels, np.zeros(labels.shape)], verbose=0)
        save(make.__name__, model)
    return wanted


def attention_of(model: Any) -> Any:
    kinds = layers.AttentionDecoder, layers.Attention
    return next(getattr(x, "attention", x) for x in model.layers if isinstance(x, kinds))


@pytest.mark.parametrize("make", [by_the_docstring, with_a_decoder])
def test_functional_models_load(make, saved, tmp_path):
    """And can be saved and cloned again, with the weights of their attention."""
    path = next(path for path in saved if Path(path).stem == make.__name__)
    loaded = keras.models.load_model(path)
    assert len(loaded.weights) == len(make().weights)
    loaded.save(tmp_path / "again.keras")
    again = keras.models.load_model(tmp_path / "again.keras")
    clone = keras.models.clone_model(again)
    clone.set_weights(again.get_weights())
    for model in (loaded, clone):
        all_close(outputs_of(model), saved[path], rtol=0, atol=1e-6)
    attention = randomized(attention_of(loaded))
    annotations = tf.ones([1, 2, attention.key_projection.kernel.shape[0]])
    encoded = layers.Encoded(annotations, (), (), None)
    for model in (again, clone):
        trainable, other = len(model.trainable_weights), attention_of(model)
        other.set_weights(attention.get_weights())
        other.trainable = False
        assert trainable - len(model.trainable_weights) == 3
        keys = other.memory(list(encoded)).keys
        np.testing.assert_array_equal(keys, attention.memory(encoded).keys)


@pytest.mark.parametrize("make", [by_the_docstring, with_a_decoder])
def test_what_is_frozen_stays_frozen_loaded_and_cloned(make, tmp_path):
    model = make()
    for layer in model.layers:
        layer.trainable = not isinstance(
            layer, (layers.AttentionDecoder, layers.Attention, layers.BidirectionalEncoder)
        )
    trainable = [weight.path for weight in model.trainable_weights]
    assert 0 < len(trainable) < len(model.weights)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for other in (loaded, keras.models.clone_model(model)):
        assert len(other.trainable_weights) == len(trainable)


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
    words = keras.Input([None, 3])
    query = keras.Input([N])
    encoded = layers.BidirectionalEncoder(layers.GRUCell(2))(words)
    attention = OwnAttention()
    contexts, _ = attention(query, attention.memory(encoded))
    random = np.random.default_rng(0)
    functional = keras.Model([words, query], contexts)
    inputs = [random.normal(size=(2, *size)) for size in ((5, 3), (N,))]
    parts = models.RNNSearch(K, K, 4, 3, maxout_units=2, attention=OwnAttention())
    for name, model, own_inputs in (
        ("functional", functional, [x.astype("float32") for x in inputs]),
        ("parts", parts, {"source": IDS, "target": IDS}),
    ):
        for weight in model.trainable_variables:
            weight.assign(random.normal(size=weight.shape))
        model.save(tmp_path / f"{name}.keras")
        loaded = keras.models.load_model(tmp_path / f"{name}.keras")
        assert len(loaded.weights) == len(model.weights)
        np.testing.assert_allclose(loaded(own_inputs), model(own_inputs), atol=1e-6)


def test_a_new_process_loads_every_file(saved):
    """Imports sorted by name: the package, Keras, then the models.

    Modules of the package are attributes, as those of Keras are.
    """
    code = (
        "import json, sys\n"
        f"sys.path.append({str(Path(__file__).parents[1])!r})\n"
        "import bahdanau_tf\n"
        "assert 'tensorflow' not in sys.modules\n"
        "import keras\n"
        "assert 'bahdanau_tf.models' not in sys.modules\n"
        "loaded = [keras.models.load_model(path) for path in sys.argv[1:]]\n"
        "from test_loading import outputs_of\n"
        "names = [str(m.get_compile_config()) for m in loaded]\n"
        "print(json.dumps([names, [outputs_of(model) for model in loaded]]))\n"
        "assert bahdanau_tf.layers.GRUCell is bahdanau_tf.GRUCell\n"
        "assert bahdanau_tf.search.beam_search is bahdanau_tf.beam_search\n"
        "assert bahdanau_tf.evaluation.bleu and bahdanau_tf.serving.export\n"
    )
    result = run_python("-c", code, *saved)
    assert result.returncode == 0, result.stderr[-2000:]
    compiled, outputs = json.loads(result.stdout.splitlines()[-1])
    names = ("Adam", "SGD", "Adadelta")
    for words, name in zip(compiled, names, strict=False):
        assert f"bahdanau_tf>{name}" in words
        assert "bahdanau_tf>Perplexity" in words
    for actual_outputs, wanted_outputs in zip(outputs, saved.values(), strict=True):
        all_close(actual_outputs, wanted_outputs, rtol=0, atol=1e-6)


def test_every_registered_class_is_public():
    prefix = "bahdanau_tf>"
    registered = {
        name.removeprefix(prefix)
        for name in keras.saving.get_custom_objects()
        if name.startswith(prefix)
    }
    assert registered <= set(bahdanau_tf.__all__), "bahdanau_tf/__init__.pyi"


def test_another_backend_is_refused_in_one_line():
    code = (
        "import bahdanau_tf\n"
        "try:\n"
        "    from bahdanau_tf import RNNSearch\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    result = run_python("-c", code, KERAS_BACKEND="jax")
    assert result.returncode == 0, result.stderr
    assert "'jax'" in result.stdout
    assert "KERAS_BACKEND=tensorflow" in result.stdout
    assert result.stdout.count("\n") == 1


def test_keras_already_on_another_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    refused(lambda: imports.register({}), "'torch'", by=ImportError)


def test_the_command_sets_its_own_backend(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    cli._import_tensorflow()
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
        for kind in (
            keras.initializers.RandomNormal,
            keras.initializers.RandomUniform,
            keras.initializers.Orthogonal,
        ):
            patch.setattr(kind, "__call__", drawn)
        refused(lambda: make(K, K, units=N, embedding_dim=N), "was drawn", by=AssertionError)
        loaded = read_model(path)
    all_equal(loaded.weights, model.weights)
    copy = type(loaded).from_config(loaded.get_config())
    assert all(
        np.asarray(mine).any() == np.asarray(its).any()
        for mine, its in zip(copy.weights, model.weights, strict=True)
    )
