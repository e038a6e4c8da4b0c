"""A stand-in for a model server, for trials and tests on one machine.

    python export/stand_in_server.py export/models/translator

It answers the predict, status and metadata requests of the REST interface and serves the
playground; if tensorflow-serving-api is installed, it also answers Predict over gRPC. Unlike a
model server it has no batching and no versions. It listens on the loopback interface only, and over
REST it refuses any other name in the Host header, so that no web page can point its own name here.
It limits the bytes and rows of a request, and how many requests run at once.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import re
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.protobuf import saved_model_pb2

KIT = Path(__file__).resolve().parent
PLAYGROUND = KIT.parent / "bahdanau_tf" / "runtime" / "html"  # with playground.js of the kit
LOOPBACK = "127.0.0.1"
DEFAULT = "serving_default"
PATH = re.compile(r"/v1/models/([^/:]+)(/metadata|:predict)?")
LARGEST_BODY = 4 << 20  # bytes, as gRPC's
LARGEST_BATCH = 32  # rows, as in batching.config
AT_ONCE = 8  # requests of one interface that run together
WAITING = 64  # requests over gRPC or new connections over HTTP
OWN_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?", re.I)
# Status codes of gRPC, and the HTTP status of each.
INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE = 3, 5, 14
HTTP_STATUS = {INVALID_ARGUMENT: 400, NOT_FOUND: 404, UNAVAILABLE: 503}


class Refused(Exception):
    """A request that is answered with an error.

    Args:
        code: The gRPC status code.
        message: The error message for the client.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Model:
    """The newest version of an exported model.

    Args:
        base: The folder with the numbered versions.
        name: Its name in requests.

    Raises:
        OSError: The newest version is not an exported model.
        ValueError: There is no version.
    """

    def __init__(self, base: Path, name: str = "translator") -> None:
        import tensorflow_text  # noqa: F401 - registers its operations

        self.name = name
        names = [path.name for path in base.iterdir()] if base.is_dir() else []
        versions = [int(name) for name in names if name.isdecimal()]
        if not versions:
            raise ValueError(
                f"Model: {base} has no numbered folders, wanted the folder that contains them"
            )
        self.version = max(versions)
        folder = base / str(self.version)
        self._loaded = tf.saved_model.load(str(folder))
        saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
        self.signature_def = {
            name: signature
            for name, signature in saved.meta_graphs[0].signature_def.items()
            if not name.startswith("__")
        }

    def predict(self, signature: str, inputs: dict[str, tf.Tensor]) -> dict[str, np.ndarray]:
        """Runs a signature.

        Raises:
            Refused: There is no such signature, or it does not accept these inputs.
        """
        if signature not in self.signature_def:
            raise Refused(
                INVALID_ARGUMENT,
                f'Serving signature name: "{signature}" not found in signature def',
            )
        wanted = set(self.signature_def[signature].inputs)
        if wanted != set(inputs):
            raise Refused(
                INVALID_ARGUMENT,
                "input size does not match signature: wanted "
                f"{sorted(wanted)}, got {sorted(inputs)}",
            )
        try:
            outputs = self._loaded.signatures[signature](**inputs)
        except (tf.errors.OpError, TypeError, ValueError) as error:
            raise Refused(INVALID_ARGUMENT, str(error)) from error
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def status(self) -> dict[str, Any]:
        """The reply to a status request."""
        fine = {"error_code": "OK", "error_message": ""}
        version = {"version": str(self.version), "state": "AVAILABLE"}
        return {"model_version_status": [version | {"status": fine}]}

    def metadata(self) -> dict[str, Any]:
        """The reply to a metadata request: the signatures."""
        signatures = {
            name: json_format.MessageToDict(signature, preserving_proto_field_name=True)
            for name, signature in self.signature_def.items()
        }
        return {
            "model_spec": {"name": self.name, "version": str(self.version)},
            "metadata": {"signature_def": {"signature_def": signatures}},
        }


def rest_predict(model: Any, body: bytes) -> dict[str, Any]:
    """Answers a predict request in the row or the column format.

    Args:
        model: A `Model`.
        body: The JSON of the request.

    Returns:
        The reply, to be written as JSON.

    Raises:
        Refused: The request is malformed, or the model refused it.
    """
    try:
        request = json.loads(body)
        signature = request.get("signature_name", DEFAULT)
    except (ValueError, AttributeError, RecursionError):
        raise Refused(INVALID_ARGUMENT, "JSON Parse error") from None
    if not isinstance(signature, str):
        raise Refused(INVALID_ARGUMENT, "'signature_name' must be a string")
    if "instances" in request:
        values, by_row = _columns(request["instances"]), True
    elif "inputs" in request:
        values, by_row = request["inputs"], False
    else:
        raise Refused(INVALID_ARGUMENT, "Missing 'inputs' or 'instances' key")
    # A list, or a string in base64, is the value of the only input, `text`.
    if not isinstance(values, dict) or "b64" in values:
        values = {"text": values}
    try:
        inputs = {name: tf.constant(_strings(value), tf.string) for name, value in values.items()}
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(INVALID_ARGUMENT, f"JSON Value: {error}") from error
    for tensor in inputs.values():
        _check_size(tensor.shape)
    outputs = {name: _as_json(array) for name, array in model.predict(signature, inputs).items()}
    if not by_row:
        return {"outputs": outputs}
    rows = zip(*outputs.values(), strict=True)
    return {"predictions": [dict(zip(outputs, row, strict=True)) for row in rows]}


def _check_size(shape: tf.TensorShape) -> None:
    size = shape.num_elements()
    if size is None or size > LARGEST_BATCH:
        raise Refused(
            INVALID_ARGUMENT,
            f"Task size {size} is larger than maximum input batch size {LARGEST_BATCH}",
        )


def _columns(instances: Any) -> Any:
    """Turns one dictionary per row into one list per input."""
    if not isinstance(instances, list) or not instances:
        raise Refused(INVALID_ARGUMENT, "'instances' is not a list or is empty")
    if not isinstance(instances[0], dict) or "b64" in instances[0]:
        return instances
    try:
        return {name: [row[name] for row in instances] for name in instances[0]}
    except (KeyError, TypeError):
        raise Refused(INVALID_ARGUMENT, "Failed to process 'instances' list") from None


def _strings(value: Any) -> Any:
    """Replaces {"b64": ...} by the decoded bytes, in lists of any depth."""
    if isinstance(value, list):
        return [_strings(item) for item in value]
    if isinstance(value, dict) and list(value) == ["b64"]:
        return base64.b64decode(value["b64"], validate=True)
    return value


def _as_json(array: np.ndarray) -> Any:
    if array.dtype == object:
        return np.vectorize(bytes.decode, otypes=[object])(array).tolist()
    return array.tolist()


class RestServer(ThreadingHTTPServer):
    """The REST interface and the playground, for many connections at the same time.

    It listens, but does not answer before `serve_forever`.
    """

    request_queue_size = WAITING

    def __init__(self, model: Any, port: int = 0) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.model = model
        self._turns = threading.Semaphore(AT_ONCE)

    def predict(self, body: bytes) -> dict[str, Any]:
        """Answers a predict request, a few at the same time."""
        with self._turns:
            return rest_predict(self.model, body)


class _Handler(SimpleHTTPRequestHandler):
    """Answers the requests of a connection: those of the model, and the files of the playground."""

    server: RestServer
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds without a byte

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, directory=str(PLAYGROUND))

    def translate_path(self, path: str) -> str:
        is_of_kit = path.partition("?")[0] == "/playground.js"
        return str(KIT / "playground.js") if is_of_kit else super().translate_path(path)

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        host = self.headers.get("Host", LOOPBACK)
        if OWN_HOST.fullmatch(host):
            return True
        self._refuse(421, f"Host is {host!r}, wanted localhost")
        return False

    def do_GET(self) -> None:
        if not self.path.startswith("/v1/"):
            super().do_GET()
        elif self.path.endswith("/metadata"):
            self._answer(self.server.model.metadata)
        else:
            self._answer(self.server.model.status)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length")
        if length is None or "Transfer-Encoding" in self.headers:
            self._refuse(411, "the request has no Content-Length")
        elif not re.fullmatch("[0-9]{1,18}", length):
            self._refuse(400, f"Content-Length is {length!r}")
        elif int(length) > LARGEST_BODY:
            self._refuse(413, f"{length} bytes, wanted {LARGEST_BODY} at most")
        else:
            self._predict(int(length))

    def _predict(self, length: int) -> None:
        try:
            body = self.rfile.read(length)
        except TimeoutError:
            self._refuse(408, f"the body stopped for {self.timeout} s")
            return
        self._answer(lambda: self.server.predict(body))

    def _refuse(self, status: int, message: str) -> None:
        """Answers without reading the body, and closes the connection."""
        self.close_connection = True
        self._send(status, {"error": message})
        # A client reads no answer before it has sent everything, so up to 1 GiB is read and
        # dropped.
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            for _ in range(1 << 14):
                if not self.rfile.read1(1 << 16):
                    break

    def _answer(self, call: Callable[[], dict[str, Any]]) -> None:
        match, status = PATH.fullmatch(self.path), 200
        try:
            if not match:
                raise Refused(INVALID_ARGUMENT, f"Malformed request: {self.command} {self.path}")
            name = match[1]
            if name != self.server.model.name:
                raise Refused(NOT_FOUND, f"Could not find any versions of model {name}")
            reply = call()
        except Refused as error:
            reply, status = {"error": str(error)}, HTTP_STATUS[error.code]
        self._send(status, reply)

    def _send(self, status: int, reply: dict[str, Any]) -> None:
        text = json.dumps(reply, ensure_ascii=False)
        data = text.encode("utf-8", "replace")  # lone surrogates in errors
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Logs nothing."""


def _read_tensor(tensor: Any) -> tf.Tensor:
    """Reads an input over gRPC, where a few bytes may claim many rows."""
    try:
        _check_size(tf.TensorShape(tensor.tensor_shape))
        return tf.constant(tf.make_ndarray(tensor))
    except (TypeError, ValueError) as error:
        raise Refused(INVALID_ARGUMENT, str(error)) from error


def grpc_server(model: Any, port: int = 0, credentials: Any = None) -> Any:
    """Starts a server of the gRPC interface; returns it and its port."""
    import grpc
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    codes = {code.value[0]: code for code in grpc.StatusCode}

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request: Any, context: Any) -> Any:
            spec = request.model_spec
            try:
                if spec.name != model.name:
                    raise Refused(NOT_FOUND, f"Servable not found for request: {spec.name}")
                inputs = {name: _read_tensor(tensor) for name, tensor in request.inputs.items()}
                outputs = model.predict(spec.signature_name or DEFAULT, inputs)
            except Refused as error:
                context.abort(codes[error.code], str(error))
            reply = predict_pb2.PredictResponse()
            reply.model_spec.CopyFrom(spec)
            for name, array in outputs.items():
                reply.outputs[name].CopyFrom(tf.make_tensor_proto(array))
            return reply

    server = grpc.server(ThreadPoolExecutor(AT_ONCE), maximum_concurrent_rpcs=WAITING)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    address = f"{LOOPBACK}:{port}"
    if credentials is None:
        port = server.add_insecure_port(address)
    else:
        port = server.add_secure_port(address, credentials)
    server.start()
    return server, port


def main() -> int:
    """Serves until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base", type=Path, help="folder of numbered versions")
    parser.add_argument("--port", type=int, default=8500)
    parser.add_argument("--rest_port", type=int, default=8501)
    options = parser.parse_args()
    try:
        model = Model(options.base)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    try:
        rest = RestServer(model, options.rest_port)
    except (OSError, OverflowError) as error:
        parser.error(f"--rest_port is {options.rest_port}: {error}")
    threading.Thread(target=rest.serve_forever, daemon=True).start()
    print(f"REST and playground: http://localhost:{rest.server_port}")
    try:
        _, port = grpc_server(model, options.port)
    except (ModuleNotFoundError, RuntimeError) as error:  # or a taken port
        print(f"no gRPC: {error}")
    else:
        print(f"gRPC: localhost:{port}")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
