"""What each technique is worth: BLEU on the dev set, one change at a time.

    python benchmarks/ablations.py --data_dir=data --out_dir=ablations
    python benchmarks/ablations.py --out_dir=ablations --show

A cell is one training, of the recipe with one change, for `--minutes` of one
core. `--train_flag` sets a flag of all cells, `--seeds=1,2,3` gives each change
so many. Two cells run side by side, or `--jobs`, each on a core of its own.
Cells that are there already are not trained again, and a cell that was broken
off is resumed, so the program may be stopped at any time; it trains what is
missing and prints the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

import cells
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("out_dir", None, "folder of the cells", required=True)
flags.DEFINE_string("data_dir", None, "folder of the text, for `train`")
flags.DEFINE_string("recipe", "multi30k-en-fr", "the recipe that is changed")
flags.DEFINE_multi_string("train_flag", [], "a flag of all trainings")
flags.DEFINE_list("changes", None, "which of CHANGES, all if not given")
flags.DEFINE_list("seeds", ["1"], "seeds of each change")
flags.DEFINE_integer("minutes", 20, "minutes of a cell")
flags.DEFINE_integer("jobs", 2, "cells side by side")
flags.DEFINE_bool("show", False, "prints the table without training")

Evaluations = list[dict[str, float]]

BASE = "nothing"
COLUMNS = (
    *("change", "epochs", "words a second"),
    *("dev BLEU by seed", "difference", "dev loss"),
)
SETTINGS = ("--epochs=1000", "--patience=1000")
CHANGES: dict[str, Sequence[str]] = {
    BASE: [],
    "step order original": ["--step_order=original"],
    "step order main-text": ["--step_order=main-text"],
    "products in float32": ["--product_dtype=float32"],
    "moving average .998": ["--average=0.998"],
    "dropout .1/.2/.2": [
        *("--embedding_dropout=0.1", "--annotation_dropout=0.2"),
        "--readout_dropout=0.2",
    ],
    "dropout .3/.4/.4": [
        *("--embedding_dropout=0.3", "--annotation_dropout=0.4"),
        "--readout_dropout=0.4",
    ],
    "dropout of states .1": ["--state_dropout=0.1"],
    "sampled sub-words": ["--sample_subwords"],
    "sub-words sampled for four epochs": [
        *("--sample_subwords", "--sampled_epochs=4"),
    ],
    "three-way tying": ["--share_embeddings"],
    "untied": ["--notie_embeddings"],
    "no label smoothing": ["--label_smoothing=0"],
    "label smoothing .2": ["--label_smoothing=0.2"],
    "rate .001": ["--learning_rate=0.001"],
    "rate .003": ["--learning_rate=0.003"],
    "rate .004": ["--learning_rate=0.004"],
    "7 epochs": ["--epochs=7"],
    "constant for a fifth": ["--constant_share=0.2"],
    "constant for four fifths": ["--constant_share=0.8"],
    "batch 20": ["--batch_size=20"],
    "batch 80": ["--batch_size=80"],
    "2000 sub-words": ["--source_vocabulary_size=2000"],
    "4000 sub-words": ["--source_vocabulary_size=4000"],
    "16000 sub-words": ["--source_vocabulary_size=16000"],
    "384 units": [
        *("--units=384", "--embedding_dim=384"),
        *("--attention_units=384", "--maxout_units=384"),
    ],
}


def folder(change: str, seed: str) -> Path:
    """Where a change is trained."""
    name = "".join(c if c.isalnum() else "_" for c in change)
    return Path(FLAGS.out_dir, f"{name}-{seed}")


def flags_of(change: str, seed: str) -> list[str]:
    """The flags of its training."""
    data = [f"--data_dir={FLAGS.data_dir}"] * (FLAGS.data_dir is not None)
    return [
        *(f"--recipe={FLAGS.recipe}", *data),
        *(f"--minutes={FLAGS.minutes}", f"--seed={seed}"),
        *(*SETTINGS, *FLAGS.train_flag, *CHANGES[change]),
    ]


def logs_of(change: str, seeds: Sequence[str]) -> list[Evaluations]:
    """The evaluations of a change's cells that are over."""
    found = (cells.log(folder(change, seed)) for seed in seeds)
    return [log for log in found if log]


def best(log: Evaluations) -> float:
    """The best BLEU of a training."""
    return max(line["dev_bleu"] for line in log)


def rows(changes: Sequence[str], seeds: Sequence[str]) -> Iterator[str]:
    """The lines of a Markdown table of all cells that are over.

    The loss is in nats per sub-word, so other sub-words have another one.
    """
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"{'|---' * len(COLUMNS)}|"
    base = [best(log) for log in logs_of(BASE, seeds)]
    for change in changes:
        logs = logs_of(change, seeds)
        if not logs:
            continue
        scores = [best(log) for log in logs]
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
        app.usage(f"--changes: {unknown}, wanted some of {[*CHANGES]}", True, 2)
    if not FLAGS.show:
        missing = {
            folder(change, seed): flags_of(change, seed)
            for seed in FLAGS.seeds
            for change in changes
        }
        cells.train(missing, FLAGS.jobs)
    print("\n".join(rows(changes, FLAGS.seeds)))


if __name__ == "__main__":
    app.run(main)
