"""The signatures of an export as Python functions, for a server such as Triton.

Each takes its inputs by name, bytes [B, 1], and returns its outputs by name, [B, ...]; an output
with a value for each row is [B, 1], too. `bahdanau_tf/serving/signatures.py` describes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Signature = Callable[..., dict[str, np.ndarray]]
SECOND_INPUTS = {"complete": "prefix", "score": "translation"}


def signatures(folder: Path) -> dict[str, Signature]:
    """The signatures of an export, by name.

    Args:
        folder: What `bahdanau-tf export` printed. With --format=onnx, the signatures that only
            translate are there, without TensorFlow.

    Raises:
        OSError: The SavedModel cannot be read.
        ValueError: The folder has no export, or it is damaged.
    """
    if (folder / "saved_model.pb").is_file():
        return _of_saved_model(folder)
    if (folder / "runtime.json").is_file():
        return _of_onnx(folder)
    raise ValueError(f"{folder} has no export, wanted the folder that `bahdanau-tf export` printed")


def inputs_of(name: str) -> list[str]:
    """The names of a signature's inputs."""
    return ["text", *([SECOND_INPUTS[name]] if name in SECOND_INPUTS else [])]


def _of_saved_model(folder: Path) -> dict[str, Signature]:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - registers its operations

    loaded = tf.saved_model.load(str(folder))

    def call(signature: str, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        rows = {name: tf.constant(column[:, 0], tf.string) for name, column in inputs.items()}
        outputs = loaded.signatures[signature](**rows)
        arrays = {name: tensor.numpy() for name, tensor in outputs.items()}
        return {name: x if x.ndim > 1 else x[:, None] for name, x in arrays.items()}

    return {name: partial(call, name) for name in loaded.signatures}


def _of_onnx(folder: Path) -> dict[str, Signature]:
    from bahdanau_tf.runtime import Translator

    translator = Translator.load(folder, threads=1)  # several are slow where cores are busy
    own, best = translator.decoding, replace(translator.decoding, n_best=1)
    several = own if own.n_best > 1 else replace(own, n_best=own.beam_size)

    def call(
        decoding: Any, plural: str, text: np.ndarray, prefix: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        prefixes = prefix if prefix is None else [x.decode("utf-8", "replace") for x in prefix.flat]
        results = translator.translate(text.flat, decoding, prefixes=prefixes)
        shape = len(results), decoding.n_best
        strings, scores = np.full(shape, b"", object), np.full(shape, -1e9, np.float32)
        finished = np.zeros(shape, bool)
        for row, first in enumerate(results):
            for rank, result in enumerate([first, *first.alternatives]):
                strings[row, rank], scores[row, rank] = result.text.encode(), result.score
                finished[row, rank] = result.finished
        truncated = np.array([[result.truncated] for result in results])
        outputs = {f"translation{plural}": strings, f"score{plural}": scores, "finished": finished}
        return {**outputs, "truncated": truncated}

    functions = {
        "serving_default": partial(call, best, ""),
        "greedy": partial(call, own.greedy(), ""),
        "n_best": partial(call, several, "s"),
    }
    if not translator.target_text.reverse:
        functions["complete"] = partial(call, best, "")
    return functions
