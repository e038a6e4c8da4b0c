"""Updates that are skipped, because their loss or gradient is not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import keras

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.training.log import Log
from bahdanau_tf.training.run import Run


class Divergence(keras.callbacks.Callback):
    """Writes down the pairs of skipped updates; ends after many in a row.

    The optimizer skips and counts these updates. `skipped.jsonl` gets a line
    for each sentence pair: update, number of the line from 1, source, target.
    The line is that of the text without the pairs that are held out.

    Args:
        run: The run.
        corpus: The training text.
        path: The file of the pairs.
    """

    def __init__(self, run: Run, corpus: ParallelCorpus, path: Path) -> None:
        super().__init__()
        self._run = run
        self._corpus = corpus
        self._path = path
        self._pairs = Log(path)

    def on_train_begin(self, logs: object = None) -> None:
        self._pairs.forget_after(self._run.step)
        self._skipped = self._run.of_optimizer("skipped_updates")
        self._in_a_row = 0

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float]) -> None:
        """Looks at the update.

        Raises:
            ValueError: As many in a row were skipped as the recipe allows.
        """
        before, self._skipped = (
            self._skipped,
            self._run.of_optimizer("skipped_updates"),
        )
        if self._skipped == before and math.isfinite(logs["loss"]):
            self._in_a_row = 0
            return
        self._in_a_row += 1
        self._write_pairs()
        if self._in_a_row == 1:
            self._run.line.note(
                f"update {self._run.step} was skipped, its loss or gradient is "
                f"not finite; its sentence pairs: {self._path}"
            )
        if self._in_a_row >= self._run.recipe.max_skipped:
            raise ValueError(
                f"Recipe: max_skipped is {self._in_a_row}, and loss or "
                "gradient of so many updates in a row was not finite; their "
                f"sentence pairs are in {self._path}. The last checkpoint is "
                "kept: the same command with a lower --learning_rate goes on "
                "from it. If its weights are too large already, begin in "
                "another folder"
            )

    def _write_pairs(self) -> None:
        lines = self._run.lines
        for number, source, target in zip(
            lines, *self._corpus.read(lines), strict=True
        ):
            self._pairs.add(
                {
                    "step": self._run.step,
                    "line": int(number) + 1,
                    "source": source.decode(),
                    "target": target.decode(),
                }
            )
