"""Measures other toolkits on the same task: JoeyNMT, Marian, OpenNMT-py and CTranslate2.

`measure` runs one of them (a peer) as a child process, on one thread, in a virtual environment that
is created when first needed. All peers get the same text, already split into words, and the same
batches in the same order:

    write_data(folder, pairs, [source_words, target_words])
    measure("joeynmt", "training", peer_dir, data=folder, model=model_folder)
"""

from __future__ import annotations

import collections
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Peer(NamedTuple):
    """Packages to install for a peer; those in `alone` with --no-deps."""

    packages: tuple[str, ...]
    alone: tuple[str, ...] = ()


# OpenNMT-py requires a torch that is no longer available for most machines.
PEERS = {
    "ctranslate2": Peer(("ctranslate2==4.8.5", "numpy")),
    "joeynmt": Peer(("joeynmt==2.3.0", "torch==2.13.0", "importlib_metadata")),
    "marian": Peer(("pymarian==1.12.42",)),
    "opennmt": Peer(
        (
            *("configargparse", "ctranslate2>=4,<5", "fasttext-wheel", "flask"),
            *("pyahocorasick", "pyonmttok>=1.37,<2", "pyyaml", "rapidfuzz", "sacrebleu"),
            *("six", "spacy", "tensorboard", "torch==2.13.0", "waitress"),
        ),
        alone=("OpenNMT-py==3.5.1",),
    ),
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "training": {
        "embedding_dim": 256,
        "units": 256,
        "batch": 80,
        "updates": 30,
        "warm_up": 5,
        "learning_rate": 0.001,
        "dropout": 0.0,
        "threads": 1,
    },
    "decoding": {"beam": 12, "batch": 32, "steps": None},
}
Pair = tuple[Sequence[str], Sequence[str]]
POOL = 20  # batches sorted by length together
PEER_DIR = Path(__file__).resolve().parents[2] / ".venv-peers"


def measure(peer: str, job: str, peer_dir: str | Path, **settings: Any) -> dict[str, float]:
    """Measures the training or the decoding of one peer.

    Args:
        peer: Its name, a key of `PEERS`.
        job: `training`, which also saves the model, or `decoding`.
        peer_dir: Folder of the peers' environments, created if missing.
        **settings: Values that replace or complete `DEFAULTS[job]`. Both jobs need `model`, a
            folder; training needs `data`, a folder from `write_data`; decoding needs `sentences`, a
            file of words. `steps` is the number of words of each output, or None if outputs end
            where the model ends them.

    Returns:
        For training `words_per_second` (target words with `</s>`) and `seconds_per_update`; for
        decoding `sentences_per_second`, `words_per_sentence` and `startup_seconds`; for both
        `peak_gib`. Seconds are processor time, or those of the clock if training has several
        `threads`.

    Raises:
        ValueError: The peer or the job is unknown.
        RuntimeError: The peer failed; the message has the end of its log.
    """
    check_peers([peer])
    if job not in DEFAULTS:
        raise ValueError(f"measure: job is {job!r}, wanted one of {', '.join(DEFAULTS)}")
    settings = {"job": job, **DEFAULTS[job], **settings}
    python = environment(peer, Path(peer_dir))
    script = Path(__file__).with_name(f"{peer}_job.py")
    # As many threads in every library, and no accelerator for torch.
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    log = Path(peer_dir, f"{peer}.log")
    with log.open("w") as errors:
        process = subprocess.run(
            [str(python), str(script), json.dumps(settings, default=str)],
            env=os.environ
            | dict.fromkeys(counts, str(settings.get("threads", 1)))
            | {"CUDA_VISIBLE_DEVICES": ""},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    if process.returncode:
        last = "\n".join(log.read_text().splitlines()[-20:])
        raise RuntimeError(f"measure: {peer} failed at {job}; {log}:\n{last}")
    return json.loads(process.stdout.splitlines()[-1])


def decode(
    peer: str, peer_dir: str | Path, lines: Sequence[str], **settings: Any
) -> dict[str, float]:
    """`measure` of beam search; the lines are words separated by spaces.

    If `steps` is given, the rate is converted to outputs of exactly so many words, because Marian's
    have them only on average.
    """
    with tempfile.TemporaryDirectory() as folder:
        sentences = Path(folder, "sentences")
        sentences.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        figures = measure(peer, "decoding", peer_dir, sentences=sentences, **settings)
    if settings["steps"]:
        figures["sentences_per_second"] *= figures["words_per_sentence"] / settings["steps"]
    return figures


def check_peers(names: Iterable[str]) -> None:
    """Raises a ValueError that names unknown peers."""
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise ValueError(f"--peers has {', '.join(unknown)}, wanted names of {', '.join(PEERS)}")


def write_data(folder: Path, pairs: Sequence[Pair], words: Sequence[Sequence[str]]) -> None:
    """Writes the training data of the peers.

    `pairs` are the words of sentences and of their translations, batch after batch, `words` the
    vocabularies of source and target.
    """
    for number, side in enumerate(("source", "target")):
        lines = [" ".join(pair[number]) for pair in pairs]
        for name, content in (("txt", lines), ("words", words[number])):
            text = "".join(f"{line}\n" for line in content)
            (folder / f"{side}.{name}").write_text(text, encoding="utf-8")


def frequent_words(sentences: Iterable[Sequence[str]], size: int) -> list[str]:
    """The `size` most frequent words, or fewer if there are fewer."""
    counts = collections.Counter(w for words in sentences for w in words)
    return [word for word, _ in counts.most_common(size)]


def in_batches(pairs: Sequence[Pair], batch: int, epochs: int) -> list[Pair]:
    """Pairs, batch after batch, so that those of a batch have similar lengths.

    Each pair is used once an epoch; an incomplete batch at the end of an epoch is left out.
    """
    shuffle = random.Random(1).shuffle
    ordered = []
    for _ in range(epochs):
        mixed, pool = list(pairs), batch * POOL
        shuffle(mixed)
        for start in range(0, len(mixed), pool):
            part = slice(start, start + pool)
            mixed[part] = sorted(mixed[part], key=lambda pair: (len(pair[1]), len(pair[0])))
        starts = list(range(0, len(mixed) - batch + 1, batch))
        shuffle(starts)
        for start in starts:
            ordered += mixed[start : start + batch]
    return ordered


def environment(peer: str, folder: Path) -> Path:
    """The Python of a peer's environment, which is created if incomplete."""
    home = folder / peer
    python, complete = home / "bin" / "python", home / "complete"
    if complete.exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    print(f"installing {peer} in {home}", file=sys.stderr, flush=True)
    venv.create(home, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet"]
    needs = PEERS[peer]
    subprocess.run([*install, *needs.packages], check=True)
    if needs.alone:
        subprocess.run([*install, "--no-deps", *needs.alone], check=True)
    complete.touch()
    return python
