"""The tiny training of kills, soak and cluster.py, and what it may leave."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

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
    """One thread, and temporary files where they are seen."""
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return os.environ | {
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(scratch),
    }


def training(data: Path, folder: Path, updates: int = 0) -> list[str]:
    """The command that trains or resumes, by so many updates or endlessly."""
    texts = [
        f"--{split}_{side}={data / split}.{language}"
        for split in ("train", "dev")
        for side, language in (("source", "en"), ("target", "fr"))
    ]
    model_dir = f"--model_dir={folder / 'model'}"
    return [
        *("train", *_FLAGS, *texts),
        *(f"--updates={updates}", model_dir),
    ]


def temporary(folder: Path) -> list[str]:
    """Names of temporary files and folders.

    Not those of Keras' savers, which hold nothing but an empty `assets`.
    """
    found = [*folder.rglob("*")] if folder.is_dir() else []
    return sorted(
        one.name
        for one in found
        if TEMPORARY.fullmatch(one.name) and [*one.rglob("*")] != [one / "assets"]
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
    """What differs between two training folders, sentence by sentence."""
    readers = [
        tf.train.load_checkpoint(tf.train.latest_checkpoint(one))
        for one in (folder / "checkpoints", whole / "checkpoints")
    ]
    names = [{*one.get_variable_to_shape_map()} for one in readers]
    yield from (f"{name} is missing" for name in names[0] ^ names[1])
    for name in sorted(names[0] & names[1]):
        values = [np.asarray(one.get_tensor(name)) for one in readers]
        same = values[0].tobytes() == values[1].tobytes()
        if not same and not CHANGING_STATE.search(name):
            yield f"{name} differs"
    best = [Translator.load(one / "best").model for one in (folder, whole)]
    for one, other in zip(*(model.weights for model in best), strict=True):
        if one.numpy().tobytes() != other.numpy().tobytes():
            yield f"best: {one.path} differs"
    if read_log(folder) != read_log(whole):
        yield "the log differs"


def read_log(folder: Path) -> list[dict[str, object]]:
    """The lines of a log, without what depends on the clock."""
    lines = (folder / "log.jsonl").read_text("utf-8").split("\n")[:-1]
    return [{k: v for k, v in json.loads(line).items() if k not in CHANGING} for line in lines]
