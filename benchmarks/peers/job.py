"""What the peers' scripts share: read settings, print one line of JSON.

It runs in a peer's environment and needs only Python. A peer's script passes two functions to
`main`:

* `train(job)` yields `seconds(job)`, once after each update, and then saves the model in the folder
  `job.model`; if another process trains, `train` stores the memory of that process in
  `job.peak_gib`;
* `load(job)` returns a function that translates a batch of sentences, each a list of words, by beam
  search.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

Sentences = list[list[str]]
_BEGUN = time.perf_counter()


def main(
    train: Callable[[SimpleNamespace], Iterator[float]],
    load: Callable[[SimpleNamespace], Callable[[Sentences], Sentences]],
) -> None:
    """Does the job described by the first argument, and prints its figures."""
    job = SimpleNamespace(**json.loads(sys.argv[1]))
    figures = _time_training(job, train) if job.job == "training" else _time_decoding(job, load)
    # Not from getrusage: its peak includes memory of the parent process.
    figures["peak_gib"] = max(peak_gib("self"), vars(job).get("peak_gib", 0))
    print(json.dumps(figures), flush=True)


def peak_gib(process: int | str) -> float:
    """The highest resident memory of a process so far."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def seconds(job: SimpleNamespace) -> float:
    """Processor time so far; with several threads those of the clock."""
    if job.threads == 1:
        return time.process_time()
    return time.perf_counter() - _BEGUN


def read_words(path: str | Path) -> Sentences:
    """The words of each line."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")[:-1]
    return [line.split(" ") for line in lines]


def read_vocabulary(data: str | Path, side: str) -> list[str]:
    """The words of one side, without special symbols."""
    return [words[0] for words in read_words(Path(data, f"{side}.words"))]


def batches(job: SimpleNamespace) -> Iterator[tuple[Sentences, Sentences]]:
    """Yields the pairs of each update, again from the top after the last."""
    sides = [read_words(Path(job.data, f"{side}.txt")) for side in SIDES]
    for update in range(job.updates):
        start = update * job.batch % len(sides[0])
        source, target = (side[start : start + job.batch] for side in sides)
        yield source, target


SIDES = ("source", "target")


def progress(job: SimpleNamespace, loss: float) -> None:
    """Prints an update's number and loss, in nats per word."""
    job.done = getattr(job, "done", 0) + 1
    line = f"update {job.done} of {job.updates}: loss {loss:.3f}"
    print(line, file=sys.stderr, flush=True)


def _time_training(
    job: SimpleNamespace, train: Callable[[SimpleNamespace], Iterator[float]]
) -> dict[str, float]:
    """Target words per second with `</s>`, without the first updates."""
    clock = [0.0, *train(job)]
    words = [sum(len(sentence) + 1 for sentence in target) for _, target in batches(job)]
    measured = clock[-1] - clock[job.warm_up]
    return {
        "words_per_second": sum(words[job.warm_up :]) / measured,
        "seconds_per_update": measured / (job.updates - job.warm_up),
        "training_seconds": clock[-1],
    }


def _time_decoding(
    job: SimpleNamespace, load: Callable[[SimpleNamespace], Callable[[Sentences], Sentences]]
) -> dict[str, float]:
    """Sentences per second, sorted by length, after a first batch."""
    translate = load(job)
    startup = time.process_time()
    sentences = sorted(read_words(job.sentences), key=len)
    translate(sentences[: job.batch])
    started, words = time.process_time(), 0
    for start in range(0, len(sentences), job.batch):
        outputs = translate(sentences[start : start + job.batch])
        words += sum(len(output) for output in outputs)
    used = time.process_time() - started
    return {
        "sentences_per_second": len(sentences) / used,
        "words_per_sentence": words / len(sentences),
        "startup_seconds": startup,
    }
