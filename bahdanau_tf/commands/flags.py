"""Makes flags from dataclasses, so that an option is described in one place.

absl's "module" of a flag is used as the heading of its group in the help. The checks
raise ValueError with the flag in the message.
"""

from __future__ import annotations

import dataclasses
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from absl import flags as absl_flags

from bahdanau_tf.options import Decoding, training as options
from bahdanau_tf.options.decoding import BATCH_SIZE, WINDOW
from bahdanau_tf.options.fields import OptionGroup, option
from bahdanau_tf.system.files import (
    RUNTIME,
    check_file,
    check_folder,
    check_not_in_onnx,
    check_outside_models,
    newest_export,
)
from bahdanau_tf.system.lines import incomplete
from bahdanau_tf.system.ranges import OptionError, Range, did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
File = tuple[str, str | int]  # its name in messages; its path or descriptor

# For each annotation the function that defines a flag, and how messages call its values.
_DEFINE: dict[type, tuple[Callable[..., object], str]] = {
    bool: (absl_flags.DEFINE_bool, "--{0} or --no{0}"),
    int: (absl_flags.DEFINE_integer, "a whole number"),
    float: (absl_flags.DEFINE_float, "a number"),
    str: (absl_flags.DEFINE_string, "a string"),
    tuple: (absl_flags.DEFINE_list, "names separated by commas, without line breaks"),
}


class Group(NamedTuple):
    """The flags of a command under one heading of its help."""

    owner: type[OptionGroup]  # each of its fields is a flag
    heading: str = ""  # the name of the class if empty
    without: Collection[str] = ()  # fields that are not flags
    optional: Collection[str] = ()  # fields that this command does not require
    defaults: Mapping[str, object] = MappingProxyType({})  # other ones than the dataclass has

    @property
    def fields(self) -> list[dataclasses.Field[Any]]:
        """The fields that are flags."""
        return [f for f in dataclasses.fields(self.owner) if f.name not in self.without]

    def define(self, flags: absl_flags.FlagValues) -> None:
        """Defines the flags."""
        hints, texts = typing.get_type_hints(self.owner), self.owner.texts()
        heading = self.heading or self.owner.__name__.strip("_")
        into: Any = {"flag_values": flags, "module_name": heading}
        for field in self.fields:
            name, hint = field.name, hints[field.name]
            text = texts.get(name, "")  # `python -OO` keeps no docstrings
            default: Any = self.defaults.get(name, field.default)
            if isinstance(default, tuple):
                default = [*default]
            if typing.get_origin(hint) in (types.UnionType, typing.Union):  # or None
                hint = typing.get_args(hint)[0]
            if typing.get_origin(hint) is Literal:
                choices = [*typing.get_args(hint)]
                absl_flags.DEFINE_enum(name, default, choices, text, **into)
                wanted = f"one of {', '.join(choices)}"
            else:
                define, wanted = _DEFINE[typing.get_origin(hint) or hint]
                if field.metadata.get("repeated"):
                    define = absl_flags.DEFINE_multi_string
                define(name, default, text, **into)
            flag = flags[name]
            flag.parser = _Parser(name, flag.parser, wanted, field.metadata.get("within"))


class _Parser(absl_flags.ArgumentParser[Any]):
    """A parser of absl, with errors that know the flag."""

    def __init__(
        self, name: str, parser: absl_flags.ArgumentParser[Any], wanted: str, within: Range | None
    ) -> None:
        self._name, self._parser, self._within = name, parser, within
        self.wanted = wanted.format(name) + (f", {within}" if within else "")
        self.enum_values = getattr(parser, "enum_values", ())

    def parse(self, argument: Any) -> Any:
        try:
            value = self._parser.parse(argument)
        except (TypeError, ValueError, OverflowError):
            raise OptionError("", self._name, argument, self.wanted) from None
        if self._within and value not in self._within:
            raise OptionError("", self._name, value, str(self._within))
        return value

    def flag_type(self) -> str:
        return self._parser.flag_type()


def parse(flags: absl_flags.FlagValues, words: Sequence[str]) -> list[str]:
    """Sets the flags of a command, and returns the words that are no flags.

    Raises a ValueError for one that does not exist or cannot have this value.
    """
    try:
        return flags(["", *words])[1:]
    except absl_flags.UnrecognizedFlagError as error:
        hint = did_you_mean(error.flagname, flags, "--")
        raise ValueError(f"--{error.flagname} is not a flag{hint}") from None
    except absl_flags.Error as error:
        if isinstance(of_parser := error.__context__, ValueError):
            raise of_parser from None
        name = words[-1].lstrip("-")  # the last word is a flag that needs a value
        parser = flags[name].parser if name in flags else None
        wanted = f", wanted {parser.wanted}" if isinstance(parser, _Parser) else ""
        raise ValueError(f"--{name} has no value{wanted}") from None


def required(groups: Iterable[Group]) -> list[str]:
    """Names of the flags that a command needs."""
    return [
        field.name
        for group in groups
        for field in group.fields
        if field.metadata.get("required") and field.name not in group.optional
    ]


def from_flags(flags: absl_flags.FlagValues, owner: type[T]) -> T:
    """Makes the dataclass, which checks its values, of its flags and defaults."""
    names = [field.name for field in dataclasses.fields(owner) if field.name in flags]
    return owner(**{name: flags[name].value for name in names})


def is_given(flags: absl_flags.FlagValues, name: str) -> bool:
    """Whether the user gave a flag, directly or in a file of flags."""
    return bool(flags[name].present)


def require(flags: absl_flags.FlagValues, *names: str) -> None:
    """Checks that flags are given and not empty."""
    for name in names:
        if flags[name].value is None:
            raise ValueError(f"--{name} is missing")
        if flags[name].value in ("", []):
            raise ValueError(f"--{name} is empty")


def check_files(flags: absl_flags.FlagValues, *names: str) -> list[File]:
    """Checks that the files of these flags, if given, exist.

    Returns those that will be read, for `check_output`; standard input if --input is not given.
    """
    files: list[File] = []
    for name in names:
        path = flags[name].value
        check_file(name, path)
        if path is not None:
            files.append((f"--{name}", path))
        elif name == "input":
            files.append(("standard input", 0))
    return files


def check_apart_from_models(flag: str, path: str) -> None:
    """Raises if the folder is that of a training, or in a saved model."""
    place = Path(path).resolve()
    if (place / "training.json").is_file():
        raise ValueError(
            f"--{flag}: {place} is the folder of a training, wanted a separate one, such as "
            f"{place / 'served'}"
        )
    check_outside_models(flag, path)


def check_output(flag: str, path: str | None, taken: Iterable[File]) -> None:
    """Checks that a file, or standard output, can be written and replaces none of the others.

    Those are the files that are read, and the other ones that are written.
    """
    if path is None:
        return
    if not path or os.path.isdir(path):
        raise ValueError(f"--{flag} is {path!r}, wanted the name of a file")
    if os.path.exists(path) and not os.path.isfile(path):
        return  # a device or a pipe
    check_apart(f"--{flag}", path, taken)
    folder = Path(incomplete(path)).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"--{flag}: there is no folder {folder}")
    check_folder(flag, str(folder))


def check_apart(what: str, path: str, taken: Iterable[File]) -> None:
    """Checks that a file that will be written, called `what`, is not one of the others."""
    for name, other in taken:
        if _is_same(path, other):
            raise ValueError(f"{what} is also {name}, wanted another file")
        if _is_same(part := incomplete(path), other):
            raise ValueError(
                f"{what} is first written as {part}, which is also {name}; wanted another file"
            )


def _is_same(path: str, other: str | int) -> bool:
    """Whether two names are of one file, which need not exist yet."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        if isinstance(other, int):
            return False
        return os.path.realpath(path) == os.path.realpath(other)


def refuse(flags: absl_flags.FlagValues, names: Collection[str], where: str) -> None:
    """Raises if the user gave flags that would have no effect.

    Names that the command does not define are ignored; `where` says why, for the
    message, such as "without --model_dir".
    """
    options.refuse([n for n in names if n in flags and is_given(flags, n)], names, where)


WRITTEN = "may be .gz; it has the ending .part until it is complete"


@dataclass(frozen=True)
class Modules(OptionGroup):
    """Modules of the user."""

    modules: tuple[str, ...] = option(
        "your own modules with classes that a model uses, separated by commas, each in a folder "
        "on PYTHONPATH; they are run, so name only those that you trust",
        (),
    )


@dataclass(frozen=True)
class Threads(OptionGroup):
    """The cores of the machine."""

    threads: int | None = option(
        "number of cores to use; default: all that the process may use, unless "
        "TF_NUM_INTRAOP_THREADS or TF_NUM_INTEROP_THREADS is set",
        within=Range(1, 10**4),
    )


@dataclass(frozen=True)
class Average(OptionGroup):
    """How an ensemble is joined."""

    average: Literal["probability", "log_probability"] = option(
        "what an ensemble averages", "probability"
    )


@dataclass(frozen=True)
class _Folders(OptionGroup):
    model_dir: tuple[str, ...] | None = option(
        f"folder of a trained model, or {' or '.join(options.pretrained_names())}, which come "
        "with the package; several, separated by commas, are an ensemble",
        required=True,
    )


@dataclass(frozen=True)
class Model(Threads, Average, Modules, _Folders):
    """The models that a command uses."""


@dataclass(frozen=True)
class Search(Decoding):
    """How they search."""

    dictionary: str | None = option(
        "file of lines 'source word, tab, target word' for --unknown=replace"
    )
    mbr: Literal["chrf", "bleu"] | None = option(
        "of all hypotheses of the beam, or all draws, take the one that agrees most with the "
        "others, by this score (minimum Bayes risk)"
    )


@dataclass(frozen=True)
class Memory(OptionGroup):
    """What they need not search."""

    memory: str | None = option(
        "FILE.tsv of pairs, such as the training text: lines that it has get their most frequent "
        "translation in it"
    )


@dataclass(frozen=True)
class Batches(OptionGroup):
    """How much is processed at once."""

    window: int = option(
        "number of lines read at once, to batch similar lengths; with 1 each line is answered "
        "before the next is read, as on a terminal",
        WINDOW,
        Range(1, 10**9),
    )
    batch_size: int = option(
        "number of sentences processed at once; fewer need less memory", BATCH_SIZE, Range(1, 10**6)
    )


@dataclass(frozen=True)
class Scores(OptionGroup):
    """How translations are scored."""

    tokenize: str | None = option(
        "sacreBLEU's tokenizer: 13a, none for tokenized text, zh, ja-mecab, char, ...; "
        "default: the one that fits the script of the references, then the language"
    )
    nfc: bool = option(
        "whether to compose the characters of translations and references (Unicode's NFC) "
        "before they are compared",
        True,
    )
    ignore_case: bool = option("whether to ignore case", False)


MODEL = Group(Model)
SEARCH = Group(Search)
SCORES = Group(Scores)


def is_in_onnx(flags: absl_flags.FlagValues) -> bool:
    """Whether --model_dir was exported for ONNX Runtime."""
    folders = flags.model_dir or []
    return len(folders) == 1 and (newest_export(folders[0]) / RUNTIME).is_file()


def check_model(
    flags: absl_flags.FlagValues, also_in_onnx: bool = False, others: Sequence[str] = ()
) -> None:
    """Checks the flags of models and search; with `also_in_onnx` --model_dir may be an export.

    `others` are the folders of another ensemble.
    """
    require(flags, "model_dir")
    if also_in_onnx and is_in_onnx(flags):
        from_flags(flags, Decoding).check_without_tensorflow()
    else:
        check_folders("model_dir", flags.model_dir)
    if max(len(flags.model_dir), len(others)) == 1:
        refuse(flags, ["average"], "with one model")
    check_search(flags)


def check_folders(flag: str, folders: Sequence[str]) -> None:
    """Checks that folders have names, that none is given twice, and that none is in ONNX."""
    if "" in folders:
        raise ValueError(f"--{flag} is empty, or has an empty part")
    if len({*map(os.path.realpath, folders)}) < len(folders):
        raise ValueError(f"--{flag} is {','.join(folders)}, wanted each folder once")
    for folder in folders:
        check_not_in_onnx(f"--{flag}", folder)


def check_search(flags: absl_flags.FlagValues) -> None:
    """Checks the flags of search."""
    decoding = from_flags(flags, Decoding)
    if "mbr" in flags and flags.mbr and decoding.hypotheses == 1:
        option = decoding.option_of_hypotheses
        if option not in flags:
            refuse(flags, ["sampling"], "with --mbr")
        raise ValueError(f"--mbr: there is one hypothesis, wanted several, as with --{option}=16")
    if "dictionary" in flags and flags.unknown != "replace":
        refuse(flags, ["dictionary"], f"with --unknown={flags.unknown}")
