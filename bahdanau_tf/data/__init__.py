"""Parallel text: read, chosen from, cut into batches."""

from bahdanau_tf.data.batching import Batching
from bahdanau_tf.data.parallel import ParallelCorpus

__all__ = ["Batching", "ParallelCorpus"]
