"""A script, run by `answers` in a new process: an export answers requests.

It imports only TensorFlow and TensorFlow Text.
"""

from __future__ import annotations

import importlib
import os
import pickle
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

WARM = 3  # number of repetitions of a timed request


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
    """Reads requests.pickle in a folder: what is answered, and what is answered and timed.

    Writes answers.pickle, the values of `requests.Answers`.
    """
    import tensorflow as tf

    importlib.import_module("tensorflow_text")
    asked, timed = pickle.loads((folder / "requests.pickle").read_bytes())
    start = time.perf_counter()
    model = tf.saved_model.load(str(folder / "model"))
    load_seconds = time.perf_counter() - start

    def answer(
        signature: str, inputs: dict[str, list[bytes]]
    ) -> tuple[dict[str, np.ndarray], float]:
        strings = {name: tf.constant(rows, tf.string) for name, rows in inputs.items()}
        start = time.perf_counter()
        outputs = model.signatures[signature](**strings)
        values = {name: value.numpy() for name, value in outputs.items()}
        return values, time.perf_counter() - start

    seconds = [[answer(*request)[1] for _ in range(1 + WARM)] for request in timed]
    outputs = [answer(*request)[0] for request in asked]
    if "bahdanau_tf" in sys.modules:
        raise RuntimeError("bahdanau_tf was imported")
    answers = outputs, sorted(model.signatures), load_seconds, seconds
    (folder / "answers.pickle").write_bytes(pickle.dumps(answers))


if __name__ == "__main__":
    end_with(int(sys.argv[2]), Path(sys.argv[1]))
    main(Path(sys.argv[1]))
