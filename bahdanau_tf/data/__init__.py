"""Parallel text: reading, selection, batches."""

from bahdanau_tf.data.batching import Batching
from bahdanau_tf.data.parallel import ParallelCorpus

__all__ = ["Batching", "ParallelCorpus"]
