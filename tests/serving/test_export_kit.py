"""The files of export/: clients, configuration, web page, stand-in server."""

import contextlib
import http.client
import importlib
import io
import itertools
import json
import re
import runpy
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from browser import Page
from comparisons import offsets_of
from google.protobuf import text_format
from refusals import refused

KIT = Path(__file__).resolve().parents[2] / "export"
WIDTH = 12  # S and T of the toy model


@pytest.fixture(scope="module", autouse=True)
def kit_on_path() -> Iterator[None]:
    """Adds export/ to sys.path, since its scripts import one another."""
    sys.path.insert(0, str(KIT))
    yield
    sys.path.remove(str(KIT))


def kit(name: str) -> Any:
    return importlib.import_module(name)


class ToyModel:
    """Answers as a model server does: reversed words in capitals.

    Each Chinese character and kana is a word.
    """

    name = "translator"
    names = ("serving_default", "greedy", "n_best", "align", "score")
    word = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\s\u3040-\u30ff\u4e00-\u9fff]+")

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[bytes]]] = []
        self.state = "AVAILABLE"
        self.refusals: list[int] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def status(self) -> dict[str, Any]:
        return {"model_version_status": [{"version": "1", "state": self.state}]}

    def metadata(self) -> dict[str, Any]:
        signature = {"method_name": "tensorflow/serving/predict"}
        names = {"signature_def": dict.fromkeys(self.names, signature)}
        return {"metadata": {"signature_def": names}}

    def predict(self, signature: str, inputs: dict[str, Any]) -> dict[str, Any]:
        texts = inputs["text"].numpy().tolist()
        self.calls.append((signature, texts))
        self.may_answer.wait()
        stand_in = kit("stand_in_server")
        if self.refusals:
            raise stand_in.Refused(self.refusals.pop(), "not now")
        if signature not in self.names:
            raise stand_in.Refused(3, f'"{signature}" not found')
        rows = [self.row(text.decode()) for text in texts]
        outputs = {name: _array([row[name] for row in rows]) for name in rows[0]}
        if signature == "align":
            return outputs
        best, finished = outputs["translation"], outputs["finished"]
        answer = {"translation": best, "score": np.full(len(rows), -1.25, np.float32)}
        if signature == "n_best":
            alternatives = [best, _array([line + b"!" for line in best]), _array([b""] * len(rows))]
            answer = {
                "translations": np.stack(alternatives, axis=1),
                "scores": np.float32([[-1.25, -0.5, -1e9]] * len(rows)),
            }
            finished = np.array([[True, False, False]] * len(rows))
        return answer | {"finished": finished, "truncated": outputs["truncated"]}

    def row(self, text: str) -> dict[str, Any]:
        words = self.word.findall(text)[: WIDTH - 1]
        turned = [word.upper() for word in reversed(words)]
        target, count = " ".join(turned), len(words)
        weights = np.zeros((WIDTH, WIDTH), np.float32)
        for t in range(count):
            weights[t, count - 1 - t] += 0.75
            weights[t, max(count - 2 - t, 0)] += 0.25
        weights[count, count] = 1.0
        return {
            "translation": target.encode(),
            "source_tokens": _padded(words),
            "source_offsets": _spans(offsets_of(text, words)),
            "source_length": np.int32(count + 1),
            "target_tokens": _padded(turned),
            "target_offsets": _spans(offsets_of(target, turned)),
            "target_length": np.int32(count + 1),
            "weights": weights,
            "finished": np.bool_(True),
            "truncated": np.bool_(len(text) > 100),
        }


def _array(values: list[Any]) -> np.ndarray:
    is_text = np.asarray(values[0]).dtype.kind in "SO"
    return np.array(values, dtype=object) if is_text else np.stack(values)


def _padded(words: list[str]) -> np.ndarray:
    values = [word.encode() for word in words]
    return np.array(values + [b""] * (WIDTH - len(values)), dtype=object)


def _spans(values: list[tuple[int, int]]) -> np.ndarray:
    end = values[-1][1] if values else 0
    rest = [(end, end)] + [(0, 0)] * (WIDTH - 1 - len(values))
    return np.array(values + rest, np.int32)


@pytest.fixture
def model() -> ToyModel:
    return ToyModel()


@contextlib.contextmanager
def serving(server: Any) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def rest(model) -> Iterator[str]:
    with serving(kit("stand_in_server").RestServer(model)) as url:
        yield url


@pytest.fixture
def grpc_address(model) -> Iterator[str]:
    pytest.importorskip("tensorflow_serving", reason="needs tensorflow-serving-api")
    server, port = kit("stand_in_server").grpc_server(model)
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.fixture(params=["rest", "grpc"])
def client(request) -> Any:
    """`client(**settings)` makes a REST or a gRPC client."""
    if request.param == "rest":
        url = request.getfixturevalue("rest")
        return lambda **more: kit("rest_client").RestClient(url, **more)
    address = request.getfixturevalue("grpc_address")
    return lambda **more: kit("grpc_client").GrpcClient(address, plaintext=True, **more)


def error_of(client: Any, **inputs: Any) -> str:
    with pytest.raises(kit("retrying").ServingError) as error:
        client.predict(**(inputs or {"text": ["a"]}))
    return str(error.value)


# The clients.


def test_clients_translate_strings_in_order(client, model):
    sentences = ["a b", "", "고양이가 잔다", "שלום עולם", "tab\tx", 'q"\\u0', "\0 z"]
    wanted = ["B A", "", "잔다 고양이가", "עולם שלום", "X TAB", 'Q"\\U0', "Z \0"]
    assert client().translate(sentences) == wanted
    assert client().translate([]) == []
    assert len(model.calls) == 1


def test_clients_send_at_most_a_batch_per_request(client, model):
    assert client().translate(["a b"] * 70) == ["B A"] * 70
    assert [len(texts) for _, texts in model.calls] == [32, 32, 6]


def test_clients_call_any_signature_and_refuse_what_is_no_list_of_texts(client):
    outputs = client().predict("align", text=["a b", "c"])
    assert np.asarray(outputs["weights"]).shape == (2, WIDTH, WIDTH)
    assert np.asarray(outputs["source_offsets"])[0, :3].tolist() == [[0, 1], [2, 3], [3, 3]]
    assert list(outputs["truncated"]) == [False, False]
    refused(lambda: client().translate("a b"), "one string")
    refused(lambda: client().translate(["\ud83d"]), "surrogates")


def test_clients_repeat_requests_to_a_busy_server(client, model):
    model.refusals = [14, 14]
    assert client(attempts=3).translate(["a b"]) == ["B A"]
    assert len(model.calls) == 3
    model.refusals = [14, 14]
    assert "not now" in error_of(client(attempts=2))
    assert len(model.calls) == 5


def test_clients_do_not_repeat_a_bad_request_nor_one_that_timed_out(client, model):
    assert '"nothing" not found' in error_of(client(), signature="nothing", text=["a"])
    assert len(model.calls) == 1
    message = error_of(client(model="other"))
    assert re.search("404|NOT_FOUND", message)
    assert "other" in message
    model.may_answer.clear()
    assert "no answer within 0.2 s" in error_of(client(timeout=0.2))
    model.may_answer.set()
    assert client().translate(["last"]) == ["LAST"]
    assert len(model.calls) == 3


def test_words_of_a_server_do_not_reach_a_terminal_raw():
    error = kit("retrying").TryAgain("host: \x1b]0;title\x07 é\r")
    assert str(error) == r"host: \x1b]0;title\x07 é\r"


def test_clients_report_an_unreachable_server():
    RestClient = kit("rest_client").RestClient
    message = error_of(RestClient("http://127.0.0.1:9", attempts=2))
    assert "Connection refused" in message
    refused(lambda: RestClient("localhost:8501"), "http")


def test_grpc_client_reports_an_unreachable_server():
    pytest.importorskip("tensorflow_serving", reason="needs its API package")
    with kit("grpc_client").GrpcClient("127.0.0.1:9", plaintext=True, attempts=2) as client:
        assert "UNAVAILABLE" in error_of(client)


def test_grpc_client_advises_plaintext_for_a_plain_server(grpc_address, model):
    with kit("grpc_client").GrpcClient(grpc_address, attempts=1) as client:
        assert "does not answer in TLS" in (message := error_of(client))
        assert "plaintext=True" in message
    assert model.calls == []


@pytest.mark.parametrize(
    ("script", "module", "needs"),
    [
        ("grpc_client", "grpc", "grpc: pip install tensorflow-serving-api"),
        ("beam_translate", "apache_beam", "Apache Beam: pip install apache-beam"),
    ],
)
def test_a_script_says_what_to_install(script, module, needs, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as if it were missing
    path = str(KIT / f"{script}.py")
    refused(lambda: runpy.run_path(path, run_name="__main__"), needs, by=SystemExit)
    refused(lambda: runpy.run_path(path), needs, by=ImportError)


Reply = tuple[int, dict[str, str], bytes]


class Quiet(BaseHTTPRequestHandler):
    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


@contextlib.contextmanager
def replying(*replies: Reply) -> Iterator[str]:
    """A server that gives these replies in turn, whatever the requests are."""
    rest = iter(replies)

    class Handler(Quiet):
        def do_POST(self) -> None:
            self.body()
            status, headers, body = next(rest)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        yield url


def reply_of(outputs: Any) -> Reply:
    return 200, {}, json.dumps({"outputs": outputs}).encode()


WRONG_REPLIES = {
    "one for three": reply_of({"translation": ["A"]}),
    "four for three": reply_of({"translation": ["A", "B", "C", "D"]}),
    "a string": reply_of({"translation": "ABC"}),
    "numbers": reply_of({"translation": [1, 2, 3]}),
    "null": reply_of({"translation": None}),
    "an object": reply_of({"translation": {"0": "A", "1": "B", "2": "C"}}),
    "a list": reply_of(["A", "B", "C"]),
    "others": reply_of({"score": [1.0, 1.0, 1.0]}),
    "too few others": reply_of({"translation": ["A"] * 3, "score": [1.0]}),
    "nothing": (200, {}, b"{}"),
    "a page": (200, {}, b"<html>"),
    "no text": (200, {}, b"\xff"),
    "nested deeply": (200, {}, b"[" * 100_000),
    "an error's list": (500, {}, b'{"error": ["\\u001b[2J\\n"]}'),
    "escapes in a page": (500, {}, b"\x1b]0;owned\x07\r\n\xc2\x9b2J"),
    "escapes in a name": reply_of({"\x1b[2J\n\u202e": []}),
    "cut off": (500, {"Content-Length": "9"}, b"{"),
}


@pytest.mark.parametrize("wrong", WRONG_REPLIES)
def test_rest_client_refuses_wrong_replies(wrong, capsys, monkeypatch):
    """In a line without control characters; what was written is kept."""
    script = kit("rest_client")
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{i}\n" for i in range(35))))
    right = reply_of({"translation": ["right"] * 32})
    with replying(right, WRONG_REPLIES[wrong]) as url:
        monkeypatch.setattr(sys, "argv", ["rest_client.py", f"--url={url}"])
        assert script.main() == 1
    out, err = capsys.readouterr()
    assert out == "right\n" * 32
    assert err.startswith(f"rest_client: {url}/v1/models/translator")
    assert err.endswith("\n")
    assert err[:-1].isprintable()


def test_rest_client_follows_no_redirect(rest, model):
    """From https to http it would send the text unencrypted."""
    place = f"{rest}/v1/models/translator:predict"
    for code in (301, 302, 303, 307, 308):
        with replying((code, {"Location": place}, b"")) as url:
            message = error_of(kit("rest_client").RestClient(url))
        assert f"{code}, redirected to {place}" in message
    assert model.calls == []


def test_rest_client_reads_no_endless_reply(monkeypatch):
    script = kit("rest_client")
    monkeypatch.setattr(script, "LARGEST_REPLY", 99)
    with replying((200, {}, b" " * 100)) as url:
        message = error_of(script.RestClient(url))
    assert "the reply has more than 99 bytes" in message


@pytest.mark.parametrize(
    "outputs",
    [
        {"translation": np.array([b"a", b"b"], object)},
        {"translation": np.array(b"a", object)},
        {"translation": np.float32([1.0])},
        {"score": np.float32([1.0])},
    ],
)
def test_grpc_client_refuses_wrong_replies(grpc_address, model, monkeypatch, outputs):
    monkeypatch.setattr(model, "predict", lambda *_: outputs)
    with (
        kit("grpc_client").GrpcClient(grpc_address, plaintext=True) as client,
        pytest.raises(kit("retrying").WrongReply, match="of the reply is"),
    ):
        client.translate(["a"])


def test_pauses_double_until_the_last_attempt(monkeypatch):
    retrying = kit("retrying")
    pauses: list[float] = []
    monkeypatch.setattr(retrying.time, "sleep", pauses.append)

    def call() -> None:
        raise retrying.TryAgain("busy")

    refused(lambda: retrying.retrying(call, attempts=4, wait=1.0), "busy", by=retrying.TryAgain)
    assert len(pauses) == 3
    for pause, most in zip(pauses, (1, 2, 4), strict=True):
        assert most / 2 <= pause <= most


def test_rest_client_verifies_certificates(model, certificate):
    RestClient = kit("rest_client").RestClient
    server = kit("stand_in_server").RestServer(model)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # silent about the refused handshake
    with serving(server) as url:
        url = url.replace("http:", "https:")
        assert "CERTIFICATE_VERIFY_FAILED" in error_of(RestClient(url))
        assert model.calls == []
        trusting = RestClient(url, ca_file=str(certificate[0]))
        assert trusting.translate(["a b"]) == ["B A"]


def test_grpc_client_verifies_certificates(model, certificate):
    pytest.importorskip("tensorflow_serving", reason="needs its API package")
    import grpc

    GrpcClient = kit("grpc_client").GrpcClient
    cert, key = (path.read_bytes() for path in certificate)
    server, port = kit("stand_in_server").grpc_server(
        model, credentials=grpc.ssl_server_credentials([(key, cert)])
    )
    address = f"localhost:{port}"
    try:
        with GrpcClient(address, attempts=1) as client:
            assert "UNAVAILABLE" in error_of(client)
        assert model.calls == []
        with GrpcClient(address, ca_file=str(certificate[0])) as client:
            assert client.translate(["a b"]) == ["B A"]
    finally:
        server.stop(None).wait()


def test_rest_client_is_a_command(rest):
    command = [sys.executable, str(KIT / "rest_client.py"), "--url"]
    client = subprocess.run([*command, rest], input="a b\n\nc 고\n", capture_output=True, text=True)
    assert (client.returncode, client.stdout) == (0, "B A\n\n고 C\n")
    client = subprocess.run([*command, "http://127.0.0.1:9", "a"], capture_output=True, text=True)
    assert (client.returncode, client.stdout) == (1, "")
    assert client.stderr.count("\n") == 1
    assert client.stderr.startswith("rest_client: http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("name", "client"), [("rest_client", "RestClient"), ("grpc_client", "GrpcClient")]
)
def test_clients_write_a_line_for_each_of_their_input(name, client, monkeypatch, capsys):
    """Whatever a vocabulary of bytes writes; not if the input is no UTF-8."""
    if name == "grpc_client":
        pytest.importorskip("tensorflow_serving", reason="needs tensorflow-serving-api")
    script = kit(name)
    monkeypatch.setattr(getattr(script, client), "translate", lambda *_: ["a\nb\0"] * 2)
    monkeypatch.setattr(sys, "argv", [name, "x", "y"])
    assert script.main() == 0
    assert capsys.readouterr().out == "a b\na b\n"
    monkeypatch.setattr(sys, "argv", [name])
    stdin = io.TextIOWrapper(io.BytesIO(b"\xff\n"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stdin)
    assert script.main() == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"{name}: 'utf-8' codec can't decode byte 0xff")


# The stand-in server, and the health check.


def post(url: str, body: str) -> tuple[int, Any]:
    request = urllib.request.Request(f"{url}/v1/models/translator:predict", body.encode())
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_stand_in_accepts_both_rest_formats(rest):
    """Formats as in TensorFlow Serving's `api_rest.md`."""
    row = {"translation": "B A", "score": -1.25}
    row |= {"finished": True, "truncated": False}
    for instances in (["a b"], [{"text": "a b"}]):
        body = json.dumps({"instances": instances})
        assert post(rest, body) == (200, {"predictions": [row]})
    columns = {name: [value] for name, value in row.items()}
    for inputs in (["a b"], {"text": ["a b"]}):
        body = json.dumps({"inputs": inputs})
        assert post(rest, body) == (200, {"outputs": columns})


def test_stand_in_accepts_base64(rest, model):
    """Binary values as in `api_rest.md`."""
    binary = {"b64": "YSBi"}
    for request in (
        {"instances": [binary, "a b"]},
        {"instances": [{"text": binary}, {"text": "a b"}]},
        {"inputs": [binary, "a b"]},
        {"inputs": {"text": [binary, "a b"]}},
    ):
        assert post(rest, json.dumps(request))[0] == 200
    assert [texts for _, texts in model.calls] == [[b"a b", b"a b"]] * 4


def test_stand_in_refuses_odd_json_and_too_many_rows(rest, model):
    deep, deeper = ("[" * n + "]" * n for n in (500, 200_000))
    for body in (
        *("", "{", "[]", "{}", '{"instances": []}', '{"inputs": [1]}'),
        *(json.dumps({"inputs": [x]}) for x in ({"b64": "%"}, {"b64": 1}, {"b65": "YSBi"})),
        '{"signature_name": ["align"], "inputs": ["a"]}',
        '{"signature_name": null, "inputs": ["a"]}',
        '{"signature_name": "\\ud800", "inputs": ["a"]}',
        deeper,
        f'{{"inputs": {deeper}}}',
        f'{{"inputs": {deep}}}',
        json.dumps({"inputs": ["a"] * 33}),
        json.dumps({"instances": ["a"] * 10**5}),
    ):
        status, reply = post(rest, body)
        assert (status, list(reply)) == (400, ["error"])
    assert [signature for signature, _ in model.calls] == ["\ud800"]
    assert post(rest, '{"inputs": ["a"]}')[0] == 200


def raw(url: str, head: str, body: Iterable[bytes] = ()) -> tuple[int, bytes]:
    """Sends a request as it is; returns the status and the reply's body."""
    host = url.removeprefix("http://")
    with contextlib.closing(http.client.HTTPConnection(host)) as connection:
        connection.connect()
        first, *headers = head.split("\r\n")
        lines = [f"{first} HTTP/1.1", *headers, "", ""]
        connection.sock.sendall("\r\n".join(lines).encode())
        for part in body:
            connection.sock.sendall(part)
        reply = http.client.HTTPResponse(connection.sock)
        reply.begin()
        return reply.status, reply.read()


PREDICT = "POST /v1/models/translator:predict"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ([], [], 411),
        (["Transfer-Encoding: chunked"], [b"0\r\n\r\n"], 411),
        (["Content-Length: -1"], [], 400),
        (["Content-Length: 1_0"], [b"0123456789"], 400),
        (["Content-Length: " + "9" * 5000], [], 400),
        ([f"Content-Length: {300 << 20}"], itertools.repeat(bytes(1 << 20), 300), 413),
        (["Content-Length: 9"], [b"{"], 408),
        (["Host: example.org", "Content-Length: 2"], [b"{}"], 421),
    ],
)
def test_stand_in_answers_odd_requests_with_a_status(model, headers, body, status, monkeypatch):
    server = kit("stand_in_server").RestServer(model)
    if status == 408:
        monkeypatch.setattr(server.RequestHandlerClass, "timeout", 0.2)
    host = [] if "Host: example.org" in headers else ["Host: localhost"]
    with serving(server) as url:
        answer = raw(url, "\r\n".join([PREDICT, *host, *headers]), body)
        assert answer[0] == status
        assert list(json.loads(answer[1])) == ["error"]
        assert post(url, '{"inputs": ["a b"]}')[0] == 200
    assert len(model.calls) == 1


def test_stand_in_answers_only_to_names_of_this_machine(rest):
    port = rest.split(":")[-1]
    for host, status in (
        *((host_name, 200) for host_name in ("localhost", "LOCALHOST:1", f"[::1]:{port}")),
        *((host_name, 421) for host_name in ("example.org", "localhost.example.org", "")),
    ):
        for path in ("/", "/v1/models/translator"):
            assert raw(rest, f"GET {path}\r\nHost: {host}")[0] == status


def test_stand_in_refuses_tensors_that_claim_many_rows(grpc_address, model):
    """Over gRPC a tensor of one value and a large shape has few bytes."""
    from tensorflow.core.framework import tensor_pb2
    from tensorflow_serving.apis import predict_pb2

    with kit("grpc_client").GrpcClient(grpc_address, plaintext=True) as client:
        for sizes in ([3 * 10**7], [-1], [10**12, 10**12], [2, 17]):
            tensor = tensor_pb2.TensorProto(
                dtype=tf.string.as_datatype_enum,
                tensor_shape={"dim": [{"size": size} for size in sizes]},
                string_val=[b"a"],
            )
            request = predict_pb2.PredictRequest(
                model_spec={"name": "translator"}, inputs={"text": tensor}
            )
            with pytest.raises(kit("retrying").ServingError, match="INVALID_ARGUMENT Task size"):
                client._send(request)
        assert model.calls == []
        assert client.translate(["a b"]) == ["B A"]


def test_stand_in_serves_a_saved_model(tmp_path):
    pytest.importorskip("tensorflow_text", reason="needs tensorflow-text")
    stand_in = kit("stand_in_server")

    class Upper(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def serve(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"translation": tf.strings.upper(text)}

    module = Upper()
    for version in ("9", "10"):
        tf.saved_model.save(module, tmp_path / version, {"serving_default": module.serve})
    model = stand_in.Model(tmp_path)
    assert model.version == 10
    outputs = model.predict(stand_in.DEFAULT, {"text": tf.constant(["a", "b"])})
    assert outputs["translation"].tolist() == [b"A", b"B"]
    for signature, inputs in (
        ("other", {"text": tf.constant(["a"])}),
        (stand_in.DEFAULT, {"texts": tf.constant(["a"])}),
        (stand_in.DEFAULT, {"text": tf.constant([1.0])}),
    ):
        with pytest.raises(stand_in.Refused) as error:
            model.predict(signature, inputs)
        assert error.value.code == stand_in.INVALID_ARGUMENT
    names = model.metadata()["metadata"]["signature_def"]["signature_def"]
    assert list(names) == ["serving_default"]
    assert names["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"


@pytest.fixture
def said_by(monkeypatch, capsys) -> Any:
    """`said_by(script, *words)` is what a script says of a mistake, after which it ends with 2."""

    def say(script: str, *words: object) -> str:
        monkeypatch.setattr(sys, "argv", [f"{script}.py", *map(str, words)])
        refused(kit(script).main, "2", by=SystemExit)
        return capsys.readouterr().err

    return say


def test_the_stand_in_names_a_port_that_is_taken(said_by, monkeypatch, tmp_path):
    stand_in = kit("stand_in_server")
    monkeypatch.setattr(stand_in, "Model", lambda _: None)
    with socket.create_server((stand_in.LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        said = said_by("stand_in_server", tmp_path, f"--rest_port={port}")
    assert f"error: --rest_port is {port}: " in said


def test_wrong_folders_are_said_in_one_sentence(said_by, tmp_path, monkeypatch):
    (tmp_path / "variables").mkdir()  # as in a numbered folder
    for folder in (tmp_path, tmp_path / "absent"):
        said = f"error: Model: {folder} has no numbered folders, wanted the"
        assert said in said_by("stand_in_server", folder)
    monkeypatch.setattr(sys, "argv", ["export.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=f"export: .*{tmp_path.name}"):
        runpy.run_path(str(KIT / "export.py"))


def health(url: str) -> tuple[int, str]:
    script = subprocess.run(
        ["bash", str(KIT / "health_check.sh"), *url[7:].split(":")], capture_output=True, text=True
    )
    return script.returncode, script.stdout + script.stderr


def test_health_check_reports_the_state_of_the_model(rest, model):
    code, said = health(rest)
    assert (code, said.split(" at ")[0]) == (0, "translator is available")
    model.state = "LOADING"
    assert health(rest)[0] == 1
    code, said = health("http://127.0.0.1:9")
    assert (code, said) == (1, "127.0.0.1:9 does not answer\n")


# load.py.


def test_load_stops_after_the_requests_or_the_time(rest, model):
    load = kit("load")
    client = kit("rest_client").RestClient(rest, attempts=1)
    measured = load.run_load(client.translate, [["a b"]] * 20, 4, seconds=60)
    assert (len(measured.latencies), measured.errors) == (20, [])
    assert len(model.calls) == 20
    assert "20 requests of 1 answered, 0 failed" in measured.report(1)
    model.refusals = [3] * 20
    measured = load.run_load(client.translate, [["a b"]] * 20, 4, seconds=60)
    assert (measured.latencies, len(measured.errors)) == ([], 20)
    assert "not now" in measured.report(1)
    assert not load.run_load(client.translate, [["a"]], 1, seconds=0).latencies


@pytest.mark.parametrize(
    ("flag", "complaint"),
    [
        ("--batch_size=0", "--batch_size: '0', wanted 1 or more"),
        ("--requests=-1", "--requests: '-1', wanted 1 or more"),
        ("--sentences=EMPTY", "EMPTY has no sentences, wanted one or more"),
        ("--sentences=NONE", "No such file or directory: 'NONE'"),
        ("--url=localhost", "url is 'localhost', wanted http:// or https://"),
    ],
)
def test_load_refuses_bad_flags(flag, complaint, said_by, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("EMPTY").write_text("")
    assert complaint in said_by("load", flag)


def test_load_splits_lines_only_at_line_feeds(rest, model, tmp_path, monkeypatch):
    path = tmp_path / "lines"
    flags = [f"--url={rest}", f"--sentences={path}", "--requests=2"]
    monkeypatch.setattr(sys, "argv", ["load.py", "--concurrency=1", *flags])
    for text in ("a\u2028b\nc", "a\u2028b\nc\n"):
        path.write_text(text, "utf-8")
        model.calls.clear()
        assert kit("load").main() == 0
        sent = [texts for _, texts in model.calls]
        assert sent == [["a\u2028b".encode()], [b"c"]]


# The configuration files.


def test_model_config_has_the_model_name_of_the_clients():
    pytest.importorskip("tensorflow_serving", reason="needs its API package")
    from tensorflow_serving.config import model_server_config_pb2

    message = model_server_config_pb2.ModelServerConfig()
    text_format.Parse((KIT / "models.config").read_text("utf-8"), message)
    (config,) = message.model_config_list.config
    assert config.name == "translator"
    assert config.base_path == f"/models/{config.name}"
    assert config.model_platform == "tensorflow"


@pytest.fixture
def services() -> Any:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    return yaml.safe_load((KIT / "docker-compose.yml").read_text("utf-8"))["services"]


def test_compose_file_mounts_existing_files_read_only(services):
    assert list(services) == ["translator", "playground"]
    mounted = {}
    for service in services.values():
        for volume in service["volumes"]:
            source, target, mode = volume.split(":")
            assert mode == "ro"
            assert source == "./models" or (KIT / source).exists()
            mounted[target] = source
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:")
    assert re.fullmatch("[1-9][0-9]*[mg]", services["translator"]["mem_limit"])
    flags = services["translator"]["command"]
    files = [flag.split("=")[1] for flag in flags if "_file=" in flag]
    assert len(files) == 3
    assert set(files) <= set(mounted)


def test_containers_have_no_privileges_and_write_no_files(services):
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert "cap_add" not in service
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["read_only"] is True
    playground = services["playground"]
    assert playground["user"] == "nginx"  # so it listens above 1024
    (port,) = playground["ports"]
    listen = f"listen {port.split(':')[-1]};"
    assert listen in (KIT / "nginx.conf").read_text("utf-8")
    # Where nginx's image writes its process id and what it must buffer.
    assert playground["tmpfs"] == ["/run", "/var/cache/nginx"]


@contextlib.contextmanager
def nginx(
    folder: Path, conf: str, upstream: tuple[str, str], *changes: tuple[str, str]
) -> Iterator[str]:
    """Runs nginx with a file of export/ on a free port, for another server than there."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        pytest.skip("needs nginx")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = (KIT / conf).read_text("utf-8")
    for old, new in (
        ("listen 8080;", f"listen 127.0.0.1:{port};"),
        (upstream[0], upstream[1].removeprefix("http://")),
        ("http {", f"pid {folder}/pid;\nhttp {{"),
        *changes,
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        text = text.replace("http {", f"http {{\n  {kind}_temp_path {folder}/{kind};")
    (folder / "nginx.conf").write_text(text, "utf-8")
    folder.chmod(0o755)
    process = subprocess.Popen(
        [
            *(program, "-p", str(folder), "-c", str(folder / "nginx.conf")),
            *("-e", str(folder / "errors"), "-g", "daemon off;"),
        ],
        stderr=subprocess.PIPE,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url).close()
                break
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        assert process.wait() == 0, process.stderr.read()
        process.stderr.close()


def demo(folder: Path, rest: str, *changes: tuple[str, str]) -> contextlib.AbstractContextManager:
    """Runs nginx with the page, before a server at the address `rest`."""
    return nginx(
        folder,
        "nginx.conf",
        ("translator:8501", rest),
        ("/usr/share/nginx/html", str(KIT.parent / "bahdanau_tf" / "runtime" / "html")),
        ("/usr/share/nginx/kit", str(KIT)),
        ("mime.types", "/etc/nginx/mime.types"),
        *changes,
    )


def test_web_server_forwards_only_what_the_page_needs(rest, model, tmp_path):
    with demo(tmp_path, rest) as url:
        assert post(url, '{"inputs": ["a b"]}')[1]["outputs"] == {
            "translation": ["B A"],
            "score": [-1.25],
            "finished": [True],
            "truncated": [False],
        }
        with urllib.request.urlopen(f"{url}/playground.js") as reply:
            assert "javascript" in reply.headers["Content-Type"]
            script = (KIT / "playground.js").read_bytes()
            assert reply.read() == script
        with urllib.request.urlopen(f"{url}/v1/models/translator/metadata") as reply:
            assert json.load(reply) == model.metadata()
        for path in ("/v1/models/translator", "/v1/models/other/metadata"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(url + path)


def test_web_server_forwards_no_list_within_a_list(rest, model, tmp_path):
    """It would fail in the model server, and with it all of its batch."""
    flat = [
        '{"inputs": ["a"]}',
        '{"inputs": [ "[[", "]", "\\\\", "\\"[", "{}" ]\n}',
        '{"inputs": {"text": ["a", "b"]}, "signature_name": "align"}',
        '{"instances": [{"text": "a"}, {"text": "[\\"["}]}',
        '{"inputs": [{"b64": "YSBi"}], "x": [1]}\n',
        json.dumps({"inputs": ['\\"[' * 6000, "[" * 20_000, "고" * 2000]}),
        json.dumps({"inputs": ["고" * 15000]}, ensure_ascii=False),
    ]
    nested = [
        '{"inputs": [["a"]]}',
        '{"instances": ["a", [\n"b"]]}',
        '{"inputs": {"text": [["a"]]}}',
        '{"instances": [{"text": ["a"]}]}',
        '{"inputs": ["\\\\", ["\\""]]}',
        '{"inputs": ["\\\\"[["]}',
        "[" * 60_000,
        "[]" * 30_000 + "[[",
    ]
    # The limits are another test's.
    with demo(tmp_path, rest, ("burst=20", "burst=1000")) as url:
        for body in flat:
            assert post(url, body)[0] == 200
        assert len(model.calls) == len(flat)
        for body in nested:
            assert post(url, body)[0] == 400
        assert len(model.calls) == len(flat)
        status, reply = post(url, json.dumps({"inputs": ["a" * 2**16]}))
        assert (status, list(reply)) == (413, ["error"])


def test_web_server_forwards_no_deep_json_to_triton(tmp_path):
    """JSON of 150,000 levels ends Triton, packed or not."""
    bodies = []

    class Triton(Quiet):
        def do_POST(self) -> None:
            assert not {"content-encoding", "inference-header-content-length"} & {*self.headers}
            bodies.append(self.body())
            self.send_response(200)
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Triton)
    with (
        serving(server) as triton,
        nginx(tmp_path, "nginx_triton.conf", ("127.0.0.1:8000", triton)) as url,
    ):

        def status(body: str, path: str = "v2/models/n_best/infer") -> int:
            headers = {"Content-Encoding": "gzip", "Inference-Header-Content-Length": "9"}
            request = urllib.request.Request(f"{url}/{path}", body.encode(), headers)
            try:
                with urllib.request.urlopen(request) as reply:
                    return reply.status
            except urllib.error.HTTPError as error:
                return error.code

        rows = json.dumps({"inputs": [{"data": [["[{" * 500 + '\\"[고']] * 32, "shape": [32, 1]}]})
        for body in ("[" * 100, rows):
            assert status(body) == 200
            assert bodies.pop() == body.encode()
        for body in ("[" * 101, "[" * 60_000, '{"":' * 12_000, '"' + "[" * 101):
            assert status(body) == 200
            assert bodies.pop() == b'{"inputs": []}'
        assert status("[" * 2**17) == 413
        assert status("{}", "v2/repository/index") == 404
        assert not bodies


def test_web_server_limits_requests_of_one_address(rest, model, tmp_path):
    body = '{"inputs": ["a"]}'
    with demo(tmp_path, rest) as url, ThreadPoolExecutor(8) as pool:
        model.may_answer.clear()
        running = [pool.submit(post, url, body) for _ in range(8)]
        while len(model.calls) < 8:
            time.sleep(0.01)
        status, reply = post(url, body)
        model.may_answer.set()
        assert (status, list(reply)) == (429, ["error"])
        assert [request.result()[0] for request in running] == [200] * 8
        # Faster than ten in a second.
        assert any(post(url, body)[0] == 429 for _ in range(2000))


def test_web_server_says_little_and_protects_its_errors(rest, tmp_path):
    with demo(tmp_path, rest) as url:
        for path in ("/", "/playground.js", "/nothing", "/v1/models/translator:predict"):
            try:
                headers = urllib.request.urlopen(url + path).headers
            except urllib.error.HTTPError as error:
                headers = error.headers
            assert headers["Server"] == "nginx"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert "default-src 'none'" in headers["Content-Security-Policy"]


# The web page.


def show(page: Page, url: str, text: str) -> None:
    """Opens the page at an address and waits for the translation of a text."""
    page.problems.clear()
    page.open(f"{url}#{urllib.request.quote(text)}")
    page.wait_for("!document.querySelector('#result').hidden")


def submit(page: Page, text: str) -> None:
    page.evaluate(f"document.querySelector('#text').value = {json.dumps(text)}")
    page.evaluate("document.querySelector('form').requestSubmit()")


@pytest.fixture
def shown(page, rest) -> Iterator[Any]:
    """`shown(text)` is the page with the translation of a text."""
    page.requests.clear()

    def with_text(text: str) -> Page:
        show(page, f"{rest}/index.html", text)
        return page

    yield with_text
    assert page.problems == []
    outside = [url for url in page.requests if not url.startswith(rest)]
    assert [url for url in outside if url[:5] not in ("data:", "about")] == []


def text_of(page: Page, selector: str) -> str:
    return page.evaluate(f"document.querySelector('{selector}').textContent")


def texts_of(page: Page, selector: str) -> list[str]:
    return page.evaluate(
        f"[...document.querySelectorAll('{selector}')].map((one) => one.textContent)"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the cat sleeps", ["the", "cat", "sleeps"]),
        ("고양이가 잔다 .", ["고양이가", "잔다", "."]),
        ("猫と犬", ["猫", "と", "犬"]),
        ("החתול ישן עכשיו", ["החתול", "ישן", "עכשיו"]),
        ("😀 a\u0301x 𝒳y", ["😀", "a\u0301x", "𝒳y"]),
        ("<b>x</b> &amp;", ["<b>x</b>", "&amp;"]),
    ],
)
def test_page_marks_aligned_words_of_any_script(shown, text, words):
    page = shown(text)
    assert texts_of(page, ".source .word") == [*words, "[END]"]
    turned = [word.upper() for word in reversed(words)]
    assert texts_of(page, ".translation .word") == [*turned, "[END]"]
    assert text_of(page, ".source").startswith(text)
    assert text_of(page, ".translation").startswith(" ".join(turned)[:3])
    page.point_at(".translation .word", 0)
    assert texts_of(page, ".chosen") == [turned[0]]
    assert texts_of(page, ".source .aligned") == words[-2:]
    assert texts_of(page, ".strongest") == [words[-1]]
    assert "75%" in text_of(page, "#detail")
    page.point_at(".source .word", 0)
    assert texts_of(page, ".chosen") == [words[0]]
    assert texts_of(page, ".translation .strongest") == [turned[-1]]


@pytest.mark.slow
def test_page_converts_byte_offsets_to_utf16(shown):
    page = shown("a")
    for text in ("", "aé漢😀z", "\U0001f468\u200d\U0001f469 e\u0301"):
        offsets = page.evaluate(
            f"import('/view.js').then((page) => page.positions({json.dumps(text)}))"
        )
        wanted = [
            # UTF-16 units before each byte's character
            len(text[:i].encode("utf-16-le")) // 2
            for i, character in enumerate(text)
            for _ in character.encode()
        ]
        assert offsets == [*wanted, len(text.encode("utf-16-le")) // 2]


@pytest.mark.slow
def test_page_joins_tokens_that_share_characters(shown):
    page = shown("a")
    parts_and_shares = page.evaluate(
        "import('/view.js').then((page) => {"
        "const offsets = [[0, 3], [0, 3], [4, 5], [5, 5]];"
        "const parts = page.partsOf('ﬁ x', offsets, 4, true);"
        "const weights = [[.1, .2, .3, .4], [.4, .3, .2, .1]];"
        "const targets = [{tokens: [0, 1]}];"
        "return [parts, page.sharesOf(weights, targets, parts)]; })"
    )
    assert parts_and_shares[0] == [
        {"start": 0, "end": 1, "tokens": [0, 1]},
        {"start": 2, "end": 3, "tokens": [2]},
        {"start": 3, "end": 3, "tokens": [3]},
    ]
    assert parts_and_shares[1] == [pytest.approx([0.5, 0.25, 0.25])]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["5 €", "고양이가 잔다 .", "החתול ישן", " a\u0301 😀", "€"])
def test_page_joins_tokens_without_characters_to_the_next(shown, text):
    """A piece may be only a space, or one byte of a character."""
    from test_c_runtime import KOREAN, subwords

    pytest.importorskip("tensorflow_text", reason="needs tensorflow-text")
    tokenizer = subwords(KOREAN)
    strings = tf.constant([text])
    _, starts, ends = tokenizer.tokenize_with_offsets(strings)
    written = tokenizer.detokenize_with_offsets(tokenizer.tokenize(strings))
    page = shown("a")
    for line, spans in (
        (text, zip(starts[0].numpy(), ends[0].numpy(), strict=True)),
        (
            written[0].numpy()[0].decode(),
            zip(written[1][0].numpy(), written[2][0].numpy(), strict=True),
        ),
    ):
        offsets = [list(map(int, pair)) for pair in spans]
        count = len(offsets)
        offsets.append([len(line.encode())] * 2)
        parts = page.evaluate(
            "import('/view.js').then((page) => page.partsOf("
            f"{json.dumps(line)}, {json.dumps(offsets)}, {count + 1}, true))"
        )
        assert parts.pop()["tokens"] == [count]
        assert sorted(t for part in parts for t in part["tokens"]) == [*range(count)]
        units = line.encode("utf-16-le")
        words = [units[2 * part["start"] : 2 * part["end"]].decode("utf-16-le") for part in parts]
        assert all(words)
        assert "".join("".join(words).split()) == "".join(line.split())


@pytest.mark.slow
def test_page_shows_right_to_left_text_from_right_to_left(shown, model, monkeypatch):
    """Also if the first token of a subword model is only a space."""
    row = model.row

    def with_blank(text: str) -> dict[str, Any]:
        outputs = row(text)
        weights = np.roll(outputs["weights"], (1, 1), (0, 1))
        weights[0, 0] = 1.0
        outputs["weights"] = weights
        for side in ("source", "target"):
            tokens, spans = outputs[f"{side}_tokens"], outputs[f"{side}_offsets"]
            outputs[f"{side}_tokens"] = np.array([b"", *tokens[:-1]], object)
            outputs[f"{side}_offsets"] = np.array([[0, 0], *spans[:-1]], np.int32)
            outputs[f"{side}_length"] += np.int32(1)
        return outputs

    monkeypatch.setattr(model, "row", with_blank)
    words = ["החתול", "ישן", "עכשיו"]
    page = shown(" ".join(words))
    assert texts_of(page, ".source .word") == [*words, "[END]"]
    for place in (".source", ".translation"):
        boxes = page.evaluate(
            f"[...document.querySelectorAll('{place} .word')]"
            ".map((word) => word.getBoundingClientRect().x)"
        )
        assert boxes == sorted(boxes, reverse=True)
        style = f"getComputedStyle(document.querySelector('{place}'))"
        assert page.evaluate(f"{style}.direction") == "rtl"


@pytest.mark.slow
def test_page_shows_no_end_symbol_of_an_unfinished_translation(shown, model, monkeypatch):
    row = model.row

    def unfinished(text: str) -> dict[str, Any]:
        outputs = row(text)
        outputs["target_length"] = outputs["target_length"] - np.int32(1)
        return outputs | {"finished": np.bool_(False)}

    monkeypatch.setattr(model, "row", unfinished)
    page = shown("one two")
    assert texts_of(page, ".translation .word") == ["TWO", "ONE"]
    assert texts_of(page, ".source .word") == ["one", "two", "[END]"]


@pytest.mark.slow
def test_page_can_be_used_with_the_keyboard(shown, model):
    page = shown("one two")
    page.evaluate("document.querySelector('#text').focus()")
    page.evaluate("document.querySelector('#text').value = 'red blue'")
    page.press("Enter", 13, modifiers=2)
    page.wait_for("document.querySelector('.source').textContent[0] == 'r'")
    for _ in range(4):  # three buttons, then the words of the sentence
        page.press("Tab", 9)
    page.press("ArrowRight", 39)
    assert texts_of(page, ".chosen") == ["RED"]
    assert texts_of(page, ".source .aligned") == ["red"]
    page.wait_for("location.hash == '#red%20blue'")


@pytest.mark.slow
def test_page_shows_the_chosen_one_of_the_n_best(shown):
    page = shown("one two")
    page.evaluate("document.querySelector('#open').click()")
    assert texts_of(page, ".best bdi") == ["TWO ONE", "TWO ONE!"]
    assert texts_of(page, ".best .score") == ["-1.25", "unfinished, -0.50"]
    page.evaluate("document.querySelectorAll('.best input')[1].click()")
    assert text_of(page, ".translation") == "TWO ONE!"
    assert "best translation only" in "".join(texts_of(page, ".note"))
    page.evaluate("document.querySelectorAll('.best input')[0].click()")
    assert texts_of(page, ".translation .word") == ["TWO", "ONE", "[END]"]
    assert "".join(texts_of(page, ".note")) == ""


@pytest.mark.slow
def test_page_says_that_alignment_or_text_is_missing(shown, model):
    model.names = ("serving_default", "greedy", "n_best", "score")
    page = shown("word " * 30)
    assert {signature for signature, _ in model.calls} == {"n_best"}
    assert texts_of(page, ".word") == []
    assert "no alignment" in "".join(texts_of(page, ".note"))
    assert "part of it is missing" in "".join(texts_of(page, ".note"))


@pytest.mark.slow
def test_page_behind_the_web_server_translates_a_text_sentence_by_sentence(
    page, rest, model, tmp_path
):
    """With nginx' headers; also more than it lets through at once, and what is too long for it."""
    sentences = [f"Word {n}." for n in range(12)]
    with demo(tmp_path, rest) as url:
        show(page, f"{url}/", "a b")
        page.point_at(".translation .word", 0)
        assert texts_of(page, ".source .aligned") == ["a", "b"]
        assert page.problems == []
        model.calls.clear()
        submit(page, f"{' '.join(sentences)}\nFour\n{chr(1) * 20_000}")
        page.wait_for("document.querySelectorAll('.sentence').length == 14")
    calls = [row for signature, (row,) in model.calls if signature == "align"]
    assert calls == [x.encode() for x in (*sentences, "Four", "\1" * 10_000)]
    assert "part of it is missing" in "".join(texts_of(page, ".note"))
    assert text_of(page, ".source").startswith("Word 0.")


@pytest.mark.slow
def test_page_shows_errors_of_the_server(page, rest, model):
    model.refusals = [3, 3]
    page.open(f"{rest}/index.html#a")
    page.wait_for("!document.querySelector('#error').hidden")
    assert text_of(page, "#error") == "not now"
    page.evaluate("document.querySelector('form').requestSubmit()")
    page.wait_for("!document.querySelector('#result').hidden")
    assert page.evaluate("document.querySelector('#error').hidden")


@pytest.mark.slow
def test_page_shows_the_last_text_requested(shown, model):
    page = shown("first")
    model.may_answer.clear()
    for text in ("second", "third"):
        submit(page, text)
    model.may_answer.set()
    page.wait_for("document.querySelector('.source').textContent.startsWith('third')")


# An export with the stand-in server, clients and page.


@pytest.mark.slow
def test_an_export_is_served_by_rest_grpc_and_page(tmp_path, page):
    pytest.importorskip("tensorflow_serving", reason="needs tensorflow-serving-api")
    from test_c_runtime import with_words

    translator = with_words()
    translator.export(tmp_path, max_source_length=32)
    texts = ["the cat sleeps.", "", "nothing known, 猫 \0 😀", "the dog " * 9]
    wanted = [translation.text for translation in translator.translate(texts)]
    stand_in = kit("stand_in_server")
    model = stand_in.Model(tmp_path)
    server, port = stand_in.grpc_server(model)
    try:
        with kit("grpc_client").GrpcClient(f"127.0.0.1:{port}", plaintext=True) as client:
            assert client.translate(texts) == wanted
    finally:
        server.stop(None).wait()
    with serving(stand_in.RestServer(model)) as url:
        assert kit("rest_client").RestClient(url).translate(texts) == wanted
        show(page, f"{url}/", "The cat sees 😀 猫.")
        words = texts_of(page, ".source .word")
        assert words == ["The", "cat", "sees", "😀", "猫.", "[END]"]
        # Seven weights that sum to 1: at least one is marked.
        page.point_at(".translation .word", 0)
        assert len(texts_of(page, ".source .strongest")) == 1
        assert "was aligned to" in text_of(page, "#detail")
        assert "%" in text_of(page, "#detail")
        assert page.problems == []
