"""Translates through the gRPC interface of a model server.

    python export/grpc_client.py --plaintext "A man sleeps."
    python export/grpc_client.py --address translate.example.org:443 < text

It needs `pip install tensorflow-serving-api`. The connection is encrypted and certificates are
verified, unless `plaintext` is set, for example for a server on the same machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

try:
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
except ModuleNotFoundError as error:
    needs = f"grpc_client needs {error.name}: pip install tensorflow-serving-api"
    if __name__ == "__main__":
        sys.exit(needs)
    raise ImportError(needs) from error
from retrying import LARGEST_REPLY, ServingError, TryAgain, WrongReply, batches, one_line, retrying

BUSY = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}


class GrpcClient:
    """A connection to one model, closed by `close` or by leaving a `with`.

    Args:
        address: The server: host and port.
        model: The model's name.
        timeout: Seconds to wait for a reply. A request that timed out is not sent again: the server
            may still be computing the answer.
        attempts: How often a request is sent at most, if the server is not reachable or too busy.
        plaintext: Whether the connection is unencrypted.
        ca_file: A file of certificates to trust instead of gRPC's own.
        batch_size: The largest number of sentences in one request.

    Raises:
        OSError: `ca_file` cannot be read.
    """

    def __init__(
        self,
        address: str = "localhost:8500",
        model: str = "translator",
        timeout: float = 30.0,
        attempts: int = 3,
        plaintext: bool = False,
        ca_file: str | None = None,
        batch_size: int = 32,
    ) -> None:
        self.address, self.model = address, model
        self.timeout, self.attempts = timeout, attempts
        self.batch_size = batch_size
        options = [("grpc.max_receive_message_length", LARGEST_REPLY)]
        if plaintext:
            self.channel = grpc.insecure_channel(address, options)
        else:
            trusted = Path(ca_file).read_bytes() if ca_file else None
            self.channel = grpc.secure_channel(
                address, grpc.ssl_channel_credentials(trusted), options
            )
        self.stub = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)

    def __enter__(self) -> GrpcClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self.channel.close()

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """Translates sentences, in order.

        Raises:
            ServingError: The server did not answer as it should.
        """
        translations: list[str] = []
        for batch in batches(sentences, self.batch_size):
            rows = self.predict(text=batch).get("translation", np.array(None))
            if rows.dtype != object or rows.ndim != 1:
                raise WrongReply(self.address, "translation", rows, "a string per sentence")
            translations += [row.decode("utf-8", "replace") for row in rows]
        return translations

    def predict(
        self, signature: str = "serving_default", **inputs: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Calls a signature.

        Args:
            signature: Its name.
            **inputs: For each input a list of strings.

        Returns:
            For each output an array with one row per string.

        Raises:
            ServingError: The server did not answer, refused the request, or answered with something
                else.
        """
        request = predict_pb2.PredictRequest()
        request.model_spec.name = self.model
        request.model_spec.signature_name = signature
        for name, strings in inputs.items():
            values = [text.encode("utf-8") for text in strings]
            request.inputs[name].CopyFrom(tf.make_tensor_proto(values, tf.string, [len(values)]))
        reply = retrying(lambda: self._send(request), self.attempts)
        try:
            outputs = {name: tf.make_ndarray(tensor) for name, tensor in reply.outputs.items()}
        except (TypeError, ValueError) as error:
            raise ServingError(f"{self.address}: the reply: {error}") from error
        count = max(map(len, inputs.values()), default=0)
        for name, rows in outputs.items():
            if rows.shape[:1] != (count,):
                raise WrongReply(self.address, name, rows, f"{count} rows")
        return outputs

    def _send(self, request: predict_pb2.PredictRequest) -> predict_pb2.PredictResponse:
        try:
            return self.stub.Predict(request, timeout=self.timeout)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise ServingError(
                    f"{self.address}: no answer within {self.timeout:g} s"
                ) from error
            if "WRONG_VERSION_NUMBER" in (error.details() or ""):  # OpenSSL's words
                raise ServingError(
                    f"{self.address} does not answer in TLS, wanted a server that does, or "
                    "--plaintext (in Python plaintext=True)"
                ) from error
            kind = TryAgain if error.code() in BUSY else ServingError
            raise kind(f"{self.address}: {error.code().name} {error.details()}") from error


def main() -> int:
    """Translates the arguments, or else the lines of standard input."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sentence", nargs="*")
    parser.add_argument("--address", default="localhost:8500")
    parser.add_argument("--model", default="translator")
    parser.add_argument("--timeout", type=float, default=30.0)
    parser.add_argument("--plaintext", action="store_true")
    parser.add_argument("--ca_file", help="certificates to trust")
    options = parser.parse_args()
    try:
        lines = options.sentence or [line.rstrip("\n") for line in sys.stdin]
        with GrpcClient(
            options.address,
            options.model,
            options.timeout,
            plaintext=options.plaintext,
            ca_file=options.ca_file,
        ) as client:
            for batch in batches(lines, client.batch_size):
                for translation in client.translate(batch):
                    print(one_line(translation))
    except (ServingError, ValueError, OSError) as error:
        print(f"grpc_client: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
