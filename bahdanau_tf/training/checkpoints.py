"""What a training saves: its state, and the last checkpoints, written, checked, restored."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.data.dataset import Position
from bahdanau_tf.evaluation.scores import METRICS, SCORES
from bahdanau_tf.system.files import reason
from bahdanau_tf.system.ranges import Refusal, named

_AGAIN = "Fix that, then run the same command again"
LOW = 1.0  # a score below this comes from a few n-grams by chance, and counts as 0
NOISE = 1e-6  # smaller relative differences of the loss do not count


def is_better(scores: Mapping[str, float], best: Mapping[str, float], monitor: str) -> bool:
    """Whether scores of the dev set are better than the best ones.

    `monitor`, a name of `SCORES`, decides; if it is equal, the loss. A best score of NaN stands for
    none.
    """
    new, old = scores[monitor], best[monitor]
    if monitor != "loss":
        if METRICS[monitor].lower_is_better:
            new, old = -new, -old
        else:
            new, old = (0.0 if score < LOW else score for score in (new, old))
        if new != old:
            return math.isnan(old) or new > old
    return math.isnan(best["loss"]) or scores["loss"] < best["loss"] * (1 - NOISE)


class State(tf.Module):
    """What checkpoints hold in addition to weights and optimizer.

    Names that end in "seconds" are readings of a clock. All others have the same final values,
    however often a training was interrupted.

    Attributes:
        step: Number of updates.
        position: The `Position` in the text after the last batch.
        loss: Summed loss since the last evaluation.
        words: Number of target words over which it is summed.
        best_loss, best_bleu, ...: The scores of the best model on the dev set, one for each name of
            `SCORES`; NaN before the first evaluation.
        stale: Number of evaluations since the best one.
        seconds: Time spent in all runs, each from the end of its first update.
        longest_seconds: Time of their longest evaluation; NaN before the first.
        halvings: Number of times the learning rate of "plateau" was halved.
    """

    def __init__(self) -> None:
        super().__init__()
        self.step = _variable(0, tf.int64)
        self.position = _variable(Position(), tf.int64)
        self.loss = _variable(0.0)
        self.words = _variable(0.0)
        # In float64: rounded to float32, an equal score might look better.
        for name in SCORES:
            setattr(self, f"best_{name}", _variable(math.nan))
        self.stale = _variable(0, tf.int32)
        self.seconds = _variable(0.0)
        self.halvings = _variable(0, tf.int32)
        self.longest_seconds = _variable(math.nan)

    def advance(self, position: Position, cost: float, words: float) -> None:
        """Counts an update: the position after it, its summed loss (if finite) and words."""
        self.step.assign_add(1)
        self.position.assign(position)
        if math.isfinite(cost):
            self.loss.assign_add(as_array(cost))
            self.words.assign_add(as_array(words))

    def take_loss(self) -> dict[str, float]:
        """{"loss": the mean loss of a word since the last call}, if any."""
        if not self.words:
            return {}
        mean = float(self.loss / self.words)
        self.loss.assign(0.0)
        self.words.assign(0.0)
        return {"loss": mean}

    @property
    def best(self) -> dict[str, float]:
        """The scores of the best model on the dev set, NaN where there is none."""
        return {name: self.best_score(name) for name in SCORES}

    def best_score(self, name: str) -> float:
        """One of the scores of the best model on the dev set."""
        return float(getattr(self, f"best_{name}"))

    def record(self, scores: Mapping[str, float], monitor: str) -> bool:
        """Counts an evaluation; returns whether it is the best by `monitor`.

        Without a dev set there are no scores, and each model is the best.
        """
        if scores and not is_better(scores, self.best, monitor):
            self.stale.assign_add(1)
            return False
        self._set_best(scores)
        return True

    def forget_best(self) -> None:
        """Makes the next model that is evaluated the best."""
        self._set_best(dict.fromkeys(SCORES, math.nan))

    def _set_best(self, scores: Mapping[str, float]) -> None:
        self.stale.assign(0)
        for name, score in scores.items():
            getattr(self, f"best_{name}").assign(score)

    def read_position(self) -> Position:
        """`position` as numbers."""
        return Position(*self.position.numpy().tolist())


def as_array(number: float) -> np.ndarray:
    """The number in a form that TensorFlow does not cache.

    It keeps a tensor of some 700 bytes for each Python number, so a training would grow with each
    update.
    """
    return np.asarray(number)


def _variable(value: object, dtype: tf.DType = tf.float64) -> tf.Variable:
    return tf.Variable(value, dtype=dtype, trainable=False)


def wrong_folder(what: str) -> Refusal:
    """The error for a folder in which this training cannot go on."""
    return Refusal("train", f"{named('model_dir')}: {what}")


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Makes an OSError of an error in writing: which file it was, and that the rest is kept."""
    try:
        yield
    except (OSError, RuntimeError, tf.errors.OpError) as error:
        raise OSError(
            f"{named('model_dir')}: {path} could not be written: {reason(error)}; what was "
            f"written before is kept. {_AGAIN}"
        ) from error


@contextmanager
def explain_tensorflow_errors() -> Iterator[None]:
    """Makes an OSError of one sentence of an error in an operation of TensorFlow."""
    try:
        yield
    except tf.errors.OpError as error:
        if "Collective ops is aborted" in str(error):
            raise OSError(
                "another worker has ended or cannot be reached, so this one also stops; what was "
                "written before is kept. Fix what that worker reports, if anything, and start the "
                "same command on all machines again"
            ) from error
        advice = _AGAIN
        if isinstance(error, tf.errors.ResourceExhaustedError):
            advice = f"With a smaller {named('batch_size')}, in another folder, it may fit"
        raise OSError(f"train: {reason(error)}; the last checkpoint is kept. {advice}") from error


# Variables of a `State` that checkpoints of earlier versions lack: 0.3.0 kept only the loss and the
# BLEU of the best model, and the scores of each metric that is added to `METRICS` are new.
ADDED = [f"best_{name}" for name in SCORES if name not in ("loss", "bleu")]
_VARIABLE = (tf.Variable, keras.Variable)
_FILE = re.compile(r"ckpt-(\d+)\.(index|data-.*)")


class Checkpoints:
    """The last checkpoints in a folder, at most `keep`; the newest may be damaged.

    They are found by their files, `ckpt-<number>.index` and `.data-*`. TensorFlow's list of them,
    the file `checkpoint`, is written but not read.
    """

    def __init__(self, folder: Path, keep: int = 2, **objects: object) -> None:
        self._folder = folder
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._keep = keep

    def newest_whole(self) -> tuple[str, list[str]]:
        """The name of the newest checkpoint that can be read completely, "" if there is none.

        And for each newer one a sentence about its fault.
        """
        faults: list[str] = []
        for name in (f"ckpt-{number}" for number in self._numbers()):
            if not (fault := _fault(self._folder / name)):
                return name, faults
            faults.append(f"{name}: {fault}")
        return "", faults

    def restore(self, name: str) -> None:
        """Restores a checkpoint; raises ValueError if it is of another model or another version."""
        path = str(self._folder / name)
        try:
            if _has_all(path, self._checkpoint):
                self._checkpoint.restore(path)
                return
        except tf.errors.InvalidArgumentError:
            pass  # a variable of another dtype
        except ValueError as error:
            raise wrong_folder(f"{path} is a checkpoint of another model: {error}") from error
        raise wrong_folder(
            f"{path} does not have the variables of this model or its optimizer: another version "
            "of bahdanau_tf wrote it; continue with that version, or name another folder"
        )

    def save(self) -> None:
        """Writes a checkpoint, then removes all but the last few.

        Those with higher numbers are also removed: damaged ones, if training resumed from one
        before them. If it cannot be written, the last ones are kept.
        """
        try:
            with explain_write_errors(self._folder):
                # TensorFlow would make it with mode 755, whatever the umask.
                self._folder.mkdir(parents=True, exist_ok=True)
                self._checkpoint.save(str(self._folder / "ckpt"))
        except OSError:
            self._remove(int(self._checkpoint.save_counter))
            raise
        numbers, last = self._numbers(), int(self._checkpoint.save_counter)
        kept = [number for number in numbers if number <= last][: self._keep]
        for number in {*numbers} - {*kept}:
            self._remove(number)

    def remove_halves(self) -> None:
        """Removes the incomplete checkpoints of killed processes."""
        for path in self._folder.glob("ckpt-*_temp"):
            shutil.rmtree(path, ignore_errors=True)

    def _numbers(self) -> list[int]:
        """The numbers of all checkpoints, damaged or not, newest first."""
        names = [path.name for path in self._folder.iterdir()] if self._folder.is_dir() else []
        matches = map(_FILE.fullmatch, names)
        return sorted({int(match[1]) for match in matches if match}, reverse=True)

    def _remove(self, number: int) -> None:
        """Removes a checkpoint; first its index, so that none is half read."""
        name = f"ckpt-{number}"
        (self._folder / f"{name}.index").unlink(missing_ok=True)
        for path in self._folder.glob(f"{name}.data-*"):
            path.unlink(missing_ok=True)
        shutil.rmtree(self._folder / f"{name}_temp", ignore_errors=True)


def _has_all(path: str, root: tf.train.Checkpoint) -> bool:
    """Whether a checkpoint has each variable, in one place alone.

    The variables of an optimizer are numbered. With one more among them, the others would get one
    another's values; those that have names show it. A checkpoint may lack what is in `ADDED`, which
    keeps its initial value.
    """
    saved = tf.train.CheckpointView(path)
    now = tf.train.TrackableView(root)
    restored = {0: root}  # the objects that get the values of the saved ones
    nodes = [0]
    for node in nodes:
        parts = now.children(restored[node])
        for name, child in saved.children(node).items():
            part = parts.get(name)
            if part is None:
                continue
            if child not in restored:
                restored[child] = part
                nodes.append(child)
            elif isinstance(part, _VARIABLE) and part is not restored[child]:
                return False
    states = (part for part in restored.values() if isinstance(part, State))
    may_lack = (getattr(state, name) for state in states for name in ADDED)
    ids = {id(part) for part in (*restored.values(), *may_lack)}
    variables = (part for part in now.descendants() if isinstance(part, _VARIABLE))
    return all(id(part) in ids for part in variables)


def _fault(path: Path) -> str:
    """The fault of a checkpoint; "" if all of it can be read, which checks its checksums."""
    try:
        reader = tf.train.load_checkpoint(str(path))
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except (tf.errors.OpError, LookupError, RuntimeError, ValueError) as error:
        return reason(error)
    return ""
