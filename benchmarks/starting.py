"""Start-up: processor time until the first translation, and a graph's size.

    python benchmarks/starting.py
    python benchmarks/starting.py --model_dir=model/best

Without `--model_dir` an untrained model of size small is measured. In new processes on one thread:
`import tensorflow`; the command `translate` with one sentence; the first translation after
`Translator.load`; loading an export and its first request. Each is measured `--rounds` times in
turn, and the median is reported. A busy machine makes all of them larger: compare them with the
first.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import table
from absl import app, flags, logging
from machine import ONE_THREAD
from table import Figure

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "A translator's folder.")
flags.DEFINE_string("sentence", "w1 w2 w3 w4 w5.", "A sentence to translate.")
flags.DEFINE_integer("rounds", 3, "How often each is measured.")

TRANSLATOR = """
import sys, time
from bahdanau_tf import Translator
translator = Translator.load(sys.argv[1])
start = time.process_time()
translator.translate(sys.argv[2:])
print(time.process_time() - start)
"""
EXPORT = """
import sys, time
import tensorflow as tf, tensorflow_text
start = time.process_time()
signatures = tf.saved_model.load(sys.argv[1]).signatures
print(time.process_time() - start)
start = time.process_time()
signatures["serving_default"](text=tf.constant(sys.argv[2:]))
print(time.process_time() - start)
"""
SECONDS = "s of processor time"
# What is measured, and the most that it should be.
GOALS = {
    "`import tensorflow`": None,
    "`bahdanau-tf translate` of a sentence": 6.5,
    "first translation after `Translator.load`": 1.5,
    "loading an export in Python": None,
    "first request of an export in Python": None,
}
NODES = 4000  # of an export


def main(_: Sequence[str]) -> None:
    """Measures and prints."""
    path = FLAGS.model_dir
    if path and not Path(path).is_dir():
        raise app.UsageError(f"--model_dir is {path}, which is not a folder")
    with tempfile.TemporaryDirectory() as folder:
        model, export, nodes = prepared(Path(folder))
        rounds = []
        for _ in range(FLAGS.rounds):
            rounds.append(list(one_round(model, export)))
            print(" ".join(f"{seconds:.2f}" for seconds in rounds[-1]), "s")
    table.add(
        Figure(what, statistics.median(seconds), SECONDS, at_most=goal)
        for (what, goal), seconds in zip(GOALS.items(), zip(*rounds, strict=True), strict=True)
    )
    table.add([Figure("export", nodes, "nodes", at_most=NODES)])


def prepared(folder: Path) -> tuple[str, str, int]:
    """The folders of the model and of its export, and the export's nodes."""
    from sizes import SIZES
    from untrained import make_translator

    from bahdanau_tf import Translator
    from bahdanau_tf.serving.saved_model import count_nodes

    logging.set_verbosity(logging.WARNING)
    if FLAGS.model_dir:
        model, translator = FLAGS.model_dir, Translator.load(FLAGS.model_dir)
    else:
        model, translator = str(folder / "model"), make_translator(SIZES["small"])
        translator.save(model)
    version = translator.export(folder / "export")
    return model, str(version), count_nodes(version).total


def one_round(model: str, export: str) -> Iterator[float]:
    """Seconds for each of `GOALS`, in its order."""
    yield run(["-c", "import tensorflow"])[0]
    command = ["-m", "bahdanau_tf", "translate", f"--model_dir={model}", "--max_length=20"]
    yield run(command, f"{FLAGS.sentence}\n")[0]
    for program, folder in ((TRANSLATOR, model), (EXPORT, export)):
        _, output = run(["-c", program, folder, FLAGS.sentence])
        yield from map(float, output.split())


def run(arguments: list[str], text: str = "") -> tuple[float, str]:
    """A new process: seconds of its processor time, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env=os.environ | ONE_THREAD,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return used, done.stdout


if __name__ == "__main__":
    app.run(main)
