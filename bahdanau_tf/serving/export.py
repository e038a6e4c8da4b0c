"""Writes a translator to a folder that TensorFlow Serving can serve.

The first request of a signature is slow, since the graph is then optimised. A server with
--enable_model_warmup replays these records before it is ready.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

import tensorflow as tf

from bahdanau_tf.serving.limits import Limits
from bahdanau_tf.serving.requests import Request, request, sentences
from bahdanau_tf.serving.saved_model import read_graphs, slim, write_saved_model
from bahdanau_tf.serving.signatures import signatures
from bahdanau_tf.system.files import new_name, reason, takes_lock
from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.translation import TranslationGraph
from bahdanau_tf.translation.habits import Habits


def _listed(library: str) -> frozenset[str]:
    """The ops of TensorFlow 2.20, or of TensorFlow Text 2.20, that a graph may have.

    They may be useful for translation. None of them runs Python, prints, needs a device other than
    a CPU, or accesses files (except those of the variables). The stock server has both libraries;
    `make check-serving` looks the ops up in the wheel of TensorFlow 2.20.0.
    """
    table = files("bahdanau_tf.serving").joinpath("operations.tsv").read_text("utf-8")
    rows = (row.split("\t") for row in table.split("\n")[1:-1])
    return frozenset(" ".join(ops for owner, _, ops in rows if owner == library).split())


CORE_OPS, TEXT_OPS = _listed("TensorFlow"), _listed("TensorFlow Text")
XLA = "_XlaMustCompile"  # the stock server has XLA disabled


def check_operations(folder: Path) -> None:
    """Raises a ValueError for a SavedModel that a stock TensorFlow Serving 2.20 cannot run."""
    wrong = {}
    for operation, place, compiled in _operations(folder):
        if compiled:
            wrong[operation] = f"{place}, is to be compiled by XLA"
        elif operation not in CORE_OPS | TEXT_OPS:
            wrong[operation] = place
    if wrong:
        listed = "; ".join(f"{op} ({where})" for op, where in wrong.items())
        raise Refusal(
            "Translator.export",
            f"the graph has {listed}; wanted only ops of a stock TensorFlow "
            "Serving 2.20, listed in bahdanau_tf/serving/operations.tsv",
        )


def operations(folder: Path) -> list[str]:
    """The names of the ops in a SavedModel, sorted."""
    return sorted({operation for operation, *_ in _operations(folder)})


def _operations(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Yields each op, where it is, and whether XLA must compile it."""

    def is_compiled(attributes: Mapping[str, tf.compat.v1.AttrValue]) -> bool:
        return XLA in attributes and bool(attributes[XLA].b)

    for meta_graph in read_graphs(folder).meta_graphs:
        graph = meta_graph.graph_def
        for node in graph.node:
            yield node.op, f"node {node.name}", is_compiled(node.attr)
        for function in graph.library.function:
            owner, compiled = function.signature.name, is_compiled(function.attr)
            for node in function.node_def:
                yield (node.op, f"node {node.name} of {owner}", compiled or is_compiled(node.attr))


RECORDS = Path("assets.extra", "tf_serving_warmup_requests")


def has_serving_api() -> bool:
    """Whether tensorflow-serving-api is installed, which has the messages."""
    return importlib.util.find_spec("tensorflow_serving") is not None


def write_warmup(folder: Path, requests: Sequence[Request]) -> None:
    """Writes the records of a SavedModel; none without the serving API."""
    if not has_serving_api():
        return
    from tensorflow_serving.apis import prediction_log_pb2

    path = folder / RECORDS
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests:
            log = prediction_log_pb2.PredictionLog()
            predict = log.predict_log.request
            predict.model_spec.signature_name = request.signature
            for name, rows in request.inputs.items():
                tensor = tf.make_tensor_proto(rows, tf.string, [len(rows)])
                predict.inputs[name].CopyFrom(tensor)
            writer.write(log.SerializeToString())


def read_warmup(folder: Path) -> list[Request]:
    """Reads what `write_warmup` wrote; an empty list without the records."""
    path = folder / RECORDS
    if not (path.is_file() and has_serving_api()):
        return []
    from tensorflow_serving.apis import prediction_log_pb2

    requests = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        predict = log.predict_log.request
        inputs = {name: tf.make_ndarray(tensor).tolist() for name, tensor in predict.inputs.items()}
        requests.append(Request(predict.model_spec.signature_name, inputs))
    return requests


_PREFIX = ".export."  # hidden, and not a number, so a server ignores it
_LOCK = "lock"


@contextmanager
def writing(base: Path) -> Iterator[None]:
    """Converts errors about files, TensorFlow's too, to an OSError that names the base folder."""
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        why = reason(error)
        raise OSError(f"nothing was exported: {base} cannot be written: {why}") from error


@contextmanager
def workplace(base: Path) -> Iterator[Path]:
    """Yields an empty folder in the base of the versions, to make a new one in.

    It is removed at the end. First the folders of killed exports are removed, but not those of
    running ones: the owner of a folder holds a file lock, which the system releases when the
    process ends. Where there are no locks (Windows, some file systems), nothing is removed.
    """
    with writing(base):
        base.mkdir(parents=True, exist_ok=True)
        for lock in base.glob(f"{_PREFIX}*/{_LOCK}"):
            # If it fails, another export removed the lock, or another user owns it.
            with suppress(OSError), open(lock, "r+b") as file:
                if takes_lock(file):
                    shutil.rmtree(lock.parent, ignore_errors=True)
        folder = new_name(base, _PREFIX)
        folder.mkdir()
    try:
        # It is renamed to "lock" only after it is locked.
        with open(folder / "unlocked", "wb") as file:
            if takes_lock(file):
                os.replace(file.name, folder / _LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, base: str | os.PathLike[str]) -> Path:
    """Renames a complete folder to `base/<version>`, on the same file system; returns the path.

    The version is one more than the largest one, or the next number if another export takes that
    first. Raises OSError if `base` cannot be written to.
    """
    base = Path(base)
    with writing(base):
        while True:
            version = base / str(_next_version(base))
            try:
                os.rename(folder, version)  # fails on a folder with files
                return version
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise


def _next_version(base: Path) -> int:
    return max((int(x.name) for x in base.iterdir() if x.name.isdecimal()), default=0) + 1


WARMUP_ROWS = (1, 8)
WARMUP_WORDS = 12


def export(
    graph: TranslationGraph, path: str | os.PathLike[str], limits: Limits, habits: Habits = Habits()
) -> Path:
    """Writes a SavedModel with the signatures of `serving.signatures`; returns its folder.

    The folder gets its name in `path` when it is complete, since a server may be watching. It is
    not examined; `written`, `examine` and `publish` are the steps. Raises OSError if the folder
    cannot be written to, ValueError if the graph has ops that a stock server lacks, or if the
    limits and the decoding do not fit the model.
    """
    with written(graph, path, limits, habits) as folder:
        return publish(folder, path)


@contextmanager
def written(
    graph: TranslationGraph, path: str | os.PathLike[str], limits: Limits, habits: Habits = Habits()
) -> Iterator[Path]:
    """Yields the folder of a complete SavedModel that no server sees yet; raises as `export`.

    It is removed at the end, unless `publish` has made it a version.
    """
    path = Path(path)
    with workplace(path) as place:  # first, to fail early if not writable
        functions = signatures(graph, limits, habits)
        texts, translations = (
            sentences(text, [WARMUP_WORDS] * max(WARMUP_ROWS))
            for text in (graph.source_text, graph.target_text)
        )
        warmup = [
            request(name, texts[:rows], translations[:rows])
            for name in sorted(functions)
            for rows in WARMUP_ROWS
        ]
        folder = place / "model"
        modules = [*graph.source_texts, graph.target_text, graph.dictionary]
        with writing(path):
            write_saved_model(folder, functions, modules)
            slim(folder)
            check_operations(folder)
            write_warmup(folder, warmup)
        yield folder
