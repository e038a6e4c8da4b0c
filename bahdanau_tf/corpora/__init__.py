"""Corpora: one that a grammar writes, and public ones that are fetched."""

from bahdanau_tf.corpora.grammar import Example
from bahdanau_tf.corpora.grammar import generate
from bahdanau_tf.corpora.grammar import write_corpus

__all__ = ["Example", "generate", "write_corpus"]
