"""Reads and writes the files of a saved translator; they may be damaged."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import keras

from bahdanau_tf.layers.weights import read_later
from bahdanau_tf.options import Decoding
from bahdanau_tf.system.files import found_directory, read_object, read_versioned, write_atomically
from bahdanau_tf.translation.archive import check_model_file

FORMAT_VERSION = 1
DESCRIPTION = "translator.json"


def check_replaceable(directory: str | os.PathLike[str]) -> None:
    """Raises if a translator would replace something else.

    Raises:
        ValueError: `directory` is a file, or a folder with other things.
    """
    folder = Path(directory)
    if not folder.is_dir():
        free = not folder.exists()
    else:
        free = (folder / DESCRIPTION).is_file() or not any(folder.iterdir())
    if not free:
        raise ValueError(
            f"Translator.save: {folder} is there and holds no translator, "
            "wanted a new folder, or one that `save` wrote, to replace"
        )


def write_description(folder: Path, sources: int, decoding: Decoding) -> None:
    """Writes `translator.json`: the number of sources, and the decoding."""
    description = {"format_version": FORMAT_VERSION, "sources": sources, "decoding": vars(decoding)}
    text = json.dumps(description, indent=2) + "\n"
    write_atomically(folder / DESCRIPTION, text.encode())


def read_description(folder: Path) -> tuple[int, Decoding]:
    """Reads what `write_description` wrote.

    Raises:
        ValueError: There is no such file, it has other contents, or a newer version of this package
            wrote it.
    """
    path = folder / DESCRIPTION
    if folder.is_file():
        raise ValueError(
            f"Translator.load: {folder} is a file, wanted a folder that "
            "Translator.save wrote; keras.models.load_model reads the file of "
            "a model alone"
        )
    if not folder.is_dir():
        raise ValueError(f"Translator.load: there is no folder {folder}")
    if not path.is_file():
        raise ValueError(f"Translator.load: {folder} holds no translator (no {DESCRIPTION})")
    description = read_versioned(path, FORMAT_VERSION, "Translator.load")
    sources = description.get("sources")
    options = description.get("decoding")
    try:
        if type(sources) is not int or sources < 1:
            raise ValueError(f"sources is {sources!r}, wanted 1 or more")
        if not isinstance(options, dict):
            raise ValueError(f"decoding is {options!r}, wanted an object")
        return sources, Decoding(**options)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Translator.load: {path} was not written by this version of bahdanau_tf: {error}"
        ) from error


def write_model(path: Path, model: keras.Model) -> None:
    """Writes a Keras model."""
    model.save(path)


def saved_file(path: Path) -> Path:
    """The path of a file, if it is there.

    Raises:
        ValueError: It is missing.
    """
    if not path.is_file():
        raise ValueError(f"Translator.load: {path} is missing")
    return path


def read_model(path: Path) -> keras.Model:
    """Loads a Keras model, without compiling it.

    A class of a user's own is found by its registered name, which it has once its module is
    imported. A module that the file names is not imported: a file from elsewhere must not choose
    what runs.

    Raises:
        ValueError: The file is damaged, it names what neither Keras nor this process has, or Keras
            cannot load it.
    """
    says = ""
    try:
        check_model_file(path)
        says = "Keras says: "
        with read_later():
            return keras.models.load_model(path, compile=False)
    except Exception as error:  # a damaged file may raise anything
        reason = _damage(path) or f"{says}{_cause(error)}"
        raise ValueError(f"Translator.load: {path}: {reason}") from error


def _cause(error: Exception) -> str:
    """The last part of Keras' message, without the configuration of a model."""
    cause = str(error).rpartition("Exception encountered: ")[2]
    return cause.partition(" Full object config: ")[0]


def _damage(path: Path) -> str:
    """Says how an archive is damaged; "" if it is not."""
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.testzip()
    except Exception as error:  # as above
        return f"the file is damaged ({error})"
    return f"the file is damaged (in {member})" if member else ""


def best_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder of the best model in a training folder; else the folder.

    Raises:
        ValueError: The training has no best model yet.
    """
    best = found_directory(Path(folder, "best"))
    if best.is_dir():
        return best
    folder = found_directory(folder)
    if (folder / "training.json").is_file():
        raise ValueError(
            f"Translator.load: {folder} holds no translator yet: its training "
            "has not come to its first evaluation; if it has ended, the same "
            "`bahdanau-tf train` resumes it"
        )
    return folder


def trained_length(folder: str | os.PathLike[str]) -> int | None:
    """The longest source that the model of a folder was trained on, in tokens.

    Args:
        folder: As for `best_folder`, or the folder `best` in a training folder.

    Returns:
        Number of tokens without the end symbol; None if there was no limit or it is unknown, as for
        a translator that was moved.
    """
    return _trained(folder, "max_length")


def trained_words(folder: str | os.PathLike[str]) -> int | None:
    """As `trained_length`, in source words between spaces."""
    return _trained(folder, "max_words")


def _trained(folder: str | os.PathLike[str], limit: str) -> int | None:
    best = best_folder(folder)
    if "best" not in best.name.split("."):  # "best", or ".best.replaced"
        return None
    try:
        recipe = read_object(best.parent / "training.json").get("recipe")
    except (OSError, ValueError):
        return None
    length = recipe.get(limit) if isinstance(recipe, dict) else None
    return length if type(length) is int and length > 0 else None


def identity(folder: Path) -> tuple[int, int] | None:
    """A value that changes when another folder replaces this one."""
    if not folder.is_dir():
        return None
    status = folder.stat()
    return status.st_ino, status.st_mtime_ns
