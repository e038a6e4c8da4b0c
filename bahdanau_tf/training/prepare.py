"""Reads the text of a training, chooses what the user left open, and fills the folder."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.data.facts import doubts, few_pairs, measure
from bahdanau_tf.data.held_out import hold_out, keys_of
from bahdanau_tf.data.parallel import SIDES, ParallelCorpus, check_columns, write_columns
from bahdanau_tf.evaluation import has_blanks
from bahdanau_tf.models.encoder_decoder import EncoderDecoder
from bahdanau_tf.models.named import make_model, try_parts, unused_by_parts
from bahdanau_tf.models.scoring import with_added_rows
from bahdanau_tf.options import TextOptions, training as options
from bahdanau_tf.options.choices import TYPICAL, TYPICAL_MODEL
from bahdanau_tf.options.training import StartOptions
from bahdanau_tf.system.device import has_gpu, product_rate
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.ranges import OptionError, Refusal, named
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.text import SubwordTokenizer, Vocabulary, WordTokenizer, load_text
from bahdanau_tf.text.script import UNKNOWN, guess_language
from bahdanau_tf.text.subwords import copies
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.text.vocabulary import SPECIAL
from bahdanau_tf.text.words import with_added_words
from bahdanau_tf.training import folder
from bahdanau_tf.training.ask import Training, TrainingFiles
from bahdanau_tf.training.update import cores_at_once
from bahdanau_tf.translator import Translator, load_best

# In a training folder: the settings of the tokenizers, the model that the training started from,
# and texts of which pairs were held out.
TEXT, START, DIVIDED = "text.json", "start", "text"
HELD_OUT = "held_out.json"
NAMES = ("train.source", "train.target", "dev.source", "dev.target")
TOKEN_BYTES = 32  # of a token and the space after it; on average they have fewer


def prepare(training: Training) -> tuple[Training, Translator, TrainingFiles]:
    """Makes what is to be trained, in a folder that is locked.

    A new folder gets tokenizers, learned from the text or copied from `init_from`, a dev text if
    pairs are held out, and `train.flags`, all options with the reasons of those chosen. They are
    written after the files were checked and the model was made.

    Returns:
        The training with all options, the translator with the initial model, and the texts to
        train on.

    Raises:
        ValueError: A text cannot be used, or the folder has a model with other settings.
    """
    if (training.model_dir / "translator.json").exists():
        folder_name, why = str(training.model_dir), "which holds a translator"
        raise OptionError("Training", "model_dir", folder_name, "a folder to train in", why)
    is_new = not training.is_begun
    for name, table in training.tables.items():
        (write_columns if is_new else check_columns)(table, training.model_dir, name)
    # The user's classes are tried before the text is read.
    asked = training.chosen(TYPICAL) if is_new else training.recall()
    unused = unused_by_parts(asked.model)
    for name, where in unused.items():
        training.refuse([name], f"with {where}")
    try_parts(asked.model)
    if not is_new:
        return _resumed(asked)
    trained = load_start(asked.start.init_from) if asked.start.init_from else None
    files = training.files
    keys = keys_of(files.corpus)
    training = choose(training, files, keys, trained, without=unused)
    keras.utils.set_random_seed(training.recipe.seed)
    with held_out(training, files, keys) as (rest, pairs):
        if trained is None:
            translator = _learned(training, rest, pairs)
        else:
            translator = _copied(training, rest, trained)
    _report_sizes(training, translator, rest)
    values = in_effect(training, has_dev=rest.dev_source is not None)
    options.write_options(
        training.model_dir / options.FILE, training.choices, training.user_options, values
    )
    StatusLine().note(f"all flags of this training: {training.model_dir / options.FILE}")
    if trained is None:
        for doubt in few_pairs(keys):
            StatusLine().note(doubt)
    return training, translator, rest


def choose(
    training: Training,
    files: TrainingFiles,
    keys: np.ndarray,
    trained: Translator | None,
    without: Collection[str],
) -> Training:
    """Chooses the options that the user did not give, to fit the text, and reports them.

    `keys` are those of the training text. `trained` is the model to start with, if any; options
    `without` effect are not chosen.
    """
    machine: dict[str, Any] = {}
    texts = {"train": files.corpus}
    if files.dev is not None:
        machine["dev_lines"] = files.dev.lines
        texts["dev"] = files.dev
    for doubt in doubts(texts, keys):
        StatusLine().note(doubt)
    if training.recipe_name is not None:
        return training
    facts = measure(files.corpus, keys)
    machine |= {"cores": cores_at_once(), "has_gpu": has_gpu()}
    if not machine["has_gpu"]:
        machine["product_rate"] = product_rate()
    model = TYPICAL_MODEL if trained is None else _as_options(trained)
    training = training.chosen(facts, model, machine, without)
    if training.choices:
        StatusLine().note(f"chosen to fit {amount(facts.pairs, 'sentence pair')}:")
    for choice in training.choices:
        StatusLine().note(f"  {choice.reason}")
    return training


def in_effect(training: Training, has_dev: bool) -> dict[str, Any]:
    """The values of all options that have an effect, by name."""
    of_dev_text = () if has_dev else options.OF_DEV_TEXT
    return training.values(without=[*unused_by_parts(training.model), *of_dev_text])


def load(training: Training) -> Translator:
    """Makes the translator of `prepare` again, even in other processes.

    In the scope of a `tf.distribute` strategy its model is trained by it. If the folder was not
    prepared, it raises a ValueError.
    """
    model_dir = training.model_dir
    if not (model_dir / TEXT).is_file():
        raise ValueError(
            f"{named('model_dir')}: {model_dir} lacks the files that the chief has written, wanted "
            "a folder that all machines share"
        )
    keras.utils.set_random_seed(training.recipe.seed)
    if training.start.init_from is not None:
        return Translator.load(model_dir / START)
    source, target = (load_text(model_dir / side) for side in SIDES)
    return Translator(_made(training, source, target), source, target)


def _made(training: Training, source: Tokenizer, target: Tokenizer) -> EncoderDecoder:
    """A new model, which knows the words that both tokenizers spell alike if it copies."""
    model = make_model(training.model, source.vocabulary_size, target.vocabulary_size)
    if model.copying is not None:
        model.copying.copies.assign(copies(source, target))
    return model


def files_of(training: Training) -> TrainingFiles:
    """The texts to train on, of a folder that was prepared."""
    if _dev_pairs(training):
        return TrainingFiles(*(str(training.model_dir / DIVIDED / name) for name in NAMES))
    return training.files


def _resumed(training: Training) -> tuple[Training, Translator, TrainingFiles]:
    """Checks that a folder holds this training, and loads it."""
    settings, files = training.model_dir / TEXT, training.files
    if training.start.init_from is None:
        _check_start(settings, None)
        text = with_languages(training.text, files, folder.read_settings(settings))
        folder.check_settings(settings, asdict(text))
    else:
        _check_start(settings, training.start)
    _check_held_out(training, files)
    return training, load(training), files_of(training)


def _learned(training: Training, files: TrainingFiles, pairs: int) -> Translator:
    """Learns the tokenizers, makes a model for them and fills the folder."""
    text = with_languages(training.text, files, {})
    check_words(text, files)
    StatusLine().note(f"learning the tokenizers from {amount(pairs, 'sentence pair')}")
    tokenizers = learn(text, files.train_source, files.train_target)
    model = _made(training, *tokenizers)
    for tokenizer, side in zip(tokenizers, SIDES, strict=True):
        tokenizer.save(training.model_dir / side)
    folder.write_settings(training.model_dir / TEXT, asdict(text))
    return Translator(model, *(load_text(training.model_dir / side) for side in SIDES))


# Pairs that are held out as the dev text.


def _dev_pairs(training: Training) -> int:
    return 0 if "dev_source" in training.user_options else training.start.dev_pairs


@contextlib.contextmanager
def held_out(
    training: Training, files: TrainingFiles, keys: np.ndarray
) -> Iterator[tuple[TrainingFiles, int]]:
    """Divides a training text, for a new folder; an error in the block undoes it.

    Yields the texts to train on, and their number of pairs: without `dev_pairs`, the same texts.
    Lines that surely have more than `max_length` tokens are not held out: a few of them would
    decide the score.
    """
    texts, settings = training.model_dir / DIVIDED, training.model_dir / HELD_OUT
    settings.unlink(missing_ok=True)
    if not (dev_pairs := _dev_pairs(training)):
        yield files, len(files.corpus)
        return
    has_only_leftovers = texts.is_dir() and {x.name for x in texts.iterdir()} <= {*NAMES}
    if texts.exists() and not has_only_leftovers:
        raise ValueError(
            f"{named('model_dir')}: {texts}, for the dev and training text, exists already; name "
            f"another folder, or set {named('dev_source')} and {named('dev_target')}"
        )
    try:
        max_length = training.recipe.max_length
        longest = TOKEN_BYTES * max_length if max_length else None
        pairs, left = hold_out(files.corpus, dev_pairs, texts, longest, keys)
        rest = files_of(training)
        StatusLine().note(f"dev text: {rest.dev_source} and {NAMES[3]}, {amount(pairs, 'pair')}")
        yield rest, left
        folder.write_settings(settings, _as_settings(files.corpus, dev_pairs))
    except BaseException:
        shutil.rmtree(texts, ignore_errors=True)
        raise


def _check_held_out(training: Training, files: TrainingFiles) -> None:
    """Raises a ValueError unless a training to resume holds out the same pairs of its text."""
    model_dir = training.model_dir
    path, dev_pairs = model_dir / HELD_OUT, _dev_pairs(training)
    if path.is_file() and files.dev_source is not None:
        raise ValueError(
            f"{named('dev_source')} is {files.dev_source}, but the dev text of {model_dir} was "
            f"held out of its training text; leave {named('dev_source')} and {named('dev_target')} "
            "out to resume, or name another folder"
        )
    if path.is_file():
        folder.check_settings(path, _as_settings(files.corpus, dev_pairs))
    elif dev_pairs:
        raise ValueError(
            f"{named(folder.DEV_PAIRS)} is {dev_pairs}, but none were held out of the training "
            f"text of {model_dir}; leave it out to resume, or name another folder"
        )


def _as_settings(corpus: ParallelCorpus, dev_pairs: int) -> dict[str, object]:
    return {folder.DEV_PAIRS: dev_pairs, folder.TRAINING_TEXT: corpus.checksum}


# The trained model that a training starts from.


def load_start(init_from: str) -> Translator:
    """The translator of a folder; raises ValueError if there is none that can be trained."""
    try:
        translator = load_best(init_from)
    except Refusal as error:
        raise ValueError(f"{named('init_from')}: {error.what}") from error
    if not isinstance(translator.model, keras.Model) or len(translator.source_texts) != 1:
        raise ValueError(
            f"{named('init_from')}: {init_from} holds an ensemble, wanted a single model"
        )
    return translator


def _as_options(trained: Translator) -> dict[str, object]:
    """The sizes and the tokenizer of a trained model, as options on which others depend."""
    texts = trained.source_text, trained.target_text
    model: keras.Model = trained.model
    units = model.get_config().get("units")
    return {
        "tokenizer": "word" if isinstance(texts[0], WordTokenizer) else "bpe",
        "source_vocabulary_size": texts[0].vocabulary_size,
        "target_vocabulary_size": texts[1].vocabulary_size,
        **({"units": units} if isinstance(units, int) else {}),
    }


def _copied(training: Training, files: TrainingFiles, trained: Translator) -> Translator:
    """Copies a trained translator into the folder, with added words.

    It has no lexicon, which describes how another model translates words.
    """
    start = training.start
    if training.recipe.sample_subwords and isinstance(trained.source_text, WordTokenizer):
        raise ValueError(
            f"{named('sample_subwords')}: {start.init_from} has words, not sub-words; leave it out"
        )
    if trained.lexicon is not None:
        StatusLine().note(
            f"{start.init_from}'s lexicon is not used; `lexicon` makes one for the new model"
        )
    model, source, target = trained.model, trained.source_text, trained.target_text
    if start.added_words:
        source, target = (
            _grown(text, path, start)
            for text, path in ((source, files.train_source), (target, files.train_target))
        )
        model = with_added_rows(
            model,
            source.vocabulary_size - trained.source_text.vocabulary_size,
            target.vocabulary_size - trained.target_text.vocabulary_size,
            (source.unk_id, target.unk_id),
        )
    copy = Translator(model, source, target, trained.decoding, trained.dictionary)
    copy.save(training.model_dir / START)
    folder.write_settings(training.model_dir / TEXT, _of_start(start))
    return load(training)


def _grown(text: Tokenizer, path: str, start: StartOptions) -> WordTokenizer:
    """A tokenizer with the most frequent words of a text that are unknown to it."""
    if not isinstance(text, WordTokenizer):
        raise ValueError(
            f"{named('added_words')}: {start.init_from} has sub-words, which can write any word; "
            "leave it out"
        )
    return with_added_words(text, [path], start.added_words)


def _of_start(start: StartOptions | None) -> dict[str, object]:
    return {name: getattr(start, name, None) for name in ("init_from", "added_words")}


def _check_start(settings: Path, start: StartOptions | None) -> None:
    """Raises a ValueError unless a training to resume started with the same model, or with none."""
    before = folder.read_settings(settings)
    for name, new in _of_start(start).items():
        old = before.get(name)
        if name == "init_from" and old and new:  # however the path is written
            is_same = os.path.realpath(str(old)) == os.path.realpath(str(new))
        else:
            is_same = old == new
        if not is_same:
            raise folder.Change(name, old, new).refusal(settings.parent)


def _report_sizes(training: Training, translator: Translator, files: TrainingFiles) -> None:
    """Reports the number of ids, and the covered share of words."""
    for side in SIDES:
        text, path = getattr(translator, f"{side}_text"), getattr(files, f"train_{side}")
        line = f"{side} vocabulary: {amount(text.vocabulary_size, 'id')}"
        is_learned = training.start.init_from is None
        if isinstance(text, WordTokenizer):
            line += f", {text.coverage([path])}"
        elif is_learned and text.vocabulary_size < (wanted := training.text.size_of(side)):
            line += f", not {wanted:,}: the text has no more sub-words"
        StatusLine().note(line)


# The languages and tokenizers of the text.

LINES = 5000  # the first lines of a text, from which its language is guessed


def with_languages(
    text: TextOptions, files: TrainingFiles, before: Mapping[str, object]
) -> TextOptions:
    """Fills in source_language, target_language and true_case where None.

    The values are those of the folder, `before`, if it has any. Otherwise languages are guessed, if
    the tokenizer has rules for languages, and printed on standard error; true_case is the default
    for the source language.
    """
    text = replace(
        text,
        source_language=_language("source", text, files.train_source, before),
        target_language=_language("target", text, files.train_target, before),
    )
    if text.true_case is None:
        true_case = before.get("true_case")
        if not isinstance(true_case, bool):
            language = text.source_language or _guess(files.train_source)
            true_case = text.true_cases(language)
        text = replace(text, true_case=true_case)
    return text


def _language(side: str, text: TextOptions, path: str, before: Mapping[str, object]) -> str | None:
    """The language of a side; None if the tokenizer does not use it."""
    name = f"{side}_language"
    for language in (getattr(text, name), before.get(name)):
        if isinstance(language, str):
            return language
    if name in text.unused():
        return None
    language = _guess(path)
    note = f"guessed from the text; {named(name)} overrides"
    if language == UNKNOWN:
        note = f"unknown: text is split by general rules; {named(name)}=CODE sets it"
    StatusLine().note(f"{side} language: {language} ({note})")
    return language


def _guess(path: str) -> str:
    return guess_language(itertools.islice(read_lines(path), LINES))


CHECKED_LINES = 1000  # the first lines of a text, which are checked
LONGEST = 1000  # only so many characters of a line are checked


def check_words(text: TextOptions, files: TrainingFiles) -> None:
    """Raises a ValueError if the words of a text would be whole sentences.

    The word tokenizer cannot split text without spaces between words, such as Chinese or Thai,
    unless it has rules for the language, as for Japanese.
    """
    if text.tokenizer != "word":
        return
    for side in ("source", "target"):
        path = getattr(files, f"train_{side}")
        language = getattr(text, f"{side}_language") or UNKNOWN
        if not _has_words(path, language):
            raise OptionError(
                "TextOptions",
                "tokenizer",
                "word",
                "unigram or bpe, or spaces between the words",
                f"and {path} has no spaces between words, so whole sentences would be words",
            )


def _has_words(path: str, language: str) -> bool:
    lines = [line[:LONGEST] for line in itertools.islice(read_lines(path), CHECKED_LINES)]
    if has_blanks(lines):
        return True
    tokenizer = WordTokenizer(Vocabulary(SPECIAL), language)
    rows = tokenizer.split(tf.constant(lines)).to_list()
    words = ([word.decode() for word in row] for row in rows)
    # Without punctuation: Tibetan has a mark after each syllable.
    return has_blanks([" ".join(x for x in row if any(map(str.isalpha, x))) for row in words])


def learn(
    text: TextOptions, source_path: str, target_path: str
) -> tuple[WordTokenizer | SubwordTokenizer, WordTokenizer | SubwordTokenizer]:
    """Learns the tokenizers of both sides from the training text."""
    true_case = text.true_cases(text.source_language)
    if text.tokenizer == "word":
        return WordTokenizer.train(
            [source_path],
            text.source_vocabulary_size,
            language=text.source_language or UNKNOWN,
            lowercase=text.lowercase,
            reverse=text.reverse_source,
            true_case=true_case,
        ), WordTokenizer.train(
            [target_path],
            text.target_vocabulary_size,
            language=text.target_language or UNKNOWN,
            lowercase=text.lowercase,
        )
    train = partial(SubwordTokenizer.train, model_type=text.tokenizer, lowercase=text.lowercase)
    target = None
    if not text.joint:
        with _size_named("target"):
            target = train([target_path], text.target_vocabulary_size)
    with _size_named("source"):
        source = train(
            [source_path],
            text.source_vocabulary_size,
            reverse=text.reverse_source,
            true_case=true_case,
            files_as_written=[target_path] if text.joint else [],
        )
    return source, target or SubwordTokenizer(source.model_proto)


@contextlib.contextmanager
def _size_named(side: str) -> Iterator[None]:
    """Puts the name of the option into a tokenizer's error about its size."""
    try:
        yield
    except OptionError as error:
        name = f"{side}_vocabulary_size"
        raise OptionError("TextOptions", name, error.value, error.wanted) from error
