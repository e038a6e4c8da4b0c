"""What the commands that use a trained model have in common."""

from __future__ import annotations

from pathlib import Path

from absl import flags as absl_flags

from bahdanau_tf.commands.fields import define_fields
from bahdanau_tf.commands.fields import from_flags
from bahdanau_tf.decoding import Decoding
from bahdanau_tf.translator import Translator


def define_model_flags(flags: absl_flags.FlagValues) -> None:
    """Defines --model_dir and how to search."""
    absl_flags.DEFINE_string(
        "model_dir", None, "folder of a trained model", flag_values=flags
    )
    define_fields(flags, Decoding)


def load_translator(flags: absl_flags.FlagValues) -> Translator:
    """Loads the best model of --model_dir, to search as the flags say.

    Raises:
        ValueError: The folder holds no trained model.
    """
    if flags.model_dir is None:
        raise ValueError("--model_dir is missing")
    folder = Path(flags.model_dir)
    if (folder / "best").is_dir():
        folder = folder / "best"
    translator = Translator.load(folder)
    translator.decoding = from_flags(flags, Decoding)
    return translator
