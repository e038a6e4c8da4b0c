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

from absl import flags as absl_flags

from bahdanau_tf.commands.flags import (
    define_fields,
    define_modules,
    define_strings,
    define_threads,
    require,
)
from bahdanau_tf.commands.train_flags import DATA_VARIABLE, request_of
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions, fitted
from bahdanau_tf.system.terminal import StatusLine

REQUIRED = ("model_dir",)
CHOSEN = fitted.CHOSEN


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
    for name in ("train_source", "train_target"):
        if flags[name].value is not None:
            require(flags, name)  # not empty
    request_of(flags).check()


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    from bahdanau_tf.training.cluster import is_chief
    from bahdanau_tf.training.fitting import run as fit

    result = fit(request_of(flags), flags.tensorboard, flags.threads)
    if is_chief():
        print(result)
        if result.stopped_by == "minutes":
            StatusLine().note("the same command with more --minutes continues the training")
    return 130 if result.stopped_by == "signal" else 0
