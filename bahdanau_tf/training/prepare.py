"""Fills the folder of a new training, checks one that was begun, makes what is trained from it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import keras
import numpy as np

from bahdanau_tf.data.parallel import SIDES, ParallelCorpus, check_columns, write_columns
from bahdanau_tf.models.named import make_model, try_parts
from bahdanau_tf.options import training as options
from bahdanau_tf.options.facts import TYPICAL, Facts
from bahdanau_tf.system.device import has_gpu, product_rate
from bahdanau_tf.system.ranges import OptionError, Refusal, named
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.text import load_text
from bahdanau_tf.training import folder, start, text as texts
from bahdanau_tf.training.ask import Training
from bahdanau_tf.training.schedule import Schedule
from bahdanau_tf.training.update import cores_at_once
from bahdanau_tf.translator import Translator

DIVIDED = "text"  # in the folder: texts of which pairs were held out

Texts: TypeAlias = "tuple[ParallelCorpus, ParallelCorpus | None]"
Prepared: TypeAlias = "tuple[Training, ParallelCorpus, ParallelCorpus | None]"


def prepare(training: Training) -> Prepared:
    """Fills a new folder, or checks that a folder holds this training; it is locked.

    Returns:
        The training with all options, the text to train on, and the dev text, or None.

    Raises:
        ValueError: A text cannot be used, or the folder has a model with other settings.
    """
    model_dir = training.model_dir
    if (model_dir / "translator.json").exists():
        why = "which holds a translator"
        raise OptionError("Training", "model_dir", str(model_dir), "a folder to train in", why)
    return _resume(training) if folder.is_begun(model_dir) else _begin(training)


def _begin(asked: Training) -> Prepared:
    """Fills a new folder.

    It gets a dev text if pairs are held out, tokenizers, learned from the text, or a copy of the
    model `init_from`, and `train.flags`, all options with the reasons of those chosen. They are
    written after the files were checked.
    """
    model_dir, init_from = asked.model_dir, asked.start.init_from
    typical = asked.chosen(TYPICAL)
    unused = _try_parts(typical)
    Schedule(typical.recipe, 1.0)  # raises if there is none
    trained = start.load_start(init_from) if init_from else None
    if trained is not None:
        start.dropout_of(asked, trained.model)  # raises if it has no such dropout
    for name, table in asked.tables.items():
        write_columns(table, model_dir, name)
    corpus, dev = _index(asked.paths)
    facts, keys = texts.measure(corpus)
    for doubt in texts.doubts(corpus, dev, keys):
        StatusLine().note(doubt)
    sizes = {} if trained is None else start.new_vocabularies(trained, corpus, facts)
    others = {} if trained is None else start.options_of(trained, sizes)
    training = _choose(asked, facts, dev, others, unused)
    (model_dir / folder.HELD_OUT).unlink(missing_ok=True)
    with contextlib.ExitStack() as undo:
        if training.dev_pairs:
            corpus, dev = _hold_out(training, corpus, keys, undo)
        if trained is None:
            texts.write_tokenizers(training, corpus)
        else:
            start.copy_start(trained, training, corpus, sizes)
        undo.pop_all()
    file = model_dir / options.FILE
    values = {name: value for name, value in training.values().items() if name not in unused}
    options.write_options(file, training.choices, training.user_options, values)
    options.write_texts(model_dir / options.TEXTS_FILE, asked.paths)
    StatusLine().note(f"all flags of this training: {file}")
    if trained is None and not facts.is_short:
        few = [*texts.few_pairs(keys)]
        is_free = asked.recipe_name is None and not {*options.OF_TRAINED} & {*asked.user_options}
        for remark in (*few, *(texts.known_start(corpus) if few and is_free else ())):
            StatusLine().note(remark)
    return replace(asked, recalled=values), corpus, dev  # as a later run reads it


def _resume(asked: Training) -> Prepared:
    """Checks that a folder that was begun holds this training, as far as its text goes.

    `ModelFolder.restore` compares everything else.
    """
    for name, table in asked.tables.items():
        check_columns(table, asked.model_dir, name)
    training = _recalled(asked)
    _try_parts(training)
    start.check_start(training)
    if training.start.init_from is None:
        texts.check_tokenizers(training)
    _check_held_out(training)
    return training, *_texts(training)


def prepared(asked: Training) -> Prepared:
    """What `prepare` returned to the chief of several machines, for another worker."""
    training = _recalled(asked)
    return training, *_texts(training)


def _recalled(training: Training) -> Training:
    """The training with those options of the folder that the user does not give now.

    A module that only they name is an error: a folder from elsewhere must not choose what runs.
    """
    file = training.model_dir / options.FILE
    if training.recipe_name is not None or not file.is_file():
        return training
    recalled = options.read_options(file)
    recalled = {n: value for n, value in recalled.items() if n not in training.user_options}
    for part in ("attention", "cell"):
        module = str(recalled.get(part, "")).rpartition(".")[0]
        is_ours = module.partition(".")[0] in ("", "bahdanau_tf", "keras")
        if not is_ours and module not in training.modules:
            raise Refusal(
                "fit",
                f"{file} has {named(part, recalled[part])}, a class of the module {module}; "
                f"if you trust that module, set {named('modules', [module])}",
            )
    return replace(training, recalled=recalled)


def _try_parts(training: Training) -> Collection[str]:
    """Tries the user's classes; returns the options that they do not use."""
    unused = try_parts(training.model)
    for name, where in unused.items():
        options.refuse(training.user_options, [name], f"with {where}")
    return unused


def _choose(
    training: Training,
    facts: Facts,
    dev: ParallelCorpus | None,
    trained: Mapping[str, Any],
    unused: Collection[str],
) -> Training:
    """Chooses the options that the user did not give, to fit the text, and reports them.

    `trained` has those of a trained model that the training starts from. Options that are `unused`
    are not chosen; with a recipe none is.
    """
    if training.recipe_name is not None:
        return training
    others: dict[str, Any] = {"cores": cores_at_once(), "has_gpu": has_gpu()}
    if not others["has_gpu"]:
        others["product_rate"] = product_rate()
    if dev is not None:
        others["dev_lines"] = dev.lines
    training = training.chosen(facts, {**others, **trained}, unused)
    if training.choices:
        StatusLine().note(f"chosen to fit {amount(facts.pairs, 'pair')}:")
    for choice in training.choices:
        StatusLine().note(f"  {choice.reason}")
    return training


# The text, without the pairs that are held out.


def _texts(training: Training) -> Texts:
    """Indexes the text to train on, and the dev text; in the folder if pairs are held out."""
    divided = texts.divided(training.model_dir / DIVIDED)
    return _index(divided if training.dev_pairs else training.paths)


def _index(paths: Mapping[str, str]) -> Texts:
    train, dev = ([paths.get(f"{name}_{side}") for side in SIDES] for name in ("train", "dev"))
    return ParallelCorpus(*map(str, train)), ParallelCorpus(*map(str, dev)) if all(dev) else None


def _hold_out(
    training: Training, corpus: ParallelCorpus, keys: np.ndarray, undo: contextlib.ExitStack
) -> Texts:
    """Divides a text; returns the rest, to train on, and the dev text."""
    parts = training.model_dir / DIVIDED
    pairs = texts.hold_out(corpus, keys, parts, training.dev_pairs, training.recipe.max_length)
    undo.callback(shutil.rmtree, parts, ignore_errors=True)
    count = amount(pairs, "pair")
    StatusLine().note(f"dev text: {parts / 'dev.source'} and dev.target, {count}")
    file = training.model_dir / folder.HELD_OUT
    undo.callback(file.unlink, missing_ok=True)
    folder.write_settings(file, folder.of_held_out(training.dev_pairs, corpus))
    return _texts(training)


def _check_held_out(training: Training) -> None:
    """Raises a ValueError unless the same pairs of the same text were held out."""
    model_dir, dev_pairs = training.model_dir, training.dev_pairs
    path = model_dir / folder.HELD_OUT
    if path.is_file() and (dev_source := training.paths.get("dev_source")):
        raise Refusal(
            "train",
            f"{named('dev_source')} is {dev_source}, but the dev text of {model_dir} was "
            f"held out of its training text; leave {named('dev_source')} and {named('dev_target')} "
            "out to resume, or name another folder",
        )
    if path.is_file():
        folder.check_settings(path, folder.of_held_out(dev_pairs, _index(training.paths)[0]))
    elif dev_pairs:
        raise Refusal(
            "train",
            f"{named(folder.DEV_PAIRS)} is {dev_pairs}, but none were held out of the training "
            f"text of {model_dir}; leave it out to resume, or name another folder",
        )


# For later runs, and for the loop.


def remember(training: Training) -> None:
    """Writes what later runs need not name: the texts, and options that may have changed."""
    values = training.values()
    free = {name: values[name] for name in folder.FREE if name in values}
    options.change_options(training.model_dir / options.FILE, free)
    options.write_texts(training.model_dir / options.TEXTS_FILE, training.paths)


def load(training: Training) -> Translator:
    """Makes the translator of a folder that was prepared, the same one in each process.

    In the scope of a `tf.distribute` strategy its model is trained by it. If the folder was not
    prepared, it raises a ValueError.
    """
    model_dir = training.model_dir
    if not (model_dir / folder.TEXT).is_file():
        raise Refusal(
            "fit",
            f"{named('model_dir')}: {model_dir} lacks the files that the chief has written, wanted "
            "a folder that all machines share",
        )
    keras.utils.set_random_seed(training.recipe.seed)
    if training.start.init_from is not None:
        return start.of_folder(training)
    source, target = (load_text(model_dir / side) for side in SIDES)
    model = make_model(training.model, source.vocabulary_size, target.vocabulary_size)
    start.learn_copies(model, source, target)
    return Translator(model, source, target)
