"""Writes a translator to a folder that TensorFlow Serving can serve."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bahdanau_tf.serving.limits import Limits
from bahdanau_tf.serving.operations import check_operations
from bahdanau_tf.serving.requests import request
from bahdanau_tf.serving.requests import sentences
from bahdanau_tf.serving.saved_model import write_saved_model
from bahdanau_tf.serving.signatures import signatures
from bahdanau_tf.serving.slimming import slim
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

    It is not examined; `written`, `examine` and `publish` are its steps.

    Args:
        graph: The graph of a translator.
        path: Base folder of the model's versions.
        limits: The limits of requests and replies.

    Returns:
        The version's folder. It gets its name when it is complete, since a
        server may be watching the base folder.

    Raises:
        OSError: The folder cannot be written to.
        ValueError: The graph has ops that a stock server lacks, or the limits
            and the decoding do not fit the model.
    """
    with written(graph, path, limits) as folder:
        return publish(folder, path)


@contextmanager
def written(
    graph: TranslationGraph, path: str | os.PathLike[str], limits: Limits
) -> Iterator[Path]:
    """Yields a complete SavedModel that no server sees yet.

    It is removed at the end, unless `publish` has made it a version.

    Args:
        graph: As for `export`.
        path: As for `export`.
        limits: As for `export`.

    Yields:
        The folder of the SavedModel.

    Raises:
        OSError: As `export`.
        ValueError: As `export`.
    """
    path = Path(path)
    with workplace(path) as place:  # first, to fail early if not writable
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
            slim(folder)
            check_operations(folder)
            write_warmup(folder, warmup)
        yield folder
