"""Test requests for a served translator, made from its own vocabulary."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bahdanau_tf.serving import reload
from bahdanau_tf.text.tokenizer import Tokenizer

MEGABYTE = 1_000_000
TARGET_INPUTS = {"complete": "prefix", "score": "translation"}


class Request(NamedTuple):
    """A request as a client sends it."""

    signature: str
    inputs: dict[str, list[bytes]]  # the rows of each input, by its name


def sentences(text: Tokenizer, lengths: Sequence[int]) -> list[bytes]:
    """Makes sentences of so many words drawn from a vocabulary, with a fixed seed."""
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


def request(signature: str, text: list[bytes], translation: list[bytes]) -> Request:
    """Makes a request; `translation` is used by signatures with a target."""
    inputs = {"text": text}
    if signature in TARGET_INPUTS:
        inputs[TARGET_INPUTS[signature]] = translation
    return Request(signature, inputs)


Outputs = dict[str, np.ndarray]


class Answers(NamedTuple):
    """The answers of an export, and its signatures."""

    outputs: list[Outputs]  # of each request
    signatures: list[str]  # the names of all, sorted
    load_seconds: float
    timed: list[list[float]]  # for each timed request the seconds of every repetition


def answers(version: Path, asked: Sequence[Request], timed: Sequence[Request] = ()) -> Answers:
    """Answers requests by a copy of an export, in a new process.

    It imports only tensorflow and tensorflow_text. The version is the folder that `export` gave;
    the requests `timed` are repeated and timed. Raises ValueError if the process fails, OSError if
    the export cannot be copied.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            shutil.copytree(version, folder / "model")
        except shutil.Error as error:
            raise OSError(
                errno.ENOSPC, "cannot copy the export; set TMPDIR to a folder with room", name
            ) from error
        script = shutil.copy(Path(reload.__file__), folder)
        # As tuples, so that the process needs no class of this package.
        plain = [[tuple(request) for request in requests] for requests in (asked, timed)]
        (folder / "requests.pickle").write_bytes(pickle.dumps(plain))
        process = subprocess.run(
            [sys.executable, script, name, str(os.getpid())],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if process.returncode:
            raise ValueError(f"{version} cannot be reloaded: {_reason(process)}")
        return Answers(*pickle.loads((folder / "answers.pickle").read_bytes()))


def _reason(process: subprocess.CompletedProcess[str]) -> str:
    """Why a process failed: a signal, or the last line that it wrote."""
    if process.returncode < 0:
        number = -process.returncode
        return f"killed by signal {number} ({signal.strsignal(number)})"
    return process.stderr.strip().split("\n")[-1] or f"exit status {process.returncode}"
