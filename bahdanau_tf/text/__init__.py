"""Tokenizers: strings to ids and back, in the graph.

Names are imported when they are first used: `script` needs no TensorFlow.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bahdanau_tf.system import imports

if TYPE_CHECKING:
    from bahdanau_tf.text.subwords import SubwordTokenizer as SubwordTokenizer
    from bahdanau_tf.text.tokenizer import Reading as Reading, Tokenizer as Tokenizer
    from bahdanau_tf.text.vocabulary import (
        Coverage as Coverage,
        Dictionary as Dictionary,
        Vocabulary as Vocabulary,
    )
    from bahdanau_tf.text.words import WordTokenizer as WordTokenizer

_homes, __getattr__ = imports.on_first_use(__name__, "__init__.py")
__all__ = sorted(["load_text", *_homes])


def load_text(directory: str | os.PathLike[str]) -> WordTokenizer | SubwordTokenizer:
    """Loads the tokenizer that `save` wrote into a folder.

    Raises:
        ValueError: A file is missing; the vocabulary or model is not the one that was saved, or
            the folder holds a tokenizer of an unknown class or with options that this version does
            not know.
    """
    from bahdanau_tf.text.subwords import SubwordTokenizer
    from bahdanau_tf.text.tokenizer import read_settings
    from bahdanau_tf.text.words import WordTokenizer

    directory = os.fspath(directory)
    try:
        name, checksum, config = read_settings(directory)
        classes = {c.__name__: c for c in (WordTokenizer, SubwordTokenizer)}
        if name not in classes:
            raise ValueError(
                f"load_text: {directory} holds a {name!r}, wanted one of {sorted(classes)}."
            )
        return classes[name].load(directory, checksum, config)
    except FileNotFoundError as error:
        raise ValueError(
            f"load_text: {error.filename}, part of the tokenizer saved there, is missing"
        ) from error
    except TypeError as error:
        raise ValueError(
            f"load_text: {directory} has options that this bahdanau_tf does not know: {error}"
        ) from error
