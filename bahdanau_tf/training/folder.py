"""A training folder: its settings, its log, its lock, and how a run resumes from it."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import keras

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.evaluation.scores import SCORES
from bahdanau_tf.options import Recipe, TextOptions
from bahdanau_tf.options.training import KINDS
from bahdanau_tf.system.files import read_versioned, remove_leftovers, takes_lock, write_atomically
from bahdanau_tf.system.ranges import named
from bahdanau_tf.training.checkpoints import Checkpoints, State, explain_write_errors, wrong_folder
from bahdanau_tf.training.cluster import Cluster
from bahdanau_tf.translation.saved import write_translator
from bahdanau_tf.translator import Translator

Settings: TypeAlias = "Mapping[str, object]"
FORMAT_VERSION = 1
# In the folder: the settings of the tokenizers, or of the model that the training started from, and
# what was held out.
TEXT, HELD_OUT = "text.json", "held_out.json"
TRAINING_TEXT = "training_text_checksum"
DEV_TEXT, DEV_TOKENIZER = "dev_text_checksum", "dev_bleu_tokenizer"
DEV_PAIRS = "dev_pairs"
THREADS = "threads"
_VOCABULARY = "{}_vocabulary_checksum"
_ANOTHER_TEXT = (
    "{folder}/best was chosen on another dev set or without one, or there is none now; use the "
    "same {dev_source} and {dev_target} as before, name another folder, or move {folder}/best away "
    "to choose again"
)
# What to do about settings that differ, for those that are not flags.
_SENTENCES = {
    TRAINING_TEXT: "the training text has changed since {folder} was made; "
    "use the same {train_source} and {train_target} as before, or name another folder",
    THREADS: "{folder} was trained with {deterministic} and {threads}={before}, but now it is "
    "{after}, which may round differently; set it to {before}, or name another folder",
    DEV_TEXT: _ANOTHER_TEXT,
    DEV_TOKENIZER: "the BLEU of {folder}/best is with the tokenizer {before}, but now it is "
    "{after}; set {tokenize}={before}, name another folder, or move {folder}/best away to "
    "choose again",
    **{
        _VOCABULARY.format(side): f"the {side} vocabulary is not the one that "
        "{folder} was made with; use that one, or name another folder"
        for side in ("source", "target")
    },
}
# The options that a resumed training may change.
FREE = (
    *("epochs", "updates", "minutes", "patience"),
    *("evaluate_every", "tokenize"),
    *("keep", "max_skipped", "learning_rate"),
)


_DEFAULTS = {x.name: x.default for options in (TextOptions, Recipe) for x in fields(options)}


class _Names(dict[str, object]):
    """Values for a template; the other names in it are options."""

    def __missing__(self, name: str) -> str:
        return named(name)


class Change(NamedTuple):
    """A setting as written in the folder, and as it is now."""

    name: str
    before: object
    after: object

    @property
    def called(self) -> str:
        """How a user calls the setting."""
        return named(self.name) if self.name in KINDS else self.name

    @property
    def note(self) -> str:
        """The sentence for an option that a training may change."""
        is_limit = self.name in ("updates", "minutes")
        before, after = (f"{x}{' (no limit)' * (is_limit and x == 0)}" for x in self[1:])
        return f"{named(self.name)} is {after} from now on; it was {before}"

    def refusal(self, folder: Path) -> ValueError:
        """The error for a setting that a training cannot change."""
        name, before, after = self
        if name in _SENTENCES:
            text = _SENTENCES[name].format_map(_Names(folder=folder, before=before, after=after))
        elif name in Recipe.__dataclass_fields__:
            text = (
                f"{named(name)} is {after!r}, but {before!r} in the training in {folder}, which "
                f"cannot change it; leave {named(name)} out to resume, or name another folder"
            )
        else:
            text = (
                f"{folder} holds another model: {self.called} is {before!r} there "
                f"and {after!r} now; name another folder"
            )
        return wrong_folder(text)


def is_begun(model_dir: Path) -> bool:
    """Whether a folder has a model or a checkpoint; else it is new.

    A run that ended before its first checkpoint may have left settings and tokenizers, which are
    written again.
    """
    models = ("best/*", "checkpoints/*.index")
    return any(any(model_dir.glob(path)) for path in models)


def of_training(
    translator: Translator,
    recipe: Recipe,
    threads: int | None,
    corpus: ParallelCorpus,
    dev: ParallelCorpus | None,
    tokenize: str,
) -> dict[str, object]:
    """The settings of a training.

    `threads` is a number if a resumed training must have as many; `tokenize` is sacreBLEU's
    tokenizer of the dev text.
    """
    model: keras.Model = translator.model
    tokenizers: dict[str, object] = {}
    for side in ("source", "target"):
        options = dict(getattr(translator, f"{side}_text").settings())
        tokenizers[_VOCABULARY.format(side)] = options.pop("checksum", None)
        tokenizers[f"{side}_tokenizer"] = options
    return {
        "model": json.loads(model.to_json()),
        "recipe": {**asdict(recipe), "learning_rate": recipe.rate},
        **tokenizers,
        THREADS: threads,
        TRAINING_TEXT: corpus.checksum,
        DEV_TEXT: dev.checksum if dev else None,
        DEV_TOKENIZER: tokenize or None,
    }


def write_settings(path: Path, settings: Settings) -> None:
    """Writes settings, unless the file has them already."""
    described = {"format_version": FORMAT_VERSION, **settings}
    data = json.dumps(described, indent=2).encode()
    if not path.is_file() or path.read_bytes() != data:
        write_atomically(path, data)


def read_settings(path: Path) -> dict[str, object]:
    """Reads what `write_settings` wrote; raises ValueError if it is missing, damaged or too new."""
    if not path.is_file():
        raise wrong_folder(
            f"{path.parent} holds a model, but {path}, the file of its settings, is missing; name "
            "another folder"
        )
    return read_versioned(path, FORMAT_VERSION, named("model_dir"))


def changes(path: Path, settings: Settings) -> Iterator[Change]:
    """Yields the settings that differ from those of the file; raises as `read_settings` does.

    An option that the file lacks is newer than the training, which has gone on without it: so it
    counts as written with its default. One that is not known here is refused by its name.
    """
    before, now = read_settings(path), json.loads(json.dumps(settings))
    before = _completed(before, now, path)
    if isinstance(recipe := before.get("recipe"), dict):
        before["recipe"] = _completed(recipe, now["recipe"], path)
    yield from _differences(_comparable(before), _comparable(now))


def _completed(before: Settings, now: Settings, path: Path) -> dict[str, object]:
    if unknown := before.keys() - now.keys() - {"format_version"}:
        raise wrong_folder(
            f"{path} has {', '.join(sorted(unknown))}, which this version of bahdanau_tf does not "
            "know; continue with the version that began the training, or train its model further "
            f"in another folder, with {named('init_from')}"
        )
    return {name: _DEFAULTS.get(name) for name in now} | dict(before)


def check_settings(path: Path, settings: Settings) -> None:
    """Raises ValueError as `changes` does, or if some setting differs from the file."""
    for change in changes(path, settings):
        raise change.refusal(path.parent)


def of_held_out(dev_pairs: int, corpus: ParallelCorpus) -> dict[str, object]:
    """The settings of the pairs that are held out of a text."""
    return {DEV_PAIRS: dev_pairs, TRAINING_TEXT: corpus.checksum}


def check_alike(cluster: Cluster, settings: Settings) -> None:
    """Raises a ValueError if this worker of a cluster has other settings than the chief."""
    own = json.dumps(settings)
    chiefs = cluster.text_from_chief(own)
    for change in _differences(*_comparable([json.loads(chiefs), json.loads(own)])):
        if change.name.endswith("_text_checksum"):
            raise ValueError(
                f"worker {cluster.number} has a different text from the chief's "
                f"({change.name} differs), wanted the same files on all machines"
            )
        raise ValueError(
            f"{change.called} is {change.after!r} on worker {cluster.number} and {change.before!r} "
            "on the chief, wanted the same command and the same files on all machines"
        )


def _comparable(settings: Any) -> Any:
    """Settings without what differs between two processes or versions for the same model.

    The second `GRUCell` of a process is "gru_cell_1", and parts that a loaded model shares are
    identified by addresses; a name that was chosen is kept. The module of a registered class may
    change: Keras finds the class by its registered name.
    """
    if isinstance(settings, list):
        return [_comparable(setting) for setting in settings]
    if not isinstance(settings, dict):
        return settings
    ignored = {"shared_object_id"}
    if ">" in str(settings.get("registered_name")):  # that of a class that is not has no package
        ignored.add("module")
    settings = {name: _comparable(value) for name, value in settings.items() if name not in ignored}
    config = settings.get("config")
    if isinstance(config, dict) and isinstance(config.get("name"), str):
        kind = re.sub(r"_\d+$", "", config["name"])
        if kind.replace("_", "") == str(settings.get("class_name")).lower():
            config["name"] = kind
    return settings


def _differences(before: object, after: object, name: str = "") -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        kinds = before.get("class_name"), after.get("class_name")
        if kinds[0] != kinds[1]:
            yield Change(name, *kinds)
            return
        for key in before:
            yield from _differences(before[key], after.get(key), key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for old, new in zip(before, after, strict=True):
            yield from _differences(old, new, name)
    elif before != after:
        yield Change(name, _in_short(before), _in_short(after))


def _in_short(value: object) -> object:
    """A part of a model is shown by its class name."""
    if isinstance(value, list):
        return [_in_short(part) for part in value]
    return value.get("class_name", value) if isinstance(value, dict) else value


class Log:
    """Lines of JSON, each written once, such as `log.jsonl`; the file is made with the first."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, record: Mapping[str, object]) -> None:
        """Adds a line; `record` has a "step"."""
        with explain_write_errors(self._path), open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def records(self) -> list[dict[str, float]]:
        """The lines; none if there is no file yet."""
        return [record for _, record in self._whole()]

    def forget_after(self, step: int) -> None:
        """Removes lines after an update, which will be written again.

        A killed run may have written lines after its last checkpoint, or half a line.
        """
        kept = "".join(f"{line}\n" for line, record in self._whole() if record["step"] <= step)
        if kept != self._read():
            write_atomically(self._path, kept.encode())

    def _read(self) -> str:
        return self._path.read_text("utf-8", "replace") if self._path.is_file() else ""

    def _whole(self) -> Iterator[tuple[str, dict[str, float]]]:
        """Each line with its record, without those that `add` did not write completely."""
        for line in self._read().split("\n")[:-1]:
            with suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict) and isinstance(record.get("step"), int):
                    yield line, record


class ModelFolder:
    """The state of a training in `model_dir`.

    Attributes:
        path: The folder; it exists, and no other process writes in it.
        best: The folder of the best model.
        log: The log, `log.jsonl`.
        checkpoints: The checkpoints.
        state: What they hold in addition to weights and optimizer.
        settings: What the training must keep when it is resumed.
        improved: Updates after the restored checkpoint whose evaluation was the best so far,
            according to the log.
    """

    def __init__(
        self, path: Path, checkpoints: Checkpoints, state: State, settings: Settings
    ) -> None:
        self.path, self.best, self._file = path, path / "best", path / "training.json"
        self.log = Log(path / "log.jsonl")
        self.checkpoints, self.state, self.settings = checkpoints, state, settings
        self.improved: set[int] = set()
        self._is_new = True

    @property
    def needs_evaluation(self) -> bool:
        """Whether the best model is missing, or the last one not evaluated, as after a signal."""
        evaluated = [record["step"] for record in self.log.records()]
        is_unknown = self.settings[DEV_TEXT] is not None and math.isnan(self.state.best["loss"])
        is_new = int(self.state.step) not in evaluated[-1:]
        return is_unknown or is_new or not self.best.exists()

    def restore(self, monitor: str) -> list[str]:
        """Restores the newest checkpoint, if the folder has one; `monitor` selected the best model.

        It writes nothing, except that it removes leftovers of killed processes. Returns a sentence
        for each newer checkpoint that is damaged, and for each option that has changed. It is a
        ValueError if the folder is that of another training, or its best model would be lost.
        """
        remove_leftovers(self.path)
        for inside in [path for path in self.path.iterdir() if path.is_dir()]:
            remove_leftovers(inside)
        self.checkpoints.remove_halves()
        newest, faults = self.checkpoints.newest_whole()
        self._is_new = not newest
        # The first is of update 0: one that is half written loses nothing.
        is_first = len(faults) == 1 and faults[0].startswith("ckpt-1:")
        if not (newest or self.best.exists() or is_first) and faults:
            raise wrong_folder(
                f"{self.path} has no checkpoint that can be read ({'; '.join(faults)}); name "
                "another folder, or remove these checkpoints to start again"
            )
        if not newest and self.best.exists():
            raise wrong_folder(
                f"{self.best} exists, but no checkpoint to resume from "
                f"({'; '.join(faults) or 'there is none'}); name another folder, for example to "
                f"train that model further (init_from), or move {self.best} away to start again"
            )
        notes = []
        if newest:
            notes = [f"ignored a damaged checkpoint, {fault}" for fault in faults]
            notes += self._compare_settings()
            self.checkpoints.restore(newest)
        if self.best.exists():
            self._recall_best(monitor)
        else:
            self.state.forget_best()
        return notes

    def _compare_settings(self) -> list[str]:
        """A sentence for each option that has changed and may change."""
        notes = []
        for change in changes(self._file, self.settings):
            if change.name in FREE:
                notes.append(change.note)
            # Without a best model none was selected on a dev set.
            elif change.name not in (DEV_TEXT, DEV_TOKENIZER) or self.best.exists():
                raise change.refusal(self.path)
        return notes

    def _recall_best(self, monitor: str) -> None:
        """Reads from the log how good `best` is.

        It may be of an evaluation after the checkpoint that was restored.
        """
        stale = int(self.state.stale)
        for record in self.log.records():
            scores = {n: record[f"dev_{n}"] for n in SCORES if f"dev_{n}" in record}
            step = int(record["step"])
            is_later = bool(scores) and step > int(self.state.step)
            if is_later and self.state.record(scores, monitor):
                self.improved.add(step)
        self.state.stale.assign(stale)

    def begin(self) -> None:
        """Writes what must exist before the training continues.

        A new folder gets a checkpoint of update 0, so a disk that is too small raises an OSError at
        once, and there is never a best model without a checkpoint.
        """
        with explain_write_errors(self._file):
            write_settings(self._file, self.settings)
        self.log.forget_after(int(self.state.step))
        if self._is_new:
            self.checkpoints.save()

    def check_place(self) -> None:
        """Raises an OSError if the folder was moved, so that no half of it is made again."""
        file = self.path / LOCK
        if not file.is_file() or file.read_text("utf-8") != f"{os.getpid()}\n":
            raise OSError(
                f"{named('model_dir')}: {self.path} was moved or replaced while it was trained; "
                f"the folder that it was has all that was saved, and as {named('model_dir')} it "
                "resumes the training"
            )

    def save_best(self, translator: Translator) -> None:
        """Replaces the best model; if it cannot be written, the previous one is kept."""
        self.check_place()
        with explain_write_errors(self.best):
            write_translator(self.best, translator.graph, translator.habits, translator.card)


LOCK = "training.lock"
_held: dict[Path, int] = {}  # locked folders, and the threads that hold them


@contextmanager
def locked(model_dir: Path) -> Iterator[None]:
    """Keeps other processes from training in a folder.

    It is a file lock on `training.lock`, which the system releases when the process ends; the file
    stays. On Windows and on file systems without locks it has no effect. A thread that holds the
    lock may take it again. The folder is made if it does not exist; after an error it is removed if
    nothing else was written to it. Raises ValueError if another process trains in the folder.
    """
    is_new = not model_dir.exists()
    model_dir.mkdir(parents=True, exist_ok=True)
    place, thread = model_dir.resolve(), threading.get_ident()
    if _held.get(place) == thread:
        yield
        return
    with open(model_dir / LOCK, "a+", encoding="utf-8") as file:
        if takes_lock(file) is False:
            file.seek(0)
            raise wrong_folder(
                f"{model_dir} is being trained by process {file.read().strip()}; wait for it, or "
                "name another folder"
            )
        try:
            file.truncate(0)
            try:
                os.write(file.fileno(), f"{os.getpid()}\n".encode())
            except OSError as error:
                raise OSError(error.errno, error.strerror, file.name) from error
            _held[place] = thread
            yield
        except BaseException:
            with suppress(OSError):  # the folder may be gone, or be another one
                is_ours = os.path.samestat(os.fstat(file.fileno()), os.stat(place / LOCK))
                if is_new and is_ours and [path.name for path in place.iterdir()] == [LOCK]:
                    (place / LOCK).unlink()
                    place.rmdir()
            raise
        finally:
            _held.pop(place, None)
