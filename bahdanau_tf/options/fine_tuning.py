"""Options for a model that is trained already: the rules of `--init_from`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bahdanau_tf.data.held_out import Facts
from bahdanau_tf.options import fitted
from bahdanau_tf.options.cost import SMALL, rate_of
from bahdanau_tf.options.fitted import Choice
from bahdanau_tf.options.recipe import Recipe

SHARE = 0.1  # of the learning rate that a new model would get
RISK_SHARE = 0.015  # the same with --risk_samples; .05 made translations worse
# Of a model that is not known yet, as while flags are checked.
TYPICAL_MODEL = MappingProxyType(
    {
        "tokenizer": "bpe",
        "units": SMALL,
        "source_vocabulary_size": 4000,
        "target_vocabulary_size": 4000,
    }
)


def fine_tuned(facts: Facts, given: Mapping[str, Any], model: Mapping[str, Any]) -> list[Choice]:
    """Chooses the options of training that are not given.

    Args:
        facts: The text.
        given: As for `fitted`.
        model: What is known of the model and its tokenizers, as options.
    """
    known = {**TYPICAL_MODEL, **model, **given}
    return fitted.fitted(facts, known, RULES)


def _loss_and_rate(_: Facts, known: Mapping[str, Any]) -> Choice:
    """A lower rate: a high one would undo what the model has learned."""
    values: dict[str, Any] = {"label_smoothing": 0.1}
    told = [f"label smoothing {known.get('label_smoothing', 0.1):g}"]
    share = SHARE
    if known.get("risk_samples"):
        values, told, share = {}, ["minimum risk"], RISK_SHARE
    optimizer = known.get("optimizer", "adam")
    rate = rate_of(known["units"]) if optimizer == "adam" else Recipe(optimizer=optimizer).rate
    values["learning_rate"] = share * rate
    if "learning_rate" not in known:
        told.append(f"{share:g} of the learning rate of a new model")
    return Choice(values, ", ".join(told))


RULES = (
    _loss_and_rate,
    fitted.choose_updates,
    fitted.choose_time,
    fitted.choose_length,
    fitted.choose_dev_text,
)
