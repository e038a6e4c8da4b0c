"""Parallel text: reading, selection, batches."""

from bahdanau_tf.data.parallel import ParallelCorpus as ParallelCorpus
from bahdanau_tf.options.recipe import Batching as Batching
