"""How fast text files become batches, and in how much memory.

    python benchmarks/data.py --source=train.en --target=train.fr

The vocabulary is learned from the first lines only, and this is not measured.
Prints the seconds of wall-clock time and of processor time to the first batch;
then, over `--batches` batches, sentence pairs per second of processor time, the
share of padding, and the peak of resident memory.
"""

from __future__ import annotations

import itertools
import resource
import sys
import tempfile
import time

import tensorflow as tf
from absl import app, flags

from bahdanau_tf import ParallelCorpus, WordTokenizer
from bahdanau_tf.data.dataset import Statistics, stream_batches

FLAGS = flags.FLAGS
flags.DEFINE_string("source", None, "text file", required=True)
flags.DEFINE_string("target", None, "its translation", required=True)
flags.DEFINE_string("source_language", "en", "code of the source language")
flags.DEFINE_string("target_language", "fr", "code of the target language")
flags.DEFINE_integer("batches", 1000, "batches to read")
VOCABULARY_LINES = 20_000


def main(_: list[str]) -> None:
    """Measures."""
    tf.config.threading.set_inter_op_parallelism_threads(2)
    texts = [
        tokenizer(FLAGS.source, FLAGS.source_language),
        tokenizer(FLAGS.target, FLAGS.target_language),
    ]
    start, used = time.monotonic(), time.process_time()
    corpus = ParallelCorpus(FLAGS.source, FLAGS.target)
    batches = iter(stream_batches(corpus, *texts))
    next(batches)
    print(
        f"{len(corpus)} pairs; first batch after "
        f"{time.monotonic() - start:.1f} s, "
        f"{time.process_time() - used:.1f} s of processor time"
    )
    used = time.process_time()
    statistics = Statistics()
    for batch, _ in itertools.islice(batches, FLAGS.batches):
        statistics.add(batch)
    used = time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{statistics.pairs / used:.0f} pairs a second of processor time, "
        f"padding {statistics.padding_share:.1%}, peak {memory:.0f} MiB"
    )


def tokenizer(path: str, language: str) -> WordTokenizer:
    """A tokenizer whose vocabulary is that of the first lines of a file."""
    with open(path, "rb") as file, tempfile.NamedTemporaryFile() as begin:
        begin.writelines(itertools.islice(file, VOCABULARY_LINES))
        begin.flush()
        return WordTokenizer.train([begin.name], 10_000, language)


if __name__ == "__main__":
    sys.exit(app.run(main))
