"""A folder of training: how a run goes on with it without losing anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bahdanau_tf.files import remove_leftovers
from bahdanau_tf.training.checkpoints import Checkpoints
from bahdanau_tf.training.errors import told_by_path
from bahdanau_tf.training.log import Log
from bahdanau_tf.training.selection import forget_best
from bahdanau_tf.training.settings import changes
from bahdanau_tf.training.settings import check_settings
from bahdanau_tf.training.settings import write_settings
from bahdanau_tf.training.state import State
from bahdanau_tf.translator import Translator

FREE = ("epochs", "patience", "evaluate_every", "tokenize", "name")
DEV_TEXT, DEV_TOKENIZER = "dev_text_checksum", "dev_bleu_tokenizer"


class ModelFolder:
    """What `model_dir` remembers of a training.

    Args:
        path: The folder; it is there, and nobody else writes in it.
        checkpoints: Of the training, in this folder.
        state: Of the training; among what is checkpointed.
        settings: What makes it this training and no other.

    Attributes:
        best: Where the best model goes.
        log: Its `log.jsonl`.
    """

    def __init__(
        self,
        path: Path,
        checkpoints: Checkpoints,
        state: State,
        settings: Mapping[str, object],
    ) -> None:
        self.best = path / "best"
        self.log = Log(path / "log.jsonl")
        self._path = path
        self._settings = path / "training.json"
        self._checkpoints = checkpoints
        self._state = state
        self._now = settings

    def restore(self) -> list[str]:
        """Brings the training to where the folder is, if that is its own.

        Writes nothing new, and restores nothing into a new folder.

        Returns:
            What is wrong with newer checkpoints than the one restored.

        Raises:
            ValueError: The folder is another training's, or going on would
                lose its best model.
        """
        remove_leftovers(self._path)
        self._checkpoints.remove_halves()
        newest, faults = self._checkpoints.newest_whole()
        if not newest and self.best.exists():
            raise ValueError(
                f"model_dir: {self.best} is there, but no checkpoint to go on "
                f"from ({'; '.join(faults) or 'there is none'}); name another "
                f"folder, or move {self.best} away to begin anew"
            )
        if newest:
            self._check()
            self._checkpoints.restore(newest)
        if not self.best.exists():
            forget_best(self._state)
        return faults

    def _check(self) -> None:
        dev = (DEV_TEXT, DEV_TOKENIZER)
        check_settings(self._settings, self._now, (*FREE, *dev))
        if not self.best.exists():
            return  # there is nothing that a dev set has chosen
        for name, before, after in changes(self._settings, self._now):
            if name == DEV_TEXT:
                raise ValueError(
                    f"model_dir: {self.best} was chosen on another dev set "
                    "than that of now, or one of the two is without; give the "
                    "--dev_source and --dev_target of before, name another "
                    f"folder, or move {self.best} away to choose anew"
                )
            if name == DEV_TOKENIZER:
                raise ValueError(
                    f"model_dir: {self.best} was chosen by BLEU with the "
                    f"tokenizer {before}, and that of now is {after}; give "
                    f"--tokenize={before}, name another folder, or move "
                    f"{self.best} away to choose anew"
                )

    def begin(self) -> None:
        """Writes what must be there before the training goes on.

        A new folder gets a checkpoint of update 0: a disk that cannot hold
        one is told at once, and there is no best model without a checkpoint.

        Raises:
            OSError: Something cannot be written.
        """
        with told_by_path(self._settings):
            write_settings(self._settings, self._now)
        self.log.forget_after(int(self._state.step))
        if not self._state.step:
            self._checkpoints.clear()
            self._checkpoints.save()

    def save_best(self, translator: Translator) -> None:
        """Replaces the best model.

        Raises:
            OSError: It cannot be written; the one before is kept.
        """
        with told_by_path(self.best):
            translator.save(self.best)
