"""Trains the teachers of a model, and lets them translate its text: the option `distil`.

Each is a command that a user could type, in a folder of its own in that of the model:

    teachers/text/       the text and the dev text that was held out of it, if any
    teachers/forward-1/  the first teacher, with its train.log; forward-3, ...
    teachers/backward-2/ every second one, which translates the targets back; backward-4, ...
    distilled/           what `distil` writes with them, the training text of the model

A part that is complete is not made again; one that was interrupted resumes.
"""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bahdanau_tf.data.parallel import OUTPUTS, SIDES, ParallelCorpus, write_columns
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.options.training import FILE, OF_DEV_TEXT, OF_MODEL, TEXTS, read_options, refuse
from bahdanau_tf.system import lines
from bahdanau_tf.system.cores import core_count
from bahdanau_tf.system.ranges import Range, Refusal, as_flag, named
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.training.ask import Training

TEACHERS, DISTILLED = "teachers", "distilled"
# What is said of one side is said of the other by a model that translates back.
_OF_SIDES = {
    "source_language": "target_language",
    "source_vocabulary_size": "target_vocabulary_size",
    "tokenizer": "target_tokenizer",
}


@dataclass(frozen=True)
class Distillation(OptionGroup):
    """Whether a model learns from others."""

    distil: int = option(
        "number of teachers, models with other seeds that are trained first; every second one "
        "translates back; the model learns from the text and their translations of it; limits such "
        "as --minutes hold for each training",
        0,
        Range(0, 100),
    )


def check(asked: Training) -> None:
    """Raises for mistakes that would otherwise be found after hours."""
    distil = named("distil")
    refuse(asked.user_options, ["init_from"], f"with {distil}")
    if "TF_CONFIG" in os.environ:
        raise Refusal("fit", f"{distil}: TF_CONFIG is set, wanted a single machine")
    is_begun = (asked.model_dir / "training.json").is_file()
    if is_begun and not all(path.is_file() for path in _distilled(asked).values()):
        raise Refusal(
            "fit",
            f"{distil}: {asked.model_dir} was trained without teachers, wanted another folder",
        )


def _distilled(asked: Training) -> dict[str, Path]:
    """The files of what the teachers have translated, by flag."""
    folder = (asked.model_dir / DISTILLED).absolute()
    return {name: folder / output for name, output in zip(TEXTS[:2], OUTPUTS, strict=True)}


def _turned(texts: Mapping[str, str]) -> dict[str, str]:
    """Texts whose sides have changed places."""
    other = dict(zip(TEXTS, (TEXTS[1], TEXTS[0], TEXTS[3], TEXTS[2]), strict=True))
    return {other[name]: path for name, path in texts.items()}


def _options_back(asked: Training) -> dict[str, Any]:
    """The user's options for the other direction."""
    options = {n: v for n, v in asked.user_options.items() if n != "decompose_source"}
    values = options if asked.recipe_name is None else asked.values()
    for one, other in _OF_SIDES.items():
        # A size or a tokenizer of the source alone is that of both sides.
        if values.get(other, "same") != "same" or one == "source_language":
            options |= {one: values.get(other), other: values.get(one)}
    return {name: value for name, value in options.items() if value is not None}


def with_teachers(asked: Training, count: int) -> Training:
    """Trains teachers, and has them translate, if need be; returns the training of the model.

    That has the teachers' tokenizers, sizes and dropout, unless the user asks for others.
    """
    files = _distilled(asked)
    if asked.texts["train_source"] == str(files["train_source"]):
        return asked  # it resumes, and the user names no text
    training, texts = _prepared(asked, count)
    if not all(path.is_file() for path in files.values()):
        teachers = _trained(training, texts, count)
        _translate(training, texts, teachers)
    options = read_options(asked.model_dir / TEACHERS / "forward-1" / FILE)
    options = {name: options[name] for name in OF_MODEL if name in options}
    dev = {name: path for name, path in texts.items() if name not in files}
    texts = dev | {name: str(path) for name, path in files.items()}
    return replace(asked, texts=texts, user_options={**options, **_without_dev(asked, dev)})


def _without_dev(asked: Training, dev: Mapping[str, str]) -> dict[str, Any]:
    """The user's options, for a text of which no pairs are to be held out."""
    left_out = ["dev_pairs"] if dev else ["dev_pairs", *OF_DEV_TEXT]
    options = {n: v for n, v in asked.user_options.items() if n not in left_out}
    return options if dev else options | {"dev_pairs": 0}


def _prepared(asked: Training, count: int) -> tuple[Training, dict[str, str]]:
    """The training of a teacher, chosen for the text, and the paths of all texts.

    The same pairs are held out for all, and tables are divided into their columns.
    """
    from bahdanau_tf.system.device import use_threads
    from bahdanau_tf.training.folder import HELD_OUT, check_settings, of_held_out, write_settings
    from bahdanau_tf.training.prepare import DIVIDED
    from bahdanau_tf.training.text import divided, doubts, few_pairs, hold_out, measure

    # The teachers need memory of a GPU while this process waits for them.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    use_threads(asked.threads)
    folder = asked.model_dir / TEACHERS
    folder.mkdir(parents=True, exist_ok=True)
    training = replace(asked, model_dir=folder)
    for name, table in training.tables.items():
        write_columns(table, folder, name)
    texts = {name: str(Path(path).absolute()) for name, path in training.paths.items()}
    corpus = ParallelCorpus(texts["train_source"], texts["train_target"])
    facts, keys = measure(corpus)
    for remark in (*doubts(corpus, None, keys), *(() if facts.is_short else few_pairs(keys))):
        StatusLine().note(remark)
    training = training.chosen(facts)
    settings = {"distil": count, **of_held_out(training.dev_pairs, corpus)}
    if (folder / HELD_OUT).is_file():
        check_settings(folder / HELD_OUT, settings)
    elif training.dev_pairs:
        most = training.recipe.max_length
        pairs = hold_out(corpus, keys, folder / DIVIDED, training.dev_pairs, most)
        StatusLine().note(f"{amount(pairs, 'pair')} held out of every training as the dev text")
    write_settings(folder / HELD_OUT, settings)
    if training.dev_pairs:
        texts = divided((folder / DIVIDED).absolute())
    return training, texts


def _trained(training: Training, texts: dict[str, str], count: int) -> dict[str, list[str]]:
    """Trains the teachers; returns their folders, "forward" and "backward"."""
    from bahdanau_tf.training.processes import Plan, Record, train_all

    jobs = min(count, training.threads or core_count())
    trainings = math.ceil(count / jobs) + 1
    plan = f"{amount(count, 'teacher')}, {jobs} at a time, then their translations, then the model"
    if minutes := training.recipe.minutes:
        total = f"{amount(minutes * trainings, 'minute')} and the translations in all"
        plan += f"; at most {amount(minutes, 'minute')} for each training, {total}"
    StatusLine().note(plan)
    dev = {name: path for name, path in texts.items() if name.startswith("dev")}
    plans, directions = [], ("forward", "backward")
    for number in range(count):
        is_back = number % 2
        asked = replace(training, user_options=_options_back(training)) if is_back else training
        options = _without_dev(asked, dev) | {"seed": training.recipe.seed + 1 + number}
        flags = {**options, **(_turned(texts) if is_back else texts)}
        recipe = [] if asked.recipe_name is None else [f"--recipe={asked.recipe_name}"]
        threads = None if asked.threads is None else max(asked.threads // jobs, 1)
        words = [*recipe, *(as_flag(*flag) for flag in flags.items()), *_common(asked, threads)]
        plans.append(Plan(f"{directions[is_back]} {number + 1}", tuple(words)))
    train_all(plans, training.model_dir, 0.0, jobs)
    folders = [str(training.model_dir / plan.folder) for plan in plans]
    if not all(Record.read(Path(folder)).is_over for folder in folders):
        raise Refusal("fit", f"{named('distil')}: a teacher was stopped; the same again continues")
    return dict(zip(directions, (folders[::2], folders[1::2]), strict=True))


def _common(asked: Training, threads: int | None) -> list[str]:
    """Flags of every command."""
    flags = {"modules": ",".join(asked.modules), "threads": threads}
    given = [as_flag(name, value) for name, value in flags.items() if value]
    return [*given, as_flag("max_line_bytes", lines.longest_line)]


def _translate(training: Training, texts: dict[str, str], teachers: dict[str, list[str]]) -> None:
    """Writes the training text of the model."""
    from bahdanau_tf.training.processes import COMMAND

    flags = {"model_dir": teachers["forward"], "backward_model_dir": teachers["backward"]}
    words = [as_flag(name, folders) for name, folders in flags.items() if folders]
    words += [as_flag(f"train_{side}", texts[f"train_{side}"]) for side in SIDES]
    words += [as_flag("out_dir", training.model_dir.parent / DISTILLED)]
    StatusLine().note("the teachers translate the text")
    command = [*COMMAND, "distil", *words, *_common(training, training.threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        if process.wait():
            raise Refusal("fit", f"{named('distil')}: the teachers' translations failed, see above")
