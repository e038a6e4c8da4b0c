"""Several processes that train one model together, on one machine or more."""

from __future__ import annotations

import io
import itertools
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from bahdanau_tf.system.ranges import Refusal
from bahdanau_tf.system.terminal import StatusLine, handling
from bahdanau_tf.training.checkpoints import explain_tensorflow_errors


class Cluster:
    """The processes (workers) over which a strategy spreads a training.

    One of them, the chief, reads the text, evaluates and writes. A worker sends the others what
    only it knows by a message: a float64 vector, the sum of what each has put in. All take part in
    each message, in the same order, and wait for it as long as it takes, so all know the same and
    decide alike. A process alone sends none.

    Attributes:
        size: Number of workers.
        number: The number of this one, from 0, which is the chief.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self.size, self.number = _place(strategy)
        self._time = 0.0
        if self.size > 1:
            self._summed = _sum_over_workers(strategy, self.size)

    @property
    def is_chief(self) -> bool:
        """Whether this worker is the chief."""
        return self.number == 0

    def clock(self) -> float:
        """Seconds; with several workers those of the chief's last message."""
        return time.monotonic() if self.size == 1 else self._time

    def wait(self) -> None:
        """Returns when all workers have called it."""
        self.any()

    def any(self, *wishes: bool) -> list[bool]:
        """For each wish, whether some worker has it."""
        return [bool(count) for count in self._sum(np.array(wishes, float))]

    def from_chief(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Broadcasts the chief's values, float64 [n]; others supply only the shape."""
        own = np.asarray(values, np.float64)
        return self._sum(own if self.is_chief else np.zeros_like(own))

    def text_from_chief(self, text: str) -> str:
        """The chief's text."""
        (chiefs,) = self._arrays_from_chief([np.frombuffer(text.encode(), np.uint8)])
        return chiefs.tobytes().decode()

    def share(self, variables: Sequence[tf.Variable]) -> None:
        """Gives variables the values that they have at the chief."""
        if self.size == 1:
            return
        for variable in variables:
            (value,) = self._arrays_from_chief([variable.numpy()])
            variable.assign(value)

    def shared(self, dataset: tf.data.Dataset) -> Iterator[tuple[object, ...]]:
        """Yields the elements of an endless dataset of numbers.

        Only the chief reads it, so a pair is read once, whatever is drawn at random and however
        many workers there are.
        """
        if self.size == 1:
            yield from dataset
            return
        for element in iter(dataset) if self.is_chief else itertools.repeat(()):
            own = [np.asarray(part) for part in tf.nest.flatten(element)]
            tensors = [*map(tf.constant, self._arrays_from_chief(own))]
            yield tf.nest.pack_sequence_as(dataset.element_spec, tensors)

    def _arrays_from_chief(self, own: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Broadcasts the chief's arrays, whatever the others supply, as a file of 32-bit words."""
        file = io.BytesIO()
        np.savez(file, *own)
        file.write(bytes(-file.tell() % 4))
        words = np.frombuffer(file.getvalue(), np.uint32)
        (size,) = self.from_chief([len(words)])
        words = self.from_chief(np.resize(words, int(size))).astype(np.uint32)
        with np.load(io.BytesIO(words.tobytes())) as arrays:
            return [*arrays.values()]

    def _sum(self, values: np.ndarray) -> np.ndarray:
        """Sends a message, to which the chief adds the time."""
        if self.size == 1:
            return values
        now = time.monotonic() if self.is_chief else 0.0
        with explain_tensorflow_errors():
            sums = np.array(self._summed(np.append(values, now)))
        self._time = float(sums[-1])
        return sums[:-1]


def _place(strategy: tf.distribute.Strategy) -> tuple[int, int]:
    """The number of workers, and that of this one."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 1, 0
    resolver = strategy.cluster_resolver
    jobs = resolver.cluster_spec().as_dict()
    chiefs, workers = (len(jobs.get(job, ())) for job in JOBS)
    if chiefs + workers < 2:
        return 1, 0
    return chiefs + workers, resolver.task_id + chiefs * (resolver.task_type == "worker")


def _sum_over_workers(
    strategy: tf.distribute.Strategy, size: int
) -> tf.types.experimental.PolymorphicFunction:
    """A function float64 [n] -> [n] that sums over the workers."""
    replicas = strategy.num_replicas_in_sync // size  # of each worker

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float64)], autograph=False)
    def summed(values: tf.Tensor) -> tf.Tensor:
        def of_replica() -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            is_first = context.replica_id_in_sync_group % replicas == 0
            part = tf.where(is_first, values, 0.0)
            return context.all_reduce(tf.distribute.ReduceOp.SUM, part)

        return strategy.experimental_local_results(strategy.run(of_replica))[0]

    return summed


def strategy_of(model: keras.Model) -> tf.distribute.Strategy:
    """The strategy in whose scope a model was made; raises ValueError if called in a scope."""
    if tf.distribute.has_strategy():
        raise Refusal(
            "train",
            "called in a strategy.scope(), wanted the model made in the scope and train called "
            "outside it, like fit",
        )
    return model.distribute_strategy


STEP = 2654435761  # between the seeds of two replicas; prime


def vary_noise(model: keras.Model) -> None:
    """Gives each replica dropout of its own, drawn from the common seeds.

    Replica 0, whose seeds are in the checkpoints, keeps them.
    """
    strategy = model.distribute_strategy
    if strategy.num_replicas_in_sync == 1:
        return
    others = model.non_trainable_variables
    seeds = [x.value for x in others if x.aggregation == "none"]  # each replica has its own
    common = [tf.identity(seed) for seed in seeds]

    def set_own() -> None:
        replica = tf.distribute.get_replica_context()
        number = tf.cast(replica.replica_id_in_sync_group, tf.int64)
        for seed, value in zip(seeds, common, strict=True):
            seed.assign(value + tf.stack([STEP * number, 0]))

    tf.function(lambda: strategy.run(set_own), autograph=False)()


VARIABLE = "TF_CONFIG"
JOBS = ("chief", "worker")


def strategy_of_environment() -> tf.distribute.Strategy:
    """The strategy for the devices; call it before any op of TensorFlow.

    With a cluster of several workers in the environment variable TF_CONFIG it is
    `MultiWorkerMirroredStrategy`, and this waits until all workers are there; with several GPUs
    `MirroredStrategy`; else that of one device. A wrong TF_CONFIG raises ValueError.
    """
    addresses, number = _cluster()
    if len(addresses) > 1:
        StatusLine().note(
            f"worker {number} of {len(addresses)} "
            f"({addresses[number]}{', the chief' if number == 0 else ''}), waiting for "
            f"{', '.join(addresses[:number] + addresses[number + 1 :])}; press Ctrl-C to stop"
        )
        # Python's own handlers do not run while TensorFlow waits. It replaces that of SIGTERM,
        # which it would ignore from then on, so it is set again.
        term = signal.getsignal(signal.SIGTERM)
        with handling({signal.SIGINT: signal.SIG_DFL, signal.SIGTERM: term}):
            return tf.distribute.MultiWorkerMirroredStrategy()
    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def is_chief() -> bool:
    """Whether this process is the chief of TF_CONFIG, or alone."""
    return _cluster()[1] == 0


def _cluster() -> tuple[list[str], int]:
    """The addresses of the workers in TF_CONFIG, the chief first, and which is this one.

    TensorFlow reads them, and would wait without end for a worker that is not there.
    """
    if not os.environ.get(VARIABLE, "").strip():
        return [], 0
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    try:
        jobs = resolver.cluster_spec().as_dict()
        place = resolver.task_type, resolver.task_id
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{VARIABLE}: {error}") from None
    members = {(job, i): text for job in JOBS for i, text in enumerate(jobs.get(job, ()))}
    addresses = [*map(str, members.values())]
    if others := jobs.keys() - {*JOBS}:
        raise _wrong(f"the cluster has the job {min(others)!r}", f"only {JOBS}")
    if len(members) < 2:
        return [], 0
    for address in addresses:
        if not re.fullmatch(r".+:[0-9]+", address) or addresses.count(address) > 1:
            raise _wrong(f"an address is {address!r}", "host:port, another for each worker")
    if place not in members:
        raise _wrong(f"the task is {place[0]!r} {place[1]!r}", f"one of {[*members]}")
    return addresses, [*members].index(place)


def _wrong(what: str, wanted: str) -> ValueError:
    return ValueError(f"{VARIABLE}: {what}, wanted {wanted}")
