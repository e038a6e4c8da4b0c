"""`Checkpoints`: damaged files, a full disk, files of other models."""

import os
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from limits import largest_file
from refusals import refused

from bahdanau_tf.optimizers import Adam
from bahdanau_tf.training.checkpoints import Checkpoints, State


class Numbers(tf.Module):
    """A model of 4 kB."""

    def __init__(self) -> None:
        super().__init__()
        self.value = tf.Variable(tf.zeros([1000]))


def written(folder: Path, count: int = 3) -> None:
    """Saves checkpoints 1 to `count`, each with its number as the value."""
    numbers = Numbers()
    checkpoints = Checkpoints(folder, numbers=numbers)
    for value in range(1, count + 1):
        numbers.value.assign(tf.fill([1000], float(value)))
        checkpoints.save()


def restored(folder: Path) -> tuple[float, list[str], Checkpoints]:
    numbers = Numbers()
    checkpoints = Checkpoints(folder, numbers=numbers)
    newest, faults = checkpoints.newest_whole()
    if newest:
        checkpoints.restore(newest)
    (value,) = {*numbers.value.numpy().tolist()}
    return value, faults, checkpoints


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"checkpoint"}


def files_of(*numbers: int) -> set[str]:
    ends = (".index", ".data-00000-of-00001")
    return {f"ckpt-{number}{end}" for number in numbers for end in ends}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.parametrize("file", [".data-00000-of-00001", ".index"])
@pytest.mark.parametrize("damage", [flip, cut, empty, os.remove])
def test_if_the_newest_checkpoint_is_damaged_the_one_before_is_read(tmp_path, file, damage):
    written(tmp_path)
    assert names(tmp_path) == files_of(2, 3)
    damage(tmp_path / f"ckpt-3{file}")
    value, (fault,), checkpoints = restored(tmp_path)
    assert value == 2.0
    assert fault.startswith("ckpt-3: ")
    assert "{{" not in fault
    # The next checkpoint replaces the damaged one.
    checkpoints.save()
    assert names(tmp_path) == files_of(2, 3)
    assert restored(tmp_path)[:2] == (2.0, [])


@pytest.mark.parametrize("file", [".data-00000-of-00001", ".index"])
def test_a_checkpoint_cut_anywhere_is_not_read(tmp_path, file):
    """Also one that lacks its last byte."""
    written(tmp_path)
    path = tmp_path / f"ckpt-3{file}"
    whole = path.read_bytes()
    sizes = np.random.default_rng(7).integers(0, len(whole), 30).tolist()
    for size in (*sizes, len(whole) - 1):
        path.write_bytes(whole[:size])
        value, (fault,), _ = restored(tmp_path)
        assert (value, fault[:8]) == (2.0, "ckpt-3: "), size
    path.write_bytes(whole)
    assert restored(tmp_path)[:2] == (3.0, [])


@pytest.mark.parametrize("keep", [1, 3])
def test_the_last_checkpoints_are_kept(tmp_path, keep):
    """Fewer than before after the next one is written."""
    written(tmp_path, 4)
    checkpoints = Checkpoints(tmp_path, keep=keep, numbers=Numbers())
    checkpoints.restore(checkpoints.newest_whole()[0])
    for _ in range(2):
        checkpoints.save()
    assert names(tmp_path) == files_of(*(4, 5, 6)[-keep:])


@pytest.mark.parametrize("damage", [empty, os.remove])
def test_tensorflows_list_of_checkpoints_is_not_needed(tmp_path, damage):
    """Nor are half-written checkpoints in the way."""
    written(tmp_path)
    damage(tmp_path / "checkpoint")
    (tmp_path / "ckpt-4_temp").mkdir()
    (tmp_path / "ckpt-4_temp" / "part-00000").touch()
    value, faults, checkpoints = restored(tmp_path)
    assert (value, faults) == (3.0, [])
    checkpoints.remove_halves()
    assert names(tmp_path) == files_of(2, 3)
    checkpoints.save()
    assert names(tmp_path) == files_of(3, 4)
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "ckpt-4")


@pytest.mark.parametrize("size", [0, 2000])
def test_a_full_disk_is_reported_in_one_line_and_keeps_old_checkpoints(tmp_path, size):
    written(tmp_path)
    value, _, checkpoints = restored(tmp_path)
    with largest_file(size), pytest.raises(OSError, match="could not be written") as error:
        checkpoints.save()
    assert "File too large; what was written before is kept" in str(error.value)
    assert "\n" not in str(error.value)
    assert names(tmp_path) == files_of(2, 3)
    assert restored(tmp_path)[:2] == (value, [])


def with_more(module: tf.Module, **variables: tf.Variable) -> tf.Module:
    for name, variable in variables.items():
        setattr(module, name, variable)
    return module


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        (Numbers(), with_more(Numbers(), value=tf.Variable([1.0])), "checkpoint"),
        (Numbers(), with_more(Numbers(), more=tf.Variable(1.0)), "version"),
        # A count as an older version had it.
        (tf.Variable(7, dtype=tf.int32), tf.Variable(1, dtype=tf.int64), ""),
    ],
)
def test_a_checkpoint_of_another_model_or_version_is_refused(tmp_path, before, now, message):
    Checkpoints(tmp_path, part=before).save()
    refused(lambda: Checkpoints(tmp_path, part=now).restore("ckpt-1"), "ckpt-1", *message.split())


def test_a_checkpoint_lacks_only_variables_of_the_state_that_are_newer(tmp_path):
    """They keep their initial values; 0.3.0 wrote the others."""
    for name in ("best_ter", "best_bleu"):
        before = State()
        before.step.assign(5)
        delattr(before, name)
        Checkpoints(tmp_path / name, state=before).save()
    now = State()
    Checkpoints(tmp_path / "best_ter", state=now).restore("ckpt-1")
    assert int(now.step) == 5
    assert np.isnan(now.best_ter)
    refused(lambda: Checkpoints(tmp_path / "best_bleu", state=now).restore("ckpt-1"), "version")


class Counting(Adam):
    """As a later version that counts something more."""

    def __init__(self, first: bool):
        super().__init__()
        self.first = first

    def build(self, variables):
        if self.first:
            self.more = self.add_variable(name="more", shape=())
        super().build(variables)
        if not self.first:
            self.more = self.add_variable(name="more", shape=())


def built(optimizer: Adam) -> Adam:
    optimizer.build([keras.Variable(0.0, name=name) for name in "ab"])
    for place, variable in enumerate(optimizer.variables):
        variable.assign(place + 1)
    return optimizer


def test_an_optimizer_s_slots_are_not_exchanged(tmp_path):
    """Whether a new variable comes before or after them."""
    before = built(Adam())
    Checkpoints(tmp_path, optimizer=before).save()
    for first in (True, False):
        after = built(Counting(first))
        for variable in after.variables:
            variable.assign(-1)
        checkpoints = Checkpoints(tmp_path, optimizer=after)
        refused(lambda own=checkpoints: own.restore("ckpt-1"))
        assert {float(slot) for slot in after.variables} == {-1}
