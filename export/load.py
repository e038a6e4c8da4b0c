"""Sends a bounded number of requests and prints throughput and latencies.

    python export/load.py --requests 500 --concurrency 8

Each thread sends its next request as soon as it has the reply to the last one; a failed request is
not sent again. The script ends after --requests requests or --seconds seconds, whichever comes
first.
"""

from __future__ import annotations

import argparse
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rest_client import RestClient
from retrying import ServingError

SENTENCES = ["A man sleeps.", "Two dogs run through the high grass."]


@dataclass
class Load:
    """What was measured: seconds per reply, error messages, total seconds."""

    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def report(self, batch_size: int) -> str:
        """Returns the figures, one per line, and the first error message."""
        done = len(self.latencies)
        lines = [
            f"{done} requests of {batch_size} answered, "
            f"{len(self.errors)} failed, in {self.seconds:.1f} s",
            f"throughput {done * batch_size / self.seconds:.1f} sentences/s",
        ]
        lines += [
            f"p{percent} {percentile(self.latencies, percent) * 1000:.1f} ms"
            for percent in (50, 95, 99)
            if done
        ]
        return "\n".join(lines + self.errors[:1])


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` % of `values` do not exceed."""
    place = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(place, 1) - 1]


def run_load(
    send: Callable[[list[str]], object],
    batches: Sequence[list[str]],
    concurrency: int,
    seconds: float,
) -> Load:
    """Sends batches of sentences from so many threads, none after so many seconds."""
    load, lock = Load(), threading.Lock()
    remaining = iter(batches)
    start = time.perf_counter()

    def work() -> None:
        while time.perf_counter() - start < seconds:
            with lock:
                batch = next(remaining, None)
            if batch is None:
                return
            sent = time.perf_counter()
            try:
                send(batch)
                load.latencies.append(time.perf_counter() - sent)
            except ServingError as error:
                load.errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.seconds = time.perf_counter() - start
    return load


def read_sentences(path: Path) -> list[str]:
    """The lines of a file, the last one with or without a line break.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is empty or not UTF-8.
    """
    text = path.read_text("utf-8").removesuffix("\n")
    if not text:
        raise ValueError(f"{path} has no sentences, wanted one or more")
    return text.split("\n")


def at_least_one(text: str) -> int:
    """Reads the value of a flag: an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}, wanted 1 or more")
    return number


def main() -> int:
    """Reads the flags, sends, prints; returns 1 if a request failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="http://localhost:8501")
    parser.add_argument("--model", default="translator")
    parser.add_argument("--grpc", help="host:port: gRPC, unencrypted, not REST")
    parser.add_argument("--requests", type=at_least_one, default=200)
    parser.add_argument("--concurrency", type=at_least_one, default=4)
    parser.add_argument("--batch_size", type=at_least_one, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--sentences", type=Path, help="a file, one per line")
    options = parser.parse_args()
    try:
        lines = options.sentences and read_sentences(options.sentences)
    except (OSError, ValueError) as error:
        parser.error(f"argument --sentences: {error}")
    lines, size = lines or SENTENCES, options.batch_size
    batches = [
        [lines[(start + i) % len(lines)] for i in range(size)]
        for start in range(0, options.requests * size, size)
    ]
    settings = {"attempts": 1, "batch_size": size}
    try:
        if options.grpc:
            from grpc_client import GrpcClient  # It imports TensorFlow.

            client = GrpcClient(options.grpc, options.model, plaintext=True, **settings)
        else:
            client = RestClient(options.url, options.model, **settings)
    except (ValueError, ImportError) as error:
        parser.error(str(error))
    load = run_load(client.translate, batches, options.concurrency, options.seconds)
    print(load.report(size))
    return 1 if load.errors or not load.latencies else 0


if __name__ == "__main__":
    sys.exit(main())
