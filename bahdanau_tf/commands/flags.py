"""Makes flags from dataclasses, so that a setting is described in one place.

absl's "module" of a flag is used as the heading of its group in the help.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

from absl import flags as absl_flags

from bahdanau_tf.options import Decoding
from bahdanau_tf.options.decoding import BATCH_SIZE, WINDOW
from bahdanau_tf.system.files import (
    check_file as check_file,
    check_folder as check_folder,
    check_outside_models as check_outside_models,
)
from bahdanau_tf.system.lines import incomplete

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
File = tuple[str, str | int]  # its name in messages; its path or descriptor

_DEFINE: dict[type, Callable[..., object]] = {
    bool: absl_flags.DEFINE_bool,
    int: absl_flags.DEFINE_integer,
    float: absl_flags.DEFINE_float,
    str: absl_flags.DEFINE_string,
}


class Group(TypedDict):
    """Where a flag is defined, and the heading of its group in the help."""

    flag_values: absl_flags.FlagValues
    module_name: str


def define_strings(flags: absl_flags.FlagValues, group: str, texts: Mapping[str, str]) -> None:
    """Defines string flags, whose default is None."""
    for name, text in texts.items():
        absl_flags.DEFINE_string(name, None, text, flag_values=flags, module_name=group)


def define_fields(
    flags: absl_flags.FlagValues,
    group: str,
    owner: type[DataclassInstance],
    without: Collection[str] = (),
) -> None:
    """Defines a flag for each field of a dataclass.

    Args:
        flags: The flags to which they are added.
        group: Their heading in the help.
        owner: A dataclass with defaults whose docstring has "Attributes:".
        without: Fields that get no flag.
    """
    texts = _attribute_texts(owner)
    hints = typing.get_type_hints(owner)
    options: Group = {"flag_values": flags, "module_name": group}
    for field in dataclasses.fields(owner):
        name, text, hint = field.name, texts[field.name], hints[field.name]
        if name in without:
            continue
        if typing.get_origin(hint) is typing.Literal:
            choices = [*typing.get_args(hint)]
            absl_flags.DEFINE_enum(name, getattr(owner, name), choices, text, **options)
            continue
        if typing.get_origin(hint) is types.UnionType:  # or None
            hint = typing.get_args(hint)[0]
        _DEFINE[hint](name, field.default, text, **options)


def from_flags(
    flags: absl_flags.FlagValues,
    owner: type[T],
    chosen: Mapping[str, object] = types.MappingProxyType({}),
) -> T:
    """Makes the dataclass from its flags; other fields have their defaults.

    Args:
        flags: The flags.
        owner: The dataclass.
        chosen: Values that are used in place of those of the flags.

    Raises:
        ValueError: A value is out of range. The message has class and field.
    """
    names = [one.name for one in dataclasses.fields(owner)]
    values = {name: flags[name].value for name in names if name in flags}
    return owner(**{name: chosen.get(name, values[name]) for name in values})


def is_given(flags: absl_flags.FlagValues, name: str) -> bool:
    """Whether the user gave a flag, directly or in a file of flags."""
    return bool(flags[name].present)


def require(flags: absl_flags.FlagValues, *names: str) -> None:
    """Checks that flags are given and not empty.

    Raises:
        ValueError: One is missing or empty. The message has its name.
    """
    for name in names:
        if flags[name].value is None:
            raise ValueError(f"--{name} is missing")
        if flags[name].value in ("", []):
            raise ValueError(f"--{name} is empty")


def check_files(flags: absl_flags.FlagValues, *names: str) -> list[File]:
    """Checks that the files of these flags, if given, exist.

    Returns:
        The files that will be read, for `check_output`; standard input if
        --input is not given.

    Raises:
        ValueError: The message has the flag. Or standard input would be read,
            and is closed.
    """
    found: list[File] = []
    for name in names:
        path = flags[name].value
        check_file(name, path)
        if path is not None:
            found.append((f"--{name}", path))
        elif name == "input":
            check_open("stdin", "standard input")
            found.append(("standard input", 0))
    return found


def check_open(stream: str, called: str) -> None:
    """Checks that a standard stream was not closed, as by `>&-`.

    Args:
        stream: Its name in `sys`.
        called: What the message calls it.

    Raises:
        ValueError: It was closed.
    """
    # The command puts the null device in the place of a closed stream; one
    # that the user has sent there has another name.
    if getattr(getattr(sys, stream), "name", None) == os.devnull:
        raise ValueError(f"{called} is closed, wanted it open")


def check_apart_from_models(flag: str, path: str) -> None:
    """Raises if the folder is that of a training, or in a saved model."""
    place = Path(path).resolve()
    if (place / "training.json").is_file():
        raise ValueError(
            f"--{flag}: {place} is the folder of a training, wanted one of "
            f"its own, such as {place / 'served'}"
        )
    check_outside_models(flag, path)


def check_output(flag: str, path: str | None, taken: Iterable[File]) -> None:
    """Checks that a file can be written without the loss of another one.

    Args:
        flag: The flag.
        path: Its value; None is standard output.
        taken: The files that are read, and the other ones that are written.

    Raises:
        ValueError: The message has the flag. Or standard output would be
            written to, and is closed.
    """
    if path is None:
        check_open("stdout", "standard output")
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
    """Checks that a file that will be written is none of those taken.

    Args:
        what: What the message says of it.
        path: The file, or how it will be named; it has the ending .part until
            it is complete.
        taken: The files that are read, and the other ones that are written.

    Raises:
        ValueError: It is one of them, maybe by another name.
    """
    for name, other in taken:
        if _is_same(path, other):
            raise ValueError(f"{what} is also {name}, wanted another file")
        if _is_same(aside := incomplete(path), other):
            raise ValueError(
                f"{what} is {aside} until it is complete, which is also {name}; wanted another file"
            )


def _is_same(path: str, other: str | int) -> bool:
    """Whether two names are of one file, which need not exist yet."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        if isinstance(other, int):
            return False
        return os.path.realpath(path) == os.path.realpath(other)


def refuse(flags: absl_flags.FlagValues, names: Iterable[str], where: str) -> None:
    """Raises if the user gave flags that would have no effect.

    Args:
        flags: The flags.
        names: Flags without effect; names that the command does not define are
            ignored.
        where: Why, for the message, such as "without --model_dir".

    Raises:
        ValueError: The user gave one of them.
    """
    for name in names:
        if name in flags and is_given(flags, name):
            raise ValueError(f"--{name} is not used {where}; leave it out")


def _attribute_texts(owner: type) -> dict[str, str]:
    text = inspect.cleandoc(owner.__doc__ or "").split("Attributes:\n")[1]
    text = re.split(r"\n(?=\S)", text)[0]  # up to the next section
    texts: dict[str, str] = {}
    name = ""
    for line in text.split("\n"):
        entry = re.fullmatch(r" {4}(\w+): (.*)", line)
        if entry:
            name, texts[name] = entry[1], entry[2]
        elif line.strip():
            texts[name] += " " + line.strip()
    return texts


MODEL = "Model"
SEARCH = "Search"


def define_model(flags: absl_flags.FlagValues) -> None:
    """Defines --model_dir, --modules, --average and --threads."""
    absl_flags.DEFINE_list(
        "model_dir",
        None,
        "folder of a trained model; several, separated by commas, are an ensemble",
        flag_values=flags,
        module_name=MODEL,
    )
    define_modules(flags, MODEL)
    define_average(flags)
    define_threads(flags, MODEL)


def define_modules(flags: absl_flags.FlagValues, group: str) -> None:
    """Defines --modules, which the command line imports before it loads."""
    absl_flags.DEFINE_list(
        "modules",
        [],
        "modules of your own with classes that a model has, separated by "
        "commas, each in a folder of PYTHONPATH; they are run, so name only "
        "those that you trust",
        flag_values=flags,
        module_name=group,
    )


def define_threads(flags: absl_flags.FlagValues, group: str) -> None:
    """Defines --threads."""
    absl_flags.DEFINE_integer(
        "threads",
        None,
        "number of cores to use; default: all that the process may use, unless "
        "TF_NUM_INTRAOP_THREADS or TF_NUM_INTEROP_THREADS is set",
        lower_bound=1,
        upper_bound=10**4,
        flag_values=flags,
        module_name=group,
    )


def define_average(flags: absl_flags.FlagValues) -> None:
    """Defines --average."""
    absl_flags.DEFINE_enum(
        "average",
        "probability",
        ["probability", "log_probability"],
        "what an ensemble averages",
        flag_values=flags,
        module_name=MODEL,
    )


def define_search(flags: absl_flags.FlagValues, without: Collection[str] = ()) -> None:
    """Defines the flags of search, except some fields of `Decoding`."""
    text = "file of lines 'source word, tab, target word' for --unknown=replace"
    define_strings(flags, SEARCH, {"dictionary": text})
    define_fields(flags, SEARCH, Decoding, without)


def check_model(flags: absl_flags.FlagValues) -> None:
    """Checks the flags of models and search.

    Raises:
        ValueError: The message has the flag.
    """
    require(flags, "model_dir")
    check_folders("model_dir", flags.model_dir)
    if len(flags.model_dir) == 1:
        refuse(flags, ["average"], "with one model")
    check_search(flags)


def check_folders(flag: str, folders: Sequence[str]) -> None:
    """Checks that folders have names, and that none is given twice.

    Raises:
        ValueError: The message has the flag.
    """
    if "" in folders:
        raise ValueError(f"--{flag} is empty, or has an empty part")
    if len({*map(os.path.realpath, folders)}) < len(folders):
        raise ValueError(f"--{flag} is {','.join(folders)}, wanted each folder once")


def check_search(flags: absl_flags.FlagValues) -> None:
    """Checks the flags of search.

    Raises:
        ValueError: The message has the flag.
    """
    from_flags(flags, Decoding)
    if "dictionary" in flags and flags.unknown != "replace":
        refuse(flags, ["dictionary"], f"with --unknown={flags.unknown}")


def refuse_without_model(flags: absl_flags.FlagValues) -> None:
    """Raises if flags of model or search are given without a model.

    Raises:
        ValueError: The user gave one of them.
    """
    groups = flags.flags_by_module_dict()
    for flag in groups.get(MODEL, []) + groups.get(SEARCH, []):
        refuse(flags, [flag.name], "without --model_dir")


LINES = "Lines"


def define_batches(flags: absl_flags.FlagValues) -> None:
    """Defines --window, --batch_size and --threads."""
    options: Group = {"flag_values": flags, "module_name": LINES}
    absl_flags.DEFINE_integer(
        "window",
        WINDOW,
        "number of lines read at once, to batch similar lengths; with 1 each "
        "line is answered before the next is read, as on a terminal",
        lower_bound=1,
        upper_bound=10**9,
        **options,
    )
    absl_flags.DEFINE_integer(
        "batch_size",
        BATCH_SIZE,
        "number of sentences processed at once; fewer need less memory",
        lower_bound=1,
        upper_bound=10**6,
        **options,
    )


GROUP = "Scores"


def define_bleu(flags: absl_flags.FlagValues) -> None:
    """Defines --tokenize and --nfc."""
    absl_flags.DEFINE_string(
        "tokenize",
        None,
        "sacreBLEU's tokenizer: 13a, none for tokenized text, zh, ja-mecab, "
        "char, ...; default: the one that fits the script of the references, "
        "then the language",
        flag_values=flags,
        module_name=GROUP,
    )
    absl_flags.DEFINE_bool(
        "nfc",
        True,
        "whether translations and references are compared in composed "
        "characters (Unicode's NFC); if not, as they come",
        flag_values=flags,
        module_name=GROUP,
    )


def define_scores(flags: absl_flags.FlagValues) -> None:
    """Defines --tokenize, --nfc and --ignore_case."""
    define_bleu(flags)
    absl_flags.DEFINE_bool(
        "ignore_case",
        False,
        "whether case is ignored",
        flag_values=flags,
        module_name=GROUP,
    )
