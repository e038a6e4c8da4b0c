"""What `train` chooses for a corpus, beside the recipe that was set for it.

    python benchmarks/recipes.py --data_dir=data --out_dir=recipes \
        --recipes=tatoeba-en-fr,bible-en-ko --minutes=30

Both train on the same text, on one core and for the same time, that of the
recipe unless `--minutes` is given; the one with `--recipe`, the other with
nothing but text and time. Two run side by side, or `--jobs`, each on a core of
its own. What is there already is not trained again, and what was broken off is
resumed. The table has BLEU and chrF of both on the dev text (beam 5), with
signatures.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import cells
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("out_dir", None, "folder of the trainings", required=True)
flags.DEFINE_string("data_dir", None, "folder of the corpora", required=True)
flags.DEFINE_list("recipes", None, "names of recipes", required=True)
flags.DEFINE_float("minutes", None, "minutes of a training")
flags.DEFINE_integer("jobs", 2, "trainings side by side")
flags.DEFINE_bool("show", False, "prints the table without training")

TEXTS = ("train_source", "train_target", "dev_source", "dev_target")


@cache
def recipe(name: str) -> dict[str, str]:
    """The flags of a recipe that have values."""
    path = resources.files("bahdanau_tf").joinpath("recipes", f"{name}.flags")
    found = re.findall(r"^--(\w+)=(.*)$", path.read_text("utf-8"), re.MULTILINE)
    return dict(found)


def text(name: str, side: str) -> str:
    """The path of a text of a recipe."""
    known = recipe(name)
    return str(Path(FLAGS.data_dir, known["corpus"], known[side]))


def trainings() -> dict[Path, list[str]]:
    """The flags of both trainings of each recipe, by folder."""
    found = {}
    for name in FLAGS.recipes:
        minutes = f"--minutes={FLAGS.minutes or recipe(name)['minutes']}"
        texts = [f"--{side}={text(name, side)}" for side in TEXTS]
        start = [*texts, minutes]
        if tokenize := recipe(name).get("tokenize"):
            start.append(f"--tokenize={tokenize}")
        found[Path(FLAGS.out_dir, f"{name}-chosen")] = start
        start = [f"--recipe={name}", *start, "--epochs=1000000"]
        found[Path(FLAGS.out_dir, f"{name}-recipe")] = start
    return found


def scores(name: str, folder: Path) -> list[str]:
    """The lines with the scores on the dev text."""
    path = folder / "scores"
    if not path.exists():
        command = [
            *(sys.executable, "-m", "bahdanau_tf", "evaluate"),
            f"--model_dir={folder / 'model'}",
            f"--source={text(name, 'dev_source')}",
            f"--reference={text(name, 'dev_target')}",
        ]
        if tokenize := recipe(name).get("tokenize"):
            command.append(f"--tokenize={tokenize}")
        done = subprocess.run(command, capture_output=True, check=True)
        path.write_bytes(done.stdout)
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if line.startswith(("BLEU|", "chrF"))]


def rows() -> Iterator[str]:
    """The lines of a Markdown table, and of the signatures below it."""
    yield "| training | epochs | BLEU | chrF |"
    yield "|---|---|---|---|"
    signatures = set()
    for name in FLAGS.recipes:
        for kind in ("recipe", "chosen"):
            folder = Path(FLAGS.out_dir, f"{name}-{kind}")
            if not (log := cells.log(folder)):
                continue
            each = [line.split(" = ", 1) for line in scores(name, folder)]
            signatures |= {signature for signature, _ in each}
            values = " | ".join(value.split(" ")[0] for _, value in each)
            yield f"| {name}, {kind} | {log[-1]['epoch']:.1f} | {values} |"
    yield ""
    yield from sorted(signatures)


def main(_: Sequence[str]) -> None:
    """Trains what is missing, and prints the table."""
    if not FLAGS.show:
        cells.train(trainings(), FLAGS.jobs)
    print("\n".join(rows()))


if __name__ == "__main__":
    app.run(main)
