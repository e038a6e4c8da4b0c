"""Writes curves and pictures for TensorBoard, without its package."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence

import keras
import tensorflow as tf

from bahdanau_tf.plotting import plot_alignment
from bahdanau_tf.translation import Translation

EVERY = 10  # updates between two points of a curve
PICTURES = 4
# The names and data classes of TensorBoard's plugins; `tf.summary.scalar` and
# `tf.summary.image` would need its package.
_SCALAR, _IMAGE = ("scalars", 1), ("images", 3)


class TensorBoard:
    """Writes the curves and pictures of a training.

        train/loss               of a batch, per word
        train/gradient_norm      before clipping
        train/learning_rate
        train/words_per_second   target words, without evaluation time
        dev/loss                 mean of -log p(y_i) over all words
        dev/bleu                 of greedy search
        alignment/1 ..           alignments of the first dev sentences at each
                                 evaluation, as in the paper's Figure 3

    Args:
        directory: The folder of the event files, for `tensorboard --logdir`.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._writer = tf.summary.create_file_writer(os.fspath(directory))
        self._words = self._seconds = 0.0

    def update(
        self,
        step: int,
        loss: float,
        optimizer: keras.optimizers.Optimizer,
        words: float,
        seconds: float,
    ) -> None:
        """Writes the values of every tenth update.

        Args:
            step: Number of updates so far.
            loss: The batch's loss per word.
            optimizer: One of `bahdanau_tf.optimizers`.
            words: Number of target words trained on in this run.
            seconds: The time they took.
        """
        if step % EVERY:
            return
        rate = (words - self._words) / max(seconds - self._seconds, 1e-9)
        self._words, self._seconds = words, seconds
        self._scalars(
            step,
            {
                "train/loss": loss,
                "train/gradient_norm": float(optimizer.gradient_norm),
                "train/learning_rate": float(optimizer.learning_rate),
                "train/words_per_second": rate,
            },
        )

    def evaluation(
        self,
        step: int,
        loss: float,
        bleu: float,
        translations: Sequence[Translation],
    ) -> str:
        """Writes the results of an evaluation on the dev set.

        Args:
            step: Number of updates so far.
            loss: The mean of -log p(y_i) over all words.
            bleu: BLEU.
            translations: The translations of the dev set, in its order; the
                alignments of the first few are drawn, if the model has any.

        Returns:
            Why there are no pictures, or "".
        """
        self._scalars(step, {"dev/loss": loss, "dev/bleu": bleu})
        with self._writer.as_default(step):
            for number, one in enumerate(translations[:PICTURES], start=1):
                if one.weights is None:
                    continue
                try:
                    picture = _picture(one)
                except ImportError as error:
                    return f"no alignment pictures: {error}"
                _write(f"alignment/{number}", picture, _IMAGE)
        self._writer.flush()
        return ""

    def close(self) -> None:
        """Writes buffered events and closes the file."""
        self._writer.close()

    def _scalars(self, step: int, values: dict[str, float]) -> None:
        with self._writer.as_default(step):
            for name, value in values.items():
                _write(name, tf.constant(value), _SCALAR)


def _write(name: str, value: tf.Tensor, kind: tuple[str, int]) -> None:
    metadata = tf.compat.v1.SummaryMetadata(data_class=kind[1])
    metadata.plugin_data.plugin_name = kind[0]
    tf.summary.write(name, value, metadata=metadata)


def _picture(translation: Translation) -> tf.Tensor:
    """The alignment as string [3]: width, height and the PNG file."""
    figure = plot_alignment(
        translation.source_tokens, translation.tokens, translation.weights
    )
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=100, bbox_inches="tight")
    data = png.getvalue()
    sizes = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    return tf.constant([*(str(size) for size in sizes), data])
