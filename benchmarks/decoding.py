"""Decoding speed: sentences per second of exports.

    python benchmarks/decoding.py --model_dir=model/best --source=test.en
    python benchmarks/decoding.py --model_dir=model/best --source=test.en \
        --engines=tensorflow,onnx,onnx-int8
    python benchmarks/decoding.py --batches=1       # a model without training

The translator is exported twice for each beam size: once so that every sentence takes exactly
`--steps` steps (the end symbol is forbidden before that), and once unchanged. Without `--model_dir`
it is an untrained one of size small with a random lexicon; it is measured with `--steps` steps
only. A new process on one thread, with TensorFlow and TensorFlow Text only or, for ONNX, without
them, loads an export and translates `--sentences` lines, sorted by length, in batches. Times are
processor time of that process. The rate of a matrix product is printed with them, because a busy
machine slows both alike.

    python -m benchmarks.peers --data_dir=multi30k-tok --peers=joeynmt \
        --natural_updates=420 --work_dir=peers
    python benchmarks/decoding.py --model_dir=model/best --source=test.en --words=test.tok.en \
        --peer=joeynmt=peers/joeynmt --peer=ctranslate2=float32 --peer=ctranslate2=int8

These commands measure each engine and each peer's model, then all of them again; a rate is the mean
of `--rounds`. CTranslate2's model has random weights, of the type after its name, so it is measured
with `--steps` steps only.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import peers
import table
from absl import app, flags, logging
from table import Figure

ENGINES = ("tensorflow", "onnx", "onnx-int8")
RANDOM = "ctranslate2"  # a peer with random weights, whose translations have no natural end

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "a translator's folder")
flags.DEFINE_string("source", None, "text file to translate")
flags.DEFINE_integer("sentences", 320, "lines to translate; 1/8 at batch 1")
flags.DEFINE_integer("steps", 20, "steps of the search of fixed length")
flags.DEFINE_list("beams", ["12", "5"], "beam sizes")
flags.DEFINE_list("batches", ["32", "1"], "sentences in a request")
flags.DEFINE_bool("natural", True, "whether to measure the unchanged export")
flags.DEFINE_list("engines", ["tensorflow"], f"what runs an export: {', '.join(ENGINES)}")
flags.DEFINE_string("signature", "serving_default", "signature to call in TensorFlow")
flags.DEFINE_bool("shortlist", False, "whether to measure with the model's lexicon, too")
flags.DEFINE_multi_string("peer", [], "a peer's trained model, as NAME=FOLDER; may be repeated")
flags.DEFINE_integer("rounds", 2, "measurements of each engine and peer", lower_bound=1)
flags.DEFINE_string("words", None, "--source split into words, for --peer")
flags.DEFINE_string("peer_dir", str(peers.PEER_DIR), "folder of the peers' environments")
# At batch 1 one of so many lines is translated: fewer requests are enough.
SHARE_ALONE = 8
# How many times as fast one should be as another, in sentences per second.
GOALS = {
    ("tensorflow", "joeynmt", "alone", "fixed"): 2.0,
    ("tensorflow", "joeynmt", "alone", "shortlist"): 4.0,
    ("tensorflow", "joeynmt", "alone", "natural"): 2.0,
    ("tensorflow", "joeynmt", "batch", "fixed"): 2.1,
    ("tensorflow", "joeynmt", "batch", "natural"): 3.0,
    ("onnx-int8", "tensorflow", "alone", "fixed"): 2.0,
    ("onnx-int8", "tensorflow", "batch", "fixed"): 3.0,
    ("onnx-int8", "ctranslate2=int8", "alone", "shortlist"): 1.0,
    ("onnx-int8", "ctranslate2=int8", "batch", "shortlist"): 1.0,
}


class Search(NamedTuple):
    """What an export does.

    Attributes:
        beam: The beam size.
        steps: The number of steps of each search; None if it ends where the model ends sentences.
        shortlist: Whether the lexicon shortens the vocabulary.
    """

    beam: int
    steps: int | None
    shortlist: bool

    def __str__(self) -> str:
        """In words."""
        steps = "to the end" if self.steps is None else f"{self.steps} steps"
        return f"beam {self.beam}, {steps}{', shortlist' * self.shortlist}"

    def decoding(self, others: Any) -> Any:
        """The options of this search, with the rest of `others`."""
        options: dict[str, Any] = {"beam_size": self.beam, "shortlist": self.shortlist}
        if self.steps is not None:
            ratios = dict.fromkeys(("max_length_ratio", "min_length_ratio"), 1000.0)
            options |= {"max_length": self.steps, **ratios}
        return replace(others, **options)

    def goal(self, faster: str, slower: str, batch: int) -> float | None:
        """How many times as fast one should be as the other, if there is a goal."""
        end = "natural" if self.steps is None else "fixed"
        kind = "shortlist" if self.shortlist else end
        return GOALS.get((faster, slower, "alone" if batch == 1 else "batch", kind))


def main(_: list[str]) -> None:
    """Exports, and measures each export in a new process."""
    peers.check_peers(peer.partition("=")[0] for peer in FLAGS.peer)
    if FLAGS.peer and not FLAGS.words:
        raise app.UsageError("--words is missing, wanted with --peer")
    if FLAGS.model_dir and not FLAGS.source:
        raise app.UsageError("--source is missing, wanted with --model_dir")
    for name in ("model_dir", "source", "words"):
        path = FLAGS[name].value
        if path and not Path(path).exists():
            raise app.UsageError(f"--{name} is {path}, which does not exist")
    if unknown := set(FLAGS.engines) - set(ENGINES):
        raise app.UsageError(f"--engines has {unknown}, wanted some of {', '.join(ENGINES)}")
    logging.set_verbosity(logging.WARNING)
    translator, lines = subject()
    lines = lines[: FLAGS.sentences]
    for search, versions in exports(translator):
        for batch in map(int, FLAGS.batches):
            count = len(lines) if batch > 1 else len(lines) // SHARE_ALONE
            compare(search, versions, lines[:count], batch)


def subject() -> tuple[Any, list[str]]:
    """What is measured: a translator, and lines of text."""
    if FLAGS.model_dir:
        from bahdanau_tf import Translator

        text = Path(FLAGS.source).read_text(encoding="utf-8")
        return Translator.load(FLAGS.model_dir), text.split("\n")[:-1]
    from sizes import SIZES
    from untrained import make_lines, make_translator

    return make_translator(SIZES["small"]), make_lines(FLAGS.sentences)


def compare(search: Search, versions: dict[str, Path], lines: list[str], batch: int) -> None:
    """Measures each engine's export, then each peer; and all of them again."""
    what = f"{search}, batch {batch}"
    others = [peer for peer in FLAGS.peer if search.steps or not peer.startswith(RANDOM)]
    rates: dict[str, list[float]] = {name: [] for name in (*versions, *others)}
    for _ in range(FLAGS.rounds):
        for engine, version in versions.items():
            figures = measured(engine, version, lines, batch)
            rates[engine].append(figures["rate"])
            print(
                f"{what}, {engine}: {figures['rate']:.1f} sentences/s, "
                f"{1000 / figures['rate']:.1f} ms a sentence, {figures['words']:.1f} tokens each; "
                f"peak memory {figures['memory']:.2f} GiB, loaded in {figures['load']:.1f} s, "
                f"first request {figures['first']:.1f} s; matrix product "
                f"{figures['matrix'] / 1e9:.0f} GFLOP/s",
                flush=True,
            )
        for peer in others:
            rates[peer].append(peer_rate(peer, len(lines), search.beam, batch, search.steps))
            print(f"{what}, {peer}: {rates[peer][-1]:.1f} sentences/s", flush=True)
    means = {name: statistics.mean(each) for name, each in rates.items()}
    for engine in versions:
        table.add([Figure(f"{what}, {engine}", 1000 / means[engine], "ms a sentence")])
        for other in means:
            name = other if other.startswith(RANDOM) else other.partition("=")[0]
            if engine != other and (other in others or other == "tensorflow"):
                row = f"{what}: speed of {engine} over that of {name}"
                goal = search.goal(engine, name, batch)
                table.add([Figure(row, means[engine] / means[other], at_least=goal)])


def peer_rate(peer: str, count: int, beam: int, batch: int, steps: int | None) -> float:
    """A peer's sentences per second over the first lines of `--words`.

    `peer` is NAME=FOLDER, with the folder of its trained model; the rest is as for `peers.measure`.
    """
    name, _, model = peer.partition("=")
    words = Path(FLAGS.words).read_text(encoding="utf-8").split("\n")[:-1][:count]
    settings = {"model": model, "beam": beam, "batch": batch, "steps": steps}
    return peers.decode(name, FLAGS.peer_dir, words, **settings)["sentences_per_second"]


def exports(translator: Any) -> Iterator[tuple[Search, dict[str, Path]]]:
    """Yields the searches to measure, and for each an export's folder by engine."""
    from bahdanau_tf.runtime import export_runtime

    ends = [FLAGS.steps]
    if FLAGS.natural and FLAGS.model_dir:
        ends.append(None)
    shortlists = [False, True] if FLAGS.shortlist else [False]
    decoding = translator.decoding
    for beam, steps, shortlist in itertools.product(map(int, FLAGS.beams), ends, shortlists):
        search = Search(beam, steps, shortlist)
        translator.decoding = search.decoding(decoding)
        with tempfile.TemporaryDirectory() as folder:
            versions = {engine: Path(folder, engine) for engine in FLAGS.engines}
            for engine, path in versions.items():
                if engine == "tensorflow":
                    versions[engine] = translator.export(path)
                else:
                    export_runtime(translator.graph, path, int8=engine == "onnx-int8")
            yield search, versions


def measured(engine: str, version: Path, lines: list[str], batch: int) -> dict[str, Any]:
    """The result of `measure`, run in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "child", engine, str(version), str(batch)],
        input=json.dumps([FLAGS.signature, lines]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def loaded(engine: str, version: str, signature: str) -> Callable[[list[str]], list[str]]:
    """Loads an export: a function that translates a batch, on one thread."""
    if engine != "tensorflow":
        from bahdanau_tf.runtime import Translator

        translator = Translator.load(version, threads=1)
        return lambda batch: [x.text for x in translator.translate(batch, batch_size=len(batch))]
    import tensorflow as tf
    import tensorflow_text

    del tensorflow_text  # Importing it registered its operations.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    translate = tf.saved_model.load(version).signatures[signature]
    return lambda batch: [*translate(text=tf.constant(batch))["translation"].numpy()]


def measure(
    engine: str, version: str, batch: int, signature: str, lines: list[str]
) -> dict[str, float]:
    """Loads an export and translates the lines.

    Returns:
        `rate`: sentences per second; `words`: words per translation; `load` and `first`: seconds to
        load, imports included, and of the first request; `memory`: peak resident memory, GiB;
        `matrix`: operations per second of a matrix product. Seconds are processor time.
    """
    from machine import matrix_rate
    from peers.job import peak_gib

    started = time.process_time()
    translate = loaded(engine, version, signature)
    load = time.process_time() - started
    lines = sorted(lines, key=lambda line: len(line.split()))
    requests = [lines[i : i + batch] for i in range(0, len(lines), batch)]
    started = time.process_time()
    translate(requests[len(requests) // 2])
    first = time.process_time() - started
    started = time.process_time()
    words = sum(len(text.split()) for request in requests for text in translate(request))
    seconds = time.process_time() - started
    memory = peak_gib("self")  # before the matrix product's
    return {
        "rate": len(lines) / seconds,
        "words": words / len(lines),
        "load": load,
        "first": first,
        "memory": memory,
        "matrix": matrix_rate(),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _, _, engine, version, batch = sys.argv
        print(json.dumps(measure(engine, version, int(batch), *json.load(sys.stdin))))
    else:
        app.run(main)
