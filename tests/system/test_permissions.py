"""What the package writes has the permissions of a plain `open` or `mkdir`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorflow as tf
from letters import stand_in_step

from bahdanau_tf.commands.main import main
from bahdanau_tf.serving.export import publish, workplace, write_warmup
from bahdanau_tf.serving.saved_model import write_saved_model
from bahdanau_tf.system.files import replaced_directory, write_atomically
from bahdanau_tf.training import update

pytestmark = [
    pytest.mark.usefixtures("eager_search"),
    # Raised by Keras' `model.save` with NumPy 2.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning"),
]


@pytest.fixture(params=[0o077, 0o022, 0o002], ids=oct)
def umask(request) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def others(folder: Path, umask: int) -> dict[str, str]:
    """What has other permissions, of a folder and all that is in it."""
    modes = {path: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}
    return {
        path.name: oct(mode)
        for path, mode in modes.items()
        if mode != (0o777 if path.is_dir() else 0o666) & ~umask
    }


def test_files_and_folders_that_are_replaced(tmp_path, umask):
    for text in (b"old", b"new"):
        with replaced_directory(tmp_path / "folder") as aside:
            (aside / "inside").write_bytes(text)
        write_atomically(tmp_path / "folder" / "file", text)
    assert not others(tmp_path / "folder", umask)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
def same(text: tf.Tensor) -> dict[str, tf.Tensor]:
    return {"text": text}


def test_the_versions_of_an_export(tmp_path, umask):
    base = tmp_path / "base"
    with workplace(base) as place:
        folder = place / "model"
        write_saved_model(folder, {"same": same.get_concrete_function()}, [])
        write_warmup(folder, [])
        publish(folder, base)
    assert not others(base, umask)


@pytest.mark.parametrize("umask", [0o027], indirect=True, ids=oct)
def test_all_of_a_training(tmp_path, umask, monkeypatch):
    """Checkpoints, the best model, tokenizers, flags, settings, logs."""
    monkeypatch.setattr(update, "train_step", stand_in_step)
    text, folder = tmp_path / "text", tmp_path / "model"
    text.write_text("a b c\nb c\nc a b\n")
    words = [f"--train_source={text}", f"--train_target={text}", f"--model_dir={folder}"]
    words += ["--dev_pairs=1", "--epochs=1", "--tokenizer=word", "--tensorboard"]
    sizes = ("units", "embedding_dim", "attention_units", "maxout_units")
    assert main(["train", *words, *(f"--{name}=4" for name in sizes)]) == 0
    assert (folder / "best" / "model.keras").is_file()
    assert not others(folder, umask)
