"""Warm-up records: requests that a server replays when it loads the model.

The first request of a signature is slow, since the graph is then optimised. A
server with --enable_model_warmup replays these records before it is ready.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from bahdanau_tf.serving.requests import Request

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
        inputs = {
            name: tf.make_ndarray(tensor).tolist()
            for name, tensor in predict.inputs.items()
        }
        requests.append(Request(predict.model_spec.signature_name, inputs))
    return requests
