"""The built-in corpus: English and French with gold alignments."""

from bahdanau_tf.corpora.grammar.corpus import Example
from bahdanau_tf.corpora.grammar.corpus import generate
from bahdanau_tf.corpora.grammar.corpus import write_corpus
from bahdanau_tf.corpora.grammar.spelling import phrases

__all__ = ["Example", "generate", "phrases", "write_corpus"]
