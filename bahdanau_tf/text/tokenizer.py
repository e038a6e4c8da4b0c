"""What all tokenizers share: strings to ids and back, in the graph and in Python."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import tensorflow as tf

from bahdanau_tf.system.files import checksum, read_object, write_atomically
from bahdanau_tf.system.lines import Text, read_lines
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.system.terminal import counted
from bahdanau_tf.text.rows import (
    append_end,
    as_rows,
    as_strings,
    masked,
    surfaces,
    turned,
    until_end,
)
from bahdanau_tf.text.script import INVISIBLE, SIGNS

SETTINGS = "tokenizer.json"
MOST_LINES = 1000  # in a batch of lines
MOST_CHARACTERS = 1 << 20  # number of lines times the longest of them
BYTE = re.compile(rb"<0x([0-9A-F]{2})>")  # an entry for a byte of an unknown character
Written = tuple[tf.Tensor, tf.RaggedTensor, tf.RaggedTensor]
Located = tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]


class Reading(NamedTuple):
    """What a tokenizer reads in strings; all that is known about a source.

    Attributes:
        ids: Ragged int32 [B, (T)]; each row ends with the end symbol.
        words: Ragged string [B, (T - 1)], the tokens as they are in the strings, in the order of
            the ids.
        starts: Ragged int32 [B, (T - 1)], the offset of each token's first byte.
        ends: Ragged int32 [B, (T - 1)], that of the byte after its last.
    """

    ids: tf.RaggedTensor
    words: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class Tokenizer(tf.Module):
    """Base class: strings to ids and back.

    A subclass defines `_located`, `ids_to_tokens` and `_joined`; one that can be saved also defines
    `FILE`, `OPTIONS`, `_contents` and `load`.

    Attributes:
        vocabulary_size: K.
        pad_id: 0.
        unk_id: Id of the unknown word.
        eos_id: Id of the end symbol, the last id of every row.
        reverse: Whether the last token comes first, as in Sutskever et al. 2014, section 3.3. The
            end symbol stays last.
        are_words: Whether tokens are words, in the order of their frequency, not sub-words.
        kind: "word", or the type of a SentencePiece model, as `SubwordTokenizer.train` names it.
    """

    FILE: ClassVar[str]  # the name of the file with the vocabulary or the model
    OPTIONS: ClassVar[tuple[str, ...]]  # arguments of the constructor that are saved

    vocabulary_size: int
    pad_id: int
    unk_id: int
    eos_id: int
    reverse: bool
    are_words: bool = False
    kind: str = "word"

    def _located(self, strings: tf.Tensor) -> Located:
        """Splits strings: string [B] -> ids, starts and ends of the tokens.

        All are ragged int32 [B, (T)], in the order of the text, without end symbols.
        """
        raise NotImplementedError

    def _entries(self, ids: tf.Tensor) -> tf.Tensor:
        """What `detokenize` joins for ids, as a rule the tokens: int32 [N] -> string [N]."""
        return self.ids_to_tokens(ids)

    def _joined(self, entries: tf.RaggedTensor) -> Written:
        """Joins the entries of each row, ragged string [B, (T)].

        Returns what `detokenize_with_offsets` returns.
        """
        raise NotImplementedError

    def ids_to_tokens(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Returns the vocabulary entries of ids of any shape, as strings."""
        raise NotImplementedError

    @functools.cached_property
    def words(self) -> frozenset[str]:
        """The entries of the vocabulary that stand for text: no special symbols, no bytes."""
        special = (self.pad_id, self.unk_id, self.eos_id)
        entries = self.ids_to_tokens(tf.range(self.vocabulary_size)).numpy().tolist()
        words = (x for i, x in enumerate(entries) if i not in special and not BYTE.fullmatch(x))
        return frozenset(word.decode("utf-8", "ignore") for word in words)

    @functools.cached_property
    def characters(self) -> frozenset[str]:
        """The characters of `words`, and those that are read as such or dropped.

        Others are unknown, or known only by their bytes.
        """
        own = frozenset("".join(self.words))
        signs = [*SIGNS, *INVISIBLE, *(x.upper() for x in own if len(x.upper()) == 1)]
        rows = self.ids_to_tokens(self._located(tf.constant(signs))[0]).to_list()
        is_known = [self.words >= {token.decode() for token in row} for row in rows]
        return own.union(itertools.compress(signs, is_known))

    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """Turns strings into ids.

        Args:
            strings: string [B].

        Returns:
            Ragged int32 [B, (T)]; each row ends with `eos_id`.
        """
        return self._finished(self._located(as_strings(strings))[0])

    def _finished(self, ids: tf.RaggedTensor) -> tf.RaggedTensor:
        """Ids in the order of the text as a model reads them."""
        return append_end(turned(ids) if self.reverse else ids, self.eos_id)

    def read(self, strings: tf.Tensor) -> Reading:
        """Splits strings, string [B], like `tokenize`, and returns where each token is."""
        strings = as_strings(strings)
        ids, starts, ends = self._located(strings)
        ids = self._finished(ids)
        if self.reverse:
            starts, ends = turned(starts), turned(ends)
        return Reading(ids, surfaces(strings, starts, ends), starts, ends)

    def tokenize_with_offsets(
        self, strings: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """`words`, `starts` and `ends` of `read`."""
        reading = self.read(strings)
        return reading.words, reading.starts, reading.ends

    def detokenize(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Turns ids back into strings.

        Args:
            ids: int32 [B, T] or ragged [B, (T)]. A row is read up to its first end symbol; padding
                is skipped.

        Returns:
            string [B].
        """
        return self.detokenize_with_offsets(ids)[0]

    def detokenize_with_offsets(
        self,
        ids: tf.Tensor | tf.RaggedTensor,
        replacements: tf.Tensor | tf.RaggedTensor | None = None,
    ) -> Written:
        """Turns ids back into strings, and returns where each token is.

        Args:
            ids: As for `detokenize`.
            replacements: string, shape of `ids`: what to write for an unknown token; [UNK] where
                it is empty, and everywhere if None.

        Returns:
            string [B]; ragged int32 [B, (T)], the offset of the first byte of each token, in the
            order of the ids, without the space before it; ragged int32 [B, (T)], that of the byte
            after its last.
        """
        kept = until_end(ids, self.eos_id, self.pad_id)
        rows = masked(as_rows(ids), kept)
        entries = self._entries(rows.values)
        if replacements is not None:
            others = masked(as_rows(replacements), kept).values
            is_replaced = (rows.values == self.unk_id) & (others != "")
            entries = tf.where(is_replaced, others, entries)
        ordered = rows.with_values(entries)
        if not self.reverse:
            return self._joined(ordered)
        texts, starts, ends = self._joined(turned(ordered))
        return texts, turned(starts), turned(ends)

    def encode(self, text: str) -> list[int]:
        """The ids of one string, as a model reads them; `eos_id` is the last.

        Example:
            >>> tokenizer.decode(tokenizer.encode("The cat sleeps."))
            'The cat sleeps.'
        """
        if not isinstance(text, str):
            raise Refusal(
                f"{type(self).__name__}.encode", f"text is {type(text).__name__}, wanted one string"
            )
        return self.ids([text])[0]

    def ids(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids of each line; `eos_id` is the last."""
        rows: list[list[int]] = self.tokenize(tf.constant(lines, tf.string)).to_list()
        return rows

    def decode(self, ids: Sequence[int]) -> str:
        """The text of one row of ids, up to the first end symbol."""
        (text,) = self.detokenize(tf.constant([[*ids]], tf.int32)).numpy()
        return str(text.decode("utf-8", "replace"))

    def _contents(self) -> bytes:
        """The contents of `FILE`."""
        raise NotImplementedError

    def settings(self) -> dict[str, object]:
        """Class, options and SHA-256; they are equal for equal tokenizers."""
        return {
            "class": type(self).__name__,
            "config": {name: getattr(self, name) for name in self.OPTIONS},
            "checksum": checksum(self._contents()),
        }

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes `FILE` and tokenizer.json, which `load_text` reads."""
        write_atomically(Path(directory, self.FILE), self._contents())
        data = json.dumps(self.settings(), indent=2) + "\n"
        write_atomically(Path(directory, SETTINGS), data.encode())

    def __repr__(self) -> str:
        arguments = inspect.signature(type(self).__init__).parameters
        shown = f"{type(self).__name__} of {self.vocabulary_size:,} ids"
        for name in self.OPTIONS:
            value = getattr(self, name)
            if value != arguments[name].default or name == "language":
                shown += f", {name}={value!r}"
        return f"<{shown}>"


def read_settings(directory: str | os.PathLike[str]) -> tuple[str, str, dict[str, Any]]:
    """Reads class, SHA-256 and options from tokenizer.json.

    Raises ValueError if the file is not JSON, or lacks one of them.
    """
    path = Path(directory, SETTINGS)
    settings = read_object(path)
    name, digest = settings.get("class"), settings.get("checksum")
    config = settings.get("config")
    if not isinstance(name, str) or not isinstance(digest, str) or not isinstance(config, dict):
        raise ValueError(f"load_text: {path} lacks a class, a checksum or a config.")
    return name, digest, config


# What looks like the name of a file: no white space, or an extension.
_NAME = re.compile(r"\S*\w|.*\.[A-Za-z0-9]{1,8}")
_LOOKED_AT = 100  # strings of a list that may be names of files


def as_texts(owner: str, texts: Iterable[Text]) -> list[Text]:
    """Distinguishes file names from sentences: returns paths and lists of sentences.

    A list of strings has names if all of them look like names (no white space, or an extension) or
    one of them is an existing file, so that a misspelt name is not learned as a sentence. Otherwise
    the list is one text. Raises ValueError, which names the `owner`, if it is one string or
    something else.
    """
    if isinstance(texts, str | bytes | os.PathLike):
        raise Refusal(owner, f"files is {texts!r}, wanted a list of files or of sentences")
    items: list[Text] = []
    for item in texts:
        is_path = isinstance(item, str | os.PathLike) or not isinstance(item, Iterable)
        parts: list[Any] = [item] if is_path else [*cast(Iterable[Any], item)]
        for part in parts:
            if not isinstance(part, str | os.PathLike):
                raise Refusal(owner, f"{part!r} is neither a file name nor a sentence")
        items.append(item if is_path else [*map(str, parts)])
    if not all(isinstance(item, str) for item in items):
        return items
    strings = [str(item) for item in items]
    are_names = all(map(_NAME.fullmatch, strings)) or any(map(os.path.exists, strings[:_LOOKED_AT]))
    return [*strings] if are_names else [strings]


def lines_of(text: Text) -> Iterator[str]:
    """Yields the lines of a file or the sentences of a list."""
    if isinstance(text, str | os.PathLike):
        return read_lines(text)
    return iter(text)


def counted_lines(text: Text) -> Iterator[str]:
    """`lines_of`, with progress on standard error for a file."""
    lines = lines_of(text)
    return counted(lines, os.fspath(text)) if isinstance(text, str | os.PathLike) else lines


def line_batches(texts: Iterable[Text]) -> Iterator[tf.Tensor]:
    """Yields lines of texts in batches, string [B]; fewer if they are long."""
    batch: list[str] = []
    longest = 0
    for line in itertools.chain.from_iterable(map(counted_lines, texts)):
        longest = max(longest, len(line))
        count = len(batch) + 1
        too_many = count > MOST_LINES or count * longest > MOST_CHARACTERS
        if batch and too_many:
            yield tf.constant(batch)
            batch, longest = [], len(line)
        batch.append(line)
    if batch:
        yield tf.constant(batch)
