"""The dev text of a training: given, or held out of the training text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bahdanau_tf.data.held_out import hold_out
from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.system.terminal import StatusLine
from bahdanau_tf.system.terminal import amount
from bahdanau_tf.training.files import TrainingFiles
from bahdanau_tf.training.settings import DEV_PAIRS
from bahdanau_tf.training.settings import TRAINING_TEXT
from bahdanau_tf.training.settings import check_settings
from bahdanau_tf.training.settings import write_settings

TEXTS, SETTINGS = "text", "held_out.json"
TOKEN_BYTES = 32  # of a token and its blank; on average they have fewer


NAMES = ("train.source", "train.target", "dev.source", "dev.target")


def divided(model_dir: Path) -> TrainingFiles:
    """The training and dev texts of a folder that held pairs out."""
    return TrainingFiles(*(str(model_dir / TEXTS / name) for name in NAMES))


@contextmanager
def held_out(
    model_dir: Path,
    corpus: ParallelCorpus,
    dev_pairs: int,
    max_length: int = 0,
) -> Iterator[int]:
    """Divides a training text; after an error in the block it is as before.

    Args:
        model_dir: The folder of the training, which is new.
        corpus: The training text.
        dev_pairs: Number of pairs to hold out; 0 leaves the text as it is.
        max_length: The most tokens of a sentence that is trained on, 0 for
            any. Lines that surely have more are not held out: a few of them
            would decide the score.

    Yields:
        The number of pairs that are left to train on.

    Raises:
        ValueError: There are too few pairs, or `model_dir` has other files
            where the texts would be.
        OSError: The texts cannot be written.
    """
    texts, settings = model_dir / TEXTS, model_dir / SETTINGS
    settings.unlink(missing_ok=True)
    if not dev_pairs:
        yield len(corpus)
        return
    _check_place(texts)
    try:
        longest = TOKEN_BYTES * max_length if max_length else None
        pairs = hold_out(corpus, dev_pairs, texts, longest)
        dev = divided(model_dir).dev_source
        StatusLine().note(
            f"dev text: {dev} and {NAMES[3]}, {amount(pairs, 'pair')}"
        )
        yield len(corpus) - pairs
        write_settings(settings, _settings(corpus, dev_pairs))
    except BaseException:
        shutil.rmtree(texts, ignore_errors=True)
        raise


def _check_place(texts: Path) -> None:
    """Raises if there is something that a killed run did not leave."""
    if not texts.exists():
        return
    own = texts.is_dir() and {x.name for x in texts.iterdir()} <= {*NAMES}
    if not own:
        raise ValueError(
            f"--model_dir: {texts} is there already, where dev and training "
            "text are written; name another folder, or give --dev_source and "
            "--dev_target"
        )


def check_held_out(
    model_dir: Path, files: TrainingFiles, dev_pairs: int
) -> None:
    """Checks that a begun training holds out the same pairs of the same text.

    Raises:
        ValueError: It does not.
        OSError: A file cannot be read.
    """
    path = model_dir / SETTINGS
    if path.is_file() and files.dev_source is not None:
        raise ValueError(
            f"--dev_source is {files.dev_source}, but the dev text of "
            f"{model_dir} was held out of its training text; leave "
            "--dev_source and --dev_target out to go on, or name another "
            "folder"
        )
    if path.is_file():
        corpus = ParallelCorpus(files.train_source, files.train_target)
        check_settings(path, _settings(corpus, dev_pairs))
    elif dev_pairs:
        raise ValueError(
            f"--{DEV_PAIRS} is {dev_pairs}, but none were held out of the "
            f"training text of {model_dir}; leave it out to go on, or name "
            "another folder"
        )


def _settings(corpus: ParallelCorpus, dev_pairs: int) -> dict[str, object]:
    return {DEV_PAIRS: dev_pairs, TRAINING_TEXT: corpus.checksum}
