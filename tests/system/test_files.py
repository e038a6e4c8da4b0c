"""Files and folders are replaced completely or not at all."""

import json
import os
from pathlib import Path

import pytest
from limits import largest_file
from processes import output_of

from bahdanau_tf.system.files import (
    RUNTIME,
    found_directory,
    newest_export,
    remove_leftovers,
    replaced_directory,
    write_atomically,
)


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "deep" / "model"
    with replaced_directory(target) as aside:
        (aside / "old").write_text("old")
        assert not target.exists()
    with replaced_directory(target) as aside:
        (aside / "new").write_text("new")
        assert (target / "old").exists()
    assert [path.name for path in target.iterdir()] == ["new"]
    assert [path.name for path in target.parent.iterdir()] == ["model"]


def test_an_error_leaves_the_old_folder(tmp_path):
    target = tmp_path / "model"
    with replaced_directory(target) as aside:
        (aside / "kept").write_text("kept")

    def stop_halfway() -> None:
        with replaced_directory(target) as aside:
            (aside / "half").write_text("half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        stop_halfway()
    assert [path.name for path in target.iterdir()] == ["kept"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_file_that_finds_no_room_is_named_and_kept(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"one")
    no_room = pytest.raises(OSError, match=r"File too large: '.*/file'")
    with largest_file(4), no_room:
        write_atomically(path, b"two and more")
    assert path.read_bytes() == b"one"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_all_is_on_the_disk_before_it_is_renamed(tmp_path, monkeypatch):
    """Otherwise an empty file might stand there after a loss of power."""
    flushed: dict[int, int] = {}
    sync, rename = os.fsync, os.replace

    def synced(file: int) -> None:
        status = os.stat(file)
        flushed[status.st_ino] = status.st_size
        sync(file)

    def renamed(old: Path, new: Path) -> None:
        inside = Path(old).rglob("*") if Path(old).is_dir() else [Path(old)]
        for path in inside:
            assert path.is_dir() or flushed[path.stat().st_ino] == 3
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write_atomically(tmp_path / "file", b"one")
    with replaced_directory(tmp_path / "model") as aside:
        (aside / "deep").mkdir()
        (aside / "deep" / "file").write_text("two")
    assert len(flushed) == 2


# Replaces a folder of three files many times. Each time, the process is killed
# at a later file operation; then the script prints the files that are there.
KILLED = """
import json, os, signal, sys
from pathlib import Path
from bahdanau_tf.system.files import found_directory, remove_leftovers
from bahdanau_tf.system.files import replaced_directory, write_atomically

FILES = "abc"

def write(text):
    with replaced_directory(target) as aside:
        for name in FILES:
            (aside / name).write_text(text)
    write_atomically(target.parent / "file", text.encode())

def read(folder):
    return sorted(
        p.name + p.read_text() for p in folder.iterdir()
    ) if folder.is_dir() else []

def kill_at(moment):
    seen = 0
    def hook(event, _):
        nonlocal seen
        if event.split(".")[0] in ("os", "shutil", "open", "tempfile"):
            seen += 1
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

target = Path(sys.argv[1], "model")
write("old")
status, moment = 1, 0
while status:
    moment += 1
    child = os.fork()
    if not child:
        kill_at(moment)
        write("new")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    seen = [read(target), read(found_directory(target))]
    remove_leftovers(target.parent)
    left = sorted(p.name for p in target.parent.iterdir())
    print(json.dumps([*seen, read(target), left]), flush=True)
    write("old")
"""


def test_a_kill_at_any_moment_leaves_a_complete_folder(tmp_path):
    lines = output_of("-c", KILLED, tmp_path).split("\n")[:-1]
    moments = [json.loads(line) for line in lines]
    old, new = ([f"{name}{text}" for name in "abc"] for text in ("old", "new"))
    for at_path, readable, after, left in moments:
        assert at_path in ([], old, new)
        assert readable in (old, new)
        assert after == readable
        assert left == ["file", "model"]
    assert [] in [at_path for at_path, *_ in moments]  # killed between two renames
    assert (moments[0][1], moments[-1][1]) == (old, new)


def test_folders_of_the_user_are_not_removed_as_leftovers(tmp_path):
    for name in ("best.previous", ".cache", ".git.old", "best.new"):
        (tmp_path / name).mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_the_current_folder_may_be_looked_for(tmp_path, monkeypatch):
    """Path(".") has no name."""
    monkeypatch.chdir(tmp_path)
    assert found_directory(".") == Path()
    assert found_directory("/") == Path("/")


def test_a_full_disk_names_the_folder(tmp_path):
    folder = tmp_path / "folder"
    no_room = pytest.raises(OSError, match=f"File too large: '{folder}'")
    with no_room, largest_file(4), replaced_directory(folder) as aside:
        (aside / "file").write_text("one\ntwo\n")
    assert not folder.exists()


def test_the_newest_export_in_a_folder_is_found(tmp_path):
    for name in ("2", "10", "9", "11", "old"):
        (tmp_path / name).mkdir()
        if name != "11":
            (tmp_path / name / RUNTIME).touch()
    assert newest_export(tmp_path) == tmp_path / "10"
    assert newest_export(tmp_path / "9") == tmp_path / "9"
    (tmp_path / "best").mkdir()  # a training's folder, whose model counts
    assert newest_export(tmp_path) == tmp_path
