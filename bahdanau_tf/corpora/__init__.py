"""Corpora: the built-in grammar and parallel text files."""

from bahdanau_tf.corpora.grammar import Example
from bahdanau_tf.corpora.grammar import generate
from bahdanau_tf.corpora.grammar import write_corpus
from bahdanau_tf.corpora.parallel import ParallelCorpus

__all__ = ["Example", "ParallelCorpus", "generate", "write_corpus"]
