"""Test requests for a served translator, made from its own vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.text.tokenizer import Tokenizer

MEGABYTE = 1_000_000
TARGET_INPUTS = {"complete": "prefix", "score": "translation"}


class Request(NamedTuple):
    """A request as a client sends it.

    Attributes:
        signature: Name of the signature.
        inputs: The rows of each input, by its name.
    """

    signature: str
    inputs: dict[str, list[bytes]]


def sentences(text: Tokenizer, lengths: Sequence[int]) -> list[bytes]:
    """Makes sentences of words drawn from a vocabulary, with a fixed seed.

    Args:
        text: The tokenizer.
        lengths: Number of words of each sentence.
    """
    special = (text.pad_id, text.unk_id, text.eos_id)
    words = np.setdiff1d(np.arange(text.vocabulary_size), special)
    random = np.random.default_rng(1409)
    rows = [random.choice(words, length).tolist() for length in lengths]
    ids = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    written, *_ = text.detokenize_with_offsets(ids.to_tensor())
    lines: list[bytes] = written.numpy().tolist()
    return lines


def probes(text: Tokenizer) -> list[bytes]:
    """Makes test rows: usual ones and unusual ones."""
    usual = sentences(text, [1, 2, 3, 5, 8, 13, 21])
    long = b" ".join(usual)
    return [
        *usual,
        b"",
        b" \t \n",
        "\u3000".encode(),
        b"\xff\xfe " + usual[2] + b" \x80\xc3",
        usual[3] + b"\0" + usual[4],
        b"\0",
        "\u2603 \u16a0\u16c1 \U0001f600\u0301 \u202e\u05d0\u200b".encode(),
        "\u3053\u3093\u306b\u3061\u306f\u4e16 \ud55c\uad6d\uc5b4".encode(),
        usual[5] + b"\n" + usual[2],
        b"x" * 4096 + b" a" * 2048,  # a long word beside many short ones
        b" ".join([usual[0]] * 10_000),
        long * (MEGABYTE // len(long) + 1),
        b"\x80" * MEGABYTE,
        "\u20ac".encode() * (MEGABYTE // 3),
    ]


def request(
    signature: str, text: list[bytes], translation: list[bytes]
) -> Request:
    """Makes a request; `translation` is used by signatures with a target."""
    inputs = {"text": text}
    if signature in TARGET_INPUTS:
        inputs[TARGET_INPUTS[signature]] = translation
    return Request(signature, inputs)
