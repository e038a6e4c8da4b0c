"""The tiny training of kills.py and soak.py, and what may be left of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from machine import ONE_THREAD

from bahdanau_tf import Translator
from bahdanau_tf.corpora import write_corpus

_FLAGS = (
    *("--recipe=paper", "--deterministic", "--optimizer=adam"),
    *("--units=32", "--embedding_dim=16", "--attention_units=16"),
    *("--maxout_units=16", "--embedding_dropout=0.1", "--keep=3"),
    *("--source_language=en", "--target_language=fr", "--batch_size=20"),
    *("--epochs=1000000", "--evaluate_every=25", "--patience=1000000"),
)
TEMPORARY = re.compile(r"\..+|.+_temp|.+\.part|tmp.+")
CHANGING = ("words_per_second", "seconds", "date", "device")  # in the log
# Readings of a clock, and the number of saves, of which each run has its own.
CHANGING_STATE = re.compile(r"(seconds|save_counter)/")


def write_texts(folder: Path) -> None:
    """Writes a generated corpus."""
    write_corpus(folder, train=400, dev=40, test=100)


def environment(folder: Path) -> dict[str, str]:
    """One thread, no GPU, and temporary files in `scratch`, where they are seen."""
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return os.environ | ONE_THREAD | {"CUDA_VISIBLE_DEVICES": "-1", "TMPDIR": str(scratch)}


def start(
    command: Sequence[str | Path], folder: Path, output: Path, hears_ctrl_c: bool = False
) -> subprocess.Popen:
    """Starts Python with such arguments; its output goes to a file."""
    with output.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, *command],
            stdout=file,
            stderr=file,
            env=environment(folder),
            start_new_session=not hears_ctrl_c,
        )


def training(data: Path, folder: Path, updates: int = 0) -> list[str]:
    """The arguments of a training up to so many updates, or without end if 0."""
    texts = [
        f"--{split}_{side}={data / split}.{language}"
        for split in ("train", "dev")
        for side, language in (("source", "en"), ("target", "fr"))
    ]
    return ["train", *_FLAGS, *texts, f"--updates={updates}", f"--model_dir={folder / 'model'}"]


def temporary(folder: Path) -> list[str]:
    """Names of temporary files and folders.

    Not those of Keras' savers, which hold nothing but an empty `assets`.
    """
    return sorted(
        path.name
        for path in folder.rglob("*")
        if TEMPORARY.fullmatch(path.name) and [*path.rglob("*")] != [path / "assets"]
    )


def left_over(folder: Path) -> Iterator[str]:
    """Temporary files and processes that are left."""
    time.sleep(5)  # a process that sees its parent gone needs a moment
    for name in temporary(folder):
        yield f"{name} is left"
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            mine = os.fsencode(folder / "scratch") in path.read_bytes()
        except OSError:
            continue  # it has ended, or is another user's
        if mine:
            yield f"process {path.parent.name} is left"


def differences(folder: Path, whole: Path) -> Iterator[str]:
    """What differs between two training folders, one sentence each."""
    readers = [
        tf.train.load_checkpoint(tf.train.latest_checkpoint(trained / "checkpoints"))
        for trained in (folder, whole)
    ]
    names = [{*reader.get_variable_to_shape_map()} for reader in readers]
    yield from (f"{name} is missing" for name in names[0] ^ names[1])
    for name in sorted(names[0] & names[1]):
        values = [np.asarray(reader.get_tensor(name)) for reader in readers]
        same = values[0].tobytes() == values[1].tobytes()
        if not same and not CHANGING_STATE.search(name):
            yield f"{name} differs"
    models = [Translator.load(trained / "best").model for trained in (folder, whole)]
    for weight, other in zip(*(model.weights for model in models), strict=True):
        if weight.numpy().tobytes() != other.numpy().tobytes():
            yield f"best: {weight.path} differs"
    if read_log(folder) != read_log(whole):
        yield "the log differs"


def read_log(folder: Path) -> list[dict[str, object]]:
    """The lines of a log, without what depends on the clock."""
    lines = (folder / "log.jsonl").read_text("utf-8").split("\n")[:-1]
    return [{k: v for k, v in json.loads(line).items() if k not in CHANGING} for line in lines]
