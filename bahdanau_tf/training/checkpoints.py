"""The last checkpoints of a training: written, checked, restored."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import keras
import tensorflow as tf

_GO_ON = "Fix that, then run the same command again"


@contextmanager
def told_by_path(path: Path) -> Iterator[None]:
    """Adds to an error what could not be written, and that the rest is kept.

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
    """Turns an error of a TensorFlow operation into one sentence.

    Raises:
        OSError: An operation failed, for example for lack of memory, or another
            worker has ended.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if "Collective ops is aborted" in str(error):
            raise OSError(
                "another worker has ended or cannot be reached, so this one "
                "ends, too; what was written before is kept. If that worker "
                "does not say what to mend, start the same command on all "
                "machines again"
            ) from error
        advice = _GO_ON
        if isinstance(error, tf.errors.ResourceExhaustedError):
            advice = "With a smaller --batch_size, in another folder, it may fit"
        raise OSError(f"train: {reason(error)}; the last checkpoint is kept. {advice}") from error


def reason(error: Exception) -> str:
    """The shortest description of an error."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    first = re.sub(r"\{\{.*?\}\} ?", "", str(error)).strip().partition("\n")[0]
    return first.split("; ")[-1].partition(" [Op:")[0]


_FILE = re.compile(r"ckpt-(\d+)\.(index|data-.*)")


class Checkpoints:
    """The last checkpoints in a folder; the newest may be damaged.

    They are found by their files, `ckpt-<number>.index` and `.data-*`.
    TensorFlow's list of them, the file `checkpoint`, is written but not read.

    Args:
        folder: The folder; made with the first checkpoint.
        added: Variables that checkpoints may lack; then they keep their
            values. All others must be there.
        keep: How many are kept.
        **objects: The objects to save, as for `tf.train.Checkpoint`.
    """

    def __init__(
        self,
        folder: Path,
        added: Collection[tf.Variable] = (),
        keep: int = 2,
        **objects: object,
    ) -> None:
        self._folder = folder
        self._checkpoint = tf.train.Checkpoint(**objects)
        self._added = added
        self._keep = keep

    def newest_whole(self) -> tuple[str, list[str]]:
        """Finds the newest checkpoint that can be read completely.

        Returns:
            Its name, "" if there is none; and a sentence for each newer one on
            what is wrong with it.
        """
        faults: list[str] = []
        for number in self._numbers():
            name = f"ckpt-{number}"
            fault = _fault(self._folder / name)
            if not fault:
                return name, faults
            faults.append(f"{name}: {fault}")
        return "", faults

    def restore(self, name: str) -> None:
        """Restores the checkpoint of that name.

        Raises:
            ValueError: It is a checkpoint of another model, or of another
                version.
        """
        path = str(self._folder / name)
        try:
            if _has_all(path, self._checkpoint, self._added):
                self._checkpoint.restore(path)
                return
        except tf.errors.InvalidArgumentError:
            pass  # a variable of another dtype
        except ValueError as error:
            raise ValueError(
                f"model_dir: {path} is a checkpoint of another model: {error}"
            ) from error
        raise ValueError(
            f"model_dir: {path} does not have the variables of this model or "
            "its optimizer: another version of bahdanau_tf wrote it; continue "
            "with that version, or name another folder"
        )

    def save(self) -> None:
        """Writes a checkpoint, then removes all but the last few.

        Those with higher numbers are removed, too: one that was damaged, and
        before which the training went on.

        Raises:
            OSError: It cannot be written; the last ones are kept.
        """
        try:
            with told_by_path(self._folder):
                # TensorFlow would make it with mode 755, whatever the umask.
                self._folder.mkdir(parents=True, exist_ok=True)
                self._checkpoint.save(str(self._folder / "ckpt"))
        except OSError:
            self._remove(int(self._checkpoint.save_counter))
            raise
        last = int(self._checkpoint.save_counter)
        numbers = self._numbers()
        kept = [number for number in numbers if number <= last][: self._keep]
        for number in {*numbers} - {*kept}:
            self._remove(number)

    def remove_halves(self) -> None:
        """Removes the incomplete checkpoints of killed processes."""
        for path in self._folder.glob("ckpt-*_temp"):
            shutil.rmtree(path, ignore_errors=True)

    def _numbers(self) -> list[int]:
        """The numbers of all checkpoints, damaged or not, newest first."""
        found = map(_FILE.fullmatch, _names(self._folder))
        return sorted({int(one[1]) for one in found if one}, reverse=True)

    def _remove(self, number: int) -> None:
        """Removes a checkpoint; first its index, so that none is half read."""
        name = f"ckpt-{number}"
        (self._folder / f"{name}.index").unlink(missing_ok=True)
        for path in self._folder.glob(f"{name}.data-*"):
            path.unlink(missing_ok=True)
        shutil.rmtree(self._folder / f"{name}_temp", ignore_errors=True)


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def _has_all(path: str, root: tf.train.Checkpoint, added: Collection[tf.Variable]) -> bool:
    """Whether a checkpoint has each variable, in one place alone.

    The variables of an optimizer are numbered. With one more among them, the
    others would get one another's values; it shows in those that have names.
    """
    saved = tf.train.CheckpointView(path)
    now = tf.train.TrackableView(root)
    found = {0: root}  # what restoring gives the values of each saved object
    nodes = [0]
    for node in nodes:
        parts = now.children(found[node])
        for name, child in saved.children(node).items():
            part = parts.get(name)
            if part is None:
                continue
            if child not in found:
                found[child] = part
                nodes.append(child)
            elif _is_variable(part) and part is not found[child]:
                return False
    whole = {id(one) for one in (*found.values(), *added)}
    return all(id(one) in whole for one in now.descendants() if _is_variable(one))


def _is_variable(part: object) -> bool:
    return isinstance(part, (tf.Variable, keras.Variable))


def _fault(path: Path) -> str:
    """Says what is wrong with a checkpoint; "" if all of it can be read.

    TensorFlow checks the checksum of each tensor when it reads it.
    """
    try:
        reader = tf.train.load_checkpoint(str(path))
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except (tf.errors.OpError, LookupError, RuntimeError, ValueError) as error:
        return reason(error)
    return ""
