"""The flags of a training, given or chosen from the text, and their file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from absl import flags as absl_flags

from bahdanau_tf.commands.flags import from_flags, is_given, refuse
from bahdanau_tf.data.held_out import Facts
from bahdanau_tf.options import ModelOptions, Recipe, TextOptions, fitted
from bahdanau_tf.options.fine_tuning import TYPICAL_MODEL, fine_tuned
from bahdanau_tf.options.fitted import Choice
from bahdanau_tf.options.recipe import FORMER
from bahdanau_tf.system.files import write_atomically

FILE = "train.flags"
TEXTS_FILE = "texts.flags"
TEXTS = ("train_source", "train_target", "dev_source", "dev_target")
_CHANGED = "# changed later"
NAMES = (
    *(field.name for owner in (TextOptions, ModelOptions, Recipe) for field in fields(owner)),
    "dev_pairs",
    "init_from",
    "added_words",
)
OF_MODEL = tuple(field.name for owner in (TextOptions, ModelOptions) for field in fields(owner))

OF_DEV_TEXT = ("tokenize", "monitor", "patience")


def given_values(flags: absl_flags.FlagValues) -> dict[str, object]:
    """The options that the user gave, and "dev_source" if there is one."""
    given = [name for name in NAMES if is_given(flags, name)]
    if flags.dev_source is not None:  # by the user, or by an earlier run
        given.append("dev_source")
    return {name: flags[name].value for name in given}


def write_flags(
    path: Path,
    choices: Sequence[Choice],
    given: Mapping[str, object],
    values: Mapping[str, object],
) -> None:
    """Writes all flags of a training: what was chosen, given, and the rest.

    Args:
        path: The file.
        choices: What was chosen, with reasons.
        given: What the user gave.
        values: The values of all flags that have an effect, by name.

    Raises:
        OSError: It cannot be written.
    """
    lines = [
        "# The flags of `bahdanau-tf train`. This file can be edited and used",
        "# as --flagfile of a training in another folder.",
    ]
    rest = dict(values)
    for choice in choices:
        lines += ["", f"# {choice.reason}", *_words(choice.values)]
        rest = {n: v for n, v in rest.items() if n not in choice.values}
    for title, is_here in (("given", True), ("all others", False)):
        part = {n: v for n, v in rest.items() if (n in given) is is_here}
        if part:
            lines += ["", f"# {title}", *_words(part)]
    _write(path, lines)


def change_flags(path: Path, values: Mapping[str, object]) -> None:
    """Gives flags of such a file other values, at its end.

    Raises:
        OSError: It cannot be written.
    """
    old = re.compile(rf"\s*--?({'|'.join(values)})=.*")
    lines = path.read_text("utf-8").rstrip("\n").split("\n")
    lines = [line for line in lines if not old.fullmatch(line)]
    title = [] if _CHANGED in lines else ["", _CHANGED]
    _write(path, [*lines, *title, *_words(values)])


def write_texts(path: Path, texts: Mapping[str, str]) -> None:
    """Writes the paths of the text files of a training, unless they are there.

    Args:
        path: The file.
        texts: The paths, by flag.

    Raises:
        OSError: It cannot be written.
    """
    found = {name: str(Path(one).absolute()) for name, one in texts.items()}
    lines = [
        "# The text files of this training, for commands that name none.",
        *_words(found),
    ]
    if not path.is_file() or path.read_text("utf-8").split("\n")[:-1] != lines:
        _write(path, lines)


def _write(path: Path, lines: Sequence[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def _words(values: Mapping[str, object]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, bool):
            yield f"--{name}" if value else f"--no{name}"
        else:
            yield f"--{name}={value}"


def read_flags(
    path: Path,
    define: Callable[[absl_flags.FlagValues], None],
    names: Collection[str] = NAMES,
) -> dict[str, object]:
    """Reads a file that `write_flags` or `write_texts` wrote.

    Args:
        path: The file; it may have been edited.
        define: Defines the flags of `train`.
        names: The flags that are read.

    Raises:
        ValueError: A flag is unknown or has no such value.
    """
    flags = absl_flags.FlagValues()
    define(flags)
    former = {*_words(FORMER)}
    try:
        words = flags.read_flags_from_files([f"--flagfile={path}"])
        flags(["train", *(word for word in words if word not in former)])
    except absl_flags.Error as error:
        raise ValueError(f"model_dir: {path}: {error}") from error
    return {name: flags[name].value for name in names if is_given(flags, name)}


class Options(NamedTuple):
    """The options of a training, from its flags.

    Attributes:
        text: The options of the tokenizers.
        model: The options of the model.
        recipe: The options of training.
        dev_pairs: Number of training pairs to hold out as dev text.
        init_from: The folder of a trained model, used in place of text and
            model; or None.
        added_words: Number of words that are added to its vocabularies.
    """

    text: TextOptions
    model: ModelOptions
    recipe: Recipe
    dev_pairs: int
    init_from: str | None = None
    added_words: int = 0

    def values(self, without: Collection[str]) -> dict[str, Any]:
        """The values of all options that have an effect, by name.

        Args:
            without: Names of others that have none.
        """
        values = vars(self.recipe)
        unused = {*without, *self.recipe.unused()}
        if self.init_from is None:
            values = vars(self.text) | vars(self.model) | values
            unused |= self.text.unused().keys() | self.model.unused().keys()
        else:
            names = ("init_from", "added_words")
            values = values | {name: getattr(self, name) for name in names}
        values["learning_rate"] = self.recipe.rate
        values["dev_pairs"] = self.dev_pairs
        return {
            name: value
            for name, value in values.items()
            if name not in unused and value is not None
        }


def choose(
    flags: absl_flags.FlagValues,
    facts: Facts,
    model: Mapping[str, Any] = TYPICAL_MODEL,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> list[Choice]:
    """Chooses the options that the user did not give; none with a recipe.

    Args:
        flags: The flags.
        facts: The text.
        model: What is known of the model of --init_from.
        known: What else is known: "dev_lines", and of the machine "cores",
            "product_rate", "has_gpu".

    Raises:
        ValueError: A number is out of range.
    """
    if flags.recipe is not None:
        return []
    from_flags(flags, TextOptions)
    from_flags(flags, Recipe)
    given = {**given_values(flags), **known}
    if flags.init_from is not None:
        return fine_tuned(facts, given, model)
    return fitted.fitted(facts, given)


def values_of(choices: list[Choice]) -> dict[str, Any]:
    """The chosen values, by the names of their flags."""
    return {name: v for one in choices for name, v in one.values.items()}


def options(
    flags: absl_flags.FlagValues,
    chosen: Mapping[str, Any] = MappingProxyType({}),
) -> Options:
    """The options of text, model and recipe.

    Args:
        flags: The flags.
        chosen: Values of flags that the user did not give.

    Raises:
        ValueError: A value is out of range, or a flag was given that the
            model, the tokenizer, the schedule or a training without dev text
            does not use.
    """
    text, model = TextOptions(), ModelOptions()
    recipe = from_flags(flags, Recipe, chosen)
    unused = recipe.unused()
    init_from = chosen.get("init_from", flags.init_from)
    if init_from is None:
        refuse(flags, ["added_words"], "without --init_from")
        text = from_flags(flags, TextOptions, chosen)
        model = from_flags(flags, ModelOptions, chosen)
        unused = text.unused() | model.unused() | unused
        if recipe.risk_samples:
            raise ValueError("--risk_samples needs --init_from, a trained model")
    else:
        refuse(flags, OF_MODEL, "with --init_from, whose model has its own")
    for name, where in unused.items():
        refuse(flags, [name], f"with {where}")
    if model.share_embeddings and not text.joint:
        raise ValueError("--share_embeddings needs --joint, one vocabulary")
    dev_pairs = chosen.get("dev_pairs", flags.dev_pairs)
    has_dev = flags.dev_source is not None or bool(dev_pairs)
    if not has_dev and "dev_pairs" not in chosen:
        where = "without --dev_source or --dev_pairs"
        if is_given(flags, "dev_pairs"):
            where = "with --dev_pairs=0, without a dev text"
        refuse(flags, OF_DEV_TEXT, where)
    if not has_dev and recipe.schedule == "plateau":
        raise ValueError("--schedule=plateau needs --dev_source or --dev_pairs")
    added = chosen.get("added_words", flags.added_words)
    return Options(text, model, recipe, dev_pairs, init_from, added)
