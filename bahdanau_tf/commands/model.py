"""What the commands that use a trained model have in common."""

from __future__ import annotations

from collections.abc import Collection

from absl import flags as absl_flags

from bahdanau_tf.commands.fields import define_fields
from bahdanau_tf.commands.fields import from_flags
from bahdanau_tf.decoding import Decoding
from bahdanau_tf.text import Dictionary
from bahdanau_tf.translator import Translator
from bahdanau_tf.translator import load_best


def define_model_flags(flags: absl_flags.FlagValues) -> None:
    """Defines --model_dir and what an ensemble averages."""
    absl_flags.DEFINE_list(
        "model_dir",
        None,
        "folder of a trained model; several, with commas between, are an "
        "ensemble",
        flag_values=flags,
    )
    define_average_flag(flags)


def define_average_flag(flags: absl_flags.FlagValues) -> None:
    """Defines --average."""
    absl_flags.DEFINE_string(
        "average",
        "probability",
        "what an ensemble averages: probability or log_probability",
        flag_values=flags,
    )


def define_search_flags(
    flags: absl_flags.FlagValues, without: Collection[str] = ()
) -> None:
    """Defines how to search, but for some fields of `Decoding`."""
    absl_flags.DEFINE_string(
        "dictionary",
        None,
        "file of lines 'source word, tab, target word' for --unknown=replace",
        flag_values=flags,
    )
    define_fields(flags, Decoding, without)


def load_translator(flags: absl_flags.FlagValues) -> Translator:
    """Loads the best model of --model_dir, to search as flags say, if any do.

    Raises:
        ValueError: A folder holds no trained model, or they do not fit
            together.
    """
    if not flags.model_dir:
        raise ValueError("--model_dir is missing")
    translators = [load_best(folder) for folder in flags.model_dir]
    translator = translators[0]
    if len(translators) > 1:
        translator = Translator.ensemble(translators, flags.average)
    if "dictionary" in flags:  # there are search flags
        translator.decoding = from_flags(flags, Decoding)
        if flags.dictionary:
            translator.dictionary = Dictionary.load(flags.dictionary)
    return translator
