"""The built-in corpus: English and French with gold alignments."""

from bahdanau_tf.corpora.grammar.corpus import Example, generate, write_corpus
from bahdanau_tf.corpora.grammar.spelling import phrases

__all__ = ["Example", "generate", "phrases", "write_corpus"]
