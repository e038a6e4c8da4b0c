"""Presets, compared with the numbers in the papers."""

import inspect
from importlib import resources

import keras
import pytest

import bahdanau_tf
from bahdanau_tf.models import architecture
from bahdanau_tf.training import Recipe
from bahdanau_tf.training.schedule import Schedule, make_optimizer

# Bahdanau et al. 2015, appendices A and B, with the epochs of Table 2; Sutskever et al. 2014,
# section 3.4.
# Vocabularies of 30,000 words, including the unknown word and the end symbol,
# have one more id here, for padding.
BAHDANAU = {
    "source_vocabulary_size": 30_001,
    "target_vocabulary_size": 30_001,
    "units": 1000,
    "embedding_dim": 620,
    "maxout_units": 500,
    "attention_units": 1000,
    "optimizer": "adadelta",
    "max_norm": 1.0,
    "batch_size": 80,
    "pool_batches": 20,  # 1,600 pairs
    "shuffle": "once",
    "shuffle_pool": False,  # the shortest sentences first
    "divisor": 1.0,
    "label_smoothing": 0.0,
}
SUTSKEVER = {
    "source_vocabulary_size": 160_000,
    "target_vocabulary_size": 80_000,
    "units": 1000,
    "embedding_dim": 1000,
    "layers": 4,
    "optimizer": "sgd",
    "learning_rate": 0.7,
    "schedule": "halved",
    "epochs": 7.5,
    "max_norm": 5.0,
    "batch_size": 128,
    "divisor": 128.0,
    "max_length": 0,  # no sentence is too long
}
PRESETS = {
    "rnnsearch-30": {**BAHDANAU, "max_length": 30, "epochs": 3.6},
    "rnnsearch-50": {**BAHDANAU, "max_length": 50, "epochs": 2.2},
    "rnnsearch-50-star": {**BAHDANAU, "max_length": 50, "evaluate_every": 20_000, "patience": 10},
    # Only for this model do GroundHog's settings sort 10 batches together.
    "rnnencdec-30": {**BAHDANAU, "max_length": 30, "pool_batches": 10, "epochs": 6.4},
    "rnnencdec-50": {**BAHDANAU, "max_length": 50, "epochs": 4.5},
    "sutskever-2014": SUTSKEVER,
}


def model_arguments(name: str) -> dict[str, object]:
    """The arguments of the model's constructor, including defaults."""
    owner = architecture.preset_class(name)
    signature = inspect.signature(getattr(bahdanau_tf, owner).__init__)
    bound = signature.bind(None, **architecture.preset_arguments(owner, name, {}))
    bound.apply_defaults()
    return bound.arguments


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_the_papers_numbers(name: str) -> None:
    values = {**vars(Recipe.from_preset(name)), **model_arguments(name)}
    wanted = dict(PRESETS[name])
    if name.startswith("rnnencdec"):
        del wanted["attention_units"]  # it has no attention
    assert {key: values[key] for key in wanted} == wanted


@pytest.mark.parametrize("name", PRESETS)
def test_recipes_have_the_papers_numbers(name: str) -> None:
    """The files for `train --recipe`."""
    folder = resources.files("bahdanau_tf").joinpath("recipes")
    lines = folder.joinpath(f"{name}.flags").read_text().split("\n")
    flags = dict(
        line.removeprefix("--").split("=") if "=" in line else (line, "")
        for line in lines
        if line.startswith("--")
    )
    for key, value in PRESETS[name].items():
        if isinstance(value, bool):
            assert (key in flags) is value, key
        elif key in flags:
            assert type(value)(flags[key]) == value, key
    assert int(flags["max_length"]) == PRESETS[name]["max_length"]


def test_optimizers_have_the_papers_constants() -> None:
    recipes = map(Recipe.from_preset, ("rnnsearch-50", "sutskever-2014"))
    adadelta, sgd = (make_optimizer(recipe, Schedule(recipe, 100)) for recipe in recipes)
    assert (adadelta.rho, adadelta.epsilon, adadelta.max_norm) == (0.95, 1e-6, 1.0)
    assert float(adadelta.learning_rate) == 1.0
    assert isinstance(sgd, keras.optimizers.SGD)
    assert (sgd.momentum, sgd.max_norm) == (0.0, 5.0)
