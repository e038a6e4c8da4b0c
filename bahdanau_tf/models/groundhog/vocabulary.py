"""Reads GroundHog's vocabularies, pickles of Python 2, without running them."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from bahdanau_tf.system.files import check_regular
from bahdanau_tf.text.vocabulary import END
from bahdanau_tf.text.vocabulary import PAD
from bahdanau_tf.text.vocabulary import UNK

_MARK = object()


def read_vocabulary(path: str | os.PathLike[str]) -> dict[int, str]:
    """Reads a GroundHog vocabulary, a pickle of Python 2, without running it.

    A pickle is a program. Only the opcodes (of protocols 0 to 2) that make
    strings, integers and a dictionary of these are accepted; any other, such
    as those that import or call, is an error.

    Args:
        path: `vocab.*.pkl` (word -> id) or `ivocab.*.pkl` (id -> word).

    Returns:
        The words by id. If words share an id (`<s>` and `</s>` share 0), the
        first is kept. Python 2's byte strings are read as UTF-8.

    Raises:
        ValueError: The file is not such a pickle.
    """
    try:
        check_regular(path)
        table = _run_pickle(io.BytesIO(Path(path).read_bytes()))
        return _words_by_id(table)
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(
            f"read_vocabulary: {os.fspath(path)!r} is not a pickled "
            f"vocabulary of GroundHog: {error}"
        ) from error


def vocabulary_tokens(words: Mapping[int, str], size: int) -> list[str]:
    """The tokens of a model's ids, for `bahdanau_tf.text.Vocabulary`.

    Args:
        words: From `read_vocabulary`.
        size: K, the model's vocabulary size. As in GroundHog, words with an id
            of K - 1 or more are left out, so they are unknown.

    Returns:
        K tokens: [PAD], [UNK], the words from id 2 on, and [END]. An id without
        a word, or with one that cannot occur in a line of text, gets the name
        [UNUSED...].
    """
    tokens = [PAD, UNK]
    seen = {PAD, UNK, END, ""}
    for index in range(2, size - 1):
        word = words.get(index, "")
        if word in seen or "\n" in word:
            word = f"[UNUSED{index}]"
        seen.add(word)
        tokens.append(word)
    return [*tokens, END]


def _words_by_id(table: dict[object, object]) -> dict[int, str]:
    words: dict[int, str] = {}
    for pair in table.items():
        index, word = pair if isinstance(pair[0], int) else pair[::-1]
        if not isinstance(index, int) or not isinstance(word, str):
            raise ValueError(f"{pair} is not a word and its id")
        words.setdefault(index, word)
    return words


def _run_pickle(stream: BinaryIO) -> dict[object, object]:
    """Builds the dictionary that the pickle describes.

    `pickle.Unpickler` with a strict `find_class` runs nothing either, but a
    file of a few bytes can exhaust its memory or its time (BUILD.md).
    """
    stack: list[object] = []
    memo: dict[int, object] = {}
    while (code := stream.read(1)) != b".":
        if code in _LITERALS:
            stack.append(_LITERALS[code](stream))
        elif code in _PUT:
            memo[_PUT[code](stream)] = stack[-1]
        elif code in _GET:
            stack.append(memo[_GET[code](stream)])
        elif code == b"\x80":  # PROTO
            _number(stream, 1)
        elif code == b"(":
            stack.append(_MARK)
        elif code == b"}":
            stack.append({})
        elif code in (b"d", b"s", b"u"):
            _set_items(stack, code)
        else:
            raise ValueError(f"opcode {code!r} makes no string or number")
    if not stack or not isinstance(stack[-1], dict):
        raise ValueError("it is not a dictionary")
    return stack[-1]


def _set_items(stack: list[object], code: bytes) -> None:
    """DICT, SETITEM and SETITEMS: keys and values go into a dictionary."""
    items: list[object] = []
    if code == b"s":
        items = [stack.pop(), stack.pop()]
    else:
        while (item := stack.pop()) is not _MARK:
            items.append(item)
    if not all(isinstance(item, (int, str)) for item in items):
        raise ValueError("a key or value is neither a string nor a number")
    if code == b"d":
        stack.append({})
    items.reverse()
    table = stack[-1]
    if not isinstance(table, dict):
        raise ValueError("keys and values are for no dictionary")
    table.update(zip(items[::2], items[1::2], strict=True))


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise ValueError("it ends too early")
    return data


def _line(stream: BinaryIO) -> bytes:
    line = stream.readline()
    if not line.endswith(b"\n"):
        raise ValueError("it ends too early")
    return line[:-1]


def _number(stream: BinaryIO, width: int, signed: bool = False) -> int:
    return int.from_bytes(_exactly(stream, width), "little", signed=signed)


def _text(stream: BinaryIO, width: int) -> str:
    data = _exactly(stream, _number(stream, width))
    return data.decode("utf-8", errors="replace")


def _quoted(stream: BinaryIO) -> str:
    """A string as written by Python 2's repr."""
    body = re.fullmatch(rb"(['\"])(.*)\1", _line(stream))
    if body is None:
        raise ValueError("a string has no quotes")
    names = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}

    def unescape(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        if len(code) == 3:
            return bytes([int(code[1:], 16)])
        return names.get(code, code)

    data = re.sub(rb"\\(x[0-9a-f]{2}|.)", unescape, body[2])
    return data.decode("utf-8", errors="replace")


def _unicode(stream: BinaryIO) -> str:
    """A unicode string; some versions of Python 2 wrote surrogate pairs."""
    text = _line(stream).decode("raw-unicode-escape")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# The opcodes of pickle protocols 0 to 2, from Python's `pickletools`.
_LITERALS: dict[bytes, Callable[[BinaryIO], str | int]] = {
    b"I": lambda f: int(_line(f)),
    b"L": lambda f: int(_line(f).rstrip(b"L")),
    b"J": lambda f: _number(f, 4, signed=True),
    b"K": lambda f: _number(f, 1),
    b"M": lambda f: _number(f, 2),
    b"\x8a": lambda f: _number(f, _number(f, 1), signed=True),
    b"S": _quoted,
    b"T": lambda f: _text(f, 4),
    b"U": lambda f: _text(f, 1),
    b"V": _unicode,
    b"X": lambda f: _text(f, 4),
}
_PUT: dict[bytes, Callable[[BinaryIO], int]] = {
    b"p": lambda f: int(_line(f)),
    b"q": lambda f: _number(f, 1),
    b"r": lambda f: _number(f, 4),
}
_GET = {b"g": _PUT[b"p"], b"h": _PUT[b"q"], b"j": _PUT[b"r"]}
