"""The list of known words; line numbers, from 0, are ids."""

from __future__ import annotations

import codecs
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from bahdanau_tf.system.files import check_regular, checksum, write_atomically
from bahdanau_tf.system.lines import read_pairs
from bahdanau_tf.system.ranges import Refusal

PAD = "[PAD]"
UNK = "[UNK]"
END = "[END]"
SPECIAL = (PAD, UNK, END)


@dataclass(frozen=True)
class Coverage:
    """How many words of a text a vocabulary has.

    Attributes:
        running: Number of running words in the text.
        known: Number of these that the vocabulary has.
    """

    running: int
    known: int

    @property
    def share(self) -> float:
        """Share of the running words that are known; 1 for an empty text."""
        return self.known / self.running if self.running else 1.0

    def __str__(self) -> str:
        return f"{self.known} of {self.running} words known ({self.share:.2%})"


class Vocabulary(tf.Module):
    """A short list of words; the position of a word is its id.

    The three special symbols are found by their names; [PAD] is always 0, the others may have any
    id. A word of a text that is spelled like one of them is an unknown word. The tables are
    tensors in the graph, not files, so a SavedModel that contains them can be moved, and two
    vocabularies never share a table.

    Args:
        tokens: All words and the special symbols [PAD], [UNK] and [END], in the order of their
            ids, [PAD] first.

    Raises:
        ValueError: A word is repeated, is empty or has a line break in it, a special symbol is
            missing, or [PAD] is not the first.

    Example:
        >>> vocabulary = Vocabulary.build(["a rose is a rose"], size=5)
        >>> vocabulary.tokens
        ['[PAD]', '[UNK]', '[END]', 'a', 'rose']
        >>> vocabulary.ids(tf.constant(["a", "tulip"])).numpy().tolist()
        [3, 1]
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        super().__init__()
        tokens = list(tokens)
        for symbol in SPECIAL:
            if symbol not in tokens:
                raise Refusal("Vocabulary", f"no special symbol {symbol}.")
        if tokens[0] != PAD:
            raise Refusal("Vocabulary", f"id 0 is {tokens[0]!r}, wanted {PAD}.")
        for number, token in enumerate(tokens):
            if not token or "\n" in token:
                raise Refusal(
                    "Vocabulary",
                    f"id {number} is {token!r}, wanted a word that is "
                    "not empty and has no line break.",
                )
        if len({*tokens}) < len(tokens):
            repeated = next(token for token, count in Counter(tokens).items() if count > 1)
            raise Refusal("Vocabulary", f"the word {repeated!r} is repeated.")
        self.pad_id = 0
        self.unk_id = tokens.index(UNK)
        self.eos_id = tokens.index(END)
        self.size = len(tokens)
        self._tokens = tf.constant(tokens)
        ids = [self.unk_id if token in SPECIAL else number for number, token in enumerate(tokens)]
        self._ids = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(self._tokens, tf.constant(ids, tf.int32)),
            default_value=self.unk_id,
        )

    @property
    def tokens(self) -> list[str]:
        """All words and special symbols, in the order of their ids."""
        return [token.decode() for token in self._tokens.numpy()]

    @property
    def checksum(self) -> str:
        """SHA-256 of the file that `save` writes."""
        return checksum(self.contents())

    def __len__(self) -> int:
        return self.size

    def ids(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Looks up words: string -> int32, any shape; `unk_id` for words that are not listed."""
        return self._ids.lookup(words)

    def words(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Looks up ids: integer -> string, any shape; [UNK] for numbers that are not ids."""
        if isinstance(ids, tf.RaggedTensor):
            return ids.with_flat_values(self.words(ids.flat_values))
        ids = tf.where((ids >= 0) & (ids < self.size), ids, self.unk_id)
        return tf.gather(self._tokens, ids)

    @classmethod
    def build(cls, sentences: Iterable[str | Sequence[str]], size: int) -> Vocabulary:
        """Keeps the most frequent words of a stream of sentences.

        Sentences are counted one by one and not kept. Equally frequent words are ordered by code
        point. For a joint vocabulary, chain the sentences of both languages.

        Args:
            sentences: Each a list of words, or a line with spaces between its words.
            size: Number of ids, the three special symbols included.

        Returns:
            [PAD], [UNK], [END], then the words, the most frequent first.

        Raises:
            ValueError: `size` is less than the number of special symbols.
        """
        if size < len(SPECIAL):
            raise Refusal(
                "Vocabulary.build",
                f"size={size} has no room for the special "
                f"symbols {', '.join(SPECIAL)}; wanted {len(SPECIAL)} or more.",
            )
        rows = (x.split() if isinstance(x, str) else x for x in sentences)
        counts = Counter(itertools.chain.from_iterable(rows))
        for symbol in SPECIAL:
            del counts[symbol]
        order = sorted(counts, key=lambda word: (-counts[word], word))
        return cls([*SPECIAL, *order[: size - len(SPECIAL)]])

    @classmethod
    def load(cls, path: str | os.PathLike[str], checksum: str | None = None) -> Vocabulary:
        """Reads a file of one word per line, as `save` writes it.

        Args:
            path: The file.
            checksum: SHA-256 that the file had when the model was trained; None for no check.

        Raises:
            ValueError: The file has another SHA-256, or its lines are not a valid vocabulary.
        """
        data = read_checked(path, checksum)
        if data.startswith(codecs.BOM_UTF8) or b"\r\n" in data:
            raise Refusal(
                "Vocabulary.load",
                f"{path} was written with a byte order mark "
                "or with \\r\\n, wanted lines that end in \\n alone",
            )
        # Only "\n" ends a word; str.splitlines() would also split at U+2028.
        return cls(data.decode("utf-8").removesuffix("\n").split("\n"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one word per line; an old file is replaced as a whole."""
        write_atomically(path, self.contents())

    def contents(self) -> bytes:
        """The file that `save` writes."""
        return b"".join(token + b"\n" for token in self._tokens.numpy())


def read_checked(path: str | os.PathLike[str], expected: str | None) -> bytes:
    """Reads a file; raises ValueError if its SHA-256 is not `expected`."""
    check_regular(path)
    data = Path(path).read_bytes()
    if expected is not None and checksum(data) != expected:
        raise ValueError(
            f"{path} has changed since the model was trained: its SHA-256 is "
            f"{checksum(data)}, wanted {expected}."
        )
    return data


class Dictionary(tf.Module):
    """Translations of single words, in the graph.

    Args:
        entries: The translation of each source word.

    Raises:
        ValueError: A word is empty or contains a tab or line break.

    Reference:
        Luong et al. 2015, arXiv 1410.8206, section 3: an unknown word becomes the dictionary's
        word for the source word it is aligned to, or that word itself.
    """

    def __init__(self, entries: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.entries = tuple((entries or {}).items())
        for pair in self.entries:
            if any(not w or "\t" in w or "\n" in w for w in pair):
                raise Refusal(
                    "Dictionary",
                    f"the entry {pair} has an empty word, a tab or a line break, wanted two words",
                )
        # A table must not be empty, and "" is never a word.
        keys, values = zip(("", ""), *self.entries, strict=True)
        table = tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.constant(values))
        self._table = tf.lookup.StaticHashTable(table, default_value="")

    def lookup(self, words: tf.Tensor) -> tf.Tensor:
        """Looks up words: string, any shape; unlisted words stay."""
        translations = self._table.lookup(words)
        return tf.where(translations == "", words, translations)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dictionary:
        """Reads a file of lines "source word, tab, target word".

        Raises:
            ValueError: A line has another form, or two have the same source word. The message has
                their numbers.
        """
        return cls(read_pairs(path, "Dictionary", "two words with a tab between"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what `load` reads; an old file is replaced as a whole."""
        lines = "".join(f"{s}\t{t}\n" for s, t in self.entries)
        write_atomically(path, lines.encode())
