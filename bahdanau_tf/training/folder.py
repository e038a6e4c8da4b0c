"""A training folder: how a run resumes from it without losing anything."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import NamedTuple, TextIO

import keras

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions
from bahdanau_tf.options.recipe import FORMER
from bahdanau_tf.system.files import read_versioned, remove_leftovers, takes_lock, write_atomically
from bahdanau_tf.text.tokenizer import Tokenizer
from bahdanau_tf.training.checkpoints import Checkpoints, told_by_path
from bahdanau_tf.training.cluster import Cluster
from bahdanau_tf.training.dev import DevSet, Evaluation, is_best
from bahdanau_tf.training.log import Log
from bahdanau_tf.training.run import State
from bahdanau_tf.translator import Translator

FORMAT_VERSION = 1
TRAINING_TEXT = "training_text_checksum"
DEV_TEXT, DEV_TOKENIZER = "dev_text_checksum", "dev_bleu_tokenizer"
DEV_PAIRS = "dev_pairs"
THREADS = "threads"
_VOCABULARY = "{}_vocabulary_checksum"
# What differs, what to do about it: of settings that are no flags.
_SENTENCES = {
    TRAINING_TEXT: "the training text has changed since {folder} was made; "
    "give the same --train_source and --train_target as before, or name "
    "another folder",
    THREADS: "{folder} was trained by {before} threads with --deterministic, "
    "and now there are {after}, which may round otherwise; give "
    "--threads={before}, or name another folder",
    **{
        _VOCABULARY.format(side): f"the {side} vocabulary is not the one that "
        "{folder} was made with; give the same, or name another folder"
        for side in ("source", "target")
    },
}
_FLAGS = {
    DEV_PAIRS,
    *(field.name for options in (TextOptions, ModelOptions, Recipe) for field in fields(options)),
}
_RECIPE = asdict(Recipe())


class Change(NamedTuple):
    """A setting as written in the folder, and as it is now."""

    name: str
    before: object
    after: object


def of_tokenizers(**sides: Tokenizer) -> dict[str, object]:
    """The settings that say which tokenizers the sides have."""
    found: dict[str, object] = {}
    for side, text in sides.items():
        options = dict(text.settings())
        found[_VOCABULARY.format(side)] = options.pop("checksum", None)
        found[f"{side}_tokenizer"] = options
    return found


def of_training(
    translator: Translator,
    recipe: Recipe,
    threads: int | None,
    corpus: ParallelCorpus,
    dev: DevSet | None,
) -> dict[str, object]:
    """The settings of a training.

    Args:
        translator: Model and tokenizers.
        recipe: The options of training.
        threads: Number of threads, if another one is refused.
        corpus: The training text.
        dev: The dev set.
    """
    model: keras.Model = translator.model
    return {
        "model": json.loads(model.to_json()),
        "recipe": {**asdict(recipe), "learning_rate": recipe.rate},
        **of_tokenizers(source=translator.source_text, target=translator.target_text),
        THREADS: threads,
        TRAINING_TEXT: corpus.checksum,
        DEV_TEXT: dev and dev.checksum,
        DEV_TOKENIZER: dev and dev.tokenize,
    }


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    """Writes settings, unless the file has them already."""
    described = {"format_version": FORMAT_VERSION, **settings}
    data = json.dumps(described, indent=2).encode()
    if not path.is_file() or path.read_bytes() != data:
        write_atomically(path, data)


def check_settings(path: Path, settings: Mapping[str, object], free: Sequence[str] = ()) -> None:
    """Checks that settings are those of the file.

    Settings that the file lacks, as those of earlier versions do, may have any
    value; those of the recipe must have their defaults.

    Args:
        path: The JSON file.
        settings: The settings now.
        free: Names of settings that may change.

    Raises:
        ValueError: The folder was made with other settings, or by a newer
            version of this package, or the file is damaged or missing.
    """
    for name, before, after in changes(path, settings):
        if name in free:
            continue
        if name in _SENTENCES:
            said = _SENTENCES[name].format(folder=path.parent, before=before, after=after)
            raise ValueError(f"model_dir: {said}")
        raise ValueError(f"model_dir: {_differs(path.parent, name, before, after)}")


def _differs(folder: Path, name: str, before: object, after: object) -> str:
    """Says that a folder has another model, or only another training."""
    if name in _RECIPE:
        return (
            f"--{name} is {after!r}, but {before!r} in the training in "
            f"{folder}, which cannot change it; leave --{name} out to go on, "
            "or name another folder"
        )
    return (
        f"{folder} holds another model: {_called(name)} is {before!r} there "
        f"and {after!r} now; name another folder"
    )


def check_alike(cluster: Cluster, settings: Mapping[str, object]) -> None:
    """Checks that all workers of a cluster have the same settings.

    Raises:
        ValueError: This one has others than the chief.
    """
    own = json.dumps(settings)
    chiefs = cluster.text_from_chief(own)
    for name, there, here in _changes(json.loads(chiefs), json.loads(own)):
        if name.endswith("_text_checksum"):
            raise ValueError(
                f"worker {cluster.number} has another text than the chief "
                f"({name} differs), wanted the same files on all machines"
            )
        raise ValueError(
            f"{_called(name)} is {here!r} at worker {cluster.number} and "
            f"{there!r} at the chief, wanted the same command and the same "
            "files on all machines"
        )


def _called(name: str) -> str:
    """How a user calls a setting."""
    return f"--{name}" if name in _FLAGS else name


def changes(path: Path, settings: Mapping[str, object]) -> list[Change]:
    """The settings that differ from those of the file.

    Raises:
        ValueError: The file is missing or damaged, or of a newer version.
    """
    before, now = read_settings(path), json.loads(json.dumps(settings))
    recipe = before.get("recipe")
    if isinstance(recipe, dict):
        defaults = {n: v for n, v in _RECIPE.items() if n in now["recipe"]}
        before["recipe"] = defaults | recipe
    return _changes(before, now)


def _changes(before: object, now: object) -> list[Change]:
    return [*_differences(_unnumbered(before), _unnumbered(now))]


def read_settings(path: Path) -> dict[str, object]:
    """Reads what `write_settings` wrote.

    Raises:
        ValueError: The file is missing or damaged, or a newer version of this
            package wrote it.
    """
    if not path.is_file():
        raise ValueError(
            f"model_dir: {path.parent} holds a model, but {path} is missing, "
            "the file of its settings; name another folder"
        )
    return read_versioned(path, FORMAT_VERSION, "model_dir")


def _unnumbered(settings: object) -> object:
    """Settings without the numbers that Keras gave to objects.

    The second `GRUCell` of a process is "gru_cell_1", so the same model has
    other names elsewhere, and what parts of a loaded model share is told by
    addresses. A name that was chosen is kept.
    """
    if isinstance(settings, list):
        return [_unnumbered(one) for one in settings]
    if not isinstance(settings, dict):
        return settings
    found = {
        key: _unnumbered(value) for key, value in settings.items() if key != "shared_object_id"
    }
    config = found.get("config")
    if isinstance(config, dict) and isinstance(config.get("name"), str):
        kind = re.sub(r"_\d+$", "", config["name"])
        if kind.replace("_", "") == str(found.get("class_name")).lower():
            config["name"] = kind
    return found


def _differences(before: object, after: object, name: str = "") -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        kinds = before.get("class_name"), after.get("class_name")
        if kinds[0] != kinds[1]:
            yield Change(name, *kinds)
            return
        for key in before:
            # An option that is gone must have done nothing.
            former = FORMER.get(key) if key not in after else None
            if former is None or before[key] != former:
                yield from _differences(before[key], after.get(key), key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from _differences(one, other, name)
    elif before != after:
        yield Change(name, _in_short(before), _in_short(after))


def _in_short(value: object) -> object:
    """A part of a model is told by its class."""
    if isinstance(value, list):
        return [_in_short(one) for one in value]
    return value.get("class_name", value) if isinstance(value, dict) else value


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


NAME = "training.lock"
_held: dict[Path, int] = {}  # locked folders, and the threads that hold them


@contextmanager
def locked(model_dir: Path) -> Iterator[None]:
    """Keeps other processes from training in a folder.

    It is a file lock on `training.lock`, which the system releases when the
    process ends; the file stays. On Windows and on file systems without locks
    it has no effect. A thread that holds the lock may take it again. After an
    error, a folder that was made here is removed if nothing was written to it.

    Args:
        model_dir: The folder; made if it does not exist.

    Raises:
        ValueError: Another process trains in the folder.
        OSError: The file cannot be written.
    """
    is_new = not model_dir.exists()
    model_dir.mkdir(parents=True, exist_ok=True)
    place, thread = model_dir.resolve(), threading.get_ident()
    if _held.get(place) == thread:
        yield
        return
    with _taken(model_dir / NAME) as file:
        try:
            _write_owner(file)
            _held[place] = thread
            yield
        except BaseException:
            if is_new and [path.name for path in place.iterdir()] == [NAME]:
                with suppress(OSError):
                    (place / NAME).unlink()
                    place.rmdir()
            raise
        finally:
            _held.pop(place, None)


@contextmanager
def _taken(path: Path) -> Iterator[TextIO]:
    with open(path, "a+", encoding="utf-8") as file:
        if takes_lock(file) is False:
            file.seek(0)
            owner = file.read().strip()
            raise ValueError(
                f"model_dir: {path.parent} is being trained by process "
                f"{owner}; wait for it, or name another folder"
            )
        yield file


def _write_owner(file: TextIO) -> None:
    """Writes the number of this process; at once, as the disk may be full."""
    file.truncate(0)
    try:
        os.write(file.fileno(), f"{os.getpid()}\n".encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, file.name) from error
