"""A training folder: how a run resumes from it without losing anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from bahdanau_tf.options import Recipe
from bahdanau_tf.system.files import remove_leftovers
from bahdanau_tf.training.best import is_best
from bahdanau_tf.training.checkpoints import Checkpoints
from bahdanau_tf.training.dev import Evaluation
from bahdanau_tf.training.errors import told_by_path
from bahdanau_tf.training.log import Log
from bahdanau_tf.training.settings import DEV_TEXT
from bahdanau_tf.training.settings import DEV_TOKENIZER
from bahdanau_tf.training.settings import changes
from bahdanau_tf.training.settings import check_settings
from bahdanau_tf.training.settings import read_settings
from bahdanau_tf.training.settings import write_settings
from bahdanau_tf.training.state import State
from bahdanau_tf.translator import Translator

# The settings that a resumed training may change.
FREE = (
    *("epochs", "updates", "minutes", "patience"),
    *("evaluate_every", "tokenize"),
    *("keep", "max_skipped", "learning_rate"),
)


class ModelFolder:
    """The state of a training in `model_dir`.

    Args:
        path: The folder; it exists, and no other process writes in it.
        checkpoints: The checkpoints of the training, in this folder.
        state: The state of the training, which is checkpointed, too.
        settings: The settings that a resumed training must have in common.
        recipe: The options of training.

    Attributes:
        best: The folder of the best model.
        log: The log, `log.jsonl`.
        improved: Updates after the restored checkpoint whose evaluation was
            the best so far, as the log knows.
    """

    def __init__(
        self,
        path: Path,
        checkpoints: Checkpoints,
        state: State,
        settings: Mapping[str, object],
        recipe: Recipe,
    ) -> None:
        self.best = path / "best"
        self.log = Log(path / "log.jsonl")
        self.improved: set[int] = set()
        self._is_new = True
        self._path = path
        self._settings = path / "training.json"
        self._checkpoints = checkpoints
        self._state = state
        self._now = settings
        self._recipe = recipe

    @property
    def needs_evaluation(self) -> bool:
        """Whether the best model was moved away, or the last not evaluated.

        As after a signal, where no time is left for more updates.
        """
        evaluated = [record["step"] for record in self.log.records()]
        is_new = int(self._state.step) not in evaluated[-1:]
        if self._now[DEV_TEXT] is None:
            return is_new or not self.best.exists()
        is_unknown = math.isnan(self._state.best_bleu)
        return is_unknown or is_new or not self.best.exists()

    def restore(self) -> list[str]:
        """Restores the newest checkpoint, if the folder has one.

        It writes nothing, except that it removes what killed processes left.

        Returns:
            A sentence for each newer checkpoint that is damaged, for each
            option that has changed, and for what an earlier version did not
            write down.

        Raises:
            ValueError: The folder is that of another training, or resuming
                would lose its best model.
        """
        remove_leftovers(self._path)
        for inside in [one for one in self._path.iterdir() if one.is_dir()]:
            remove_leftovers(inside)
        self._checkpoints.remove_halves()
        newest, faults = self._checkpoints.newest_whole()
        self._is_new = not newest
        # The first is of update 0: one that is half written loses nothing.
        is_first = len(faults) == 1 and faults[0].startswith("ckpt-1:")
        if not (newest or self.best.exists() or is_first) and faults:
            raise ValueError(
                f"model_dir: {self._path} has no checkpoint that can be read "
                f"({'; '.join(faults)}); name another folder, or remove these "
                "checkpoints to start again"
            )
        if not newest and self.best.exists():
            raise ValueError(
                f"model_dir: {self.best} exists, but no checkpoint to resume "
                f"from ({'; '.join(faults) or 'there is none'}); name another "
                "folder, also to go on from that model (init_from), or move "
                f"{self.best} away to start again"
            )
        notes = []
        if newest:
            notes += [f"ignored a damaged checkpoint, {one}" for one in faults]
            self._check()
            self._checkpoints.restore(newest)
            notes += [*self._check_unwritten(), *self._changed()]
        if not self.best.exists():
            self._state.forget_best()
        else:
            self._remember_best()
        return notes

    def _remember_best(self) -> None:
        """Learns from the log how good `best` is.

        It may be of an evaluation after the checkpoint that was restored.
        """
        stale = int(self._state.stale)
        for record in self.log.records():
            if "dev_bleu" in record and record["step"] > self._state.step:
                found = Evaluation(record["dev_bleu"], record["dev_loss"], [])
                if is_best(found, self._state, self._recipe.monitor):
                    self.improved.add(int(record["step"]))
        self._state.stale.assign(stale)

    def _changed(self) -> list[str]:
        return [
            f"--{name} is {after} from now on, it was {before}"
            for name, before, after in changes(self._settings, self._now)
            if name in FREE
        ]

    def _check_unwritten(self) -> list[str]:
        """Looks after a dev set that an earlier version did not write down."""
        had_dev = math.isfinite(self._state.best_bleu)
        is_written = DEV_TEXT in read_settings(self._settings)
        if is_written or not had_dev or not self.best.exists():
            return []
        if self._now[DEV_TEXT] is None:
            raise self._another_dev_set()
        return [
            f"{self.best} was chosen by an earlier version, which did not "
            "write down its dev set; it is assumed to be the current one"
        ]

    def _another_dev_set(self) -> ValueError:
        return ValueError(
            f"model_dir: {self.best} was chosen on another dev set, or there "
            "was or is none; give the same --dev_source and --dev_target as "
            f"before, name another folder, or move {self.best} away to choose "
            "again"
        )

    def _check(self) -> None:
        dev = (DEV_TEXT, DEV_TOKENIZER)
        check_settings(self._settings, self._now, (*FREE, *dev))
        self._check_pace()
        if not self.best.exists():
            return  # no model was chosen on a dev set
        for name, before, after in changes(self._settings, self._now):
            if name == DEV_TEXT:
                raise self._another_dev_set()
            if name == DEV_TOKENIZER:
                raise ValueError(
                    f"model_dir: {self.best} was chosen by BLEU with the "
                    f"tokenizer {before}, but now it is {after}; give "
                    f"--tokenize={before}, name another folder, or move "
                    f"{self.best} away to choose again"
                )

    def _check_pace(self) -> None:
        """Raises if the rate follows the time from now on only, or no longer.

        Where it does it is a variable, which other checkpoints lack.
        """
        recipe = read_settings(self._settings).get("recipe")
        before = recipe if isinstance(recipe, dict) else {}
        was_timed = before.get("minutes")
        was_paced = was_timed and before.get("schedule") == "linear"
        if was_paced and not self._recipe.is_paced:
            raise ValueError(
                f"model_dir: {self._path} was trained with a limit of time, by "
                "which the learning rate falls; give --minutes, or name "
                "another folder"
            )
        if self._recipe.is_paced and not was_timed:
            raise ValueError(
                f"model_dir: {self._path} was trained without a limit of "
                "time, by which the learning rate would fall; leave --minutes "
                "out, or name another folder"
            )

    def begin(self) -> None:
        """Writes what must exist before the training continues.

        A new folder gets a checkpoint of update 0: so a disk that is too small
        raises at once, and there is never a best model without a checkpoint.

        Raises:
            OSError: Something cannot be written.
        """
        with told_by_path(self._settings):
            write_settings(self._settings, self._now)
        self.log.forget_after(int(self._state.step))
        if self._is_new:
            self._checkpoints.save()

    def save_best(self, translator: Translator) -> None:
        """Replaces the best model.

        Raises:
            OSError: It cannot be written; the previous one is kept.
        """
        with told_by_path(self.best):
            translator.save(self.best)
