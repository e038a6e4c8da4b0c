"""Marian: its own training program and its Python translator.

Type `s2s`: a bidirectional GRU encoder, a conditional GRU of two steps per word, an attention of
twice the units, and a tanh readout; Marian has no option for another readout.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from job import SIDES, Sentences, main, peak_gib, read_vocabulary, read_words, seconds
from pymarian import Translator


def vocabularies(job: Any) -> list[str]:
    """Writes Marian's vocabulary files: one word per line, `</s>` first."""
    paths = [str(Path(job.model, f"{side}.vocab.txt")) for side in SIDES]
    for side, path in zip(SIDES, paths, strict=True):
        words = ["</s>", "<unk>", *read_vocabulary(job.data, side)]
        text = "".join(f"{word}\n" for word in words)
        Path(path).write_text(text, encoding="utf-8")
    return paths


def options(job: Any) -> dict[str, Any]:
    """Marian's options; a value is a list or a single word."""
    return {
        "type": "s2s",
        "dim-emb": job.embedding_dim,
        "dim-rnn": job.units,
        "dropout-rnn": job.dropout,
        "train-sets": [Path(job.data, f"{side}.txt") for side in SIDES],
        "vocabs": vocabularies(job),
        "model": Path(job.model, "model.npz"),
        "max-length": 200,
        "mini-batch": job.batch,
        "mini-batch-round-up": "false",
        "maxi-batch": 1,
        "maxi-batch-sort": "none",
        "shuffle": "none",
        "cost-type": "ce-mean-words",
        "optimizer": "adam",
        "learn-rate": job.learning_rate,
        "clip-norm": 1,
        "after": f"{job.updates}u",
        "disp-freq": "1u",
        "cpu-threads": job.threads,
        "data-threads": 1,
        "workspace": 2000,
        "no-reload": "true",
        "seed": 1,
    }


def train(job: Any) -> Iterator[float]:
    """Trains in a process of Marian, which prints a line for each update."""
    arguments = []
    for name, value in options(job).items():
        values = value if isinstance(value, list) else [value]
        arguments += [f"--{name}", *map(str, values)]
    process = subprocess.Popen(
        [sys.executable, "-m", "pymarian", "train", *arguments], stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        sys.stderr.write(line)
        if " Up. " in line:
            job.peak_gib = peak_gib(process.pid)
            own = processor_seconds(process.pid)
            yield own if job.threads == 1 else seconds(job)
    if process.wait():
        raise RuntimeError(f"marian ended with {process.returncode}")


def processor_seconds(process: int) -> float:
    """Processor time of a running process, in the kernel's ticks of 10 ms."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(job: Any) -> Callable[[Sentences], Sentences]:
    """Beam search of a saved model.

    Marian has no minimum length. If `job.steps` is given, the model is untrained and its outputs
    reach the maximum length: a multiple of the source's length, chosen such that the mean is
    `job.steps`.
    """
    factor = 3.0
    if job.steps:
        lengths = [len(words) + 1 for words in read_words(job.sentences)]
        factor = job.steps * len(lengths) / sum(lengths)
    translator = Translator(
        models=[Path(job.model, "model.npz")],
        vocabs=[Path(job.model, f"{side}.vocab.txt") for side in SIDES],
        beam_size=job.beam,
        mini_batch=job.batch,
        maxi_batch=1,
        normalize=1,
        max_length_factor=factor,
        cpu_threads=1,
        workspace=200,
        quiet="",
        quiet_translation="",
    )

    def translate(sentences: Sentences) -> Sentences:
        text = "\n".join(" ".join(words) for words in sentences)
        return [line.split() for line in translator.translate(text).split("\n")]

    return translate


if __name__ == "__main__":
    main(train, load)
