"""A script, run by `answers` in a new process: an export answers requests.

It imports only TensorFlow and TensorFlow Text. Bytes are written to JSON as Latin-1.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    import numpy as np

WARM = 3  # number of repetitions of a timed request


class Request(TypedDict):
    """A request: for each input of a signature the rows."""

    signature: str
    inputs: dict[str, list[str]]


class Asked(TypedDict):
    """requests.json: what is answered, and what is answered and timed."""

    requests: list[Request]
    timed: list[Request]


class Array(TypedDict):
    """An array, its values in a row."""

    dtype: str
    shape: list[int]
    values: list[str] | list[float]


class Answers(TypedDict):
    """answers.json: of each request the outputs, of each timed the seconds."""

    load_seconds: float
    timed: list[list[float]]
    outputs: list[dict[str, Array]]
    signatures: list[str]


def end_with(parent: int, folder: Path) -> None:
    """Lets this process end, and its folder vanish, if its parent is killed.

    On Windows, where a process keeps the number of its parent, it cannot.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    if sys.platform != "win32":
        threading.Thread(target=watch, daemon=True).start()


def main(folder: Path) -> None:
    """Reads requests.json in a folder, writes answers.json."""
    import tensorflow as tf

    importlib.import_module("tensorflow_text")
    asked: Asked = json.loads((folder / "requests.json").read_text("utf-8"))
    start = time.perf_counter()
    model = tf.saved_model.load(str(folder / "model"))
    load_seconds = time.perf_counter() - start

    def answer(request: Request) -> tuple[dict[str, np.ndarray], float]:
        inputs = {
            name: tf.constant([row.encode("latin-1") for row in rows], tf.string)
            for name, rows in request["inputs"].items()
        }
        start = time.perf_counter()
        outputs = model.signatures[request["signature"]](**inputs)
        values = {name: value.numpy() for name, value in outputs.items()}
        return values, time.perf_counter() - start

    timed = [[answer(request)[1] for _ in range(1 + WARM)] for request in asked["timed"]]
    outputs = [
        {name: _plain(value) for name, value in answer(request)[0].items()}
        for request in asked["requests"]
    ]
    answers: Answers = {
        "load_seconds": load_seconds,
        "timed": timed,
        "outputs": outputs,
        "signatures": sorted(model.signatures),
    }
    if "bahdanau_tf" in sys.modules:
        raise RuntimeError("bahdanau_tf was imported")
    (folder / "answers.json").write_text(json.dumps(answers), "utf-8")


def _plain(value: np.ndarray) -> Array:
    return {
        "dtype": value.dtype.name,
        "shape": list(value.shape),
        "values": [
            item.decode("latin-1") if isinstance(item, bytes) else item
            for item in value.ravel().tolist()
        ],
    }


if __name__ == "__main__":
    end_with(int(sys.argv[2]), Path(sys.argv[1]))
    main(Path(sys.argv[1]))
