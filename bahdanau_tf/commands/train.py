"""Trains a model on parallel text files, plain or .gz, one sentence per line.

The folder --model_dir gets the tokenizers, checkpoints, a log and, in "best", the best model, by
--monitor on the dev set. Running the same command again resumes from the last checkpoint, and so
does one with --model_dir alone: texts and flags that you leave out stay as they were.

Flags marked [from the text] are chosen to fit the text, its number of pairs, lengths and scripts,
unless you set them. What was chosen is printed, with reasons. With --recipe nothing is chosen:
flags that are not in the recipe have the values after "recipe:", the paper's. With --init_from, a
trained model is trained further on another text, with its own tokenizers. All flags of a training
are in the file train.flags in --model_dir; it can be the --flagfile of another training.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf.commands.flags import Group, Modules, Threads, is_given, require
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions, choices
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.options.training import KINDS, TEXTS, StartOptions, absolute
from bahdanau_tf.system.terminal import StatusLine
from bahdanau_tf.training import teachers
from bahdanau_tf.training.ask import Training, recall_texts

CHOSEN = choices.CHOSEN
DATA_VARIABLE = "BAHDANAU_TF_DATA"


@dataclass(frozen=True)
class _Files(OptionGroup):
    train_source: str | None = option(
        "training text, source side; needed in a new --model_dir; FILE.tsv, without "
        "--train_target, is a table of both sides: each line has a sentence, a tab and its "
        "translation"
    )
    train_target: str | None = option("training text, target side; needed in a new --model_dir")
    dev_source: str | None = option(
        "dev text, source side, to choose the best model; FILE.tsv as for --train_source"
    )
    dev_target: str | None = option("dev text, target side")
    model_dir: str | None = option(
        "folder of the model; created if it does not exist", required=True
    )
    data_dir: str | None = option(
        f"folder of the text files; default: the environment variable {DATA_VARIABLE}, else "
        "the current folder"
    )
    corpus: str | None = option(
        "folder of the text files in --data_dir, if that holds several corpora; ignored if it "
        "does not exist"
    )
    recipe: str | None = option(
        "name of a file of flags in the package, such as multi30k-en-fr or paper; other flags "
        "override it, and nothing is chosen from the text"
    )
    tensorboard: bool = option(
        "whether to write curves and alignments for TensorBoard to the folder tensorboard in "
        "--model_dir",
        False,
    )


GROUPS = (
    Group(_Files),
    Group(StartOptions, "Files"),
    Group(TextOptions, "Text"),
    Group(ModelOptions, "Model"),
    Group(Modules, "Model"),
    Group(Recipe, "Training"),
    Group(teachers.Distillation, "Training"),
    Group(Threads, "Training"),
)


def check(flags: absl_flags.FlagValues) -> None:
    """Raises for mistakes that can be found before any text is read."""
    for name in ("train_source", "train_target"):
        if flags[name].value is not None:
            require(flags, name)  # not empty
    training = asked(flags)
    training.check()
    if flags.distil:
        teachers.check(training)


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    from bahdanau_tf.training.cluster import is_chief
    from bahdanau_tf.training.loop import run as train

    training = asked(flags)
    if flags.distil:
        try:
            training = teachers.with_teachers(training, flags.distil)
        except KeyboardInterrupt:
            StatusLine().note("run the same command again to continue")
            raise
    result = train(training)
    if is_chief():
        print(result)
        if result.stopped_by == "minutes":
            StatusLine().note("the same command with more --minutes continues the training")
    return 128 + result.signal if result.stopped_by == "signal" else 0


def asked(flags: absl_flags.FlagValues) -> Training:
    """What the user asks for; without any text, those of the training in --model_dir."""
    model_dir = Path(flags.model_dir or "")
    if all(flags[name].value is None for name in TEXTS):
        for name, path in recall_texts(model_dir).items():
            flags[name].value = path
    if flags.init_from:
        flags["init_from"].value = absolute(flags.init_from)
    folder = Path(flags.data_dir or os.environ.get(DATA_VARIABLE, ""))
    if flags.corpus and (folder / flags.corpus).is_dir():
        folder /= flags.corpus
    # `folder / path` is `path` if that is absolute.
    values = {name: flags[name].value for name in TEXTS}
    texts = {name: str(folder / path) for name, path in values.items() if path is not None}
    user_options = {name: flags[name].value for name in KINDS if is_given(flags, name)}
    defaults = {name: flags[name].value for name in KINDS if name not in user_options}
    return Training(
        texts,
        model_dir,
        user_options,
        flags.recipe,
        defaults,
        flags.modules,
        flags.tensorboard,
        flags.threads,
    )
