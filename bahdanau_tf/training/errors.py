"""What stops a training from outside, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

_GO_ON = "Mend that, then run the same command again"


@contextmanager
def told_by_path(path: Path) -> Iterator[None]:
    """Says what could not be written, and that the rest is kept.

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
    """Says what TensorFlow stumbled over: memory, or a file that went away.

    Raises:
        OSError: An operation failed.
    """
    try:
        yield
    except tf.errors.OpError as error:
        advice = _GO_ON
        if isinstance(error, tf.errors.ResourceExhaustedError):
            advice = (
                "With a smaller --batch_size, in another folder, it may fit"
            )
        raise OSError(
            f"train: {reason(error)}; the last checkpoint is kept. {advice}"
        ) from error


def reason(error: Exception) -> str:
    """An error in as few words as it has."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = re.sub(r"\{\{.*?\}\} ?", "", str(error)).strip().partition("\n")[0]
    return first.split("; ")[-1].partition(" [Op:")[0]
