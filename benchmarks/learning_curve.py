"""Dev BLEU after some minutes on one core, beside JoeyNMT's on the same tokens.

    python benchmarks/learning_curve.py --data_dir=multi30k --out_dir=curve

`train` gets nothing but the text and each of `--minutes`, as a training of its
own, whose learning rate falls within that time. JoeyNMT trains once, for the
longest of them, with its published recipe for a recurrent model on sub-words,
that of its configs/iwslt14_deen_bpe.yaml: bidirectional GRU of 500 units,
decoder of 1,000, embeddings of 620, Adam at 0.0002, batches of 80, plateau
schedule. Only it is evaluated every 100 updates, not every 2,000, and its
patience counted so.
Its figure is that of the best model by dev loss so far, as it would choose.
Both search greedily; evaluations are part of the time. What is there already is
not trained again. Needs PyYAML.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import cells
import tensorflow as tf
import yaml
from absl import app, flags
from peers import PEER_DIR, environment
from sacrebleu import corpus_bleu

from bahdanau_tf.translator import Translator, load_best

FLAGS = flags.FLAGS
flags.DEFINE_string("out_dir", None, "folder of the trainings", required=True)
flags.DEFINE_string("data_dir", None, "folder of the text", required=True)
flags.DEFINE_list("minutes", ["5", "15", "30", "60"], "when BLEU is taken")
flags.DEFINE_list("texts", ["train", "val"], "names of training and dev text")
flags.DEFINE_list("languages", ["en", "fr"], "endings of source and target")
flags.DEFINE_integer("jobs", 1, "trainings of ours side by side")
flags.DEFINE_string("peer_dir", str(PEER_DIR), "folder of JoeyNMT's environment")

JOEYNMT = Path(__file__).parent / "peers" / "joeynmt_train.py"
EVERY = 100  # updates between JoeyNMT's evaluations
SIDES = ("source", "target")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def train(every: Sequence[str]) -> dict[str, Path]:
    """Trains for each of some minutes; returns the folders by minutes."""
    text = [
        f"--{name}_{side}={Path(FLAGS.data_dir, f'{part}.{language}')}"
        for name, part in zip(("train", "dev"), FLAGS.texts, strict=True)
        for side, language in zip(SIDES, FLAGS.languages, strict=True)
    ]
    found = {one: Path(FLAGS.out_dir, f"minutes-{one}") for one in every}
    wanted = {found[one]: [*text, f"--minutes={one}"] for one in every}
    cells.train(wanted, FLAGS.jobs)
    return found


def dev_bleu(folder: Path) -> float:
    """The best BLEU of a training."""
    return max(line["dev_bleu"] for line in cells.log(folder))


def write_pieces(folder: Path, translator: Translator) -> None:
    """Writes both texts as sub-words, and the vocabulary."""
    sides = (translator.source_text, translator.target_text)
    pieces: dict[str, None] = {}
    for text in FLAGS.texts:
        for language, side in zip(FLAGS.languages, sides, strict=True):
            path = Path(FLAGS.data_dir, f"{text}.{language}")
            lines = path.read_bytes().split(b"\n")[:-1]
            tokens = side.ids_to_tokens(side.tokenize(tf.constant(lines)))
            # JoeyNMT adds an end of its own.
            words = tf.strings.reduce_join(tokens[:, :-1], 1, separator=" ")
            joined = words.numpy()
            (folder / path.name).write_bytes(b"\n".join([*joined, b""]))
            if text == FLAGS.texts[0]:
                all_pieces = b" ".join(joined).decode().split(" ")
                pieces |= dict.fromkeys(filter(None, all_pieces))
    (folder / "words").write_text("\n".join(pieces) + "\n", "utf-8")


def recipe(folder: Path) -> dict[str, Any]:
    """JoeyNMT's published recipe, in the format of version 2.3."""
    side = {
        "level": "word",
        "max_length": 62,
        "voc_file": str(folder / "words"),
        "tokenizer_type": None,
    }
    layer = {
        "type": "recurrent",
        "rnn_type": "gru",
        "embeddings": {"embedding_dim": 620, "scale": False},
        "dropout": 0.0,
        "num_layers": 1,
    }
    decoder = {
        "hidden_size": 1000,
        "hidden_dropout": 0.2,
        "input_feeding": True,
        "init_hidden": "bridge",
        "attention": "bahdanau",
    }
    return {
        "name": "curve",
        "model_dir": str(folder / "model"),
        "use_cuda": False,
        "data": {
            "train": str(folder / FLAGS.texts[0]),
            "dev": str(folder / FLAGS.texts[1]),
            "dataset_type": "plain",
            "src": {"lang": FLAGS.languages[0], **side},
            "trg": {"lang": FLAGS.languages[1], **side},
        },
        "testing": {
            "beam_size": 1,
            "batch_size": 80,
            "max_output_length": 80,
            "eval_metrics": [],
        },
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "learning_rate": 0.0002,
            "batch_size": 80,
            "scheduling": "plateau",
            "patience": 8 * 2000 // EVERY,
            "decrease_factor": 0.7,
            "early_stopping_metric": "loss",
            "epochs": 1000,
            "validation_freq": EVERY,
            "logging_freq": EVERY,
            "shuffle": True,
            "print_valid_sents": [0],
            "overwrite": True,
        },
        "model": {
            "encoder": {**layer, "hidden_size": 500, "bidirectional": True},
            "decoder": {**layer, **decoder},
        },
    }


def train_joeynmt(folder: Path, minutes: float) -> None:
    """Trains JoeyNMT for so long, unless it is done."""
    if (folder / "over").exists():
        return
    python = environment("joeynmt", Path(FLAGS.peer_dir))
    settings = folder / "recipe.yaml"
    settings.write_text(yaml.safe_dump(recipe(folder)), "utf-8")
    (folder / "begun").write_text(str(time.time()))
    command = [str(python), str(JOEYNMT), "train", "--skip-test", str(settings)]
    core = min(os.sched_getaffinity(0))
    with (folder / "output").open("ab") as output, suppress(TimeoutExpired):
        subprocess.run(
            command,
            stdout=output,
            stderr=output,
            env=os.environ | ONE_THREAD,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            timeout=60 * minutes,
            check=True,
        )
    (folder / "over").touch()


def joeynmt_curve(folder: Path) -> Iterator[tuple[float, float, float]]:
    """Minutes, dev loss and dev BLEU of each evaluation of JoeyNMT."""
    begun = float((folder / "begun").read_text())
    dev, language = FLAGS.texts[1], FLAGS.languages[1]
    path = Path(FLAGS.data_dir, f"{dev}.{language}")
    references = path.read_text("utf-8").split("\n")[:-1]
    losses = {}
    found = folder / "model" / "validations.txt"
    for line in found.read_text().splitlines() if found.exists() else []:
        words = line.replace("\t", " ").split()
        losses[int(words[1])] = float(words[words.index("loss:") + 1])
    for step, loss in sorted(losses.items()):
        path = folder / "model" / f"{step}.hyps"
        lines = [
            "".join(line.split()).replace("\u2581", " ").strip()
            for line in path.read_text("utf-8").split("\n")[: len(references)]
        ]
        bleu = corpus_bleu(lines, [references]).score
        yield (path.stat().st_mtime - begun) / 60, loss, bleu


def main(_: Sequence[str]) -> None:
    """Trains what is missing, and prints the table."""
    minutes = sorted(FLAGS.minutes, key=float)
    ours = train(minutes)
    folder = Path(FLAGS.out_dir, "joeynmt").resolve()
    if not (folder / "words").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_pieces(folder, load_best(ours[minutes[0]] / "model"))
    train_joeynmt(folder, float(minutes[-1]))
    curve = list(joeynmt_curve(folder))
    print("| minutes | bahdanau_tf | JoeyNMT |")
    print("|---|---|---|")
    for one in minutes:
        until = [point[1:] for point in curve if point[0] <= float(one)]
        theirs = f"{min(until)[1]:.2f}" if until else "none yet"
        print(f"| {one} | {dev_bleu(ours[one]):.2f} | {theirs} |")


if __name__ == "__main__":
    app.run(main)
