"""Training with two replicas on two virtual CPUs equals training with one."""

import json

import numpy as np
import pytest
from comparisons import all_close
from processes import output_of

# A new process, because virtual devices must be made before TensorFlow starts;
# one for each model, because TensorFlow remembers the shapes it has reduced.
PROGRAM = """
import contextlib
import json
import sys
import keras
import numpy as np
import tensorflow as tf
from bahdanau_tf import RNNSearch
from bahdanau_tf import layers
from bahdanau_tf import optimizers
from bahdanau_tf.losses import TokenCrossentropy

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, 2 * [tf.config.LogicalDeviceConfiguration()]
)
random = np.random.default_rng(1)
words = random.integers(2, 9, [6, 8, 5]).astype(np.int32)
words[:, :, :2] = 3  # a word many times, on both replicas


def rnnsearch():
    return RNNSearch(9, 9, 4, 3, 4, 4, kernel_initializer="glorot_uniform", copying="hint")


def words_alone():
    # Traced in a fifth of the time, with the same repeated rows.
    inputs = {
        name: keras.Input([None], dtype="int32", name=name)
        for name in ("source", "target")
    }
    words = [layers.WordEmbedding(9, 3)(ids) for ids in inputs.values()]
    return keras.Model(inputs, keras.layers.Dense(9)(words[0] + words[1]))


def trained(name, replicas, make=words_alone, bad_update=None):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"][:replicas])
    with strategy.scope():
        keras.utils.set_random_seed(3)
        model = make()
        optimizer = getattr(optimizers, name)(max_norm=0.01)
        # Keras divides a sum by the replicas, but the mean of means is the
        # mean.
        loss = TokenCrossentropy(reduction="mean_with_sample_weight")
        model.compile(optimizer, loss)
    weights = np.ones(words.shape, np.float32)
    if bad_update is not None:
        weights[bad_update, 0] = np.nan  # on the first replica alone
    batches = {"source": words, "target": words}, words, weights
    model.fit(tf.data.Dataset.from_tensor_slices(batches), verbose=0)
    return {
        "weights": [w.numpy().tolist() for w in model.trainable_variables],
        "norm": float(optimizer.gradient_norm.numpy()),
        "skipped": int(optimizer.skipped_updates.numpy()),
        "iterations": int(optimizer.iterations.numpy()),
    }


def refusal(is_made_inside, is_built_inside):
    # Of an optimizer that is made or built outside the scope of the weights.
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    outside = contextlib.nullcontext()
    made, built = (
        strategy.scope() if is_inside else outside
        for is_inside in (is_made_inside, is_built_inside)
    )
    with strategy.scope():
        layer = keras.layers.Dense(1)
        layer.build((None, 1))
    with made:
        optimizer = optimizers.Adam()
    try:
        with built:
            optimizer.build(layer.trainable_variables)
    except ValueError as error:
        return str(error)
    return "nothing"


results = {}
for name in sys.argv[1:]:
    case = ("Adadelta", rnnsearch) if name == "RNNSearch" else (name, words_alone)
    results[name] = [trained(case[0], replicas, case[1]) for replicas in (1, 2)]
if "Adam" in results:
    results["overflow"] = trained("Adam", 2, bad_update=2)
    results["refusals"] = [refusal(*cases) for cases in np.ndindex(2, 2)]
print(json.dumps(results))
"""


def run_program(*names: str) -> dict:
    return json.loads(output_of("-c", PROGRAM, *names).splitlines()[-1])


@pytest.fixture(scope="module")
def trained() -> dict:
    return run_program("Adam")


def test_fit_with_two_replicas_equals_fit_with_one(trained):
    """Repeated words; norm and clipping are over both replicas."""
    compare(*trained["Adam"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SGD", "Adadelta", "RNNSearch"])
def test_more_fits_with_two_replicas_equal_fits_with_one(name):
    compare(*run_program(name)[name])


def compare(single: dict, double: dict) -> None:
    """The results of one replica and those of two."""
    assert double["iterations"] == single["iterations"] == 6
    assert double["skipped"] == 0
    assert single["norm"] > 0.01  # it was clipped
    np.testing.assert_allclose(double["norm"], single["norm"], rtol=1e-4)
    all_close(double["weights"], single["weights"], atol=2e-5)


def test_an_overflow_on_one_replica_is_skipped_by_both(trained):
    two = trained["overflow"]
    assert two["skipped"] == 1
    assert two["iterations"] == 5
    assert all(np.isfinite(weight).all() for weight in two["weights"])


def test_an_optimizer_outside_the_scope_is_refused(trained):
    *refused, inside = trained["refusals"]
    assert inside == "nothing"
    for message in refused:
        assert message.startswith("Adam: ")
        assert "not made in the same strategy.scope(), wanted" in message
