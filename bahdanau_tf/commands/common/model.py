"""Loads the model of the commands that use one."""

from __future__ import annotations

from absl import flags as absl_flags

from bahdanau_tf.flags.fields import from_flags
from bahdanau_tf.options import Decoding
from bahdanau_tf.system.device import use_threads
from bahdanau_tf.text import Dictionary
from bahdanau_tf.translator import Translator, load_best


def load_translator(flags: absl_flags.FlagValues) -> Translator:
    """Loads the best model of --model_dir, with the search flags if any.

    It will use --threads.

    Raises:
        ValueError: A folder holds no trained model, or the models of an
            ensemble do not fit together.
    """
    use_threads(flags.threads)
    translators = [load_best(folder) for folder in flags.model_dir]
    translator = translators[0]
    if len(translators) > 1:
        translator = Translator.ensemble(translators, flags.average)
    if "dictionary" in flags:  # the command has search flags
        translator.decoding = from_flags(flags, Decoding)
        if flags.dictionary:
            translator.dictionary = Dictionary.load(flags.dictionary)
    return translator
