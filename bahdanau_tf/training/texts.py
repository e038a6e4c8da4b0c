"""The texts of a training: the dev text, the languages, and the tokenizers."""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import tensorflow as tf

from bahdanau_tf.data.held_out import hold_out
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation import has_blanks
from bahdanau_tf.options import TextOptions
from bahdanau_tf.system.lines import read_lines
from bahdanau_tf.system.terminal import StatusLine, amount
from bahdanau_tf.text import SubwordTokenizer, Vocabulary, WordTokenizer
from bahdanau_tf.text.script import UNKNOWN, guess_language
from bahdanau_tf.text.vocabulary import SPECIAL
from bahdanau_tf.training.folder import DEV_PAIRS, TRAINING_TEXT, check_settings, write_settings

TEXTS, SETTINGS = "text", "held_out.json"
TOKEN_BYTES = 32  # of a token and the space after it; on average they have fewer
NAMES = ("train.source", "train.target", "dev.source", "dev.target")


@dataclass(frozen=True)
class TrainingFiles:
    """Paths of parallel text, one sentence per line, plain or .gz.

    Attributes:
        train_source: The training set, source side.
        train_target: The training set, target side.
        dev_source: The dev set, by which the best model is chosen, or None.
        dev_target: Its translation, or None.

    Raises:
        ValueError: One of `dev_source` and `dev_target` is None.
    """

    train_source: str
    train_target: str
    dev_source: str | None = None
    dev_target: str | None = None

    def __post_init__(self) -> None:
        if (self.dev_source is None) != (self.dev_target is None):
            raise ValueError(
                f"TrainingFiles: dev_source is {self.dev_source!r} and "
                f"dev_target {self.dev_target!r}, wanted both or neither"
            )


def divided(model_dir: Path) -> TrainingFiles:
    """The training and dev texts of a folder that held pairs out."""
    return TrainingFiles(*(str(model_dir / TEXTS / name) for name in NAMES))


@contextlib.contextmanager
def held_out(
    model_dir: Path, corpus: ParallelCorpus, dev_pairs: int, max_length: int = 0
) -> Iterator[int]:
    """Divides a training text, for a new folder; an error in the block undoes it.

    Yields the number of pairs that are left to train on, all without `dev_pairs`. Lines that surely
    have more than `max_length` tokens are not held out: a few of them would decide the score.
    """
    texts, settings = model_dir / TEXTS, model_dir / SETTINGS
    settings.unlink(missing_ok=True)
    if not dev_pairs:
        yield len(corpus)
        return
    has_only_leftovers = texts.is_dir() and {x.name for x in texts.iterdir()} <= {*NAMES}
    if texts.exists() and not has_only_leftovers:
        raise ValueError(
            f"--model_dir: {texts}, for the dev and training text, exists already; name "
            "another folder, or set --dev_source and --dev_target"
        )
    try:
        longest = TOKEN_BYTES * max_length if max_length else None
        pairs, left = hold_out(corpus, dev_pairs, texts, longest)
        dev = divided(model_dir).dev_source
        StatusLine().note(f"dev text: {dev} and {NAMES[3]}, {amount(pairs, 'pair')}")
        yield left
        write_settings(settings, _settings(corpus, dev_pairs))
    except BaseException:
        shutil.rmtree(texts, ignore_errors=True)
        raise


def check_held_out(model_dir: Path, files: TrainingFiles, dev_pairs: int) -> None:
    """Raises a ValueError unless a training to resume holds out the same pairs of its text."""
    path = model_dir / SETTINGS
    if path.is_file() and files.dev_source is not None:
        raise ValueError(
            f"--dev_source is {files.dev_source}, but the dev text of {model_dir} was held out of "
            "its training text; leave --dev_source and --dev_target out to resume, or name another "
            "folder"
        )
    if path.is_file():
        corpus = ParallelCorpus(files.train_source, files.train_target)
        check_settings(path, _settings(corpus, dev_pairs))
    elif dev_pairs:
        raise ValueError(
            f"--{DEV_PAIRS} is {dev_pairs}, but none were held out of the training text of "
            f"{model_dir}; leave it out to resume, or name another folder"
        )


def _settings(corpus: ParallelCorpus, dev_pairs: int) -> dict[str, object]:
    return {DEV_PAIRS: dev_pairs, TRAINING_TEXT: corpus.checksum}


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
    note = f"guessed from the text; --{name} overrides"
    if language == UNKNOWN:
        note = f"unknown: text is split by general rules; --{name}=CODE sets it"
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
            raise ValueError(
                f"TrainingPlan: tokenizer is 'word', and {path} has no spaces "
                "between words, so whole sentences would be words; wanted "
                "--tokenizer=unigram or bpe, or spaces between the words"
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
    except ValueError as error:
        name = f"TextOptions: {side}_vocabulary_size"
        text = str(error).replace("SubwordTokenizer.train: vocabulary_size", name)
        raise ValueError(text) from error
