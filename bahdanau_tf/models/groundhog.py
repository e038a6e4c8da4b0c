"""Models of the original GroundHog code: weights and vocabularies.

A model trained with the authors' own program (GroundHog's `experiments/nmt`) consists of a
parameter file (`search_model.npz`) and two pickled vocabularies. Word ids stay those of the
files: 0 unused, 1 the unknown word, the end symbol last.
"""

from __future__ import annotations

import functools
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

import keras
import numpy as np
from numpy.typing import ArrayLike

from bahdanau_tf.models.stepwise import StepwiseModel
from bahdanau_tf.system.files import check_regular, read_arrays

Parameters = dict[str, np.ndarray]


_TRANSPOSED = {"readout.output_kernel"}
_SIZES = {  # arguments of the constructors
    "source_vocabulary_size": "Kx",
    "target_vocabulary_size": "Ky",
    "units": "n",
    "embedding_dim": "m",
    "attention_units": "a",
    "maxout_units": "l",
}


@functools.cache
def _origins(model: str) -> dict[str, list[str]]:
    """GroundHog's tensors of each weight of an "RNNSearch" or "RNNEncDec", from groundhog.tsv.

    Concatenated, they are the weight. Behind their names are their shapes in the paper's letters (a
    stands for n', c for the width of a context); those of the attention are RNNsearch's alone.
    """
    table = files("bahdanau_tf.models").joinpath("groundhog.tsv").read_text("utf-8")
    rows = (row.split("\t") for row in table.split("\n")[1:-1])
    return {weight: x.split() for weight, x, *only in rows if model in (only or [model])}


def read_parameters(parameters: str | os.PathLike[str] | Mapping[str, ArrayLike]) -> Parameters:
    """The float32 arrays of an .npz file of GroundHog, by its names; nothing is unpickled.

    Raises ValueError if it is not an .npz file of arrays of finite numbers.
    """
    if not isinstance(parameters, Mapping):
        try:
            parameters = read_arrays(parameters)
        except ValueError as error:
            raise ValueError(f"read_parameters: {error}") from error
    arrays = {name: np.asarray(value) for name, value in parameters.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError(f"read_parameters: {name} is not all finite numbers")
    return {name: a.astype(np.float32) for name, a in arrays.items()}


def sizes_of(arrays: Parameters, model: str) -> dict[str, int]:
    """The sizes of an "RNNSearch" or an "RNNEncDec", as arguments of its constructor.

    Raises ValueError if tensors are missing, unknown or do not fit together; a file of an
    RNNencdec lacks those of the attention.
    """
    directions = 2 if model == "RNNSearch" else 1
    letters = _measured(arrays, model)
    for what, width, wanted in (
        ("maxout input", letters["2l"], 2 * letters["l"]),
        ("context", letters["c"], directions * letters["n"]),
    ):
        if width != wanted:
            raise ValueError(f"{model}.from_groundhog: the {what} is {width} wide, wanted {wanted}")
    return {name: letters[letter] for name, letter in _SIZES.items() if letter in letters}


def _measured(arrays: Parameters, model: str) -> dict[str, int]:
    """Checks names and shapes; returns the value of every letter."""
    wanted = dict(x.split(":") for tensors in _origins(model).values() for x in tensors)
    for problem, names in (
        ("lacks", wanted.keys() - arrays.keys()),
        ("has unknown", arrays.keys() - wanted.keys()),
    ):
        if names:
            listed = ", ".join(sorted(names))
            raise ValueError(f"{model}.from_groundhog: the file {problem} {listed}")
    letters = {"1": 1}
    for name, symbols in wanted.items():
        shape, signs = arrays[name].shape, symbols.split(",")
        sizes = [letters.get(sign) for sign in signs]
        if len(shape) != len(signs) or any(
            size not in (None, width) for size, width in zip(sizes, shape, strict=True)
        ):
            raise ValueError(
                f"{model}.from_groundhog: {name} has shape {shape}, "
                f"wanted ({symbols}) with {letters}"
            )
        letters.update(zip(signs, shape, strict=True))
    return letters


def named_weights(model: StepwiseModel) -> Iterator[tuple[keras.Variable, tuple[str, ...], bool]]:
    """Each weight of an `RNNSearch` or `RNNEncDec` with the default parts, and its origin.

    That is the names of the arrays that, concatenated along the last axis, are its value, and
    whether that must be transposed.
    """

    def member(part: Any, name: str) -> Any:
        return part[int(name)] if name.isdigit() else getattr(part, name)

    for path, tensors in _origins("RNNSearch" if model.has_alignment else "RNNEncDec").items():
        weight = functools.reduce(member, path.split("."), model)
        names = tuple(tensor.split(":")[0] for tensor in tensors)
        yield weight, names, path in _TRANSPOSED


def assign_weights(model: StepwiseModel, arrays: Parameters) -> None:
    """Sets all weights of a model of the file's sizes to those of a GroundHog file."""
    for weight, names, is_transposed in named_weights(model):
        value = np.concatenate([arrays[n] for n in names], axis=-1)
        weight.assign(value.T if is_transposed else value)


_MARK = object()


def read_vocabulary(path: str | os.PathLike[str]) -> dict[int, str]:
    """Reads a GroundHog vocabulary, a pickle of Python 2, without running it.

    A pickle is a program. Only the opcodes (of protocols 0 to 2) that make strings, integers and a
    dictionary of these are accepted; any other, such as those that import or call, is an error.

    Args:
        path: `vocab.*.pkl` (word -> id) or `ivocab.*.pkl` (id -> word).

    Returns:
        The words by id. If words share an id (`<s>` and `</s>` share 0), the first is kept.
        Python 2's byte strings are read as UTF-8.

    Raises:
        ValueError: The file is not such a pickle.
    """
    try:
        check_regular(path)
        return _words_by_id(_run_pickle(io.BytesIO(Path(path).read_bytes())))
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(
            f"read_vocabulary: {os.fspath(path)!r} is not a pickled "
            f"vocabulary of GroundHog: {error}"
        ) from error


def vocabulary_tokens(words: Mapping[int, str], size: int) -> list[str]:
    """The tokens of a model's ids, for `bahdanau_tf.text.Vocabulary`.

    Args:
        words: From `read_vocabulary`.
        size: K, the model's vocabulary size. As in GroundHog, words with an id of K - 1 or more
            are left out, so they are unknown.

    Returns:
        K tokens: [PAD], [UNK], the words from id 2 on, and [END]. An id without a word, or with
        one that cannot occur in a line of text, gets the name [UNUSED...].
    """
    tokens, last = ["[PAD]", "[UNK]"], "[END]"
    seen = {*tokens, last, ""}
    for index in range(2, size - 1):
        word = words.get(index, "")
        if word in seen or "\n" in word:
            word = f"[UNUSED{index}]"
        seen.add(word)
        tokens.append(word)
    return [*tokens, last]


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

    `pickle.Unpickler` with a strict `find_class` runs nothing either, but a file of a few bytes
    can exhaust its memory or its time (docs/decisions.md).
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
    items = [stack.pop(), stack.pop()] if code == b"s" else list(iter(stack.pop, _MARK))
    if not all(isinstance(item, (int, str)) for item in items):
        raise ValueError("a key or value is neither a string nor a number")
    if code == b"d":
        stack.append({})
    items.reverse()
    table = stack[-1]
    if not isinstance(table, dict):
        raise ValueError("keys and values belong to no dictionary")
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
