"""Writes a translator for ONNX Runtime: graphs made from the weights, sub-words and options.

    encode.onnx     source [B, T_x] -> the memory of the steps, and the first state
    step.onnx       last words, state and log-probabilities of the beam, memory -> its best
                    continuations, state, α
    shortlist.onnx  the same over a shortlist, if there is a lexicon
    own.onnx        a sentence's own words of the shortlist -> their columns of the last product

How the graphs compute stands in `graphs.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from bahdanau_tf.runtime.graphs import Array, write_encoder, write_own, write_step
from bahdanau_tf.runtime.search import LEAST
from bahdanau_tf.system import files
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.translation import TranslationGraph
from bahdanau_tf.translation.arrays import check_model
from bahdanau_tf.translation.habits import Habits
from bahdanau_tf.translation.memory import TranslationMemory, write_memory

# The largest difference of α, and of log-probabilities as a share of the largest one, of nearly all
# words; that of others, since a trained model enlarges rounding on random words.
_TOLERANCES = np.array([5e-5, 5e-3])
_NEARLY_ALL = 0.98
# Numbers of words of the sources of each batch, and of its longest target.
_CHECKED = [([1], 1), ([7], 7), ([20, 3], 20), ([100, 40, 9], 100), ([*range(1, 101)], 8)]
_PROGRAM = """
import sys
import numpy as np
from bahdanau_tf.runtime import Translator

translator, rows = Translator.load(sys.argv[1]), np.load(sys.argv[2])
results = {}
for name in rows:
    side, number = name.split("-")
    if side == "source":
        pair = translator.log_probs(rows[name], rows["target-" + number])
        results["log_probs-" + number], results["weights-" + number] = pair
np.savez(sys.argv[3], **results)
"""


def export_runtime(
    graph: TranslationGraph,
    directory: str | os.PathLike[str],
    int8: bool = False,
    card: str = "",
    habits: Habits = Habits(),
    max_source_length: int = files.LONGEST_SOURCE,
    memory: TranslationMemory = TranslationMemory(),
) -> list[str]:
    """Writes a translator for `bahdanau_tf.runtime`, and compares it with the model.

    The folder appears when it is complete. The float32 graphs are run in a new process by ONNX
    Runtime, without TensorFlow.

    Args:
        graph: The translator.
        directory: A new or empty folder.
        int8: Whether weights have a byte each.
        card: The translator's card, which is copied.
        habits: The translator's.
        max_source_length: Tokens that are read of a source, the end symbol included.
        memory: The translator's.

    Returns:
        Sentences about the comparison.

    Raises:
        ValueError: Something cannot be written in ONNX, the folder is not empty, or the graphs and
            the model differ.
        OSError: The folder cannot be written to.
    """
    check_model(graph)
    model: Any = graph.model
    if missing := [x for x in ("onnx", "onnxruntime") if importlib.util.find_spec(x) is None]:
        what = f"ONNX needs {' and '.join(missing)}: pip install {' '.join(missing)}"
        raise Refusal("export_runtime", what)
    folder = Path(directory)
    if folder.exists() and any(folder.iterdir()):
        raise Refusal("export_runtime", f"{folder} is not empty, wanted a new folder")
    options = {
        "format_version": 1 if model.copying is None else 2,
        "model": type(model).__name__,
        "decoding": vars(graph.decoding),
        "habits": vars(habits),
        "max_source_length": max_source_length,
    }
    facts = []
    with files.replaced_directory(folder) as aside:
        files.write_atomically(aside / files.RUNTIME, f"{json.dumps(options, indent=2)}\n".encode())
        if card:
            files.write_atomically(aside / files.CARD, card.encode())
        write_memory(aside, memory)
        for is_small in (False, True)[: 1 + int8]:
            _write_runtime(graph, aside, is_small)
            facts.append(_compared(graph.model, aside, is_small))
    return facts


def _compared(model: Any, folder: Path, int8: bool) -> str:
    """Compares graphs and model on random words; raises ValueError if float32 ones differ."""
    random = np.random.default_rng(2015)
    rows: dict[str, Array] = {}
    for number, (sources, longest) in enumerate(_CHECKED):
        targets = [longest, *random.integers(1, longest + 1, len(sources) - 1)]
        for side, lengths in (("source", sources), ("target", targets)):
            size = getattr(model, f"{side}_vocabulary_size")
            ids = random.integers(1, size, [len(lengths), max(lengths)])
            ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = 0
            rows[f"{side}-{number}"] = ids
    with tempfile.TemporaryDirectory() as place:
        inputs, outputs = Path(place, "inputs.npz"), Path(place, "outputs.npz")
        np.savez(inputs, **rows)
        words = [sys.executable, "-c", _PROGRAM, str(folder), str(inputs), str(outputs)]
        path = os.pathsep.join(filter(None, sys.path))
        done = subprocess.run(
            words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
        if done.returncode:
            reason = done.stderr.strip().rpartition("\n")[2]
            raise Refusal(
                "Translator.export", f"ONNX Runtime cannot run what was written: {reason}"
            )
        results = files.read_arrays(outputs)
    differences, equal, total = [np.zeros([0, 2])], 0, 0
    for number in range(len(_CHECKED)):
        source, target = rows[f"source-{number}"], rows[f"target-{number}"]
        features, weights = model.features({"source": source, "target": target})
        wanted = keras.ops.log_softmax(model.logits(features, model.output_weights())).numpy()
        is_word = target != 0
        log_probs = results[f"log_probs-{number}"][is_word]
        wanted = np.maximum(wanted[is_word], np.log(LEAST))
        share = np.abs(log_probs - wanted).max(-1) / np.abs(wanted).max()
        alpha = np.abs(results[f"weights-{number}"] - weights.numpy())[is_word].max(-1)
        differences.append(np.stack([share, alpha], 1))
        equal += int((log_probs.argmax(-1) == wanted.argmax(-1)).sum())
        total += int(is_word.sum())
    if int8:
        return f"int8: the most probable next word is the model's for {equal} of {total} words"
    worst = np.quantile(np.concatenate(differences), [_NEARLY_ALL, 1], 0)  # NaN if one is
    if not (worst <= _TOLERANCES[:, None]).all():
        (share, alpha), most = worst.tolist()[0], _TOLERANCES[0]
        raise Refusal(
            "Translator.export",
            "what was written for ONNX Runtime differs from the model by more than rounding: for "
            f"{_NEARLY_ALL:.0%} of the words log-probabilities by {share:.2g}, attention by "
            f"{alpha:.2g}, wanted at most {most:g}; nothing was exported",
        )
    return (
        f"ONNX Runtime's log-probabilities and attention equal the model's within {worst.max():.1g}"
    )


def _write_runtime(graph: TranslationGraph, folder: Path, int8: bool) -> None:
    """Writes graphs, lexicon and tokenizers into a folder."""
    model: Any = graph.model
    write_encoder(model, folder / "encode.onnx", int8)
    write_step(model, folder / "step.onnx", int8)
    if graph.lexicon is not None:
        write_step(model, folder / "shortlist.onnx", int8, graph.lexicon.first)
        write_own(model, folder / "own.onnx", int8)
        graph.lexicon.save(folder / "lexicon.npz")
    for name, text in (("source", graph.source_text), ("target", graph.target_text)):
        text.save(folder / name)
