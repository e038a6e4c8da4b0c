"""Trains a model on parallel text files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from absl import flags as absl_flags

from bahdanau_tf.commands.common.doubtful import doubts, few_pairs
from bahdanau_tf.commands.common.lines import check_equal
from bahdanau_tf.commands.common.scoring import check_tokenize_flag
from bahdanau_tf.data.held_out import TYPICAL, measure
from bahdanau_tf.data.parallel import ParallelCorpus, check_columns, write_columns
from bahdanau_tf.flags.chosen import (
    FILE,
    TEXTS_FILE,
    change_flags,
    given_values,
    read_flags,
    write_flags,
    write_texts,
)
from bahdanau_tf.flags.fields import refuse
from bahdanau_tf.flags.train import (
    OF_DEV_TEXT,
    Options,
    choose,
    define,
    options,
    paths,
    tables,
    values_of,
)
from bahdanau_tf.options import ModelOptions
from bahdanau_tf.options.fine_tuning import TYPICAL_MODEL
from bahdanau_tf.options.fitted import Choice
from bahdanau_tf.system.device import has_gpu, product_rate, use_threads
from bahdanau_tf.system.lines import count_lines
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.training import (
    Start,
    TrainingFiles,
    TrainingPlan,
    TrainingResult,
    is_begun,
    locked,
    train,
)
from bahdanau_tf.training.cluster import Cluster, several_workers, strategy_of_environment
from bahdanau_tf.training.folder import FREE
from bahdanau_tf.training.step import cores_at_once


def run(flags: absl_flags.FlagValues) -> int:
    """Runs the command; returns the exit status."""
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
            StatusLine().note("the same command with more --minutes goes on")
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
    """Writes texts and flags for the commands that go on without them."""
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
    files, model_dir = TrainingFiles(**paths(flags)), Path(flags.model_dir)
    values = _chosen_before(flags, model_dir / FILE)
    plan = _plan(options(flags, values), files, model_dir)
    with strategy.scope():
        translator = plan.load()
    return train(translator, plan.texts, plan.recipe, model_dir)


def _plan(found: Options, files: TrainingFiles, model_dir: Path) -> TrainingPlan:
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
