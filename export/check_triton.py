"""Checks that Triton serves an export as Python runs it, over HTTP and gRPC.

    make check-triton
    python export/check_triton.py --format=onnx --model_dir=run --source=test.en

It sends odd requests to all signatures, then 1,000 sentences from eight clients. The exit status
is 1 if an odd request is not answered as wanted, if a translation differs from that of a
`Translator`, if Triton joins no requests, or if `triton.py` outlives it.
"""

import argparse
import math
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from load import read_sentences, run_load
from signatures import Signature, inputs_of, signatures
from tritonclient import grpc, http, utils

from bahdanau_tf import Translator
from bahdanau_tf.corpora import generate
from bahdanau_tf.runtime import export_runtime

CLIENTS = 8
CAT = b"The cat sleeps. "
ODD = [b"", b" ", b"\0", b"A\0cat", b"\xff\xfe A \x80 cat \xc3", CAT * 625, CAT * 62_500]
SHAPES = [[], [1], [0, 1], [33, 1], [1, 2], [100_000, 1]]
MALFORMED = [b"{", b"{}", b"null", b'{"inputs": [{"name": "text"}]}', b"[" * 100_000]
REFUSED = [np.int32([[1]]), *(np.full(shape, CAT, object) for shape in SHAPES)]


class Client(threading.local):
    """Each thread has a connection of its own."""

    def __init__(self, transport: str, ports: dict[str, int]) -> None:
        self.library = {"http": http, "grpc": grpc}[transport]
        self.connection = self.library.InferenceServerClient(f"127.0.0.1:{ports[transport]}")

    def infer(self, signature: str, rows: np.ndarray) -> Any:
        """The reply to a request with the rows as each input; None if it is an error."""
        dtype = utils.np_to_triton_dtype(rows.dtype)
        tensors = [self.library.InferInput(x, rows.shape, dtype) for x in inputs_of(signature)]
        for tensor in tensors:
            tensor.set_data_from_numpy(rows)
        try:
            return self.connection.infer(signature, tensors)
        except utils.InferenceServerException:
            return None


def check_odd_requests(client: Client, name: str, function: Signature) -> None:
    """Raises a ValueError if one is not answered as in Python, or not refused."""
    for row in ODD:
        rows = np.array([[row]], object)
        reply = client.infer(name, rows)
        for output, wanted in function(**dict.fromkeys(inputs_of(name), rows)).items():
            equal = np.array_equal if wanted.dtype == object else np.allclose
            if reply is None or not equal(reply.as_numpy(output), wanted):
                raise ValueError(f"{name}: {output} of {row[:20]!r} is not as in Python")
    for rows in REFUSED:
        if client.infer(name, rows):
            raise ValueError(f"{name}: {rows.dtype} {rows.shape} is answered, wanted an error")


def is_refused(port: int, body: bytes) -> bool:
    """Whether Triton refuses a request over HTTP; raises a ConnectionError if it has ended."""
    try:
        url = f"http://127.0.0.1:{port}/v2/models/serving_default/infer"
        urllib.request.urlopen(url, body, timeout=60).close()
    except urllib.error.HTTPError as error:
        return error.code in (400, 500)
    return False


def check_deep_json(port: int, server: subprocess.Popen) -> None:
    """The deepest JSON ends Triton; raises a ValueError unless triton.py then fails, too."""
    try:
        survives = is_refused(port, b"[" * 150_000)
    except ConnectionError:
        survives = server.wait(60) == 1
    if not survives:
        raise ValueError("JSON of 150,000 levels: wanted an error, or the exit status 1")


def check_load(transport: str, ports: dict[str, int], wanted: dict[str, str]) -> None:
    """Sends sentences, prints what is measured, and raises a ValueError if it is not as wanted."""
    client, results = Client(transport, ports), {}

    def send(batch: list[str]) -> None:
        reply = client.infer("serving_default", np.array([[x.encode()] for x in batch], object))
        results[batch[0]] = reply.as_numpy("translation").item().decode()

    def executions() -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports['metrics']}/metrics") as reply:
            line = re.search(rb'exec_count{model="serving_default".*} (\d+)', reply.read())
        return int(line[1])

    before = executions()
    load = run_load(send, [[line] for line in wanted], CLIENTS, math.inf)
    runs, equal = executions() - before, sum(results.get(x) == y for x, y in wanted.items())
    print(f"\n{transport}, {CLIENTS} clients: {equal} of {len(wanted)} translations as in Python,")
    print(f"{runs} executions\n{load.report(1)}", flush=True)
    if equal < len(wanted) or runs >= len(wanted):
        raise ValueError("wanted all translations, and fewer executions than requests")


def check(folder: Path, wanted: dict[str, str]) -> None:
    """Serves an export on free ports and checks it."""
    ports = {}
    for name in ("http", "grpc", "metrics"):
        with socket.create_server(("127.0.0.1", 0)) as each:
            ports[name] = each.getsockname()[1]
    flags = [f"--{name}_port={port}" for name, port in ports.items()]
    words = [sys.executable, Path(__file__).with_name("triton.py"), folder, *flags]
    start = time.perf_counter()
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        if not any("Triton serves" in line for line in server.stdout):
            raise ValueError("triton.py did not start")
        threading.Thread(target=server.stdout.read, daemon=True).start()
        print(f"ready after {time.perf_counter() - start:.0f} s", flush=True)
        for name, function in signatures(folder).items():
            for transport in ("http", "grpc"):
                check_odd_requests(Client(transport, ports), name, function)
            print(f"{name}: odd requests are answered as in Python, or refused", flush=True)
        if not all(is_refused(ports["http"], body) for body in MALFORMED):
            raise ValueError("malformed JSON is answered, wanted an error")
        for transport in ("http", "grpc"):
            check_load(transport, ports, wanted)
        check_deep_json(ports["http"], server)
    finally:
        server.terminate()
        server.wait()


def main() -> int:
    """Exports and translates in Python, then checks; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model_dir", help="a saved translator; default: tatoeba-en-fr")
    parser.add_argument("--format", default="savedmodel", choices=["savedmodel", "onnx"])
    parser.add_argument("--source", type=Path, help="a file, one sentence per line")
    options = parser.parse_args()
    try:
        source, folder = options.source, options.model_dir
        lines = read_sentences(source) if source else [x.source for x in generate(1000)]
        lines = [*dict.fromkeys(lines)][:1000]
        own = Translator.load(folder) if folder else Translator.from_preset("tatoeba-en-fr")
        with tempfile.TemporaryDirectory() as name:
            export = Path(name, "new")
            if options.format == "onnx":
                export_runtime(own.graph, export)
            else:
                export = own.export(export)
            texts = [x.text for x in own.translate(lines)]
            check(export, dict(zip(lines, texts, strict=True)))
    except (OSError, ValueError) as error:
        print(f"check_triton: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
