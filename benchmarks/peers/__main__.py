"""Measures the peers alone, on real text: training, then beam search.

    python -m benchmarks.peers --data_dir=multi30k-tok --natural_updates=400

Size small: embedding and units 256, 10,000 words, batches of 80 sentences. Beam search takes
exactly 20 steps, with a model after one update. With `--natural_updates` another model is trained
for so many updates, and its outputs end where the model ends them. Times are processor time on one
thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from benchmarks import peers

FLAGS = flags.FLAGS

flags.DEFINE_list("peers", ["joeynmt", "marian", "opennmt"], "Toolkits to measure.")
flags.DEFINE_string("peer_dir", str(peers.PEER_DIR), "Folder of their environments.")
flags.DEFINE_string(
    "data_dir",
    None,
    "Folder of tokenised text: train*.SOURCE, train*.TARGET, test*.SOURCE.",
    required=True,
)
flags.DEFINE_list("languages", ["en", "fr"], "Endings of source and target.")
flags.DEFINE_integer("updates", 30, "Updates to time, after the first 5.")
flags.DEFINE_integer("natural_updates", 0, "Updates before beam search of free length; 0: none.")
flags.DEFINE_string(
    "work_dir", None, "Folder for the data and each peer's model; default: a temporary one."
)
flags.DEFINE_float("share", 1.0, "Share of the test sentences to translate.")

WORDS = 9_998  # without two symbols
# Beam, sentences in a batch, sentences to translate.
SEARCHES = ((12, 32, 96), (5, 32, 192), (12, 1, 16), (5, 1, 32))


def read_pairs(folder: Path, languages: Sequence[str]) -> list[peers.Pair]:
    """The words of the training set's pairs."""
    sides = [read_words(folder, f"train*.{code}") for code in languages]
    return list(zip(*sides, strict=True))


def read_words(folder: Path, pattern: str) -> list[list[str]]:
    """The words of each line of the first file that matches `pattern`."""
    files = sorted(folder.glob(pattern))
    if not files:
        raise ValueError(f"--data_dir: no {pattern} in {folder}")
    with files[0].open(encoding="utf-8") as lines:
        return [line.split() for line in lines]


def report_searches(peer: str, folder: Path, test: list[list[str]], steps: int | None) -> None:
    """Measures and prints each search; of free length in batches only."""
    for beam, batch, count in SEARCHES:
        if steps is None and batch == 1:
            continue
        chosen = test[: max(int(count * FLAGS.share), batch)]
        lines = [" ".join(words) for words in chosen]
        settings = {"model": folder, "beam": beam, "batch": batch, "steps": steps}
        figures = peers.decode(peer, FLAGS.peer_dir, lines, **settings)
        words = steps or figures["words_per_sentence"]
        print(
            f"{peer}: {'exactly' if steps else 'natural ends,'} {words:.1f} "
            f"words, beam {beam}, batch {batch}: "
            f"{figures['sentences_per_second']:.1f} sentences/s, start-up "
            f"{figures['startup_seconds']:.1f} s, peak "
            f"{figures['peak_gib']:.2f} GiB",
            flush=True,
        )


def report(peer: str, data: Path, test: list[list[str]]) -> None:
    """Measures training and decoding of one peer, and prints the figures."""
    folder = data / peer
    folder.mkdir(exist_ok=True)

    def trained(updates: int, **settings: Any) -> dict[str, float]:
        settings |= {"updates": updates, "data": data, "model": folder}
        return peers.measure(peer, "training", FLAGS.peer_dir, **settings)

    figures = trained(FLAGS.updates + 5)
    print(
        f"{peer}: training {figures['words_per_second']:.0f} target words/s, "
        f"peak {figures['peak_gib']:.2f} GiB",
        flush=True,
    )
    trained(1, warm_up=0)
    report_searches(peer, folder, test, 20)
    if FLAGS.natural_updates:
        trained(FLAGS.natural_updates, warm_up=0, learning_rate=0.002)
        report_searches(peer, folder, test, None)


def main(_: Sequence[str]) -> None:
    """Measures and prints."""
    peers.check_peers(FLAGS.peers)
    data = Path(FLAGS.data_dir)
    pairs = read_pairs(data, FLAGS.languages)
    test = read_words(data, f"test*.{FLAGS.languages[0]}")
    words = [peers.frequent_words(side, WORDS) for side in zip(*pairs, strict=True)]
    updates = max(FLAGS.updates + 5, FLAGS.natural_updates)
    epochs = 1 + updates * 80 // len(pairs)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(FLAGS.work_dir or folder)
        work.mkdir(parents=True, exist_ok=True)
        peers.write_data(work, peers.in_batches(pairs, 80, epochs), words)
        for peer in FLAGS.peers:
            report(peer, work, test)


if __name__ == "__main__":
    app.run(main)
