"""Tests of every public layer and model; `conformance.py` lists them."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from conformance import ABSTRACT, CASES, Case, Size, mask_of, public_layers
from oracle import randomized, specification

every_case = pytest.mark.parametrize("name", CASES)
SIZES = [Size(), Size(rows=1, length=1), Size(rows=5, length=2, padding=3)]


def started(case: Case, seed: int = 0) -> Any:
    """A layer with random weights that has been called once."""
    layer = case.make()
    case.call(layer, *case.inputs(Size()))
    return randomized(layer, seed)


@functools.cache
def example(name: str) -> Any:
    """A shared layer, for tests that do not change its weights."""
    return started(CASES[name])


def outputs_of(nest: Any) -> list[Any]:
    """All tensors of an output, without None."""
    return [t for t in tf.nest.flatten(nest) if t is not None]


def flat(layer: Any, case: Case) -> tuple[Callable, list[tf.TensorSpec]]:
    """The layer as a function of tensors with two unknown axes."""
    inputs = case.inputs(Size())

    def function(*tensors: tf.Tensor) -> list[tf.Tensor]:
        packed = tf.nest.pack_sequence_as(inputs, tensors)
        return outputs_of(case.call(layer, *packed))

    return function, [specification(t) for t in tf.nest.flatten(inputs)]


@functools.cache
def eager(name: str, size: Size) -> list[Any]:
    """The outputs of the shared layer without a graph."""
    function, _ = flat(example(name), CASES[name])
    return function(*tf.nest.flatten(CASES[name].inputs(size)))


@functools.cache
def graph_of(name: str) -> Any:
    """The shared layer as a graph, traced once."""
    function, signature = flat(example(name), CASES[name])
    return tf.function(function, input_signature=signature, autograph=False)


def equal(actual: Any, wanted: Any, atol: float) -> None:
    for ours, theirs in zip(outputs_of(actual), outputs_of(wanted), strict=True):
        assert ours.dtype == theirs.dtype
        ours, theirs = (np.asarray(tf.cast(t, tf.float32)) for t in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


@keras.saving.register_keras_serializable(package="bahdanau_tf_tests")
class Holder(keras.Model):
    """A user's model that contains one of our layers."""

    def __init__(self, case: str, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self.layer = layer

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: the layer builds itself."""

    def call(self, inputs: list[Any]) -> Any:
        return CASES[self.case].call(self.layer, *inputs)

    def get_config(self) -> dict[str, Any]:
        layer = keras.saving.serialize_keras_object(self.layer)
        return {**super().get_config(), "case": self.case, "layer": layer}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Holder:
        layer = keras.saving.deserialize_keras_object(config.pop("layer"))
        return cls(layer=layer, **config)


@pytest.fixture
def bfloat16() -> Iterator[None]:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(before)


def test_every_public_layer_has_a_case() -> None:
    assert set(CASES) == public_layers() - ABSTRACT, "CASES of tests/conformance.py"


@every_case
def test_the_signature_has_every_argument(name: str) -> None:
    layer = CASES[name].make()
    shown = {"name", "trainable", "dtype", *inspect.signature(type(layer)).parameters}
    assert set(layer.get_config()) <= shown


def config_of(layer: Any) -> Any:
    """The config as read from a JSON file, without the shapes of weights."""
    text = json.dumps(layer.get_config(), default=keras.saving.serialize_keras_object)
    return json.loads(
        text, object_hook=lambda part: {x: part[x] for x in part if x != "build_config"}
    )


@every_case
def test_a_keras_model_with_the_layer_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    inputs = list(CASES[name].inputs(Size()))
    holder = Holder(name, example(name))
    wanted = holder(inputs)
    holder.save(tmp_path / "holder.keras")
    loaded = keras.models.load_model(tmp_path / "holder.keras")
    assert len(loaded.weights) == len(holder.weights)
    assert config_of(loaded.layer) == config_of(holder.layer)
    equal(loaded(inputs), wanted, 0)


@pytest.fixture(scope="module")
def reloaded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All examples, saved and loaded together to save time."""
    module = tf.Module()
    for name in CASES:
        setattr(module, f"layer_{name}", example(name))
        setattr(module, f"run_{name}", graph_of(name))
    folder = str(tmp_path_factory.mktemp("saved"))
    tf.saved_model.save(module, folder)
    return tf.saved_model.load(folder)


@every_case
def test_a_saved_model_of_the_layer_is_reloaded(name: str, reloaded: Any) -> None:
    for size in SIZES:
        tensors = tf.nest.flatten(CASES[name].inputs(size))
        outputs = getattr(reloaded, f"run_{name}")(*tensors)
        equal(outputs, eager(name, size), 1e-6)


# Their parts are compiled in other cases, their recurrences with RNNSearch.
COMPILED_IN_PARTS = {"Ensemble", "RNNEncDec"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in COMPILED_IN_PARTS)) for name in CASES],
)
def test_xla_agrees(name: str) -> None:
    """The graph is compiled as it is, not traced again."""
    graph, size = graph_of(name), SIZES[-1]
    tensors = tf.nest.flatten(CASES[name].inputs(size))
    compiled = tf.function(
        lambda *tensors: graph(*tensors),
        input_signature=graph.input_signature,
        autograph=False,
        jit_compile=True,
    )
    equal(compiled(*tensors), eager(name, size), 2e-6)


@every_case
def test_mixed_bfloat16_equals_float32_up_to_rounding(name: str, bfloat16: None) -> None:
    """Weights stay float32; outputs are those of float32 up to rounding."""
    case, exact = CASES[name], example(name)
    layer = started(case)
    layer.set_weights(exact.get_weights())
    assert {w.dtype for w in layer.weights} <= {"float32", "int32"}
    inputs = case.inputs(Size())
    for half, full in zip(
        outputs_of(case.call(layer, *inputs)), outputs_of(case.call(exact, *inputs)), strict=True
    ):
        assert half.dtype in (tf.bfloat16, full.dtype)
        half = tf.cast(half, tf.float32)
        np.testing.assert_allclose(half, tf.cast(full, tf.float32), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.has_time])
def test_padding_and_its_contents_change_nothing(name: str) -> None:
    case, layer = CASES[name], example(name)
    narrow = outputs_of(case.call(layer, *case.inputs(Size())))
    for wider in (Size(garbage=2), Size(padding=3, garbage=2)):
        wide = outputs_of(case.call(layer, *case.inputs(wider)))
        for short, long in zip(narrow, wide, strict=True):
            compare_real(name, short, long[tuple(map(slice, short.shape))])


def compare_real(name: str, narrow: tf.Tensor, wide: tf.Tensor) -> None:
    """Compares tensors; masked positions of sequences may have any value."""
    narrow, wide = (np.asarray(tf.cast(t, tf.float32)) for t in (narrow, wide))
    is_sequence = narrow.ndim == 3 and narrow.shape[:2] == mask_of(Size()).shape
    if is_sequence and "Decoder" not in name:
        narrow, wide = narrow[mask_of(Size())], wide[mask_of(Size())]
    np.testing.assert_allclose(narrow, wide, rtol=0, atol=2e-6)


def squared_error(case: Case, layer: Any) -> tf.Tensor:
    """Mean squared distance of all outputs from arbitrary values."""
    outputs = outputs_of(case.call(layer, *case.inputs(Size())))
    exact = [tf.cast(t, tf.float32) for t in outputs if t.dtype.is_floating]
    wanted = [np.cos(3.0 * np.arange(t.shape[-1])) for t in exact]
    return tf.add_n([tf.reduce_mean((t - x) ** 2) for t, x in zip(exact, wanted, strict=True)])


@every_case
def test_gradients_reach_every_weight_and_lower_the_loss(name: str) -> None:
    case, layer = CASES[name], started(CASES[name])
    variables = layer.trainable_variables
    if not variables:
        assert not layer.weights
        return
    with tf.GradientTape() as tape:
        before = squared_error(case, layer)
    gradients = tape.gradient(before, [v.value for v in variables])
    for variable, gradient in zip(variables, gradients, strict=True):
        assert gradient is not None, variable.path
        assert np.isfinite(gradient).all(), variable.path
        assert np.any(gradient), variable.path
    keras.optimizers.SGD(1e-3).apply(gradients, variables)
    assert squared_error(case, layer) < before
