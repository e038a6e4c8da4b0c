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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags as absl_flags

from bahdanau_tf.commands.files import check_equal, check_tokenize_flag, doubts, few_pairs
from bahdanau_tf.commands.flags import (
    Group,
    Modules,
    Threads,
    check_file,
    check_folder,
    check_outside_models,
    refuse,
    require,
)
from bahdanau_tf.commands.train_flags import (
    FILE,
    OF_DEV_TEXT,
    TEXTS,
    TEXTS_FILE,
    Options,
    change_flags,
    choose,
    given_values,
    options,
    read_flags,
    values_of,
    write_flags,
    write_texts,
)
from bahdanau_tf.data.columns import (
    SIDES,
    check_columns,
    check_is_text,
    column_paths,
    is_table,
    write_columns,
)
from bahdanau_tf.data.held_out import TYPICAL, measure
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions, fitted
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.options.fine_tuning import TYPICAL_MODEL
from bahdanau_tf.options.fitted import Choice
from bahdanau_tf.system.files import check_regular
from bahdanau_tf.system.lines import count_lines
from bahdanau_tf.system.ranges import Range
from bahdanau_tf.system.terminal import StatusLine, amount

if TYPE_CHECKING:
    import tensorflow as tf

    from bahdanau_tf.training import Start, TrainingFiles, TrainingPlan, TrainingResult
    from bahdanau_tf.training.cluster import Cluster

DATA_VARIABLE = "BAHDANAU_TF_DATA"
CHOSEN = fitted.CHOSEN


@dataclass(frozen=True)
class _Files(OptionGroup):
    train_source: str | None = option(
        "training text, source side; needed in a new --model_dir; FILE.tsv, without "
        "--train_target, is a table of both sides, a sentence, a tab and its translation in "
        "each line"
    )
    train_target: str | None = option("training text, target side; needed in a new --model_dir")
    dev_source: str | None = option(
        "dev text, source side, to choose the best model; FILE.tsv as for --train_source"
    )
    dev_target: str | None = option("dev text, target side")
    model_dir: str | None = option("folder of the model; made if it does not exist", required=True)
    data_dir: str | None = option(
        f"folder of the text files; default: the environment variable {DATA_VARIABLE}, else "
        "the current folder"
    )
    corpus: str | None = option(
        "folder of the text files in --data_dir, if that holds several corpora; ignored if it "
        "does not exist"
    )
    init_from: str | None = option(
        "folder of a trained model, that of an earlier training or a saved translator, with "
        "whose weights and tokenizers a new training begins; a copy is kept in --model_dir"
    )
    recipe: str | None = option(
        "name of a file of flags in the package, such as multi30k-en-fr or paper; later flags "
        "override it, and nothing is chosen from the text"
    )
    tensorboard: bool = option(
        "whether to write curves and alignments for TensorBoard to the folder tensorboard in "
        "--model_dir",
        False,
    )
    dev_pairs: int = option(
        "number of training pairs that are held out as dev text; 0 for none", 0, Range(0, 10**9)
    )
    added_words: int = option(
        "number of words that --init_from adds to the vocabulary of each side, the most "
        "frequent unknown ones of the training text (not for sub-words, which can write any "
        "word)",
        0,
        Range(0, 10**9),
    )


GROUPS = (
    Group(_Files),
    Group(TextOptions, "Text"),
    Group(ModelOptions, "Model"),
    Group(Modules, "Model"),
    Group(Recipe, "Training"),
    Group(Threads, "Training"),
)


def define(flags: absl_flags.FlagValues) -> None:
    """Defines the flags of the command."""
    for group in GROUPS:
        group.define(flags)


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
        # A resumed run may have another current folder.
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
            "itself: leave it out to resume that training, or name "
            "another --model_dir to start a new one"
        )


def _recall_texts(flags: absl_flags.FlagValues) -> None:
    """Without any text file, those of the training in --model_dir are taken."""
    path = Path(flags.model_dir) / TEXTS_FILE
    if path.is_file() and all(flags[name].value is None for name in TEXTS):
        for name, value in read_flags(path, define, TEXTS).items():
            flags[name].value = value


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


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
    from bahdanau_tf.system.device import use_threads
    from bahdanau_tf.training.cluster import Cluster, several_workers, strategy_of_environment

    if several_workers():
        refuse(flags, ["accumulate"], "with several workers in TF_CONFIG")
    use_threads(flags.threads)  # before any operation of TensorFlow
    strategy = strategy_of_environment()
    cluster = Cluster(strategy)
    check_tokenize_flag(flags)
    if cluster.is_chief:
        result = _train_as_chief(flags, strategy, cluster)
        print(result)
        if result.stopped_by == "minutes":
            StatusLine().note("the same command with more --minutes resumes it")
    else:
        cluster.wait()  # until the chief has prepared the folder
        result = _train_as_another(flags, strategy)
    return 130 if result.stopped_by == "signal" else 0


def _train_as_chief(
    flags: absl_flags.FlagValues,
    strategy: tf.distribute.Strategy,
    cluster: Cluster,
) -> TrainingResult:
    """Prepares the folder and trains in it, alone or with other workers."""
    import keras

    from bahdanau_tf.training import Start, TrainingFiles, is_begun, locked, train

    files, model_dir = TrainingFiles(**paths(flags)), Path(flags.model_dir)
    written = model_dir / FILE
    choices: list[Choice] = []
    values: dict[str, Any] = {}
    is_new = not is_begun(model_dir)
    start = None
    _read_tables(flags, model_dir, is_new)
    if is_new:
        dev_lines = _dev_lines(files)
        for doubt in doubts(paths(flags)):
            StatusLine().note(doubt)
        if flags.init_from is not None:
            start = Start(flags.init_from, flags.added_words)
        choices = _choices(flags, files, dev_lines, start)
        values = values_of(choices)
    else:
        values = _chosen_before(flags, written)
    found = options(flags, values)
    plan = _plan(found, files, model_dir)
    unused = {*_unused_by_parts(flags, plan.model)}
    if start is not None:
        plan = replace(plan, start=start)  # its translator is loaded already
    if plan.texts.dev_source is None:
        unused |= {*OF_DEV_TEXT}
    used = found.values(without=unused)
    with locked(model_dir):
        translator = plan.prepare()
        if is_new:
            write_flags(written, choices, given_values(flags), used)
            StatusLine().note(f"all flags of this training: {written}")
            if start is None:
                for doubt in few_pairs(files.train_source, files.train_target):
                    StatusLine().note(doubt)
        cluster.wait()
        if strategy.num_replicas_in_sync > 1:
            with strategy.scope():
                translator = plan.load()
        remember = keras.callbacks.LambdaCallback(
            on_train_begin=lambda _: _remember(model_dir, files, used)
        )
        return train(
            translator,
            plan.texts,
            plan.recipe,
            model_dir,
            flags.tensorboard,
            [remember],
        )


def _read_tables(flags: absl_flags.FlagValues, model_dir: Path, is_new: bool) -> None:
    """Writes the columns of tables into the folder, as `paths` names them."""
    from bahdanau_tf.training import locked

    for name, table in tables(flags).items():
        with locked(model_dir):
            if is_new:
                write_columns(table, model_dir, name)
            else:
                check_columns(table, model_dir, name)


def _dev_lines(files: TrainingFiles) -> int | None:
    """The number of lines of the dev text, if there is one.

    Raises:
        ValueError: Source and target differ in it.
    """
    if files.dev_source is None or files.dev_target is None:
        return None
    source, target = map(count_lines, (files.dev_source, files.dev_target))
    check_equal("--dev_source", source, "--dev_target", target)
    return source


def _remember(model_dir: Path, files: TrainingFiles, used: Mapping[str, object]) -> None:
    """Writes texts and flags for the commands that resume without them."""
    from bahdanau_tf.training.folder import FREE

    given = {name: path for name, path in vars(files).items() if path}
    write_texts(model_dir / TEXTS_FILE, given)
    written = model_dir / FILE
    if not written.is_file():
        return  # an earlier version, or Python, made the folder
    before = read_flags(written, define)
    changed = {name: used[name] for name in FREE if name in used and used[name] != before.get(name)}
    if changed:
        change_flags(written, changed)


def _train_as_another(
    flags: absl_flags.FlagValues, strategy: tf.distribute.Strategy
) -> TrainingResult:
    """Trains with a chief, which writes; its choices are in the folder."""
    from bahdanau_tf.training import TrainingFiles, train

    files, model_dir = TrainingFiles(**paths(flags)), Path(flags.model_dir)
    values = _chosen_before(flags, model_dir / FILE)
    plan = _plan(options(flags, values), files, model_dir)
    with strategy.scope():
        translator = plan.load()
    return train(translator, plan.texts, plan.recipe, model_dir)


def _plan(found: Options, files: TrainingFiles, model_dir: Path) -> TrainingPlan:
    from bahdanau_tf.training import Start, TrainingPlan

    text, model, recipe, dev_pairs, init_from, added_words = found
    start = None if init_from is None else Start(init_from, added_words)
    return TrainingPlan(text, model, recipe, files, model_dir, dev_pairs, start)


def _choices(
    flags: absl_flags.FlagValues,
    files: TrainingFiles,
    dev_lines: int | None,
    start: Start | None,
) -> list[Choice]:
    """Chooses what the user did not give, and says it."""
    from bahdanau_tf.system.device import has_gpu, product_rate
    from bahdanau_tf.training.step import cores_at_once

    if flags.recipe is not None:
        return []
    # Classes of the user's own are tried before the text is read.
    model = options(flags, values_of(choose(flags, TYPICAL))).model
    unused = _unused_by_parts(flags, model)
    model.try_parts()
    facts = measure(ParallelCorpus(files.train_source, files.train_target))
    model_known = start.known if start else TYPICAL_MODEL
    known: dict[str, Any] = {"cores": cores_at_once(), "has_gpu": has_gpu()}
    if not known["has_gpu"]:
        known["product_rate"] = product_rate()
    if dev_lines is not None:
        known["dev_lines"] = dev_lines
    choices = choose(flags, facts, model_known, known)
    if choices:
        line = StatusLine()
        line.note(f"chosen to fit {amount(facts.pairs, 'sentence pair')}:")
        for choice in choices:
            line.note(f"  {choice.reason}")
    return [choice.without(unused) for choice in choices]


def _unused_by_parts(flags: absl_flags.FlagValues, model: ModelOptions) -> Collection[str]:
    """Names of options that the named parts do not use; refused if given."""
    unused = model.unused_by_parts()
    for name, where in unused.items():
        refuse(flags, [name], f"with {where}")
    return unused


def _chosen_before(flags: absl_flags.FlagValues, written: Path) -> dict[str, object]:
    """What was chosen when the folder was made, and is not given now.

    Raises:
        ValueError: It names a module, which the user has not named: a folder
            from elsewhere must not choose what runs.
    """
    if flags.recipe is not None or not written.is_file():
        return {}
    given = given_values(flags)
    values = read_flags(written, define)
    values = {name: values[name] for name in values if name not in given}
    for part in ("attention", "cell"):
        module = str(values.get(part, "")).rpartition(".")[0]
        is_ours = module.partition(".")[0] in ("", "bahdanau_tf", "keras")
        if not is_ours and module not in flags.modules:
            raise ValueError(
                f"{written} has --{part}={values[part]}, a class of the "
                f"module {module}; if you trust that module, give "
                f"--modules={module}"
            )
    return values
