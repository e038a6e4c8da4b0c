"""Trains a model on parallel text files, plain or .gz, one sentence per line.

The folder --model_dir gets the tokenizers, checkpoints, a log and, in "best",
the model with the best BLEU on the dev set. Running the same command again
resumes from the last checkpoint.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import check_file
from bahdanau_tf.flags.fields import check_folder
from bahdanau_tf.flags.fields import define_fields
from bahdanau_tf.flags.fields import define_strings
from bahdanau_tf.flags.fields import from_flags
from bahdanau_tf.flags.fields import refuse
from bahdanau_tf.options import ModelOptions
from bahdanau_tf.options import Recipe
from bahdanau_tf.options import TextOptions

DATA_VARIABLE = "BAHDANAU_TF_DATA"
REQUIRED = ("train_source", "train_target", "model_dir")
_FILES = ("train_source", "train_target", "dev_source", "dev_target")


class Options(NamedTuple):
    """The options of a training, from its flags."""

    text: TextOptions
    model: ModelOptions
    recipe: Recipe


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_strings(
        flags,
        "Files",
        {
            "train_source": "training text, source side",
            "train_target": "training text, target side",
            "dev_source": "dev text, source side, to choose the best model",
            "dev_target": "dev text, target side",
            "model_dir": "folder of the model; made if it does not exist",
            "data_dir": "folder of the text files; default: the environment "
            f"variable {DATA_VARIABLE}, else the current folder",
            "corpus": "folder of the text files in --data_dir, if that holds "
            "several corpora; ignored if it does not exist",
            "recipe": "name of a file of flags in the package, such as "
            "multi30k-en-fr; later flags override it",
        },
    )
    absl_flags.DEFINE_bool(
        "tensorboard",
        False,
        "whether to write curves and alignments for TensorBoard to the folder "
        "tensorboard in --model_dir",
        flag_values=flags,
        module_name="Files",
    )
    define_fields(flags, "Text", TextOptions)
    define_fields(flags, "Model", ModelOptions)
    define_fields(flags, "Training", Recipe)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before any text is read.

    Raises:
        ValueError: The message has the flag.
    """
    check_folder("model_dir", flags.model_dir)
    if (flags.dev_source is None) != (flags.dev_target is None):
        raise ValueError("--dev_source and --dev_target go together")
    for name, path in paths(flags).items():
        check_file(name, path)
    options(flags)
    if flags.dev_source is None:
        refuse(flags, ["tokenize", "patience"], "without --dev_source")


def options(flags: absl_flags.FlagValues) -> Options:
    """The options of text, model and recipe.

    Raises:
        ValueError: A value is out of range, or a flag was given that the
            model, the tokenizer or the schedule does not use.
    """
    found = Options(
        from_flags(flags, TextOptions),
        from_flags(flags, ModelOptions),
        from_flags(flags, Recipe),
    )
    for one in found:
        for name, where in one.unused().items():
            refuse(flags, [name], f"with {where}")
    if found.model.share_embeddings and not found.text.joint:
        raise ValueError("--share_embeddings needs --joint, one vocabulary")
    return found


def paths(flags: absl_flags.FlagValues) -> dict[str, str]:
    """The paths of the given text files, by flag."""
    folder = Path(flags.data_dir or os.environ.get(DATA_VARIABLE, ""))
    if flags.corpus and (folder / flags.corpus).is_dir():
        folder /= flags.corpus
    # `folder / path` is `path` if that is absolute.
    return {
        name: str(folder / path)
        for name in _FILES
        if (path := flags[name].value) is not None
    }
