"""Builds the C program, writes requests for it and reads its answers.

The program is linked with the TensorFlow of an interpreter, which may be
different from this one: `make check-serving` uses TensorFlow 2.20.0, the
commit that TensorFlow Serving 2.20.0 is built from.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tensorflow.core.framework import op_def_pb2
from tensorflow.core.protobuf import saved_model_pb2

from bahdanau_tf.serving.requests import Request

HERE = Path(__file__).resolve().parent
SOURCES = [HERE / "runtime.c", HERE / "requests.c"]
# The linker gold is seven times as fast on TensorFlow's symbols.
LINKERS = (["-fuse-ld=gold"], [])
INVALID_ARGUMENT = 3
DTYPES = {1: np.float32, 3: np.int32, 7: object, 10: np.bool_}
# Names the interpreter whose TensorFlow is linked; this one if unset.
PYTHON_VARIABLE = "SERVING_PYTHON"
FIND = """
import importlib.util as find
for name in ("tensorflow", "tensorflow_text"):
    print(find.find_spec(name).submodule_search_locations[0])
"""


@dataclass(frozen=True)
class Answer:
    """The answer to a request.

    Attributes:
        code: The status code, 0 if all is well.
        message: The error message.
        milliseconds: The time of the call.
        rest_kilobytes: Resident memory before the call, KiB.
        peak_kilobytes: Peak resident memory during the call, KiB.
        outputs: An array for each output.
    """

    code: int
    message: str
    milliseconds: float
    rest_kilobytes: int
    peak_kilobytes: int
    outputs: dict[str, np.ndarray]


class Runtime:
    """The C program, built in a folder with an interpreter's TensorFlow."""

    def __init__(self, folder: Path) -> None:
        python = os.environ.get(PYTHON_VARIABLE, sys.executable)
        paths = subprocess.run([python, "-c", FIND], check=True, capture_output=True, text=True)
        tensorflow, text = map(Path, paths.stdout.split())
        self.libraries = sorted(text.glob("python/ops/*.so"))
        self.program = folder / "runtime"
        for linker in LINKERS:
            built = subprocess.run(
                [
                    *("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"),
                    *(f"-I{tensorflow}/include", f"-Wl,-rpath,{tensorflow}"),
                    *(*linker, *map(str, SOURCES), "-o", str(self.program)),
                    *(f"-L{tensorflow}", "-l:libtensorflow_cc.so.2"),
                    "-l:libtensorflow_framework.so.2",
                    *("-lpthread", "-lm", "-ldl"),
                ],
                capture_output=True,
                text=True,
            )
            if built.returncode == 0:
                return
        raise RuntimeError(built.stderr)

    def operations(self) -> set[str]:
        """The names of all ops of this TensorFlow and TensorFlow Text."""
        data = self._output(["--ops", *map(str, self.libraries)])
        return {op.name for op in op_def_pb2.OpList.FromString(data).op}

    def run(
        self, version: Path, requests: Sequence[Request], *options: str
    ) -> tuple[list[Answer], list[dict[str, Any]]]:
        """Runs each request of an exported model.

        Args:
            version: The version's folder.
            requests: The requests. To test bad input, bytes instead of a
                list give a tensor of rank 0, a number n gives n floats.
            *options: Options of the program.

        Returns:
            The answers, and the objects that the program prints last.
        """
        file = self.program.with_name("requests")
        with file.open("wb") as lines:
            lines.writelines(_lines(version, requests))
        output = self._output([*options, str(version), str(file), *map(str, self.libraries)])
        objects = [json.loads(line) for line in output.splitlines()]
        count = len(requests)
        return [_answer(answer) for answer in objects[:count]], objects[count:]

    def _output(self, arguments: list[str]) -> bytes:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
        process = subprocess.run(
            [str(self.program), *arguments], capture_output=True, env=environment
        )
        if process.returncode:
            raise RuntimeError(
                f"the C program ended with {process.returncode}: "
                f"{process.stderr.decode('utf-8', 'replace')[-2000:]}"
            )
        return process.stdout


def _lines(version: Path, requests: Iterable[Request]) -> Iterable[bytes]:
    """The lines of the file of requests; requests.h describes the format."""
    saved = saved_model_pb2.SavedModel.FromString((version / "saved_model.pb").read_bytes())
    signatures = saved.meta_graphs[0].signature_def
    for request in requests:
        signature = signatures[request.signature]
        yield f"request {request.signature}\n".encode()
        for name, value in request.inputs.items():
            place = signature.inputs[name].name.replace(":", " ")
            yield f"feed {place} {_written(value)}\n".encode()
        for name, tensor in sorted(signature.outputs.items()):
            yield f"fetch {name} {tensor.name.replace(':', ' ')}\n".encode()
        yield b"end\n"


def _written(value: Sequence[bytes] | bytes | int) -> str:
    if isinstance(value, int):
        return f"numbers {value}"
    if isinstance(value, bytes):
        return f"scalar {value.hex() or '-'}"
    return " ".join(["vector", *(string.hex() or "-" for string in value)])


def _answer(line: dict[str, Any]) -> Answer:
    outputs = {}
    for name, tensor in line["outputs"].items():
        values, dtype = tensor["values"], DTYPES[tensor["type"]]
        if dtype is object:
            values = [bytes.fromhex(digits) for digits in values]
        outputs[name] = np.array(values, dtype).reshape(tensor["shape"])
    message = bytes.fromhex(line["message"]).decode("utf-8", "replace")
    return Answer(
        line["code"],
        message,
        line["milliseconds"],
        line["rest_kilobytes"],
        line["peak_kilobytes"],
        outputs,
    )
