"""Over which devices and machines a training is spread."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from bahdanau_tf.system.terminal import StatusLine

VARIABLE = "TF_CONFIG"
JOBS = ("chief", "worker")


def strategy_of_environment() -> tf.distribute.Strategy:
    """The strategy for what is there; call it before any op of TensorFlow.

    With a cluster of several workers in the environment variable TF_CONFIG it
    is `MultiWorkerMirroredStrategy`, and this waits until all workers are
    there; with several GPUs `MirroredStrategy`; else that of one device.

    Raises:
        ValueError: TF_CONFIG is wrong.
    """
    addresses, number = _cluster(os.environ.get(VARIABLE, ""))
    if len(addresses) > 1:
        StatusLine().note(
            f"worker {number} of {len(addresses)} ({addresses[number]}"
            f"{', the chief' if number == 0 else ''}), waiting for "
            f"{', '.join(addresses[:number] + addresses[number + 1 :])}; "
            "Ctrl-C ends it"
        )
        with _interrupts_at_once():
            return tf.distribute.MultiWorkerMirroredStrategy()
    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def several_workers() -> bool:
    """Whether TF_CONFIG names several workers.

    Raises:
        ValueError: TF_CONFIG is wrong.
    """
    return len(_cluster(os.environ.get(VARIABLE, ""))[0]) > 1


@contextmanager
def _interrupts_at_once() -> Iterator[None]:
    """Lets SIGINT end the process while TensorFlow waits for other workers.

    Python's own handlers do not run then. TensorFlow replaces that of SIGTERM,
    which it would ignore from then on, so it is set again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)
    }
    if before[signal.SIGINT] is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _cluster(text: str) -> tuple[list[str], int]:
    """The addresses of the workers, the chief first, and which is this one."""
    if not text.strip():
        return [], 0
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _wrong(f"it is not JSON: {error}", '{"cluster": ...}') from None
    cluster = _part(found, "cluster")
    for job, addresses in cluster.items():
        if job not in JOBS:
            raise _wrong(f"the cluster has the job {job!r}", f"only {JOBS}")
        if not isinstance(addresses, list) or not addresses:
            raise _wrong(
                f"cluster.{job} is {addresses!r}", "a list of host:port"
            )
        for one in addresses:
            if not re.fullmatch(r".+:[0-9]+", str(one)):
                raise _wrong(f"an address is {one!r}", "host:port")
    listed = [str(one) for job in cluster.values() for one in job]
    if twice := [one for one in listed if listed.count(one) > 1]:
        raise _wrong(f"{twice[0]} is there twice", "different addresses")
    members = [
        (job, i) for job in JOBS for i in range(len(cluster.get(job, [])))
    ]
    if len(members) < 2:
        return [], 0
    task = _part(found, "task")
    place = task.get("type"), task.get("index")
    if place not in members:
        raise _wrong(
            f"the task is {place[0]!r} {place[1]!r}",
            f"one of the cluster, {members[0]} to {members[-1]}",
        )
    return [str(cluster[job][i]) for job, i in members], members.index(place)


def _part(found: object, name: str) -> dict[str, Any]:
    """A JSON object in another."""
    part = found.get(name) if isinstance(found, dict) else None
    if not isinstance(part, dict):
        raise _wrong(f"{name} is {part!r}", "a JSON object")
    return part


def _wrong(what: str, wanted: str) -> ValueError:
    return ValueError(f"{VARIABLE}: {what}, wanted {wanted}")
