"""From a translator to a folder that TensorFlow Serving can serve."""

from __future__ import annotations

import os
from pathlib import Path

from bahdanau_tf.serving.limits import Limits
from bahdanau_tf.serving.operations import check_operations
from bahdanau_tf.serving.requests import request
from bahdanau_tf.serving.requests import sentences
from bahdanau_tf.serving.saved_model import write_saved_model
from bahdanau_tf.serving.signatures import signatures
from bahdanau_tf.serving.versions import publish
from bahdanau_tf.serving.versions import workplace
from bahdanau_tf.serving.versions import writing
from bahdanau_tf.serving.warmup import write_warmup
from bahdanau_tf.translation import TranslationGraph

WARMUP_ROWS = (1, 8)
WARMUP_WORDS = 12


def export(
    graph: TranslationGraph, path: str | os.PathLike[str], limits: Limits
) -> Path:
    """Writes a SavedModel with the signatures of `serving.signatures`.

    Args:
        graph: A translator.
        path: Base folder of the model's versions.
        limits: What is read and written at most.

    Returns:
        The version's folder. It appears under its name when it is complete,
        since a server may be looking.

    Raises:
        OSError: It cannot be written there.
        ValueError: The graph holds what a stock server does not know, or the
            limits and the decoding do not fit the model.
    """
    path = Path(path)
    with workplace(path) as place:  # at first: can anything be written?
        made = signatures(graph, limits)
        texts, translations = (
            sentences(text, [WARMUP_WORDS] * max(WARMUP_ROWS))
            for text in (graph.source_text, graph.target_text)
        )
        warmup = [
            request(name, texts[:rows], translations[:rows])
            for name in sorted(made)
            for rows in WARMUP_ROWS
        ]
        folder = place / "model"
        modules = [*graph.source_texts, graph.target_text, graph.dictionary]
        with writing(path):
            write_saved_model(folder, made, modules)
            check_operations(folder)
            write_warmup(folder, warmup)
            return publish(folder, path)
