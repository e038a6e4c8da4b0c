"""The request of a training, from its flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from absl import flags as absl_flags

from bahdanau_tf.commands.flags import is_given
from bahdanau_tf.options.fitted import TYPICAL_MODEL, Choice, Facts
from bahdanau_tf.options.training import KINDS, TEXTS, TrainingOptions, values_of
from bahdanau_tf.training.request import Request, recall_texts

__all__ = ["choose", "given_values", "options", "request_of", "values_of"]

DATA_VARIABLE = "BAHDANAU_TF_DATA"
NOTHING: Mapping[str, Any] = MappingProxyType({})


def given_values(flags: absl_flags.FlagValues) -> dict[str, object]:
    """The options that the user gave, and "dev_source" if there is one."""
    user_options = [name for name in KINDS if is_given(flags, name)]
    if flags.dev_source is not None:  # by the user, or by an earlier run
        user_options.append("dev_source")
    return {name: flags[name].value for name in user_options}


def request_of(flags: absl_flags.FlagValues) -> Request:
    """What the user asks; without any text, those of the training in --model_dir."""
    model_dir = Path(flags.model_dir or "")
    if all(flags[name].value is None for name in TEXTS):
        for name, path in recall_texts(model_dir).items():
            flags[name].value = path
    if flags.init_from:
        # A run that resumes may have another current folder.
        flags["init_from"].value = str(Path(flags.init_from).absolute())
    folder = Path(flags.data_dir or os.environ.get(DATA_VARIABLE, ""))
    if flags.corpus and (folder / flags.corpus).is_dir():
        folder /= flags.corpus
    # `folder / path` is `path` if that is absolute.
    values = {name: flags[name].value for name in TEXTS}
    texts = {name: str(folder / path) for name, path in values.items() if path is not None}
    user_options = given_values(flags)
    defaults = {name: flags[name].value for name in KINDS if name not in user_options}
    return Request(texts, model_dir, user_options, flags.recipe, defaults, flags.modules)


def choose(
    flags: absl_flags.FlagValues,
    facts: Facts,
    model: Mapping[str, Any] = TYPICAL_MODEL,
    machine: Mapping[str, Any] = NOTHING,
) -> list[Choice]:
    """Chooses the options that the user did not give; see `Request.choose`."""
    return request_of(flags).choose(facts, model, machine)


def options(flags: absl_flags.FlagValues, chosen: Mapping[str, Any] = NOTHING) -> TrainingOptions:
    """The options of text, model and training; see `Request.options`."""
    return request_of(flags).options(chosen)
