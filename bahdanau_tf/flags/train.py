"""Trains a model on parallel text files, plain or .gz, one sentence per line.

The folder --model_dir gets the tokenizers, checkpoints, a log and, in "best",
the best model, by --monitor on the dev set. Running the same command again
resumes from the last checkpoint, and so does one with --model_dir alone: texts
and flags that are not given are those of before.

Flags marked [from the text] are chosen so that they fit the text, its number of
pairs, lengths and scripts, unless they are given. What was chosen is printed,
with reasons. With --recipe nothing is chosen: flags that are not in the recipe
have the values after "recipe:", the paper's. With --init_from, a trained model
and its tokenizers are trained further on another text. All flags of a training
are in the file train.flags in --model_dir; it can be the --flagfile of another
training.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from absl import flags as absl_flags

from bahdanau_tf.data.held_out import TYPICAL, Facts
from bahdanau_tf.data.parallel import SIDES, check_is_text, column_paths, is_table
from bahdanau_tf.flags.chosen import FILE, TEXTS, TEXTS_FILE, given_values, read_flags
from bahdanau_tf.flags.fields import (
    check_file,
    check_folder,
    check_outside_models,
    define_fields,
    define_strings,
    from_flags,
    is_given,
    refuse,
    require,
)
from bahdanau_tf.flags.model import define_modules, define_threads
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions, fitted
from bahdanau_tf.options.fine_tuning import TYPICAL_MODEL, fine_tuned
from bahdanau_tf.options.fitted import Choice
from bahdanau_tf.system.files import check_regular

DATA_VARIABLE = "BAHDANAU_TF_DATA"
REQUIRED = ("model_dir",)
CHOSEN = fitted.CHOSEN
OF_MODEL = tuple(field.name for owner in (TextOptions, ModelOptions) for field in fields(owner))
OF_DEV_TEXT = ("tokenize", "monitor", "patience")


class Options(NamedTuple):
    """The options of a training, from its flags.

    Attributes:
        text: The options of the tokenizers.
        model: The options of the model.
        recipe: The options of training.
        dev_pairs: Number of training pairs to hold out as dev text.
        init_from: The folder of a trained model, used in place of text and
            model; or None.
        added_words: Number of words that are added to its vocabularies.
    """

    text: TextOptions
    model: ModelOptions
    recipe: Recipe
    dev_pairs: int
    init_from: str | None = None
    added_words: int = 0

    def values(self, without: Collection[str]) -> dict[str, Any]:
        """The values of all options that have an effect, by name.

        Args:
            without: Names of others that have none.
        """
        values = vars(self.recipe)
        unused = {*without, *self.recipe.unused()}
        if self.init_from is None:
            values = vars(self.text) | vars(self.model) | values
            unused |= self.text.unused().keys() | self.model.unused().keys()
        else:
            names = ("init_from", "added_words")
            values = values | {name: getattr(self, name) for name in names}
        values["learning_rate"] = self.recipe.rate
        values["dev_pairs"] = self.dev_pairs
        return {
            name: value
            for name, value in values.items()
            if name not in unused and value is not None
        }


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    define_strings(
        flags,
        "Files",
        {
            "train_source": "training text, source side; needed in a new "
            "--model_dir; FILE.tsv, without --train_target, is a table of both "
            "sides, a sentence, a tab and its translation in each line",
            "train_target": "training text, target side; needed in a new --model_dir",
            "dev_source": "dev text, source side, to choose the best model; "
            "FILE.tsv as for --train_source",
            "dev_target": "dev text, target side",
            "model_dir": "folder of the model; made if it does not exist",
            "data_dir": "folder of the text files; default: the environment "
            f"variable {DATA_VARIABLE}, else the current folder",
            "corpus": "folder of the text files in --data_dir, if that holds "
            "several corpora; ignored if it does not exist",
            "init_from": "folder of a trained model, that of an earlier "
            "training or a saved translator, with whose weights and tokenizers "
            "a new training begins; a copy is kept in --model_dir",
            "recipe": "name of a file of flags in the package, such as "
            "multi30k-en-fr or paper; later flags override it, and nothing is "
            "chosen from the text",
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
    absl_flags.DEFINE_integer(
        "dev_pairs",
        0,
        "number of training pairs that are held out as dev text; 0 for none",
        lower_bound=0,
        upper_bound=10**9,
        flag_values=flags,
        module_name="Files",
    )
    absl_flags.DEFINE_integer(
        "added_words",
        0,
        "number of words that --init_from adds to the vocabulary of each side, "
        "the most frequent unknown ones of the training text (not for "
        "sub-words, which can write any word)",
        lower_bound=0,
        upper_bound=10**9,
        flag_values=flags,
        module_name="Files",
    )
    define_fields(flags, "Text", TextOptions)
    define_fields(flags, "Model", ModelOptions)
    define_modules(flags, "Model")
    define_fields(flags, "Training", Recipe)
    define_threads(flags, "Training")


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before any text is read.

    Raises:
        ValueError: The message has the flag.
    """
    check_folder("model_dir", flags.model_dir)
    check_outside_models("model_dir", flags.model_dir)
    _recall_texts(flags)
    for name, path in _given_paths(flags).items():
        check_is_text(name, path)
    require(flags, "train_source")
    in_tables = tables(flags)
    if "train" not in in_tables:
        require(flags, "train_target")
    is_pair = (flags.dev_source is None) == (flags.dev_target is None)
    if not (is_pair or "dev" in in_tables):
        raise ValueError("--dev_source and --dev_target go together")
    for name, path in _given_paths(flags).items():
        _check_text(flags, name, path)
    if flags.init_from:
        # A run that goes on may have another current folder.
        flags["init_from"].value = str(Path(flags.init_from).absolute())
    _check_init_from(flags)
    if flags.dev_source is not None and flags.dev_pairs:
        refuse(flags, ["dev_pairs"], "with --dev_source")
    if flags.recipe is None and (Path(flags.model_dir) / FILE).is_file():
        return  # the folder's own flags count; the command checks with them
    options(flags, values_of(choose(flags, TYPICAL)))


def _check_text(flags: absl_flags.FlagValues, name: str, path: str) -> None:
    """Raises if there is no such file; if a recipe names it, says so."""
    try:
        check_file(name, path)
        check_regular(path)  # it is read several times
    except ValueError as error:
        if flags.recipe is None:
            raise
        raise ValueError(
            f"{error}; --recipe={flags.recipe} names files of its own, in "
            f"--data_dir, where you give none"
        ) from error


def _check_init_from(flags: absl_flags.FlagValues) -> None:
    """Raises if the trained model to begin with is in the new folder."""
    if not flags.init_from:
        return
    start = Path(flags.init_from).resolve()
    folder = Path(flags.model_dir).resolve()
    if start in (folder, folder / "best", folder / "start"):
        raise ValueError(
            f"--init_from is {flags.init_from}, the model of --model_dir "
            "itself: leave it out to go on with that training, or name "
            "another --model_dir to begin a new one"
        )


def _recall_texts(flags: absl_flags.FlagValues) -> None:
    """Without any text file, those of the training in --model_dir are taken."""
    path = Path(flags.model_dir) / TEXTS_FILE
    if path.is_file() and all(flags[name].value is None for name in TEXTS):
        for name, value in read_flags(path, define, TEXTS).items():
            flags[name].value = value


def choose(
    flags: absl_flags.FlagValues,
    facts: Facts,
    model: Mapping[str, Any] = TYPICAL_MODEL,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> list[Choice]:
    """Chooses the options that the user did not give; none with a recipe.

    Args:
        flags: The flags.
        facts: The text.
        model: What is known of the model of --init_from.
        known: What else is known: "dev_lines", and of the machine "cores",
            "product_rate", "has_gpu".

    Raises:
        ValueError: A number is out of range.
    """
    if flags.recipe is not None:
        return []
    from_flags(flags, TextOptions)
    from_flags(flags, Recipe)
    given = {**given_values(flags), **known}
    if flags.init_from is not None:
        return fine_tuned(facts, given, model)
    return fitted.fitted(facts, given)


def values_of(choices: list[Choice]) -> dict[str, Any]:
    """The chosen values, by the names of their flags."""
    return {name: v for one in choices for name, v in one.values.items()}


def options(
    flags: absl_flags.FlagValues,
    chosen: Mapping[str, Any] = MappingProxyType({}),
) -> Options:
    """The options of text, model and recipe.

    Args:
        flags: The flags.
        chosen: Values of flags that the user did not give.

    Raises:
        ValueError: A value is out of range, or a flag was given that the
            model, the tokenizer, the schedule or a training without dev text
            does not use.
    """
    text, model = TextOptions(), ModelOptions()
    recipe = from_flags(flags, Recipe, chosen)
    unused = recipe.unused()
    init_from = chosen.get("init_from", flags.init_from)
    if init_from is None:
        refuse(flags, ["added_words"], "without --init_from")
        text = from_flags(flags, TextOptions, chosen)
        model = from_flags(flags, ModelOptions, chosen)
        unused = text.unused() | model.unused() | unused
        if recipe.risk_samples:
            raise ValueError("--risk_samples needs --init_from, a trained model")
    else:
        refuse(flags, OF_MODEL, "with --init_from, whose model has its own")
    for name, where in unused.items():
        refuse(flags, [name], f"with {where}")
    if model.share_embeddings and not text.joint:
        raise ValueError("--share_embeddings needs --joint, one vocabulary")
    dev_pairs = chosen.get("dev_pairs", flags.dev_pairs)
    has_dev = flags.dev_source is not None or bool(dev_pairs)
    if not has_dev and "dev_pairs" not in chosen:
        where = "without --dev_source or --dev_pairs"
        if is_given(flags, "dev_pairs"):
            where = "with --dev_pairs=0, without a dev text"
        refuse(flags, OF_DEV_TEXT, where)
    if not has_dev and recipe.schedule == "plateau":
        raise ValueError("--schedule=plateau needs --dev_source or --dev_pairs")
    added = chosen.get("added_words", flags.added_words)
    return Options(text, model, recipe, dev_pairs, init_from, added)


def paths(flags: absl_flags.FlagValues) -> dict[str, str]:
    """The paths of the text files, by flag.

    Those of tables are what `write_columns` makes of them.
    """
    texts = _given_paths(flags)
    for name in tables(flags):
        texts |= column_paths(Path(flags.model_dir), name)
    return texts


def tables(flags: absl_flags.FlagValues) -> dict[str, str]:
    """The paths of tables of both sides, by "train" and "dev".

    Raises:
        ValueError: A table is given as both sides.
    """
    given, found = _given_paths(flags), {}
    for name in ("train", "dev"):
        source, target = (given.get(f"{name}_{side}") for side in SIDES)
        if source is not None and is_table(source):
            if source == target:
                raise ValueError(
                    f"--{name}_target is {target}, as --{name}_source is; "
                    f"leave --{name}_target out, and two columns of the table "
                    "are read"
                )
            if target is None:
                found[name] = source
    return found


def _given_paths(flags: absl_flags.FlagValues) -> dict[str, str]:
    """The paths of the given files, by flag."""
    folder = Path(flags.data_dir or os.environ.get(DATA_VARIABLE, ""))
    if flags.corpus and (folder / flags.corpus).is_dir():
        folder /= flags.corpus
    # `folder / path` is `path` if that is absolute.
    return {name: str(folder / path) for name in TEXTS if (path := flags[name].value) is not None}
