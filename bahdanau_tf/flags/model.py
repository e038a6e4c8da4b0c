"""The flags of the commands that use a trained model."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import define_fields, define_strings, from_flags, refuse, require
from bahdanau_tf.options import Decoding

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
