"""Files and folders replaced as a whole, or not at all."""

from __future__ import annotations

import pytest

from bahdanau_tf.files import replaced_directory
from bahdanau_tf.files import write_atomically


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


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "folder" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]
