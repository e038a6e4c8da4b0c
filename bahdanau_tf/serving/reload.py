"""A script, run by `answers` in a new process: an export answers requests.

It imports only TensorFlow and TensorFlow Text. Bytes are written to JSON as
Latin-1.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

WARM = 3  # number of repetitions of a timed request


def main(folder: Path) -> None:
    """Reads requests.json in a folder, writes answers.json."""
    import tensorflow as tf

    importlib.import_module("tensorflow_text")
    asked = json.loads((folder / "requests.json").read_text("utf-8"))
    start = time.perf_counter()
    model = tf.saved_model.load(str(folder / "model"))
    answers: dict[str, Any] = {"load_seconds": time.perf_counter() - start}

    def answer(request: dict[str, Any]) -> tuple[dict[str, Any], float]:
        inputs = {
            name: tf.constant(
                [row.encode("latin-1") for row in rows], tf.string
            )
            for name, rows in request["inputs"].items()
        }
        start = time.perf_counter()
        outputs = model.signatures[request["signature"]](**inputs)
        values = {name: value.numpy() for name, value in outputs.items()}
        return values, time.perf_counter() - start

    answers["timed"] = [
        [answer(request)[1] for _ in range(1 + WARM)]
        for request in asked["timed"]
    ]
    answers["outputs"] = [
        {name: _plain(value) for name, value in answer(request)[0].items()}
        for request in asked["requests"]
    ]
    answers["signatures"] = sorted(model.signatures)
    if "bahdanau_tf" in sys.modules:
        raise RuntimeError("bahdanau_tf was imported")
    (folder / "answers.json").write_text(json.dumps(answers), "utf-8")


def _plain(value: Any) -> dict[str, Any]:
    return {
        "dtype": value.dtype.name,
        "shape": list(value.shape),
        "values": _text(value.ravel().tolist()),
    }


def _text(values: list[Any]) -> list[Any]:
    return [
        value.decode("latin-1") if isinstance(value, bytes) else value
        for value in values
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
