"""Sub-words without TensorFlow: the ids, tokens and offsets of `SubwordTokenizer`."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from bahdanau_tf.system.files import BYTES_PER_TOKEN, checksum, read_object
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.text.script import INVISIBLE, SIGNS, WIDE

FILE = "sentencepiece.model"
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
BYTE = re.compile("<0x([0-9A-F]{2})>")
# Two capitals, in the letters of `_kinds`.
_CAPITALS = re.compile("UM*U")
_START = re.compile("[^LUlN]*[LUl]?")


class Reading(NamedTuple):
    """What is read of a sentence; the order is that of the ids."""

    ids: list[int]  # the end symbol is the last
    offsets: list[tuple[int, int]]  # of each token, in bytes of UTF-8
    cut: bool = False  # whether only the start of the sentence is read


class Written(NamedTuple):
    """The text of ids; the order is that of the ids."""

    text: str
    offsets: list[tuple[int, int]]


class Subwords:
    """A SentencePiece model, as `SubwordTokenizer.save` writes it.

    Args:
        folder: The folder.

    Raises:
        ValueError: A file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        import sentencepiece

        for path in (settings_path := folder / "tokenizer.json", model := folder / FILE):
            if not path.is_file():
                raise Refusal("Translator.load", f"{path} is missing")
        settings, data = read_object(settings_path), model.read_bytes()
        config = settings.get("config")
        if settings.get("checksum") != checksum(data) or not isinstance(config, dict):
            raise Refusal("Translator.load", f"{folder} holds a damaged tokenizer")
        self.reverse = bool(config.get("reverse"))
        self.true_case = bool(config.get("true_case"))
        self.tight = bool(config.get("tight"))
        self._model = sentencepiece.SentencePieceProcessor(model_proto=data)
        pieces = self._model.id_to_piece([*range(self._model.vocab_size())])
        self._surfaces = [_surface(piece) for piece in pieces]
        self.vocabulary_size = len(pieces)
        self.pad_id = self._model.pad_id()
        self.unk_id = self._model.unk_id()
        self.eos_id = self._model.eos_id()
        special = (self.pad_id, self.unk_id, self.eos_id)
        known = {i: x for i, x in enumerate(pieces) if i not in special and not BYTE.fullmatch(x)}
        self.kind = _kind(known.values())
        own = frozenset("".join(known.values()))
        others = (*SIGNS, *INVISIBLE, *(x.upper() for x in own if len(x.upper()) == 1))
        # That the pieces are made of, or that are read as those.
        self.characters = own.union(x for x in others if known.keys() >= {*self._model.encode(x)})

    are_words = False

    def ids(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids of each line; `eos_id` is the last."""
        return [self.read(line).ids for line in lines]

    def read(self, text: str, longest: int = sys.maxsize) -> Reading:
        """Splits a sentence, of which at most `longest` ids are read, the end symbol included.

        Bytes are cut first, so that a line of megabytes costs little.
        """
        if not text:
            return Reading([self.eos_id], [])
        data = text.encode()
        start = data[: BYTES_PER_TOKEN * longest].decode("utf-8", "ignore")
        pieces = self._model.encode(
            (true_cased(start) if self.true_case else start).encode(), return_type="offset_mapping"
        )
        ids, offsets = pieces["ids"][: longest - 1], pieces["offsets"][: longest - 1]
        cut = len(ids) < len(pieces["ids"]) or len(data) > BYTES_PER_TOKEN * longest
        if self.reverse:
            ids, offsets = ids[::-1], offsets[::-1]
        return Reading([*ids, self.eos_id], offsets, cut)

    def write(self, ids: list[int]) -> Written:
        """Joins ids up to the first end symbol; padding is skipped."""
        end = ids.index(self.eos_id) if self.eos_id in ids else len(ids)
        pieces = [self._surfaces[i] for i in ids[:end] if i != self.pad_id]
        if self.reverse:
            pieces.reverse()
        data, offsets, before = b"", [], b""
        plain = [piece.removeprefix(b" ") for piece in pieces]
        for piece, own, after in zip(pieces, plain, [*plain[1:], b""], strict=False):
            is_tight = self.tight and _has_wide(before[-3:], (own or after)[:3])
            if data and not is_tight:
                data += piece[: len(piece) - len(own)]
            offsets.append((len(data), len(data) + len(own)))
            data += own
            before = own
        text, moved = _decoded(data)
        offsets = [(moved[start], moved[end]) for start, end in offsets]
        return Written(text, offsets[::-1] if self.reverse else offsets)


def _kind(pieces: Collection[str]) -> str:
    """The kind of the model with such pieces, as `Tokenizer.kind`; "bpe" also for "unigram"."""
    if all(len(piece) == 1 for piece in pieces):
        return "char"
    return "space" if all(piece.startswith(SPACE) for piece in pieces) else "bpe"


def _has_wide(*parts: bytes) -> bool:
    """Whether one of some parts of pieces is a wide letter."""
    return any(re.fullmatch(WIDE, part.decode("utf-8", "ignore")) for part in parts)


def _surface(piece: str) -> bytes:
    """The bytes that a piece stands for."""
    if byte := BYTE.fullmatch(piece):
        return bytes([int(byte[1], 16)])
    return piece.replace(SPACE, " ").encode()


def _decoded(data: bytes) -> tuple[str, list[int]]:
    """Text with U+FFFD for bytes that are not valid, and where each offset in bytes is in it.

    An offset between bytes that are replaced together moves behind them.
    """
    moved = [0]
    while rest := data[len(moved) - 1 :]:
        good, bad = len(rest), 0  # numbers of the next bytes
        try:
            rest.decode()
        except UnicodeDecodeError as error:
            good, bad = error.start, error.end - error.start
        moved += range(moved[-1] + 1, moved[-1] + good + 1)
        moved += [moved[-1] + len("\N{REPLACEMENT CHARACTER}".encode())] * bad
    return data.decode("utf-8", "replace"), moved


def _kinds(text: str) -> str:
    """A letter for the Unicode category of each character."""
    kinds = {"Lu": "U", "Ll": "l", "Lt": "l", "Zs": "_", "Zl": "_", "Zp": "_"}
    categories = ("Zs" if x in "\t\n\f\r" else unicodedata.category(x) for x in text)
    return "".join(kinds.get(category, category[0]) for category in categories)


def true_cased(text: str) -> str:
    """Does what `bahdanau_tf.text.words.true_cased` does: A BIG DOG. becomes A big dog."""
    if text.islower():  # nearly all single words; kinds take longer
        return text
    kinds = _kinds(text)
    words = [word for word in kinds.split("_") if _CAPITALS.search(word)]
    if len(words) < 2 or "l" in kinds or "\0" in text:
        return text
    start = len(_START.match(kinds)[0])  # type: ignore[index]  # it matches ""
    result = text[:start] + text[start:].lower()
    is_even = all(len(x.lower().encode()) == len(x.encode()) for x in text if x.isupper())
    return result if is_even and len(result.encode()) == len(text.encode()) else text
