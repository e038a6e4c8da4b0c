"""Keras' `quantize`: what reads a kernel itself keeps it as it is."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from comparisons import all_equal
from oracle import randomized

from bahdanau_tf import layers, models

# Keras warns of each layer that it leaves out.
pytestmark = pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")


def functional() -> Any:
    annotations, query = keras.Input([None, 4]), keras.Input([3])
    attention = layers.BahdanauAttention(5)
    memory = attention.memory(layers.Encoded(annotations, (), (), None))
    context, weights = attention(query, memory)
    scores = keras.layers.Dense(2, name="scores")(context)
    return randomized(keras.Model([annotations, query], [weights, scores]))


def test_attention_in_a_quantized_model_is_not_quantized(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    inputs = [random.normal(size=size).astype("float32") for size in ((2, 5, 4), (2, 3))]
    model = functional()
    weights, scores = (x.numpy() for x in model(inputs))
    with pytest.warns(UserWarning, match="BahdanauAttention: .*not quantized"):
        model.quantize("int8")
    policy = model.get_layer("scores").dtype_policy
    assert policy.quantization_mode == "int8"
    np.testing.assert_array_equal(model(inputs)[0], weights)
    np.testing.assert_allclose(model(inputs)[1], scores, rtol=0, atol=0.05)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    all_equal(loaded(inputs), model(inputs))


@pytest.mark.parametrize("kind", [models.RNNSearch, models.Seq2SeqLSTM])
def test_models_refuse_to_be_quantized(kind: Any) -> None:
    model = kind(9, 9, units=4, embedding_dim=3)
    with pytest.raises(ValueError, match=f"{kind.__name__}: quantize is not"):
        model.quantize("int8")
