"""Strings to ids and back, in the graph."""

from __future__ import annotations

import os

from bahdanau_tf.text.dictionary import Dictionary
from bahdanau_tf.text.settings import read_settings
from bahdanau_tf.text.subword import SubwordTokenizer
from bahdanau_tf.text.tokenizer import WordTokenizer
from bahdanau_tf.text.vocabulary import Coverage
from bahdanau_tf.text.vocabulary import Vocabulary

__all__ = [
    "Coverage",
    "Dictionary",
    "SubwordTokenizer",
    "Vocabulary",
    "WordTokenizer",
    "load_text",
]


def load_text(
    directory: str | os.PathLike[str],
) -> WordTokenizer | SubwordTokenizer:
    """Loads the tokenizer that `save` wrote into a folder.

    Args:
        directory: The folder.

    Returns:
        The tokenizer, of the class that it was.

    Raises:
        ValueError: The vocabulary or model is not the one that was saved, or
            the folder holds a tokenizer of another class.
    """
    name, checksum, config = read_settings(directory)
    classes = {c.__name__: c for c in (WordTokenizer, SubwordTokenizer)}
    if name not in classes:
        raise ValueError(
            f"load_text: {directory} holds a {name!r}, wanted one of "
            f"{sorted(classes)}."
        )
    return classes[name].load(directory, checksum, config)
