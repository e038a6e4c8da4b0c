"""Numbered versions of exports: complete, unique numbers, no leftovers."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf
from refusals import refused

from bahdanau_tf.commands import export as command
from bahdanau_tf.serving import Limits, Report, export
from bahdanau_tf.serving.export import publish, workplace, writing
from bahdanau_tf.translation.habits import Habits

export_module = sys.modules["bahdanau_tf.serving.export"]  # `export` is its function

# Begins an export and waits to be killed.
WRITER = """
import sys
from pathlib import Path
from bahdanau_tf.serving.export import workplace
with workplace(Path(sys.argv[1])) as place:
    (place / "model").mkdir()
    print(place, flush=True)
    sys.stdin.read()
"""


def model(place: Path, content: str = "") -> Path:
    """A folder to publish."""
    folder = place / "model"
    folder.mkdir()
    (folder / "saved_model.pb").write_text(content)
    return folder


def names(base: Path) -> list[str]:
    return sorted(path.name for path in base.iterdir())


def numbers(base: Path) -> list[str]:
    """The folders that a server takes for versions: those named by numbers."""
    return [name for name in names(base) if name.isdecimal()]


def test_versions_appear_when_they_are_complete(tmp_path):
    base = tmp_path / "new" / "base"
    with workplace(base) as place:
        folder = model(place)
        assert numbers(base) == []
        version = publish(folder, base)
        assert version == base / "1"
    (base / "9").mkdir()
    (base / "notes").write_text("not a version")
    with workplace(base) as place:
        assert numbers(base) == ["1", "9"]
        version = publish(model(place), base)
    assert version == base / "10"
    assert names(base) == ["1", "10", "9", "notes"]


def test_two_simultaneous_exports_get_different_numbers(tmp_path, monkeypatch):
    with workplace(tmp_path) as first, workplace(tmp_path) as second:
        folders = model(first, "one"), model(second, "other")
        # Both look for a free number before either publishes.
        looked = iter([1, 1, 2])
        monkeypatch.setattr(export_module, "_next_version", lambda _: next(looked))
        versions = [publish(folder, tmp_path) for folder in folders]
    assert versions == [tmp_path / "1", tmp_path / "2"]
    read = [(path / "saved_model.pb").read_text() for path in versions]
    assert read == ["one", "other"]
    assert names(tmp_path) == ["1", "2"]


def test_after_an_error_no_file_is_left(tmp_path):
    def fail() -> None:
        with workplace(tmp_path) as place:
            model(place)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert names(tmp_path) == []


def test_the_next_export_removes_files_of_a_killed_one(tmp_path):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    place = Path(writer.stdout.readline().strip())
    with workplace(tmp_path):
        assert (place / "model").is_dir()  # its process is running
    writer.kill()
    writer.communicate()
    assert (place / "model").is_dir()
    with workplace(tmp_path):
        assert not place.exists()
    assert names(tmp_path) == []


def test_an_unwritable_folder_is_reported_before_tracing(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")

    def traced(*_):
        raise AssertionError("traced")

    monkeypatch.setattr(sys.modules["bahdanau_tf.serving.export"], "signatures", traced)
    refused(lambda: export(None, file, Limits()), "written", "file", by=OSError)


@pytest.mark.parametrize("differences", [[], ["n_best: row 0: score 1, not 2"]])
def test_no_export_that_differs_is_ever_published(tmp_path, monkeypatch, capsys, differences):
    """What is compared has no number; if it differs, nothing is left of it."""
    making = sys.modules["bahdanau_tf.serving.export"]
    for name in ("slim", "check_operations", "write_warmup", "sentences"):
        monkeypatch.setattr(making, name, lambda *_: [])
    monkeypatch.setattr(making, "signatures", lambda *_: {})
    monkeypatch.setattr(making, "write_saved_model", lambda folder, *_: model(folder.parent))
    graph = SimpleNamespace(source_text=None, source_texts=[], target_text=None, dictionary=None)
    halved = []
    translator = SimpleNamespace(
        graph=graph, habits=Habits(), halve_weights=lambda: halved.append(True)
    )
    monkeypatch.setattr(command, "load_translator", lambda _: translator)

    def examined(_: object, folder: Path, limits: Limits) -> Report:
        assert (folder / "saved_model.pb").is_file()
        assert numbers(tmp_path) == []
        return Report(["Size: 0 MB."], differences)

    monkeypatch.setattr("bahdanau_tf.serving.examine", examined)
    flags = SimpleNamespace(
        export_dir=str(tmp_path),
        format="savedmodel",
        compare=None,
        half_weights=bool(differences),
        max_source_length=9,
        max_target_length=9,
    )
    assert command.run(flags) == len(differences)
    out, err = capsys.readouterr()
    wanted = [] if differences else ["1"]
    assert names(tmp_path) == wanted
    assert out.splitlines() == [str(tmp_path / version) for version in wanted]
    assert ("Differs: n_best: row 0" in err) == bool(differences)
    assert len(halved) == len(differences)


def test_a_full_disk_is_reported_in_one_line(tmp_path):
    said = (
        ".export.x/model/variables_temp/part-00000-of-00001.data; "
        "No space left on device [Op:SaveV2]"
    )
    for error in (
        tf.errors.ResourceExhaustedError(None, None, said),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "some file"),
    ):
        with pytest.raises(OSError, match="cannot") as failure, writing(tmp_path):
            raise error
        assert str(failure.value) == (
            f"nothing was exported: {tmp_path} cannot be written: No space left on device"
        )
