"""Over which devices and machines a training is spread."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping

import tensorflow as tf

from bahdanau_tf.progress import StatusLine

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
            f"{', the chief' if number == 0 else ''}), waiting for the others"
        )
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        if threading.current_thread() is threading.main_thread():
            # TensorFlow has replaced the handler, so SIGTERM would be ignored.
            before = signal.getsignal(signal.SIGTERM)
            signal.signal(signal.SIGTERM, before)
        return strategy
    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def _cluster(text: str) -> tuple[list[str], int]:
    """The addresses of the workers, the chief first, and which is this one."""
    if not text.strip():
        return [], 0
    found = _object("", _parsed(text), ("cluster",))
    cluster = _object("cluster", found["cluster"])
    if other := sorted(set(cluster) - set(JOBS)):
        raise _wrong(f"cluster has the job {other[0]!r}", f"one of {[*JOBS]}")
    addresses: list[str] = []
    for job in JOBS:
        members = cluster.get(job, [])
        if not isinstance(members, list) or not all(
            isinstance(one, str) for one in members
        ):
            raise _wrong(
                f"cluster.{job} is {members!r}", 'a list like ["10.0.0.1:2222"]'
            )
        addresses += members
    if len(addresses) < 2:
        return addresses, 0
    task = _object("task", found.get("task"), ("type", "index"))
    job, index = task["type"], task["index"]
    if job not in cluster:
        raise _wrong(f"task.type is {job!r}", f"one of {sorted(cluster)}")
    count = len(cluster[job])
    if type(index) is not int or not 0 <= index < count:
        raise _wrong(f"task.index is {index!r}", f"0 to {count - 1}")
    twice = {one for one in addresses if addresses.count(one) > 1}
    if twice:
        raise _wrong(f"cluster has {min(twice)} twice", "another for each")
    return addresses, addresses.index(cluster[job][index])


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _wrong(f"is no JSON ({error})", 'like {"cluster": ...}') from None


def _object(
    name: str, found: object, keys: tuple[str, ...] = ()
) -> Mapping[str, object]:
    """What was found, if it is a JSON object that has the keys."""
    if not isinstance(found, dict):
        raise _wrong(f"{name} is {found!r}".strip(), "a JSON object")
    for key in keys:
        if key not in found:
            raise _wrong(f"{name} has no {key!r}".strip(), f"one with {key!r}")
    return found


def _wrong(what: str, wanted: str) -> ValueError:
    return ValueError(f"{VARIABLE}: {what}, wanted {wanted}")
