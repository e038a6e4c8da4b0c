"""What each technique is worth: BLEU on the dev set, one change at a time.

    python benchmarks/ablations.py --data_dir=data --out_dir=ablations
    python benchmarks/ablations.py --out_dir=ablations --show

A cell is one training, of the recipe with one change, for `--minutes` of one
core. `--train_flag` sets a flag of all cells, `--seeds=1,2,3` trains a cell for
each seed. `--jobs` cells run side by side, each on its own core. The program may be
stopped at any time: it trains the missing cells, resumes the interrupted ones and
prints the table.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean

from absl import app, flags
from machine import ONE_THREAD

FLAGS = flags.FLAGS
flags.DEFINE_string("out_dir", None, "folder of the cells", required=True)
flags.DEFINE_string("data_dir", None, "folder of the text, for `train`")
flags.DEFINE_string("recipe", "multi30k-en-fr", "the recipe that is changed")
flags.DEFINE_multi_string("train_flag", [], "a flag of all trainings")
flags.DEFINE_list("changes", None, "which of CHANGES; default: all")
flags.DEFINE_list("seeds", ["1"], "seeds of each change")
flags.DEFINE_integer("minutes", 20, "minutes of a cell")
flags.DEFINE_integer("jobs", 2, "cells side by side")
flags.DEFINE_bool("show", False, "prints the table without training")

Evaluations = list[dict[str, float]]

BASE = "nothing"
COLUMNS = (*("change", "epochs", "words a second"), *("dev BLEU by seed", "difference", "dev loss"))
SETTINGS = ("--epochs=1000", "--patience=1000")
DROPOUT = "--embedding_dropout={} --annotation_dropout={} --readout_dropout={}"
WIDTHS = "--units={0} --embedding_dim={0} --attention_units={0} --maxout_units={0}"
CHANGES = {
    BASE: "",
    "step order original": "--step_order=original",
    "step order main-text": "--step_order=main-text",
    "products in float32": "--product_dtype=float32",
    "moving average .998": "--average=0.998",
    "dropout .1/.2/.2": DROPOUT.format(0.1, 0.2, 0.2),
    "dropout .3/.4/.4": DROPOUT.format(0.3, 0.4, 0.4),
    "dropout of states .1": "--state_dropout=0.1",
    "sampled sub-words": "--sample_subwords",
    "sub-words sampled for four epochs": "--sample_subwords --sampled_epochs=4",
    "three-way tying": "--share_embeddings",
    "untied": "--notie_embeddings",
    "no label smoothing": "--label_smoothing=0",
    "label smoothing .2": "--label_smoothing=0.2",
    "rate .001": "--learning_rate=0.001",
    "rate .003": "--learning_rate=0.003",
    "rate .004": "--learning_rate=0.004",
    "7 epochs": "--epochs=7",
    "constant for a fifth": "--constant_share=0.2",
    "constant for four fifths": "--constant_share=0.8",
    "batch 20": "--batch_size=20",
    "batch 80": "--batch_size=80",
    "2000 sub-words": "--source_vocabulary_size=2000",
    "4000 sub-words": "--source_vocabulary_size=4000",
    "16000 sub-words": "--source_vocabulary_size=16000",
    "384 units": WIDTHS.format(384),
}


def folder_of(change: str, seed: str) -> Path:
    """Where a change is trained."""
    name = "".join(c if c.isalnum() else "_" for c in change)
    return Path(FLAGS.out_dir, f"{name}-{seed}")


def flags_of(change: str, seed: str) -> list[str]:
    """The flags of its training."""
    data = [f"--data_dir={FLAGS.data_dir}"] * (FLAGS.data_dir is not None)
    return [
        *(f"--recipe={FLAGS.recipe}", *data),
        *(f"--minutes={FLAGS.minutes}", f"--seed={seed}"),
        *(*SETTINGS, *FLAGS.train_flag, *CHANGES[change].split()),
    ]


def train(cells: Mapping[Path, Sequence[str]]) -> None:
    """Trains or resumes cells, each on one core.

    Args:
        cells: Flags of `bahdanau-tf train` by folder, which gets `model`,
            `output`, `flags`, and `over` once the training has ended by itself.
    """
    for folder, train_flags in cells.items():
        folder.mkdir(parents=True, exist_ok=True)
        path, text = folder / "flags", "".join(f"{flag}\n" for flag in train_flags)
        if path.exists() and path.read_text("utf-8") != text:
            sys.exit(f"{folder} has other flags; name another --out_dir")
        path.write_text(text, "utf-8")
    cores: queue.Queue[int] = queue.Queue()
    for core in sorted(os.sched_getaffinity(0))[: FLAGS.jobs]:
        cores.put(core)

    def train_cell(folder: Path) -> None:
        if (folder / "over").exists():
            return
        core = cores.get()
        command = [sys.executable, "-m", "bahdanau_tf", "train", *cells[folder]]
        try:
            with (folder / "output").open("ab") as output:
                status = subprocess.run(
                    [*command, f"--model_dir={folder / 'model'}"],
                    stdout=output,
                    stderr=output,
                    env=os.environ | ONE_THREAD,
                    preexec_fn=lambda: os.sched_setaffinity(0, {core}),
                    check=False,
                ).returncode
        finally:
            cores.put(core)
        if status == 0:
            (folder / "over").touch()
        print(f"{folder.name}: status {status}", flush=True)

    with ThreadPoolExecutor(FLAGS.jobs) as side_by_side:
        list(side_by_side.map(train_cell, cells))


def logs_of(change: str, seeds: Sequence[str]) -> list[Evaluations]:
    """The evaluations of a change's cells that are over."""
    folders = [folder_of(change, seed) for seed in seeds]
    return [
        [json.loads(line) for line in (folder / "model" / "log.jsonl").read_text().splitlines()]
        for folder in folders
        if (folder / "over").exists()
    ]


def rows(changes: Sequence[str], seeds: Sequence[str]) -> Iterator[str]:
    """The lines of a Markdown table of all cells that are over.

    The loss is in nats per sub-word, so it depends on the sub-words.
    """

    def best_scores(logs: Sequence[Evaluations]) -> list[float]:
        return [max(line["dev_bleu"] for line in log) for log in logs]

    yield f"| {' | '.join(COLUMNS)} |"
    yield f"{'|---' * len(COLUMNS)}|"
    base = best_scores(logs_of(BASE, seeds))
    for change in changes:
        logs = logs_of(change, seeds)
        if not logs:
            continue
        scores = best_scores(logs)
        gain = f"{mean(scores) - mean(base):+.2f}" if base else ""
        epochs = mean(log[-1]["epoch"] for log in logs)
        rate = mean(log[-1]["words_per_second"] for log in logs)
        each = ", ".join(f"{bleu:.2f}" for bleu in scores)
        loss = mean(min(line["dev_loss"] for line in log) for log in logs)
        yield (f"| {change} | {epochs:.1f} | {rate:,.0f} | {each} | {gain} | {loss:.3f} |")


def main(_: Sequence[str]) -> None:
    """Trains what is missing, and prints the table."""
    changes = FLAGS.changes or list(CHANGES)
    unknown = set(changes) - set(CHANGES)
    if unknown:
        raise app.UsageError(f"--changes has {sorted(unknown)}, wanted some of {[*CHANGES]}")
    if not FLAGS.show:
        train(
            {
                folder_of(change, seed): flags_of(change, seed)
                for seed in FLAGS.seeds
                for change in changes
            }
        )
    print("\n".join(rows(changes, FLAGS.seeds)))


if __name__ == "__main__":
    app.run(main)
