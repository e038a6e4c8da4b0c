"""The settings of a training folder, which a later run must share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import asdict
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import keras

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options import ModelOptions
from bahdanau_tf.options import Recipe
from bahdanau_tf.options import TextOptions
from bahdanau_tf.options.recipe import FORMER
from bahdanau_tf.system.files import read_versioned
from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.text.tokenizer import SavableTokenizer
from bahdanau_tf.training.cluster import Cluster
from bahdanau_tf.training.dev import DevSet
from bahdanau_tf.translator import Translator

FORMAT_VERSION = 1
TRAINING_TEXT = "training_text_checksum"
DEV_TEXT, DEV_TOKENIZER = "dev_text_checksum", "dev_bleu_tokenizer"
DEV_PAIRS = "dev_pairs"
THREADS = "threads"
_VOCABULARY = "{}_vocabulary_checksum"
# What differs, what to do about it: of settings that are no flags.
_SENTENCES = {
    TRAINING_TEXT: "the training text has changed since {folder} was made; "
    "give the same --train_source and --train_target as before, or name "
    "another folder",
    THREADS: "{folder} was trained by {before} threads with --deterministic, "
    "and now there are {after}, which may round otherwise; give "
    "--threads={before}, or name another folder",
    **{
        _VOCABULARY.format(side): f"the {side} vocabulary is not the one that "
        "{folder} was made with; give the same, or name another folder"
        for side in ("source", "target")
    },
}
_FLAGS = {
    DEV_PAIRS,
    *(
        field.name
        for options in (TextOptions, ModelOptions, Recipe)
        for field in fields(options)
    ),
}
_RECIPE = asdict(Recipe())


class Change(NamedTuple):
    """A setting as written in the folder, and as it is now."""

    name: str
    before: object
    after: object


def of_tokenizers(**sides: SavableTokenizer) -> dict[str, object]:
    """The settings that say which tokenizers the sides have."""
    found: dict[str, object] = {}
    for side, text in sides.items():
        options = dict(text.settings())
        found[_VOCABULARY.format(side)] = options.pop("checksum", None)
        found[f"{side}_tokenizer"] = options
    return found


def of_training(
    translator: Translator,
    recipe: Recipe,
    threads: int | None,
    corpus: ParallelCorpus,
    dev: DevSet | None,
) -> dict[str, object]:
    """The settings of a training.

    Args:
        translator: Model and tokenizers.
        recipe: The options of training.
        threads: Number of threads, if another one is refused.
        corpus: The training text.
        dev: The dev set.
    """
    model: keras.Model = translator.model
    return {
        "model": json.loads(model.to_json()),
        "recipe": {**asdict(recipe), "learning_rate": recipe.rate},
        **of_tokenizers(
            source=translator.source_text, target=translator.target_text
        ),
        THREADS: threads,
        TRAINING_TEXT: corpus.checksum,
        DEV_TEXT: dev and dev.checksum,
        DEV_TOKENIZER: dev and dev.tokenize,
    }


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    """Writes settings, unless the file has them already."""
    described = {"format_version": FORMAT_VERSION, **settings}
    data = json.dumps(described, indent=2).encode()
    if not path.is_file() or path.read_bytes() != data:
        write_atomically(path, data)


def check_settings(
    path: Path, settings: Mapping[str, object], free: Sequence[str] = ()
) -> None:
    """Checks that settings are those of the file.

    Settings that the file lacks, as those of earlier versions do, may have any
    value; those of the recipe must have their defaults.

    Args:
        path: The JSON file.
        settings: The settings now.
        free: Names of settings that may change.

    Raises:
        ValueError: The folder was made with other settings, or by a newer
            version of this package, or the file is damaged or missing.
    """
    for name, before, after in changes(path, settings):
        if name in free:
            continue
        if name in _SENTENCES:
            said = _SENTENCES[name].format(
                folder=path.parent, before=before, after=after
            )
            raise ValueError(f"model_dir: {said}")
        raise ValueError(
            f"model_dir: {_differs(path.parent, name, before, after)}"
        )


def _differs(folder: Path, name: str, before: object, after: object) -> str:
    """Says that a folder has another model, or only another training."""
    if name in _RECIPE:
        return (
            f"--{name} is {after!r}, but {before!r} in the training in "
            f"{folder}, which cannot change it; leave --{name} out to go on, "
            "or name another folder"
        )
    return (
        f"{folder} holds another model: {_called(name)} is {before!r} there "
        f"and {after!r} now; name another folder"
    )


def check_alike(cluster: Cluster, settings: Mapping[str, object]) -> None:
    """Checks that all workers of a cluster have the same settings.

    Raises:
        ValueError: This one has others than the chief.
    """
    own = json.dumps(settings)
    chiefs = cluster.text_from_chief(own)
    for name, there, here in _changes(json.loads(chiefs), json.loads(own)):
        if name.endswith("_text_checksum"):
            raise ValueError(
                f"worker {cluster.number} has another text than the chief "
                f"({name} differs), wanted the same files on all machines"
            )
        raise ValueError(
            f"{_called(name)} is {here!r} at worker {cluster.number} and "
            f"{there!r} at the chief, wanted the same command and the same "
            "files on all machines"
        )


def _called(name: str) -> str:
    """How a user calls a setting."""
    return f"--{name}" if name in _FLAGS else name


def changes(path: Path, settings: Mapping[str, object]) -> list[Change]:
    """The settings that differ from those of the file.

    Raises:
        ValueError: The file is missing or damaged, or of a newer version.
    """
    before, now = read_settings(path), json.loads(json.dumps(settings))
    recipe = before.get("recipe")
    if isinstance(recipe, dict):
        defaults = {n: v for n, v in _RECIPE.items() if n in now["recipe"]}
        before["recipe"] = defaults | recipe
    return _changes(before, now)


def _changes(before: object, now: object) -> list[Change]:
    return [*_differences(_unnumbered(before), _unnumbered(now))]


def read_settings(path: Path) -> dict[str, object]:
    """Reads what `write_settings` wrote.

    Raises:
        ValueError: The file is missing or damaged, or a newer version of this
            package wrote it.
    """
    if not path.is_file():
        raise ValueError(
            f"model_dir: {path.parent} holds a model, but {path} is missing, "
            "the file of its settings; name another folder"
        )
    return read_versioned(path, FORMAT_VERSION, "model_dir")


def _unnumbered(settings: object) -> object:
    """Settings without the numbers that Keras gave to objects.

    The second `GRUCell` of a process is "gru_cell_1", so the same model has
    other names elsewhere, and what parts of a loaded model share is told by
    addresses. A name that was chosen is kept.
    """
    if isinstance(settings, list):
        return [_unnumbered(one) for one in settings]
    if not isinstance(settings, dict):
        return settings
    found = {
        key: _unnumbered(value)
        for key, value in settings.items()
        if key != "shared_object_id"
    }
    config = found.get("config")
    if isinstance(config, dict) and isinstance(config.get("name"), str):
        kind = re.sub(r"_\d+$", "", config["name"])
        if kind.replace("_", "") == str(found.get("class_name")).lower():
            config["name"] = kind
    return found


def _differences(
    before: object, after: object, name: str = ""
) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        kinds = before.get("class_name"), after.get("class_name")
        if kinds[0] != kinds[1]:
            yield Change(name, *kinds)
            return
        for key in before:
            # An option that is gone must have done nothing.
            former = FORMER.get(key) if key not in after else None
            if former is None or before[key] != former:
                yield from _differences(before[key], after.get(key), key)
    elif (
        isinstance(before, list)
        and isinstance(after, list)
        and len(before) == len(after)
    ):
        for one, other in zip(before, after, strict=True):
            yield from _differences(one, other, name)
    elif before != after:
        yield Change(name, _in_short(before), _in_short(after))


def _in_short(value: object) -> object:
    """A part of a model is told by its class."""
    if isinstance(value, list):
        return [_in_short(one) for one in value]
    return value.get("class_name", value) if isinstance(value, dict) else value
