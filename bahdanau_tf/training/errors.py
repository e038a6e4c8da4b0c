"""Errors that stop a training from outside, as one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

_GO_ON = "Fix that, then run the same command again"


@contextmanager
def told_by_path(path: Path) -> Iterator[None]:
    """Adds to an error what could not be written, and that the rest is kept.

    Raises:
        OSError: TensorFlow, Keras or Python cannot write.
    """
    try:
        yield
    except (OSError, RuntimeError, tf.errors.OpError) as error:
        raise OSError(
            f"model_dir: {path} could not be written: {reason(error)}; what "
            f"was written before is kept. {_GO_ON}"
        ) from error


@contextmanager
def told_in_a_sentence() -> Iterator[None]:
    """Turns an error of a TensorFlow operation into one sentence.

    Raises:
        OSError: An operation failed, for example for lack of memory, or another
            worker has ended.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if "Collective ops is aborted" in str(error):
            raise OSError(
                "another worker has ended or cannot be reached, so this one "
                "ends, too; what was written before is kept. If that worker "
                "does not say what to mend, start the same command on all "
                "machines again"
            ) from error
        advice = _GO_ON
        if isinstance(error, tf.errors.ResourceExhaustedError):
            advice = (
                "With a smaller --batch_size, in another folder, it may fit"
            )
        raise OSError(
            f"train: {reason(error)}; the last checkpoint is kept. {advice}"
        ) from error


def reason(error: Exception) -> str:
    """The shortest description of an error."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = re.sub(r"\{\{.*?\}\} ?", "", str(error)).strip().partition("\n")[0]
    return first.split("; ")[-1].partition(" [Op:")[0]
