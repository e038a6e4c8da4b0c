"""Writes curves and pictures for TensorBoard, without its package."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence

import tensorflow as tf

from bahdanau_tf.plotting import plot_alignment
from bahdanau_tf.training.run import Run, RunCallback
from bahdanau_tf.translation import Translation

EVERY = 10  # updates between two points of a curve
PICTURES = 4
# The names and data classes of TensorBoard's plugins; `tf.summary.scalar` and
# `tf.summary.image` would need its package.
_SCALAR, _IMAGE = ("scalars", 1), ("images", 3)


class TensorBoard(RunCallback):
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
        run: The run.
        directory: The folder of the event files, for `tensorboard --logdir`.
    """

    def __init__(self, run: Run, directory: str | os.PathLike[str]) -> None:
        super().__init__(run)
        # TensorFlow would make it with mode 755, whatever the umask.
        os.makedirs(directory, exist_ok=True)
        self._writer = tf.summary.create_file_writer(os.fspath(directory))
        self._words = self._seconds = 0.0  # since the last point

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        self._words += logs["words"]
        self._seconds += logs["seconds"]
        if self._run.step % EVERY:
            return
        read = self._run.read_optimizer
        self._scalars(
            {
                "train/loss": logs["loss"],
                "train/gradient_norm": read("gradient_norm"),
                "train/learning_rate": read("learning_rate"),
                "train/words_per_second": self._words / max(self._seconds, 1e-9),
            }
        )
        self._words = self._seconds = 0.0

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        evaluation = self._run.evaluation
        if evaluation is None:
            return
        self._scalars({"dev/loss": evaluation.loss, "dev/bleu": evaluation.bleu})
        self._draw(evaluation.translations)
        self._writer.flush()

    def _draw(self, translations: Sequence[Translation]) -> None:
        """Draws the first alignments, if the model has any."""
        with self._writer.as_default(self._run.step):
            for number, translation in enumerate(translations[:PICTURES], start=1):
                if translation.weights is None:
                    continue
                try:
                    picture = _picture(translation)
                except ImportError as error:
                    self._run.line.note(f"no alignment pictures: {error}")
                    return
                _write(f"alignment/{number}", picture, _IMAGE)

    def close(self) -> None:
        """Writes buffered events and closes the file."""
        self._writer.close()

    def _scalars(self, values: Mapping[str, float]) -> None:
        with self._writer.as_default(self._run.step):
            for name, value in values.items():
                _write(name, tf.constant(value), _SCALAR)


def _write(name: str, value: tf.Tensor, kind: tuple[str, int]) -> None:
    metadata = tf.compat.v1.SummaryMetadata(data_class=kind[1])
    metadata.plugin_data.plugin_name = kind[0]
    tf.summary.write(name, value, metadata=metadata)


def _picture(translation: Translation) -> tf.Tensor:
    """The alignment as string [3]: width, height and the PNG file."""
    figure = plot_alignment(translation.source_tokens, translation.tokens, translation.weights)
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=100, bbox_inches="tight")
    data = png.getvalue()
    sizes = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    return tf.constant([*(str(size) for size in sizes), data])
