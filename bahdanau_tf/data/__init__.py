"""Parallel text: reading, selection, batches."""

from bahdanau_tf.data.parallel import ParallelCorpus
from bahdanau_tf.options.recipe import Batching

__all__ = ["Batching", "ParallelCorpus"]
