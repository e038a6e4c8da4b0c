"""Reads and writes the files of a saved translator; they may be damaged, or come from elsewhere.

`model.keras` is Keras' own file. In its place may be the model's config, `model.json`, and its
weights in a byte each, `weights.npz`: the rows of a matrix are w = s q with q in [-63, 63], where
the scale s of a row is its largest |w| / 63. The eighth bit of q is not used: BLEU is the same, and
the packed file a tenth smaller.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from bahdanau_tf.layers.weights import read_later
from bahdanau_tf.options import Decoding
from bahdanau_tf.options.training import PRETRAINED, no_folder, packaged
from bahdanau_tf.system import files
from bahdanau_tf.system.device import check_not_forked
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.text import Dictionary, load_text
from bahdanau_tf.translation.graph import TranslationGraph
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.memory import TranslationMemory, phrases, read_memory, write_memory
from bahdanau_tf.translation.shortlist import Lexicon

FORMAT_VERSION = 1
DESCRIPTION = "translator.json"
MODEL = "model.keras"
CONFIG, WEIGHTS = "model.json", "weights.npz"
LEVELS = 63  # of each sign
DICTIONARY = "dictionary.tsv"
LEXICON = "lexicon.npz"
ATTEMPTS = 3  # to read a folder that is being replaced

_LARGEST_CONFIG = 1 << 24  # bytes; that of a model here has some 10,000


def check_not_best(directory: str | os.PathLike[str]) -> None:
    """Raises a ValueError if a folder is that of a training's best model."""
    folder = Path(directory).resolve()
    is_best = "best" in folder.name.split(".")  # "best", or ".best.replaced"
    if is_best and (folder.parent / "training.json").is_file():
        raise Refusal(
            "Translator.save",
            f"{directory} is the best model of a training, which only the "
            "training replaces; wanted another folder",
        )


def write_translator(
    directory: str | os.PathLike[str],
    graph: TranslationGraph,
    habits: Habits,
    card: str = "",
    memory: TranslationMemory = TranslationMemory(),
    int8: bool = False,
) -> None:
    """Writes the parts of a graph; see `Translator.save`."""
    folder = Path(directory)
    is_ours = (folder / DESCRIPTION).is_file()
    if folder.exists() and not is_ours and (not folder.is_dir() or any(folder.iterdir())):
        raise Refusal(
            "Translator.save",
            f"{folder} exists and holds no translator, "
            "wanted a new folder, or one that `save` wrote, to replace",
        )
    with files.replaced_directory(directory) as aside:
        model: Any = graph.model  # by its own `save`, which a subclass may override
        if int8:
            _write_bytes(aside, model)
        else:
            model.save(aside / MODEL)
        for number, text in enumerate(graph.source_texts):
            text.save(aside / _source_folder(number))
        graph.target_text.save(aside / "target")
        graph.dictionary.save(aside / DICTIONARY)
        if graph.lexicon is not None:
            graph.lexicon.save(aside / LEXICON)
        if card:
            files.write_atomically(aside / files.CARD, card.encode())
        write_memory(aside, memory)
        description = {
            "format_version": FORMAT_VERSION,
            "sources": len(graph.source_texts),
            "decoding": vars(graph.decoding),
            "habits": vars(habits),
        }
        contents = json.dumps(description, indent=2) + "\n"
        files.write_atomically(aside / DESCRIPTION, contents.encode())


def read_translator(
    directory: str | os.PathLike[str], attempts: int = ATTEMPTS
) -> tuple[tuple[Any, ...], Habits, str, TranslationMemory]:
    """Reads the arguments of a `Translator`, its habits, card and memory; see `Translator.load`.

    If a training replaces the folder at the same time, the new one is read.
    """
    check_not_forked()  # before TensorFlow runs, to load the model
    folder = Path(directory)
    if not (folder / DESCRIPTION).is_file():
        folder = best_folder(folder)
    before = _identity(folder)
    try:
        parts = _parts(folder)
    except (OSError, ValueError):
        if attempts == 1 or _identity(folder) == before:
            raise
    else:
        if attempts == 1 or _identity(folder) == before:
            return parts
    return read_translator(directory, attempts - 1)


def _identity(folder: Path) -> tuple[int, int] | None:
    """A value that changes when another folder replaces this one."""
    if not folder.is_dir():
        return None
    status = folder.stat()
    return status.st_ino, status.st_mtime_ns


def _parts(folder: Path) -> tuple[tuple[Any, ...], Habits, str, TranslationMemory]:
    files.check_own_files("Translator.load", folder)
    sources, decoding, habits = _read_description(folder)
    is_small = (folder / CONFIG).is_file()
    for name in (CONFIG, WEIGHTS, DICTIONARY) if is_small else (MODEL, DICTIONARY):
        if not (folder / name).is_file():
            raise Refusal("Translator.load", f"{folder / name} is missing")
    arguments = (
        _read_bytes(folder) if is_small else read_model(folder / MODEL),
        [load_text(folder / _source_folder(number)) for number in range(sources)],
        load_text(folder / "target"),
        decoding,
        Dictionary.load(folder / DICTIONARY),
        Lexicon.load(folder / LEXICON) if (folder / LEXICON).is_file() else None,
    )
    card = folder / files.CARD
    is_packaged = folder.parent == Path(str(PRETRAINED))
    memory = phrases(*habits.languages) if is_packaged else read_memory(folder)
    return arguments, habits, card.read_text("utf-8") if card.is_file() else "", memory


def _write_bytes(folder: Path, model: keras.Model) -> None:
    """Writes a model's config and its weights, matrices in a byte each."""
    config = keras.saving.serialize_keras_object(model)
    files.write_atomically(folder / CONFIG, json.dumps(config).encode())
    arrays: dict[str, Any] = {}
    for number, weight in enumerate(model.get_weights()):
        if weight.ndim == 2:
            weight, arrays[f"{number}_scale"] = rounded(weight, axis=1)
        arrays[str(number)] = weight
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    files.write_atomically(folder / WEIGHTS, buffer.getvalue())


def rounded(weights: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights in a byte each, and the scales: one for each index of the other axes."""
    scale = np.abs(weights).max(axis, initial=0.0, keepdims=True) / LEVELS
    whole = np.rint(weights / np.where(scale > 0, scale, 1))
    return whole.astype(np.int8), scale.astype(np.float32)


def _read_bytes(folder: Path) -> keras.Model:
    """The model that `_write_bytes` wrote; raises ValueError if it cannot be read."""
    config = files.read_object(folder / CONFIG)
    arrays = files.read_arrays(folder / WEIGHTS)
    try:
        _check_config(config)
        with read_later():
            model = keras.saving.deserialize_keras_object(config)
        numbers = range(len(model.weights))
        scales = [arrays.get(f"{number}_scale", np.float32(1)) for number in numbers]
        model.set_weights([arrays[str(number)] * scales[number] for number in numbers])
    except Exception as error:  # damaged files may raise anything
        raise Refusal("Translator.load", f"{folder / CONFIG}: {_cause(error)}") from error
    return model


def _source_folder(number: int) -> str:
    return f"source-{number + 1}" if number else "source"


def _read_description(folder: Path) -> tuple[int, Decoding, Habits]:
    """The number of sources, the decoding, and the habits, which earlier versions did not write."""
    path = folder / DESCRIPTION
    if folder.is_file():
        raise Refusal(
            "Translator.load",
            f"{folder} is a file, wanted a folder that Translator.save wrote; "
            "keras.models.load_model reads the file of a model alone",
        )
    if not folder.is_dir():
        raise no_folder(folder)
    if not path.is_file():
        holds = f"no translator (no {DESCRIPTION})"
        if any(folder.glob("saved_model.pb")) or any(folder.glob("*/saved_model.pb")):
            holds = "a SavedModel, for tf.saved_model.load and TF Serving, wanted a translator"
        raise Refusal("Translator.load", f"{folder} holds {holds}")
    description = files.read_versioned(path, FORMAT_VERSION, "Translator.load")
    sources = description.get("sources")
    options = description.get("decoding")
    try:
        if type(sources) is not int or sources < 1:
            raise ValueError(f"sources is {sources!r}, wanted 1 or more")
        if not isinstance(options, dict):
            raise ValueError(f"decoding is {options!r}, wanted an object")
        return sources, Decoding(**options), Habits.read(description.get("habits", {}))
    except (TypeError, ValueError) as error:
        raise Refusal(
            "Translator.load", f"{path} was not written by this version of bahdanau_tf: {error}"
        ) from error


def read_model(path: Path) -> keras.Model:
    """Loads a Keras model, without compiling it.

    A user's class is found by its registered name, which it has once its module is
    imported. A module that the file names is not imported: a file from elsewhere must not choose
    what runs. Raises ValueError if the file is damaged, names what neither Keras nor this process
    has, or cannot be loaded by Keras.
    """
    says = ""
    try:
        _check_model_file(path)
        says = "Keras says: "
        with read_later():
            return keras.models.load_model(path, compile=False)
    except Exception as error:  # a damaged file may raise anything
        says += _cause(error)
        raise Refusal("Translator.load", f"{path}: {_damage(path) or says}") from error


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


def _check_model_file(path: Path) -> None:
    """Checks the size of an archive, and what Keras' safe mode does not check in it."""
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("config.json").file_size
        if size > _LARGEST_CONFIG:
            raise ValueError(
                f"its config.json has {size:,} bytes, wanted at most {_LARGEST_CONFIG:,}"
            )
        files.check_unpacked(archive)
        config = json.loads(archive.read("config.json"))
    config.pop("compile_config", None)  # the model is not compiled
    _check_config(config)


def _check_config(config: object) -> None:
    """Checks all parts of a config that Keras may turn into an object."""
    waiting = [config]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "class_name" in value or "registered_name" in value:
                _check_entry(value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def _check_entry(entry: dict[str, object]) -> None:
    """Raises a ValueError for what Keras' safe mode lets pass, or for a user's own module."""
    name, module = entry.get("class_name"), entry.get("module")
    if name == "TFSMLayer":  # Keras 3.12 makes one even in safe mode
        raise ValueError("it has a TFSMLayer, which runs code of another file; wanted other layers")
    registered = entry.get("registered_name", name)
    if name == "function":
        registered = name = entry.get("config")
    top = module.partition(".")[0] if isinstance(module, str) else ""
    is_ours = top in ("", "bahdanau_tf", "builtins", "keras")
    if not is_ours and keras.saving.get_registered_object(str(registered)) is None:
        raise ValueError(
            f"it names {module}.{name}, which is not registered; if you trust that module, import "
            f"it first (on the command line --modules={module}, with its folder in PYTHONPATH)"
        )


def best_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder of the best model in a training folder, or of a pretrained one; else the folder.

    Raises ValueError if there is no best model yet, or only an export for ONNX Runtime.
    """
    files.check_not_in_onnx("Translator.load", folder)
    if (own := packaged(folder)) is not None:
        return own
    best = files.found_directory(Path(folder, "best"))
    if best.is_dir():
        return best
    folder = files.found_directory(folder)
    if (folder / "training.json").is_file():
        raise Refusal(
            "Translator.load",
            f"{folder} holds no translator yet: its training has not reached its "
            "first evaluation; if it has stopped, the same `bahdanau-tf train` resumes it",
        )
    return folder
