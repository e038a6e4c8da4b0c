"""A dictionary for words that the model does not know."""

from __future__ import annotations

import os
from collections.abc import Mapping

import tensorflow as tf

from bahdanau_tf.system.files import write_atomically
from bahdanau_tf.system.lines import read_lines


class Dictionary(tf.Module):
    """Translations of single words, in the graph.

    Args:
        entries: The translation of each source word.

    Raises:
        ValueError: A word is empty or contains a tab or line break.

    Reference:
        Luong et al. 2015, arXiv 1410.8206, section 3: an unknown word becomes
        the dictionary's word for the source word it is aligned to, or that
        word itself.
    """

    def __init__(self, entries: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.entries = tuple((entries or {}).items())
        for pair in self.entries:
            if any(not w or "\t" in w or "\n" in w for w in pair):
                raise ValueError(
                    f"Dictionary: the entry {pair} has an empty word, a tab or "
                    "a line break, wanted two words"
                )
        # A table must not be empty, and "" is never a word.
        keys, values = zip(("", ""), *self.entries, strict=True)
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(keys), tf.constant(values)
            ),
            default_value="",
        )

    def lookup(self, words: tf.Tensor) -> tf.Tensor:
        """Looks up words: string, any shape; unlisted words stay."""
        found = self._table.lookup(words)
        return tf.where(found == "", words, found)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dictionary:
        """Reads a file of lines "source word, tab, target word".

        Raises:
            ValueError: A line has another form. The message has its number.
        """
        entries = {}
        for number, line in enumerate(read_lines(path), 1):
            words = line.split("\t")
            if len(words) == 2 and all(words):
                entries[words[0]] = words[1]
            elif line:
                raise ValueError(
                    f"Dictionary: {path}, line {number} is {line!r}, wanted "
                    "two words with a tab between"
                )
        return cls(entries)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what `load` reads; an old file is replaced as a whole."""
        lines = "".join(f"{s}\t{t}\n" for s, t in self.entries)
        write_atomically(path, lines.encode())
