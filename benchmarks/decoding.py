"""Decoding speed: sentences per second through a signature of an export.

    python benchmarks/decoding.py --model_dir=model/best --source=test.en

The translator is exported twice for each beam size: once so that every sentence
takes exactly `--steps` steps (the end symbol is forbidden before that), and
once unchanged. A new process on one thread, with TensorFlow and TensorFlow Text
only, loads an export and translates `--sentences` lines, sorted by length, in
batches. Times are processor time of that process. The rate of a matrix product
is printed with them, because a busy machine slows both alike.

    python -m benchmarks.peers --data_dir=multi30k-tok --peers=joeynmt \
        --natural_updates=420 --work_dir=peers
    python benchmarks/decoding.py --model_dir=model/best --source=test.en \
        --peer=joeynmt=peers/joeynmt --words=test.tok.en

These commands measure this package, then a peer's model, then this package
again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import peers
from absl import app
from absl import flags
from absl import logging

FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "a translator's folder", required=True)
flags.DEFINE_string("source", None, "text file to translate", required=True)
flags.DEFINE_integer("sentences", 320, "lines to translate; 1/8 at batch 1")
flags.DEFINE_integer("steps", 20, "steps of the search of fixed length")
flags.DEFINE_list("beams", ["12", "5"], "beam sizes")
flags.DEFINE_list("batches", ["32", "1"], "sentences in a request")
flags.DEFINE_bool("natural", True, "whether to measure the unchanged export")
flags.DEFINE_string("signature", "serving_default", "signature to call")
flags.DEFINE_bool("shortlist", False, "whether to use the model's lexicon")
flags.DEFINE_multi_string(
    "peer", [], "a peer's trained model, as NAME=FOLDER; may be repeated"
)
flags.DEFINE_string("words", None, "--source split into words, for --peer")
flags.DEFINE_string(
    "peer_dir", str(peers.PEER_DIR), "folder of the peers' environments"
)
# At batch 1 one of so many lines is translated: fewer requests are enough.
SHARE_ALONE = 8


def main(_: list[str]) -> None:
    """Exports, and measures each export in a new process."""
    from bahdanau_tf import Translator

    peers.check_peers(peer.partition("=")[0] for peer in FLAGS.peer)
    if FLAGS.peer and not FLAGS.words:
        raise app.UsageError("--words is missing, wanted with --peer")
    logging.set_verbosity(logging.WARNING)
    translator = Translator.load(FLAGS.model_dir)
    lines = Path(FLAGS.source).read_text(encoding="utf-8").split("\n")
    lines = lines[: FLAGS.sentences]
    for beam, kind, version in exports(translator):
        for batch in map(int, FLAGS.batches):
            count = len(lines) if batch > 1 else len(lines) // SHARE_ALONE
            found = measured(version, lines[:count], batch)
            print(
                f"beam {beam:2}, batch {batch:2}, {kind}: "
                f"{found['rate']:.1f} sentences/s, "
                f"{1000 / found['rate']:.1f} ms a sentence, "
                f"{found['words']:.1f} tokens each; peak memory "
                f"{found['memory']:.2f} GiB, loaded in {found['load']:.1f} s, "
                f"first request {found['first']:.1f} s; matrix product "
                f"{found['matrix'] / 1e9:.0f} GFLOP/s",
                flush=True,
            )
            for peer in FLAGS.peer:
                steps = None if kind == "natural" else FLAGS.steps
                rate = peer_rate(peer, count, beam, batch, steps)
                again = measured(version, lines[:count], batch)
                ours = (found["rate"] + again["rate"]) / 2
                print(
                    f"    {peer.partition('=')[0]}: {rate:.1f} sentences/s; "
                    f"this package is {ours / rate:.2f} times as fast, "
                    f"measured again: {again['rate']:.1f} sentences/s",
                    flush=True,
                )


def peer_rate(
    peer: str, count: int, beam: int, batch: int, steps: int | None
) -> float:
    """A peer's sentences per second over the first lines of `--words`.

    Args:
        peer: NAME=FOLDER, the peer and the folder of its trained model.
        count: The number of sentences.
        beam: The beam size.
        batch: Sentences per batch.
        steps: The number of words of every output; None if outputs end where
            the model ends them.
    """
    name, _, model = peer.partition("=")
    words = Path(FLAGS.words).read_text(encoding="utf-8").split("\n")
    figures = peers.decode(
        name,
        FLAGS.peer_dir,
        words[:count],
        model=model,
        beam=beam,
        batch=batch,
        steps=steps,
    )
    return figures["sentences_per_second"]


def exports(translator: Any) -> Iterator[tuple[int, str, Path]]:
    """Yields the beam size, the kind of search and the export's folder."""
    given = replace(translator.decoding, shortlist=FLAGS.shortlist)
    exactly = {
        "max_length": FLAGS.steps,
        "max_length_ratio": 1000.0,
        "min_length_ratio": 1000.0,
    }
    kinds: dict[str, dict[str, Any]] = {f"{FLAGS.steps} steps": exactly}
    if FLAGS.natural:
        kinds["natural"] = {}
    for beam in map(int, FLAGS.beams):
        for kind, options in kinds.items():
            translator.decoding = replace(given, beam_size=beam, **options)
            with tempfile.TemporaryDirectory() as folder:
                yield beam, kind, translator.export(folder)


def measured(version: Path, lines: list[str], batch: int) -> dict[str, Any]:
    """The result of `measure`, run in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "child", str(version), str(batch)],
        input=json.dumps([FLAGS.signature, lines]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(
    version: str, batch: int, signature: str, lines: list[str]
) -> dict[str, float]:
    """Loads an export and translates the lines.

    Returns:
        `rate`: sentences per second; `words`: words per translation; `load` and
        `first`: seconds to load and of the first request; `memory`: peak
        resident memory, GiB; `matrix`: operations per second of a matrix
        product. Seconds are processor time.
    """
    import tensorflow as tf
    import tensorflow_text
    from machine import matrix_rate
    from peers.job import peak_gib

    del tensorflow_text  # Importing it registered its operations.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    started = time.process_time()
    translate = tf.saved_model.load(version).signatures[signature]
    loaded = time.process_time()
    lines = sorted(lines, key=lambda line: len(line.split()))
    requests = [
        tf.constant(lines[i : i + batch]) for i in range(0, len(lines), batch)
    ]
    words = 0

    def run(request: Any) -> None:
        nonlocal words
        text = translate(text=request)["translation"].numpy()
        words += sum(len(line.split()) for line in text)

    begun = time.process_time()
    run(requests[len(requests) // 2])
    first, words = time.process_time() - begun, 0
    begun = time.process_time()
    for request in requests:
        run(request)
    taken = time.process_time() - begun
    return {
        "rate": len(lines) / taken,
        "words": words / len(lines),
        "load": loaded - started,
        "first": first,
        "memory": peak_gib("self"),
        "matrix": matrix_rate(),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        signature, given = json.load(sys.stdin)
        found = measure(sys.argv[2], int(sys.argv[3]), signature, given)
        print(json.dumps(found))
    else:
        app.run(main)
