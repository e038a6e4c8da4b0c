"""Tells if a training has learned nothing, although its loss is finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Sequence

import keras

from bahdanau_tf.training.log import Log
from bahdanau_tf.training.run import Run
from bahdanau_tf.translator import Translator

ADVICE = "the training diverges (then a lower --learning_rate helps), or it"


class Doubts(keras.callbacks.Callback):
    """Compares the loss with that of guessing, and with the first one.

    It tells a loss above that of guessing at the first evaluation that has
    one, and what there is to doubt at the end.

    Args:
        run: The run.
        log: The log of the training, which has the last evaluation already.
        translator: The translator that is trained.
    """

    def __init__(self, run: Run, log: Log, translator: Translator) -> None:
        super().__init__()
        self._run = run
        self._log = log
        self._words = translator.target_text.vocabulary_size
        self._told = ""

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        if not self._told:
            self._tell(worse_than_guessing(self._log.records(), self._words))

    def on_train_end(self, logs: object = None) -> None:
        records = self._log.records()
        said = worse_than_guessing(records, self._words)
        said = said or not_improved(records)
        if said != self._told:
            self._tell(said)

    def _tell(self, said: str) -> None:
        self._told = said
        if said:
            self._run.line.note(said)


def worse_than_guessing(
    records: Sequence[Mapping[str, float]], words: int
) -> str:
    """A sentence if the last loss is above that of guessing; else "".

    Args:
        records: The lines of the log.
        words: Number of words K of the target vocabulary; if each is guessed
            equally often, the loss is log K.
    """
    last = records[-1] if records else {}
    loss = last.get("dev_loss", last.get("train_loss", 0.0))
    if loss <= math.log(words):
        return ""
    return (
        f"the loss after update {last['step']} is {loss:.2f}, above that of "
        f"guessing among the {words:,} ids, {math.log(words):.2f}: {ADVICE} "
        "has only begun"
    )


def not_improved(records: Sequence[Mapping[str, float]]) -> str:
    """A sentence if the last loss is not below the first one; else "".

    It is the loss on the training text: that on the dev text also rises if the
    training text is learned by heart.

    Args:
        records: The lines of the log.
    """
    known = [one for one in records if "train_loss" in one]
    if len(known) < 2 or known[-1]["train_loss"] < known[0]["train_loss"]:
        return ""
    first, last = known[0], known[-1]
    return (
        f"the training loss after update {last['step']} is "
        f"{last['train_loss']:.2f}, not below the {first['train_loss']:.2f} of "
        f"the first evaluation: {ADVICE} learns nothing"
    )
