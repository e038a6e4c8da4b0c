"""Requests answered by an export in a new process, without this package."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bahdanau_tf.serving import reload
from bahdanau_tf.serving.requests import Request

Outputs = dict[str, np.ndarray]


class Answers(NamedTuple):
    """What came back.

    Attributes:
        outputs: Of each request.
        signatures: The names of all signatures, sorted.
        load_seconds: The time that loading took.
        timed: For each timed request the seconds of every repetition.
    """

    outputs: list[Outputs]
    signatures: list[str]
    load_seconds: float
    timed: list[list[float]]


def answers(
    version: Path, asked: Sequence[Request], timed: Sequence[Request] = ()
) -> Answers:
    """Answers requests by a copy of an export in a new process.

    It imports only tensorflow and tensorflow_text.

    Args:
        version: The folder that `export` gave.
        asked: The requests.
        timed: Further ones, repeated and timed.

    Raises:
        ValueError: The process failed.
        OSError: The export cannot be copied.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            shutil.copytree(version, folder / "model")
        except shutil.Error as error:
            raise OSError(
                errno.ENOSPC,
                "cannot copy the export; set TMPDIR to a folder with room",
                name,
            ) from error
        script = shutil.copy(Path(reload.__file__), folder)
        plain: reload.Asked = {
            "requests": _plain(asked),
            "timed": _plain(timed),
        }
        (folder / "requests.json").write_text(json.dumps(plain), "utf-8")
        done = subprocess.run(
            [sys.executable, script, name, str(os.getpid())],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if done.returncode:
            raise ValueError(f"{version} cannot be reloaded: {_reason(done)}")
        found: reload.Answers = json.loads(
            (folder / "answers.json").read_text("utf-8")
        )
    return Answers(
        outputs=[_arrays(one) for one in found["outputs"]],
        signatures=found["signatures"],
        load_seconds=found["load_seconds"],
        timed=found["timed"],
    )


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Why a process failed: a signal, or the last line that it wrote."""
    if done.returncode < 0:
        number = -done.returncode
        return f"killed by signal {number} ({signal.strsignal(number)})"
    said = done.stderr.strip().split("\n")[-1]
    return said or f"exit status {done.returncode}"


def _plain(requests: Sequence[Request]) -> list[reload.Request]:
    return [
        {
            "signature": one.signature,
            "inputs": {
                name: [row.decode("latin-1") for row in rows]
                for name, rows in one.inputs.items()
            },
        }
        for one in requests
    ]


def _arrays(outputs: dict[str, reload.Array]) -> Outputs:
    """Converts the outputs to arrays, with strings as bytes again."""
    arrays = {}
    for name, output in outputs.items():
        values = [
            value.encode("latin-1") if isinstance(value, str) else value
            for value in output["values"]
        ]
        array = np.array(values, output["dtype"])
        arrays[name] = array.reshape(output["shape"])
    return arrays
