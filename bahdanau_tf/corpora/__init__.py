"""Corpora: a built-in one from a grammar, and public ones to download."""

from bahdanau_tf.corpora.grammar import Example, generate, write_corpus

__all__ = ["Example", "generate", "write_corpus"]
