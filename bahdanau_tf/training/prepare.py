"""Fills the folder of a training from its text, and makes what is trained from the folder."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import keras

from bahdanau_tf.data.parallel import SIDES, ParallelCorpus, check_columns, write_columns
from bahdanau_tf.models.named import make_model, try_parts
from bahdanau_tf.options import training as options
from bahdanau_tf.options.facts import TYPICAL, Facts
from bahdanau_tf.options.model import SUBWORDS
from bahdanau_tf.system.device import has_gpu, product_rate
from bahdanau_tf.system.ranges import OptionError, Refusal, named
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.text import WordTokenizer, load_text
from bahdanau_tf.text.subwords import copies
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.training import folder, text as texts
from bahdanau_tf.training.ask import DIVIDED, Training, is_begun
from bahdanau_tf.training.start import START, copy_start, load_start, options_of, settings_of
from bahdanau_tf.training.update import cores_at_once
from bahdanau_tf.translator import Translator

TOKEN_BYTES = 32  # of a token and the space after it; on average they have fewer


def prepare(training: Training) -> tuple[ParallelCorpus, ParallelCorpus | None]:
    """Fills a new folder, or checks that a folder holds this training; it is locked.

    The options that it chooses are in the folder, from which `Training.recall` reads them.

    Returns:
        The text to train on, and the dev text, or None.

    Raises:
        ValueError: A text cannot be used, or the folder has a model with other settings.
    """
    model_dir = training.model_dir
    if (model_dir / "translator.json").exists():
        why = "which holds a translator"
        raise OptionError("Training", "model_dir", str(model_dir), "a folder to train in", why)
    is_new = not is_begun(model_dir)
    for name, table in training.tables.items():
        (write_columns if is_new else check_columns)(table, model_dir, name)
    # The user's classes are tried before the text is read.
    training = training.chosen(TYPICAL) if is_new else training.recall()
    unused = try_parts(training.model)
    for name, where in unused.items():
        options.refuse(training.user_options, [name], f"with {where}")
    if is_new:
        return _fill(training, unused)
    _check_begun(training)
    return training.divided()


def _check_begun(training: Training) -> None:
    """Raises a ValueError unless a folder holds this training.

    It started with the same model, or with the same options of the text, and holds out the same
    pairs of the same text. `ModelFolder.restore` compares everything else.
    """
    model_dir, dev_pairs = training.model_dir, training.dev_pairs
    before = folder.read_settings(model_dir / folder.TEXT)
    for name, new in settings_of(training.start).items():
        old = before.get(name)
        is_same = old == new
        if name == "init_from" and old and new:  # however the path is written
            is_same = os.path.realpath(str(old)) == os.path.realpath(str(new))
        if not is_same:
            raise folder.Change(name, old, new).refusal(model_dir)
    if training.start.init_from is None:
        text = asdict(training.text)
        guessed = ("source_language", "target_language", "true_case")
        text |= {name: before.get(name) for name in guessed if text[name] is None}
        folder.check_settings(model_dir / folder.TEXT, text)
    path = model_dir / folder.HELD_OUT
    if path.is_file() and (dev_source := training.paths.get("dev_source")):
        raise Refusal(
            "train",
            f"{named('dev_source')} is {dev_source}, but the dev text of {model_dir} was "
            f"held out of its training text; leave {named('dev_source')} and {named('dev_target')} "
            "out to resume, or name another folder",
        )
    if path.is_file():
        folder.check_settings(path, folder.of_held_out(dev_pairs, training.corpora()[0]))
    elif dev_pairs:
        raise Refusal(
            "train",
            f"{named(folder.DEV_PAIRS)} is {dev_pairs}, but none were held out of the training "
            f"text of {model_dir}; leave it out to resume, or name another folder",
        )


def _fill(
    training: Training, unused: Mapping[str, str]
) -> tuple[ParallelCorpus, ParallelCorpus | None]:
    """Fills a new folder; returns the text to train on, and the dev text, or None.

    It gets a dev text if pairs are held out, tokenizers, learned from the text, or a copy of the
    model `init_from`, and `train.flags`, all options with the reasons of those chosen. They are
    written after the files were checked. Options that are `unused` are not chosen.
    """
    model_dir, init_from = training.model_dir, training.start.init_from
    trained = load_start(init_from) if init_from else None
    corpus, dev = training.corpora()
    facts, keys = texts.measure(corpus)
    for doubt in texts.doubts(corpus, dev, keys):
        StatusLine().note(doubt)
    if training.recipe_name is None:
        training = _choose(training, facts, dev, trained, unused)
    (model_dir / folder.HELD_OUT).unlink(missing_ok=True)
    with contextlib.ExitStack() as undo:
        if training.dev_pairs:
            # A few lines that surely have too many tokens would decide the score.
            longest = TOKEN_BYTES * training.recipe.max_length or None
            parts = model_dir / DIVIDED
            pairs = texts.hold_out(corpus, keys, parts, training.dev_pairs, longest)
            undo.callback(shutil.rmtree, parts, ignore_errors=True)
            note = f"dev text: {parts / 'dev.source'} and dev.target, {amount(pairs, 'pair')}"
            StatusLine().note(note)
            settings = folder.of_held_out(training.dev_pairs, corpus)
            corpus, dev = training.divided()
        sides = (
            _learn(training, corpus) if trained is None else copy_start(trained, training, corpus)
        )
        undo.pop_all()
    for side, path, text in zip(SIDES, corpus.names, sides, strict=True):
        wanted = training.text.size_of(side) if trained is None and text.kind in SUBWORDS else 0
        note = f"{side} vocabulary: {amount(text.vocabulary_size, 'id')}"
        if isinstance(text, WordTokenizer):
            note += f", {text.coverage([path])}"
        elif text.vocabulary_size < wanted:
            note += f", not {wanted:,}: the text has no more sub-words"
        StatusLine().note(note)
    if training.dev_pairs:
        folder.write_settings(model_dir / folder.HELD_OUT, settings)
    values = training.values([*unused, *(() if dev else options.OF_DEV_TEXT)])
    file = model_dir / options.FILE
    options.write_options(file, training.choices, training.user_options, values)
    StatusLine().note(f"all flags of this training: {file}")
    for doubt in texts.few_pairs(keys) if trained is None and not facts.is_short else ():
        StatusLine().note(doubt)
    return corpus, dev


def _choose(
    training: Training,
    facts: Facts,
    dev: ParallelCorpus | None,
    trained: Translator | None,
    unused: Mapping[str, str],
) -> Training:
    """Chooses the options that the user did not give, to fit the text, and reports them."""
    machine: dict[str, Any] = {"cores": cores_at_once(), "has_gpu": has_gpu()}
    if dev is not None:
        machine["dev_lines"] = dev.lines
    if not machine["has_gpu"]:
        machine["product_rate"] = product_rate()
    model = {} if trained is None else options_of(trained)
    training = training.chosen(facts, model, machine, unused)
    if training.choices:
        StatusLine().note(f"chosen to fit {amount(facts.pairs, 'sentence pair')}:")
    for choice in training.choices:
        StatusLine().note(f"  {choice.reason}")
    return training


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
        return Translator.load(model_dir / START)
    source, target = (load_text(model_dir / side) for side in SIDES)
    model = make_model(training.model, source.vocabulary_size, target.vocabulary_size)
    if model.copying is not None:
        model.copying.copies.assign(copies(source, target))
    return Translator(model, source, target)


def _learn(training: Training, corpus: ParallelCorpus) -> tuple[Tokenizer, Tokenizer]:
    """Writes and returns tokenizers that are learned from the text."""
    text = texts.with_languages(training.text, corpus)
    texts.check_words(text, corpus)
    StatusLine().note(f"learning the tokenizers from {amount(len(corpus), 'sentence pair')}")
    tokenizers = texts.learn(text, *corpus.names)
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(training.model_dir / side)
    folder.write_settings(training.model_dir / folder.TEXT, asdict(text))
    return tokenizers
